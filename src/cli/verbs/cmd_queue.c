/* The verbs that hold work back: pause and resume a queue, quiet a worker. */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/args/queue_name.h"
#include "cli/args/whoami.h"
#include "cli/each_shard.h"
#include "cli/quiet_wait.h"
#include "cli/show/json.h"
#include "cli/show/out.h"
#include "cli/show/status.h"

static int run_pause(struct cli *cli, struct err *err)
{
    static const char *const names[] = {"by", "reason", "for", NULL};
    struct ask_call call = {.n = 0};
    char who[192];
    struct reply *r;

    ask_call_puts(&call, cli->argv[0]);
    cli_call_options(&call, cli, names);
    if (cli_value(cli, "by") == NULL) {
        whoami(who, sizeof(who));
        ask_call_puts(&call, "by");
        ask_call_puts(&call, who);
    }
    r = ask_fcall(&cli->server, "later_pause", &call, err);
    if (r == NULL)
        return -1;
    status_show(cli, "queue", cli->argv[0], reply_str(r));
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

static int check_queue(struct cli *cli, struct err *err)
{
    return queue_name_check(cli, cli->argv[0], err);
}

/* A queue that one shard knows is paused in all of them: its next job may come to any. */
static int run_pause_each(struct cli *cli, struct err *err)
{
    if (cli_value(cli, "new") == NULL && each_shard_plain(cli, check_queue, err) < 0)
        return -1;
    return each_shard(cli, run_pause, err);
}

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
    run_pause_each,
};

static int run_resume(struct cli *cli, struct err *err)
{
    static const char *const names[] = {"at", NULL};
    struct ask_call call = {.n = 0};
    struct reply *r;

    ask_call_puts(&call, cli->argv[0]);
    cli_call_options(&call, cli, names);
    r = ask_fcall(&cli->server, "later_resume", &call, err);
    if (r == NULL)
        return -1;
    if (reply_is(r, "not paused") && queue_name_check(cli, cli->argv[0], err) < 0) {
        reply_free(r);
        return -1;
    }
    status_show(cli, "queue", cli->argv[0], reply_str(r));
    reply_free(r);
    return 0;
}

static const struct cli_option resume_options[] = {
    {"at", "TIME", "not now but at: tomorrow 09:00, 18:00, 2030-01-31T09:00:00Z, +5m"},
    {NULL, NULL, NULL},
};

static int run_resume_each(struct cli *cli, struct err *err)
{
    return each_shard(cli, run_resume, err);
}

const struct cli_verb cmd_resume = {
    "resume",
    "QUEUE",
    "let a paused queue run again",
    "Let a paused queue run again, at once or at a time.",
    1,
    1,
    false,
    resume_options,
    run_resume_each,
};

/* held: NULL without --wait. is_over: the wait is, and it is certain that none is held. */
static void show_quiet(const struct cli *cli, bool is_off, int64_t told, const int64_t *held,
                       bool is_over)
{
    if (cli->json) {
        json_t *line = json_object();

        (void)json_object_set_new(line, "quiet", json_boolean(!is_off));
        json_put_int(line, "workers", told);
        if (held != NULL)
            json_put_int(line, "held", *held);
        json_print(line);
        return;
    }
    out_printf("%lld %s told to %s%s\n", (long long)told, told == 1 ? "worker" : "workers",
               is_off ? "start jobs again" : "start no more jobs",
               held != NULL && is_over ? ", and no job is running there" : "");
}

static int read_timeout(const struct cli *cli, struct mono *deadline, struct err *err)
{
    int64_t ms;

    *deadline = MONO_NEVER;
    if (cli_value(cli, "timeout") == NULL)
        return 0;
    if (cli_value(cli, "wait") == NULL)
        return err_set(err, ERR_USAGE, "--timeout goes with --wait");
    if (cli_duration(cli, "timeout", &ms, err) < 0)
        return -1;
    *deadline = mono_add_ms(mono_now(), ms);
    return 0;
}

static int run_quiet(struct cli *cli, struct err *err)
{
    bool is_all = cli_value(cli, "all") != NULL, is_off = cli_value(cli, "off") != NULL;
    bool waits = cli_value(cli, "wait") != NULL;
    const char *who = is_all ? "*" : cli->argv[0];
    int64_t told, held = 0;
    struct mono deadline;
    struct reply *r;
    int rc = 0;

    if (is_all == (cli->argc == 1))
        return err_set(err, ERR_USAGE,
                       "give either one worker (later workers lists them) or --all");
    if (waits && is_off)
        return err_set(err, ERR_USAGE, "--wait waits for jobs to end: it does not go with --off");
    if (read_timeout(cli, &deadline, err) < 0)
        return -1;
    r = ask_words(&cli->server, err, "later_v1_quiet", who, is_off ? "off" : "on", NULL);
    if (r == NULL)
        return -1;
    told = reply_int(r);
    reply_free(r);
    if (waits)
        rc = quiet_wait(cli, who, deadline, &held, err);
    if (rc == 0 || err->code == ERR_TEMP)
        show_quiet(cli, is_off, told, waits ? &held : NULL, rc == 0);
    return rc;
}

static const struct cli_option quiet_options[] = {
    {"all", NULL, "every worker"},
    {"off", NULL, "let it start jobs again"},
    {"wait", NULL, "return when it holds no job any more"},
    {"timeout", "D", "with --wait: exit with 75 if that takes longer"},
    {NULL, NULL, NULL},
};

static int run_quiet_each(struct cli *cli, struct err *err)
{
    return each_shard(cli, run_quiet, err);
}

const struct cli_verb cmd_quiet = {
    "quiet",
    "WORKER | --all",
    "tell a worker to start no more jobs",
    "Tell a worker (the number that `later workers` shows) or all of them to start no\n"
    "more jobs; running ones go on. --off takes it back. A worker that is restarted is\n"
    "not quiet. With --wait it returns when the worker holds nothing: then its host can be\n"
    "worked on, or its handlers replaced.\n"
    "\n"
    "  later quiet 1795383564186000 --wait --timeout 10m",
    0,
    1,
    false,
    quiet_options,
    run_quiet_each,
};
