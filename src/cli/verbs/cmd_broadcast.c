/* later broadcast: a job for each worker of a queue, or for each of their hosts. */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

#include "ask/add_call.h"
#include "ask/shards.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "cli/args/payload.h"
#include "cli/args/recents.h"
#include "cli/await.h"
#include "cli/each_shard.h"
#include "cli/show/json.h"
#include "cli/show/out.h"

#define AWAITED_KEEP "1h" /* --wait asks for one job after the other */

static const struct cli_option options[] = {
    {"per", "WHAT", "worker (default): each of them runs it; host: one worker of each host does"},
    {"in", "D", "run them after this time: 250ms 10s 5m 1h30m 7d"},
    {"at", "TIME", "run them at: tomorrow 09:00, 18:00, 2030-01-31T09:00:00Z, @SECONDS"},
    {"priority", "P", "0 first ... 9 last (default: 5)"},
    {"key", "K", "what they are about; the handlers get it as LATER_KEY"},
    {"attempts", "N", "starts before one is dead (default: its queue's)"},
    {"timeout", "D", "how long one attempt may run"},
    {"expire", "D", "dead if not started within this time of when it was due (default: 1h)"},
    {"keep", "D", "how long the outcome is kept when it is done"},
    {"token", "T", "broadcast once: the same token within 24 h adds no further job"},
    {"trace", "T", "a W3C traceparent for the handlers"},
    {"wait", NULL, "wait until all have ended, and tell how, one by one"},
    {"wait-timeout", "D", "with --wait: wait at most this long for all of them"},
    {NULL, NULL, NULL},
};

/* Read once, since standard input has an end: each shard gets the same. */
static struct buf payload = BUF_INIT;

static struct reply *broadcast(struct cli *cli, struct err *err)
{
    static const char *const names[] = {"in",       "at",      "priority", "key",
                                        "attempts", "timeout", "expire",   "keep",
                                        "token",    "trace",   NULL};
    struct ask_call call = {.n = 0};
    const char *per = cli_value(cli, "per");
    char token[ADD_TOKEN];

    ask_call_puts(&call, cli->argv[0]);
    ask_call_puts(&call, "per");
    ask_call_puts(&call, per != NULL ? per : "worker");
    cli_call_options(&call, cli, names);
    if (cli_value(cli, "wait") != NULL && cli_value(cli, "keep") == NULL) {
        ask_call_puts(&call, "keep");
        ask_call_puts(&call, AWAITED_KEEP);
    }
    if (cli_value(cli, "token") == NULL && add_token(&call, token, err) < 0)
        return NULL;
    ask_call_add(&call, buf_str(&payload), payload.len);
    return add_call(&cli->server, "later_broadcast", &call, err);
}

/* One job of the broadcast. */
struct one {
    const char *id, *target;
};

/* outcome: NULL where nobody waits. */
static void show(void *arg, const struct cli *cli, const struct outcome *outcome)
{
    const struct one *one = arg;
    CLEANUP_BUF struct buf line = BUF_INIT;

    if (cli->json) {
        json_t *object = json_object();

        json_put_text(object, "target", one->target, strlen(one->target));
        json_put_text(object, "id", one->id, strlen(one->id));
        if (outcome != NULL)
            outcome_to_json(outcome, object);
        json_print(object);
        return;
    }
    text_escape(&line, one->id, strlen(one->id));
    buf_puts(&line, "  ");
    text_escape(&line, one->target, strlen(one->target));
    if (outcome != NULL) {
        buf_puts(&line, "  ");
        text_escape(&line, outcome->state, strlen(outcome->state));
        buf_puts(&line, outcome->reason_len > 0 ? ": " : "");
        text_escape(&line, outcome->reason, outcome->reason_len);
    }
    out_printf("%s\n", buf_str(&line));
    (void)out_flush();
}

/* Wait for each in turn. Returns the status of the first that was not done; 0: all were. */
static int wait_for_all(struct cli *cli, const struct reply *r, int64_t timeout_ms, struct err *err)
{
    struct mono deadline = await_deadline(timeout_ms);
    int status = 0;

    for (size_t i = 1; i < reply_count(r); i++) {
        const struct reply *row = reply_at(r, i);
        struct one one = {reply_str(reply_at(row, 1)), reply_str(reply_at(row, 0))};
        char text[SHARDS_ID];
        int its =
            await_with(cli, shards_show_id(&cli->server, one.id, text), deadline, show, &one, err);

        if (its < 0)
            return -1;
        status = status == 0 ? its : status;
    }
    return status;
}

static int run(struct cli *cli, struct err *err)
{
    bool waits = cli_value(cli, "wait") != NULL;
    int64_t timeout_ms = AWAIT_FOREVER;
    struct reply *r;
    int status = 0;

    if (await_timeout(cli, &timeout_ms, err) < 0)
        return -1;
    r = broadcast(cli, err);
    if (r == NULL)
        return -1;
    if (reply_count(r) == 1 && waits) {
        reply_free(r);
        return err_set(err, ERR_REFUSED,
                       "ELATER_WORKER no worker serves queue %.64s now (`later workers`): nothing "
                       "was run",
                       cli->argv[0]);
    }
    if (reply_count(r) == 1 && !cli->json)
        (void)fprintf(stderr, "later: no worker serves queue %.64s now (`later workers`)\n",
                      cli->argv[0]);
    if (waits) { /* whoever gives up waiting finds them by @ */
        recents_note_rows(cli, r, 1, 1);
        status = wait_for_all(cli, r, timeout_ms, err);
    }
    for (size_t i = 1; !waits && i < reply_count(r); i++) {
        const struct reply *row = reply_at(r, i);
        struct one one = {reply_str(reply_at(row, 1)), reply_str(reply_at(row, 0))};

        show(&one, cli, NULL);
    }
    if (!waits)
        recents_note_rows(cli, r, 1, 1);
    reply_free(r);
    return status;
}

static int run_each(struct cli *cli, struct err *err)
{
    int status = -1;

    if (ask_target(&cli->server, err) == 0 && payload_take(cli, 1, &payload, err) == 0)
        status = each_shard(cli, run, err);
    buf_done(&payload);
    return status;
}

const struct cli_verb cmd_broadcast = {
    "broadcast",
    "QUEUE [PAYLOAD|-]",
    "run a job in each worker of a queue, or on each host",
    "Add a job with PAYLOAD for each live worker that serves QUEUE now: only that worker\n"
    "runs it. With --per host each host gets one, and any of its workers runs it. PAYLOAD\n"
    "is read as by `later add`.\n"
    "\n"
    "  later broadcast reload --wait\n"
    "\n"
    "It prints a line for each: its id, and the worker (its epoch, as in `later workers`)\n"
    "or the host. These jobs pass no gates. When its worker goes before the job has run,\n"
    "the job is cancelled: `its worker is gone`. On a host the next worker takes it. A\n"
    "worker that was told to be quiet is left out.\n"
    "\n"
    "--wait tells how they ended, in that order, and exits with the status of the first\n"
    "that is not done (see `later help wait`), or 66: no worker was there. Their outcomes are kept "
    "for an hour, unless\n"
    "--keep says how long.",
    1,
    2,
    false,
    options,
    run_each,
};
