/* later batch: jobs that are counted together. One function for each of its subcommands. */
#include "cli/cli.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ask/shards.h"
#include "base/clock.h"
#include "base/text.h"
#include "cli/again.h"
#include "cli/args/subcommands.h"
#include "cli/bulk/add_from.h"
#include "cli/bulk/feed.h"
#include "cli/each_shard.h"
#include "cli/show/batch.h"
#include "cli/show/json.h"
#include "cli/show/out.h"
#include "cli/show/status.h"
#include "cli/show/table.h"

#define ASK_AGAIN_MS 30000

/* Call the function with the name of the batch. The caller frees the reply; NULL with err. */
static struct reply *call_named(struct cli *cli, const char *function, struct err *err)
{
    return ask_words(&cli->server, err, function, cli->argv[1], NULL);
}

/* ---- add, seal */

/* Open the batch. 0, or -1 with err. *ret_status: "opened" or "repeated". */
static int open_batch(struct cli *cli, const char *payload, char ret_status[16], struct err *err)
{
    static const char *const names[] = {"then", "finally", "keep", NULL};
    struct ask_call call = {.n = 0};
    struct reply *r;

    ask_call_puts(&call, cli->argv[1]);
    cli_call_options(&call, cli, names);
    if (cli_value(cli, "on-dead") != NULL) {
        ask_call_puts(&call, "on_dead");
        ask_call_puts(&call, cli_value(cli, "on-dead"));
    }
    ask_call_puts(&call, payload);
    r = ask_fcall(&cli->server, "later_batch", &call, err);
    if (r == NULL)
        return -1;
    (void)snprintf(ret_status, 16, "%.15s", reply_str(reply_at(r, 1)));
    reply_free(r);
    return 0;
}

static const char *payload_of(const struct cli *cli, int at)
{
    return cli->argc > at ? cli->argv[at] : "";
}

static int run_add(struct cli *cli, struct err *err)
{
    char status[16];

    if (open_batch(cli, payload_of(cli, 2), status, err) < 0)
        return -1;
    status_show_again(cli, "batch", cli->argv[1], status, "is open already");
    return 0;
}

static int run_seal(struct cli *cli, struct err *err)
{
    struct reply *r = call_named(cli, "later_batch_seal", err);

    if (r == NULL)
        return -1;
    status_show_again(cli, "batch", cli->argv[1], reply_str(reply_at(r, 1)), "is sealed already");
    reply_free(r);
    return 0;
}

/* ---- run */

/* What can be known before the batch is opened, which would stay open for nothing. 0 or -1. */
static int check_run(const char *queue, const char *from, struct err *err)
{
    CLEANUP_BUF struct buf safe = BUF_INIT;

    if (from == NULL)
        return err_set(err, ERR_USAGE, "write later batch run NAME QUEUE --from FILE (-: stdin)");
    if (text_is_queue_name(queue, strlen(queue)))
        return feed_check(from, err);
    text_escape(&safe, queue, strlen(queue));
    text_cut(&safe, 64);
    return err_set(err, ERR_FORMAT,
                   "'%s' is no queue name (letters, digits, _ and -, at most 64, a letter or digit "
                   "first)",
                   buf_str(&safe));
}

static int run_run(struct cli *cli, struct err *err)
{
    const char *name = cli->argv[1], *queue = cli->argv[2], *from = cli_value(cli, "from");
    struct ask_call front = {.n = 0};
    struct reply *r;
    char opened[16];
    int status;

    if (check_run(queue, from, err) < 0)
        return -1;
    if (open_batch(cli, payload_of(cli, 3), opened, err) < 0)
        return -1;
    ask_call_puts(&front, queue);
    ask_call_puts(&front, "batch");
    ask_call_puts(&front, name);
    status = add_from(cli, &front, from, err);
    if (status != 0) {
        (void)fprintf(stderr,
                      "later: batch %s stays open: add what is missing (later add %s --batch %s "
                      "--from FILE), then later batch seal %s\n",
                      name, queue, name, name);
        return status;
    }
    r = call_named(cli, "later_batch_seal", err);
    reply_free(r);
    return r != NULL ? 0 : -1;
}

/* ---- show, ls */

static void show(struct cli *cli, const struct reply *r)
{
    const struct reply *id = cli->json ? NULL : reply_named(r, "first_dead");
    int64_t now_ms = ask_now_ms(&cli->server);
    struct err ignored = ERR_INIT;
    struct reply *job =
        id != NULL ? ask_words(&cli->server, &ignored, "later_show", reply_str(id), NULL) : NULL;

    batch_show(cli, r, job, now_ms);
    reply_free(job);
}

