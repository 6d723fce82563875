#include "cli/cli.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/args/job_state.h"
#include "cli/args/queue_name.h"
#include "cli/bulk/meter.h"
#include "cli/show/json.h"
#include "cli/show/out.h"

struct purge {
    struct cli *cli;
    const char *queue, *state;
    int64_t removed, left;
};

/* Remove at most this many in one call; 0: only count what is left. 0 or -1. */
static int remove_some(struct purge *p, int64_t most, struct err *err)
{
    struct cli_call call = {.n = 0};
    char digits[24];
    struct reply *r;
    int64_t removed;

    (void)snprintf(digits, sizeof(digits), "%lld", (long long)most);
    cli_call_puts(&call, p->queue);
    cli_call_puts(&call, p->state);
    cli_call_puts(&call, digits);
    r = cli_fcall(p->cli, "later_v1_purge", &call, err);
    if (r == NULL)
        return -1;
    removed = reply_int(reply_at(r, 0));
    p->removed += removed;
    p->left = reply_int(reply_at(r, 1));
    reply_free(r);
    if (removed < 0 || removed > most || p->left < 0)
        return err_set(err, ERR_DATA, "the library answered in a shape that is not known");
    return 0;
}

static const char *jobs(int64_t n)
{
    return n == 1 ? "job" : "jobs";
}

/* Ask the person at the terminal. 1: yes. 0: no. -1 with err: there is no terminal. */
static int ask(const struct purge *p, struct err *err)
{
    char answer[16] = "";

    if (isatty(STDIN_FILENO) != 1 || isatty(STDERR_FILENO) != 1)
        return err_set(err, ERR_USAGE,
                       "there is no terminal to ask on: --yes removes %lld %s %s of queue %s, "
                       "--dry-run only counts them",
                       (long long)p->left, p->state, jobs(p->left), p->queue);
    (void)fprintf(stderr, "Remove %lld %s %s of queue %s? [y/N] ", (long long)p->left, p->state,
                  jobs(p->left), p->queue);
    (void)fflush(stderr);
    if (fgets(answer, sizeof(answer), stdin) == NULL)
        return 0;
    answer[strcspn(answer, "\n")] = '\0';
    return strcasecmp(answer, "y") == 0 || strcasecmp(answer, "yes") == 0;
}

static void show(const struct purge *p, bool is_dry)
{
    if (p->cli->json) {
        json_t *line = json_object();

        json_put_text(line, "queue", p->queue, strlen(p->queue));
        json_put_text(line, "state", p->state, strlen(p->state));
        json_put_int(line, "removed", p->removed);
        json_put_int(line, "left", p->left);
        json_print(line);
        return;
    }
    if (is_dry) {
        out_printf("%lld %s %s would be removed\n", (long long)p->left, p->state, jobs(p->left));
        return;
    }
    out_printf("%lld %s %s removed", (long long)p->removed, p->state, jobs(p->removed));
    if (p->left > 0)
        out_printf(", %lld left", (long long)p->left);
    out_printf("\n");
}

/* Remove as many jobs as were counted before the question. */
static int remove_all(struct purge *p, struct err *err)
{
    int64_t wanted = p->left, before = -1;
    struct meter meter;
    int result = 0;

    meter_init(&meter, !p->cli->json, (uint64_t)wanted);
    while (result == 0 && p->removed < wanted && p->left > 0 && p->removed != before) {
        before = p->removed;
        result = remove_some(p, wanted - p->removed, err);
        meter_show(&meter, (uint64_t)p->removed, (uint64_t)p->removed);
    }
    meter_wipe(&meter);
    return result;
}

/* Remove the name of the queue. The library refuses if it has jobs or a worker. */
static int forget(struct cli *cli, struct err *err)
{
    struct cli_call call = {.n = 0};
    struct reply *r;

    if (cli_value(cli, "state") != NULL || cli_value(cli, "dry-run") != NULL)
        return err_set(err, ERR_USAGE,
                       "--forget removes no jobs: give it without --state and "
                       "--dry-run");
    if (queue_name_check(cli, cli->argv[0], err) < 0)
        return -1;
    cli_call_puts(&call, cli->argv[0]);
    r = cli_fcall(cli, "later_v1_forget", &call, err);
    if (r == NULL)
        return -1;
    if (cli->json) {
        json_t *line = json_object();

        json_put_text(line, "queue", cli->argv[0], strlen(cli->argv[0]));
        json_put_text(line, "status", reply_str(r), reply_len(r));
        json_print(line);
    } else {
        out_text(cli->argv[0], strlen(cli->argv[0]));
        out_printf(" %s\n", reply_str(r));
    }
    reply_free(r);
    return 0;
}

static int run(struct cli *cli, struct err *err)
{
    const char *given = cli_value(cli, "state");
    bool is_dry = cli_value(cli, "dry-run") != NULL;
    struct purge p = {.cli = cli, .queue = cli->argv[0]};
    int wants = 1, result = 0;

    if (cli_value(cli, "forget") != NULL)
        return forget(cli, err);
    if (given == NULL)
        return err_set(err, ERR_USAGE, "which jobs? --state due, parked, dead or done");
    if (strcmp(given, job_state_name(JOB_STATE_RUNNING)) == 0)
        return err_set(err, ERR_USAGE,
                       "a running job is ended, not removed: later cancel --running "
                       "ID (later ls QUEUE --state running lists them)");
    p.state = given;
    if (remove_some(&p, 0, err) < 0 || (p.left == 0 && queue_name_check(cli, p.queue, err) < 0))
        return -1;
    if (!is_dry && p.left > 0 && cli_value(cli, "yes") == NULL)
        wants = ask(&p, err);
    if (wants < 0)
        return -1;
    if (!is_dry && wants > 0)
        result = remove_all(&p, err);
    show(&p, is_dry);
    return result;
}

static const struct cli_option options[] = {
    {"state", "due|parked|running|dead|done",
     "which jobs (due: those that wait; running ones are cancelled)"},
    {"forget", NULL, "forget the name of a queue without jobs that no worker serves"},
    {"yes", NULL, "do not ask"},
    {"dry-run", NULL, "only tell how many there are"},
    {NULL, NULL, NULL},
};

const struct cli_verb cmd_purge = {
    "purge",
    "QUEUE (--state S | --forget)",
    "remove all jobs of a queue in one state",
    "Remove the jobs of QUEUE that are in one state, with their payloads, the gates they\n"
    "wait for or were let in at, and their unique keys. There is no way back: `later export\n"
    "QUEUE --state S` keeps a copy. It asks before, and removes as many as it said, the\n"
    "first ones first: pause the queue if more may come. Waiting and parked ones count as\n"
    "cancelled, and whoever waits for one is told so; nothing of them is kept, whatever\n"
    "their keep says. Running jobs are ended by `later cancel --running`.\n"
    "\n"
    "With --forget the queue itself is removed: its counters, its pause, what workers said\n"
    "of it. It may have no jobs and no worker then.",
    1,
    1,
    false,
    options,
    run,
};
