#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/mem.h"
#include "cli/args/job_state.h"
#include "cli/args/queue_name.h"
#include "cli/bulk/meter.h"
#include "cli/each_shard.h"
#include "cli/question.h"
#include "cli/show/json.h"
#include "cli/show/out.h"
#include "cli/show/status.h"

/* Running jobs are held by a worker. */
#define STATES_ARG "due|parked|dead|done|all,..."

/* The jobs in one state. */
struct purge {
    struct cli *cli;
    const char *queue, *state;
    int64_t removed, left;
};

/* Remove at most this many in one call; 0: only count what is left. 0 or -1. */
static int remove_some(struct purge *p, int64_t most, struct err *err)
{
    char digits[24];
    struct reply *r;
    int64_t removed;

    (void)snprintf(digits, sizeof(digits), "%lld", (long long)most);
    r = ask_words(&p->cli->server, err, "later_v1_purge", p->queue, p->state, digits, NULL);
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

/* "3 due, 1 dead" of those of which there are any, or of the only one. */
static void list(struct buf *out, const struct purge *p, size_t n, int64_t *total)
{
    *total = 0;
    for (size_t i = 0; i < n; i++) {
        if (p[i].left > 0 || n == 1)
            buf_printf(out, "%s%lld %s", out->len > 0 ? ", " : "", (long long)p[i].left,
                       p[i].state);
        *total += p[i].left;
    }
}

/* Ask the person at the terminal. 1: yes. 0: no, or there are no jobs. -1 with err: there is no
 * terminal. */
static int ask(const struct purge *p, size_t n, struct err *err)
{
    CLEANUP_BUF struct buf what = BUF_INIT;
    CLEANUP_FREE char *question = NULL, *yes = NULL;
    int64_t total;

    list(&what, p, n, &total);
    if (total == 0)
        return 0;
    question = mem_printf("Remove %s %s of queue %s?", buf_str(&what), jobs(total), p->queue);
    yes = mem_printf("removes %s %s of queue %s, --dry-run only counts them", buf_str(&what),
                     jobs(total), p->queue);
    return question_ask(question, yes, err);
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
    struct reply *r;

    if (cli_value(cli, "state") != NULL || cli_value(cli, "dry-run") != NULL)
        return err_set(err, ERR_USAGE,
                       "--forget removes no jobs: give it without --state and "
                       "--dry-run");
    if (queue_name_check(cli, cli->argv[0], err) < 0)
        return -1;
    r = ask_words(&cli->server, err, "later_v1_forget", cli->argv[0], NULL);
    if (r == NULL)
        return -1;
    status_show(cli, "queue", cli->argv[0], reply_str(r));
    reply_free(r);
    return 0;
}

/* Those of the states that were asked for, each counted. 0 or -1. */
static int count(struct cli *cli, const char *given, struct purge out[JOB_STATE_MAX], size_t *n,
                 struct err *err)
{
    bool is_wanted[JOB_STATE_MAX];

    job_states_of(given, is_wanted);
    is_wanted[JOB_STATE_RUNNING] = false;
    for (int i = 0; i < JOB_STATE_MAX; i++) {
        if (!is_wanted[i])
            continue;
        out[*n] = (struct purge){
            .cli = cli, .queue = cli->argv[0], .state = job_state_name((enum job_state)i)};
        if (remove_some(&out[(*n)++], 0, err) < 0)
            return -1;
    }
    return 0;
}

static int run(struct cli *cli, struct err *err)
{
    const char *given = cli_value(cli, "state");
    bool is_dry = cli_value(cli, "dry-run") != NULL;
    struct purge of[JOB_STATE_MAX];
    size_t n = 0;
    int wants = 1, result = 0;

    if (cli_value(cli, "forget") != NULL)
        return forget(cli, err);
    if (given == NULL)
        return err_set(err, ERR_USAGE, "which jobs? --state due, parked, dead, done or all");
    if (queue_name_check(cli, cli->argv[0], err) < 0 || count(cli, given, of, &n, err) < 0)
        return -1;
    if (!is_dry && cli_value(cli, "yes") == NULL)
        wants = ask(of, n, err);
    if (wants < 0)
        return -1;
    for (size_t i = 0; i < n && result == 0; i++) {
        if (!is_dry && wants > 0)
            result = remove_all(&of[i], err);
        show(&of[i], is_dry);
    }
    return result;
}

static const struct cli_option options[] = {
    {"state", STATES_ARG,
     "which jobs (due: those that wait; running ones are ended by later cancel --running ID)"},
    {"forget", NULL, "forget the name of a queue without jobs that no worker serves"},
    {"yes", NULL, "do not ask"},
    {"dry-run", NULL, "only tell how many there are"},
    {NULL, NULL, NULL},
};

static int run_each(struct cli *cli, struct err *err)
{
    return each_shard(cli, run, err);
}

const struct cli_verb cmd_purge = {
    "purge",
    "QUEUE (--state S | --forget)",
    "remove all jobs of a queue in some states",
    "Remove the jobs of QUEUE that are in these states, with their payloads, the gates they\n"
    "wait for or were let in at, and their unique keys (one that unique_for holds stays\n"
    "taken: later cancel QUEUE@KEY). There is no way back: `later export\n"
    "QUEUE --state S` keeps a copy. It asks before, and removes as many as it said, the\n"
    "first ones first: pause the queue if more may come. Waiting and parked ones count as\n"
    "cancelled, and whoever waits for one is told so; nothing of them is kept, whatever\n"
    "their keep says. `all` is every state but running: a running job is held by a worker, and\n"
    "`later cancel --running ID` ends it (`later ls QUEUE --state running` lists them). A line\n"
    "for each state says what was removed.\n"
    "\n"
    "With --forget the queue itself is removed: its counters, its pause, what workers said\n"
    "of it. It may have no jobs and no worker then.",
    1,
    1,
    false,
    options,
    run_each,
};