static int run_show(struct cli *cli, struct err *err)
{
    struct reply *r = call_named(cli, "later_batch_show", err);

    if (r == NULL)
        return -1;
    show(cli, r);
    reply_free(r);
    return 0;
}

/* Ask for pages until there are no more. put: shows the rows of a page. */
static int each_page(struct cli *cli, const char *function, struct ask_call *call,
                     void (*put)(const struct cli *cli, struct table *table, const struct reply *r),
                     struct table *table, struct err *err)
{
    char cursor[24] = "0";

    do {
        struct ask_call with = *call;
        struct reply *r;

        ask_call_puts(&with, cursor);
        r = ask_fcall(&cli->server, function, &with, err);
        if (r == NULL)
            return -1;
        text_copy(cursor, sizeof(cursor), reply_str(reply_at(r, 0)));
        put(cli, table, r);
        if (!cli->json)
            table_flush(table);
        reply_free(r);
    } while (strcmp(cursor, "0") != 0 && !out_has_failed());
    return 0;
}

static int list_batches(struct cli *cli, struct err *err)
{
    struct ask_call call = {.n = 0};
    struct table table;
    int rc;

    batch_table_init(&table);
    rc = each_page(cli, "later_v1_batches", &call, batch_put_rows, &table, err);
    table_done(&table);
    return rc;
}

static void put_members(const struct cli *cli, struct table *table, const struct reply *r)
{
    for (size_t i = 1; i < reply_count(r); i++) {
        const struct reply *id = reply_at(reply_at(r, i), 0), *state = reply_at(reply_at(r, i), 1);

        if (cli->json) {
            json_t *line = json_object();

            json_put_text(line, "id", reply_str(id), reply_len(id));
            json_put_text(line, "state", reply_str(state), reply_len(state));
            json_print(line);
        } else {
            table_add(table, reply_str(id), reply_len(id));
            table_add(table, reply_str(state), reply_len(state));
        }
    }
}

static int list_members(struct cli *cli, struct err *err)
{
    static const struct table_column columns[] = {{"ID", false, false}, {"STATE", false, false}};
    struct ask_call call = {.n = 0};
    struct table table;
    int rc;

    ask_call_puts(&call, cli->argv[1]);
    if (cli_value(cli, "state") != NULL)
        ask_call_puts(&call, cli_value(cli, "state"));
    table_init(&table, columns, 2);
    rc = each_page(cli, "later_batch_jobs", &call, put_members, &table, err);
    table_done(&table);
    return rc;
}

static int run_ls(struct cli *cli, struct err *err)
{
    if (cli->argc > 1)
        return list_members(cli, err);
    if (cli_value(cli, "state") != NULL)
        return err_set(err, ERR_USAGE, "--state is of members: write later batch ls NAME --state");
    return each_shard(cli, list_batches, err);
}

/* ---- cancel */

static int run_cancel(struct cli *cli, struct err *err)
{
    char before[16] = "";
    int64_t cancelled = 0, cancelling = 0;

    do {
        struct reply *r =
            ask_words(&cli->server, err, "later_batch_cancel", cli->argv[1], before, NULL);

        if (r == NULL)
            return -1;
        cancelled += reply_int(reply_at(r, 0));
        cancelling += reply_int(reply_at(r, 1));
        text_copy(before, sizeof(before), reply_str(reply_at(r, 2)));
        reply_free(r);
    } while (before[0] != '\0');
    if (cli->json) {
        json_t *line = json_object();

        json_put_text(line, "batch", cli->argv[1], strlen(cli->argv[1]));
        json_put_int(line, "cancelled", cancelled);
        json_put_int(line, "cancelling", cancelling);
        json_print(line);
    } else {
        out_printf("%" PRId64 " cancelled, %" PRId64 " running ones are being ended\n", cancelled,
                   cancelling);
    }
    return 0;
}

/* ---- wait */

/* 1: the batch has ended, *ret is its exit status. 0: not yet. -1 with err. */
static int has_ended(struct cli *cli, int *ret, struct err *err)
{
    struct reply *r = call_named(cli, "later_batch_show", err);
    bool has;

    if (r == NULL)
        return -1;
    has = reply_is(reply_named(r, "state"), "ended");
    *ret = reply_int(reply_named(r, "done")) == reply_int(reply_named(r, "total")) ? 0 : 1;
    if (has)
        show(cli, r);
    reply_free(r);
    return has;
}

/* Wait for a message, but not for long: the batch is asked again then. 0 or -1. */
static int listen(const struct cli *cli, struct client *events, struct mono deadline,
                  struct err *err)
{
    int64_t left_ms = mono_until_us(mono_now(), deadline) / 1000 + 1;
    struct reply *r;

