/* The verbs that hold work back: pause and resume a queue, quiet a worker. */
#include "cli/cli.h"

#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/args/queue_name.h"
#include "cli/show/json.h"
#include "cli/show/out.h"

static void show(const struct cli *cli, const char *name, const char *what, const struct reply *r)
{
    if (cli->json) {
        json_t *line = json_object();

        json_put_text(line, what, name, strlen(name));
        json_put_text(line, "status", reply_str(r), reply_len(r));
        json_print(line);
        return;
    }
    out_text(name, strlen(name));
    out_printf(" ");
    out_text(reply_str(r), reply_len(r));
    out_printf("\n");
}

/* USER@HOST, so that a person who finds the queue paused knows whom to ask. */
static void whoami(char *out, size_t cap)
{
    const struct passwd *user = getpwuid(geteuid());
    char host[65] = "";

    (void)gethostname(host, sizeof(host) - 1);
    if (user != NULL)
        (void)snprintf(out, cap, "%s@%s", user->pw_name, host);
    else
        (void)snprintf(out, cap, "%lu@%s", (unsigned long)geteuid(), host);
}

static int run_pause(struct cli *cli, struct err *err)
{
    static const char *const names[] = {"by", "reason", "for", NULL};
    struct cli_call call = {.n = 0};
    char who[192];
    struct reply *r;

    if (cli_value(cli, "new") == NULL && queue_name_check(cli, cli->argv[0], err) < 0)
        return -1;
    cli_call_puts(&call, cli->argv[0]);
    cli_call_options(&call, cli, names);
    if (cli_value(cli, "by") == NULL) {
        whoami(who, sizeof(who));
        cli_call_puts(&call, "by");
        cli_call_puts(&call, who);
    }
    r = cli_fcall(cli, "later_pause", &call, err);
    if (r == NULL)
        return -1;
    show(cli, cli->argv[0], "queue", r);
    reply_free(r);
    return 0;
}

static const struct cli_option pause_options[] = {
    {"reason", "TEXT", "why, for those who look at the queue"},
    {"for", "D", "only this long: 250ms 10s 5m 1h30m 7d"},
    {"by", "WHO", "who pauses it (default: USER@HOST)"},
    {"new", NULL, "also a queue that does not exist yet"},
    {NULL, NULL, NULL},
};

const struct cli_verb cmd_pause = {
    "pause",
    "QUEUE",
    "start no more jobs of a queue",
    "Start no more jobs of QUEUE, on any worker, until `later resume QUEUE` or for the\n"
    "time given. Jobs can still be added; running ones go on.",
    1,
    1,
    false,
    pause_options,
    run_pause,
};

static int run_resume(struct cli *cli, struct err *err)
{
    static const char *const names[] = {"at", NULL};
    struct cli_call call = {.n = 0};
    struct reply *r;

    cli_call_puts(&call, cli->argv[0]);
    cli_call_options(&call, cli, names);
    r = cli_fcall(cli, "later_resume", &call, err);
    if (r == NULL)
        return -1;
    if (reply_is(r, "not paused") && queue_name_check(cli, cli->argv[0], err) < 0) {
        reply_free(r);
        return -1;
    }
    show(cli, cli->argv[0], "queue", r);
    reply_free(r);
    return 0;
}

static const struct cli_option resume_options[] = {
    {"at", "TIME", "not now but at: tomorrow 09:00, 18:00, 2030-01-31T09:00:00Z, +5m"},
    {NULL, NULL, NULL},
};

const struct cli_verb cmd_resume = {
    "resume",
    "QUEUE",
    "let a paused queue run again",
    "Let a paused queue run again, at once or at a time.",
    1,
    1,
    false,
    resume_options,
    run_resume,
};

static int run_quiet(struct cli *cli, struct err *err)
{
    bool is_all = cli_value(cli, "all") != NULL, is_off = cli_value(cli, "off") != NULL;
    struct cli_call call = {.n = 0};
    struct reply *r;

    if (is_all == (cli->argc == 1))
        return err_set(err, ERR_USAGE,
                       "give either one worker (later workers lists them) or --all");
    cli_call_puts(&call, is_all ? "*" : cli->argv[0]);
    cli_call_puts(&call, is_off ? "off" : "on");
    r = cli_fcall(cli, "later_v1_quiet", &call, err);
    if (r == NULL)
        return -1;
    if (cli->json) {
        json_t *line = json_object();

        (void)json_object_set_new(line, "quiet", json_boolean(!is_off));
        json_put_int(line, "workers", reply_int(r));
        json_print(line);
    } else {
        out_printf("%lld %s told to %s\n", (long long)reply_int(r),
                   reply_int(r) == 1 ? "worker" : "workers",
                   is_off ? "start jobs again" : "start no more jobs");
    }
    reply_free(r);
    return 0;
}

static const struct cli_option quiet_options[] = {
    {"all", NULL, "every worker"},
    {"off", NULL, "let it start jobs again"},
    {NULL, NULL, NULL},
};

const struct cli_verb cmd_quiet = {
    "quiet",
    "WORKER | --all",
    "tell a worker to start no more jobs",
    "Tell a worker (the number that `later workers` shows) or all of them to start no\n"
    "more jobs; running ones go on. --off takes it back. A worker that is restarted is\n"
    "not quiet.",
    0,
    1,
    false,
    quiet_options,
    run_quiet,
};