    if (left_ms <= 1)
        return err_set(err, ERR_TEMP, "batch %.128s has not ended yet", cli->argv[1]);
    r = client_message(events, left_ms < ASK_AGAIN_MS ? left_ms : ASK_AGAIN_MS, err);
    if (r == NULL && err->code != ERR_TEMP)
        return -1;
    reply_free(r);
    return 0;
}

/* Until the link is lost, or the batch has ended: 1, with its exit status. -1 with err. */
static int wait_on_link(struct cli *cli, struct mono deadline, struct again *again, int *status,
                        struct err *err)
{
    struct client *events;
    char channel[160];
    int ended;

    if (ask_target(&cli->server, err) < 0)
        return -1;
    shards_use_name(&cli->server, cli->argv[1], strlen(cli->argv[1]));
    (void)snprintf(channel, sizeof(channel), "ended:batch:%.128s", cli->argv[1]);
    events = ask_subscribe(&cli->server, channel, err);
    if (events == NULL)
        return -1;
    again->has_begun = true;
    while ((ended = has_ended(cli, status, err)) == 0) {
        again_well(again);
        if (listen(cli, events, deadline, err) < 0) {
            ended = -1;
            break;
        }
    }
    client_close(events);
    return ended;
}

static int run_wait(struct cli *cli, struct err *err)
{
    struct mono deadline = MONO_NEVER;
    struct again again = {0};
    int64_t timeout_ms = -1;
    int status = 0;

    if (cli_duration(cli, "timeout", &timeout_ms, err) < 0)
        return -1;
    if (timeout_ms >= 0)
        deadline = mono_add_ms(mono_now(), timeout_ms);
    while (wait_on_link(cli, deadline, &again, &status, err) < 0) {
        if (!again_after(&again, cli, deadline, err))
            return -1;
    }
    return status;
}

/* ---- the verb */

static const struct subcommand subcommands[] = {
    {"add", 1, 2, "NAME [PAYLOAD]",
     (const char *const[]){"then", "finally", "on-dead", "keep", NULL}, run_add},
    {"seal", 1, 1, "one NAME", (const char *const[]){NULL}, run_seal},
    {"run", 2, 3, "NAME QUEUE [PAYLOAD]",
     (const char *const[]){"then", "finally", "on-dead", "keep", "from", NULL}, run_run},
    {"show", 1, 1, "one NAME", (const char *const[]){NULL}, run_show},
    {"ls", 0, 1, "at most one NAME", (const char *const[]){"state", NULL}, run_ls},
    {"cancel", 1, 1, "one NAME", (const char *const[]){NULL}, run_cancel},
    {"wait", 1, 1, "one NAME", (const char *const[]){"timeout", NULL}, run_wait},
    {NULL, 0, 0, NULL, NULL, NULL},
};

static const struct cli_option options[] = {
    {"then", "QUEUE", "add, run: gets a job when all members are done"},
    {"finally", "QUEUE", "add, run: gets a job when all members have ended in whichever way"},
    {"on-dead", "QUEUE", "add, run: gets a job when the first member dies"},
    {"keep", "D", "add, run: how long it can be looked at after its end (default: 1d)"},
    {"from", "FILE", "run: a member for each line of FILE (-: standard input)"},
    {"state", "live|done|dead|cancelled", "ls NAME: only members in this state"},
    {"timeout", "D", "wait: at most this long"},
    {NULL, NULL, NULL},
};

static int run(struct cli *cli, struct err *err)
{
    return subcommands_run(cli, subcommands, err);
}

const struct cli_verb cmd_batch = {
    "batch",
    "add NAME [PAYLOAD] | seal NAME | run NAME QUEUE [PAYLOAD] --from FILE | show NAME | "
    "ls [NAME] | cancel NAME | wait NAME",
    "jobs that are counted together, and a job when all have ended",
    "A batch counts jobs and adds others when they have ended. Open it, let jobs join it,\n"
    "and seal it when no more come from outside:\n"
    "\n"
    "  later batch add import-7 --then report --finally clean-up '{\"import\":7}'\n"
    "  later add rows --batch import-7 --from rows.txt\n"
    "  later batch seal import-7\n"
    "\n"
    "`run` does all three. PAYLOAD is that of the callbacks: the jobs of --then (all members\n"
    "are done), --finally (all have ended, in whichever way) and --on-dead (one died). Each\n"
    "comes exactly once. A dead member that is retried and done lets --then come later.\n"
    "Members may add members after the seal, too.\n"
    "\n"
    "show: how far it is. ls: all batches, or the members of one. cancel: ends the live\n"
    "members; running ones get TERM. wait: until it has ended; exits 0 if all are done,\n"
    "1 if not, 75 if it has not ended within --timeout.",
    1,
    4,
    false,
    options,
    run,
};
