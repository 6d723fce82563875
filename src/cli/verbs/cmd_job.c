/* The verbs that act on jobs by id: cancel, run-now, reschedule, retry ID (for retry --all:
 * retry_all). */
#include "cli/cli.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "base/text.h"
#include "cli/bulk/retry_all.h"
#include "cli/complain.h"
#include "cli/each_shard.h"
#include "cli/show/json.h"
#include "cli/show/out.h"

/* r: a word, or [id, word, due_ms]. */
static void show(const struct cli *cli, const char *id, const struct reply *r)
{
    bool has_due = reply_kind(r) == REPLY_ARRAY;
    const struct reply *word = has_due ? reply_at(r, 1) : r;
    char instant[48];

    if (cli->json) {
        json_t *line = json_object();

        json_put_text(line, "id", id, strlen(id));
        json_put_text(line, "status", reply_str(word), reply_len(word));
        if (has_due)
            json_put_int(line, "due_ms", reply_int(reply_at(r, 2)));
        json_print(line);
        return;
    }
    out_text(id, strlen(id));
    out_printf(" ");
    out_text(reply_str(word), reply_len(word));
    if (has_due)
        out_printf(", due %s", out_instant(reply_int(reply_at(r, 2)), instant));
    out_printf("\n");
}

/* Call function with the id and, unless it is NULL, more. Show the reply. */
static int act(struct cli *cli, const char *function, const char *id, const char *more,
               struct err *err)
{
    struct reply *r = ask_words(&cli->server, err, function, id, more, NULL);

    if (r == NULL)
        return -1;
    show(cli, id, r);
    reply_free(r);
    return 0;
}

/* A script that reads JSON Lines gets each failure as an object, too. */
static void print_failure(const char *operand, const struct err *err)
{
    json_t *line = json_object();

    json_put_text(line, "id", operand, strlen(operand));
    json_put_text(line, "status", "failed", 6);
    json_put_text(line, "error", err->text, strlen(err->text));
    json_print(line);
}

/*
 * Call one() for every operand. A failure is printed and the next operand follows, unless the
 * server cannot be reached or denied the call. Returns the exit status of the first failure, or 0.
 */
static int each(struct cli *cli, int (*one)(struct cli *cli, const char *operand, struct err *err))
{
    int status = 0;

    for (int i = 0; i < cli->argc; i++) {
        struct err err = ERR_INIT;

        if (one(cli, cli->argv[i], &err) == 0)
            continue;
        complain(cli, &err);
        if (cli->json)
            print_failure(cli->argv[i], &err);
        if (status == 0)
            status = complain_status(&err);
        if (err.code == ERR_UNAVAILABLE || err.code == ERR_DENIED)
            break;
    }
    return status;
}

static int cancel_one(struct cli *cli, const char *id, struct err *err)
{
    const char *more = cli_value(cli, "running") != NULL ? NULL : "waiting";

    if (act(cli, "later_cancel", id, more, err) == 0)
        return 0;
    if (more != NULL && ask_is_refusal(err, "ELATER_STATE") &&
        strstr(err->text, "is running") != NULL)
        (void)err_set(err, ERR_REFUSED,
                      "ELATER_STATE job %.40s is running: --running cancels it all the same", id);
    return -1;
}

static int run_cancel(struct cli *cli, struct err *err)
{
    (void)err;
    return each(cli, cancel_one);
}

static const struct cli_option cancel_options[] = {
    {"running", NULL, "also a running job: its handler is terminated"},
    {NULL, NULL, NULL},
};

const struct cli_verb cmd_cancel = {
    "cancel",
    "ID...",
    "end waiting jobs, with --running also running ones",
    "End jobs that are wanted no more. A waiting one ends at once. A running one is\n"
    "refused without --running; with it its handler gets TERM and after kill_grace\n"
    "KILL (\"cancelling\"; `later wait ID` tells when it is gone). QUEUE@KEY names the job\n"
    "that has a unique key; if it has ended and unique_for still holds the key, the key is\n"
    "\"freed\".",
    1,
    CLI_MANY,
    false,
    cancel_options,
    run_cancel,
};

static int run_now_one(struct cli *cli, const char *id, struct err *err)
{
    return act(cli, "later_run_now", id, NULL, err);
}

static int run_run_now(struct cli *cli, struct err *err)
{
    (void)err;
    return each(cli, run_now_one);
}

const struct cli_verb cmd_run_now = {
    "run-now",
    "ID...",
    "make waiting jobs due at once",
    "Make waiting jobs due at once, whatever time they were put off to.",
    1,
    CLI_MANY,
    false,
    NULL,
    run_run_now,
};

static int run_reschedule(struct cli *cli, struct err *err)
{
    const char *in = cli_value(cli, "in"), *at = cli_value(cli, "at");
    CLEANUP_FREE char *from_now = NULL;

    if ((in != NULL) == (at != NULL))
        return err_set(err, ERR_USAGE, "give the new time: either --in D or --at TIME");
    if (in != NULL)
        from_now = mem_printf("+%s", in);
    return act(cli, "later_reschedule", cli->argv[0], in != NULL ? from_now : at, err);
}

static const struct cli_option reschedule_options[] = {
    {"in", "D", "this long from now: 250ms 10s 5m 1h30m 7d"},
    {"at", "TIME", "tomorrow 09:00, 18:00, 2030-01-31T09:00:00Z, @SECONDS"},
    {NULL, NULL, NULL},
};

const struct cli_verb cmd_reschedule = {
    "reschedule",
    "ID (--in D | --at TIME)",
    "give a waiting job another due time",
    "Give a waiting job another due time, earlier or later.",
    1,
    1,
    false,
    reschedule_options,
    run_reschedule,
};

static int retry_one(struct cli *cli, const char *id, struct err *err)
{
    return act(cli, "later_retry", id, cli_value(cli, "from-start") != NULL ? "from_start" : NULL,
               err);
}

/* Whether it may be a job: j and 11 characters, QUEUE@KEY, @2. */
static bool looks_like_job(const char *word)
{
    return strchr(word, '@') != NULL || (word[0] == 'j' && strlen(word) == 12);
}

/* IDs and nothing else. A single word that is none is most likely a queue. */
static int retry_ids(struct cli *cli, struct err *err)
{
    CLEANUP_BUF struct buf safe = BUF_INIT;

    if (cli->argc > 1 || looks_like_job(cli->argv[0]))
        return each(cli, retry_one);
    text_escape(&safe, cli->argv[0], strlen(cli->argv[0]));
    text_cut(&safe, 64);
    return err_set(err, ERR_INPUT,
                   "'%s' is no job id (j and 11 characters): of a queue write --all, --reason TEXT "
                   "or --key KEY",
                   buf_str(&safe));
}

static int retry_queue(struct cli *cli, struct err *err)
{
    struct retry_order order = {.queue = cli->argv[0],
                                .is_from_start = cli_value(cli, "from-start") != NULL};

    if (row_filter_read(cli, &order.filter, err) < 0 ||
        cli_duration(cli, "spread", &order.spread_ms, err) < 0)
        return -1;
    return retry_all(cli, &order, err);
}

static int run_retry(struct cli *cli, struct err *err)
{
    bool is_filtered = cli_value(cli, "key") != NULL || cli_value(cli, "reason") != NULL;

    if (cli_value(cli, "all") == NULL && !is_filtered)
        return cli_value(cli, "spread") == NULL
                   ? retry_ids(cli, err)
                   : err_set(err, ERR_USAGE, "--spread goes with QUEUE --all");
    if (cli->argc != 1)
        return err_set(err, ERR_USAGE, "--all, --reason and --key take one queue");
    return each_shard(cli, retry_queue, err);
}

static const struct cli_option retry_options[] = {
    {"all", NULL, "every dead job of the queue"},
    {"reason", "TEXT", "those that died with this reason (ls --by reason); * and ? as in a shell"},
    {"key", "KEY", "those with this key"},
    {"spread", "D", "with a queue: make them due evenly over this time"},
    {"from-start", NULL, "forget their checkpoints and the steps that they have kept"},
    {NULL, NULL, NULL},
};

const struct cli_verb cmd_retry = {
    "retry",
    "ID... | QUEUE (--all | --reason TEXT | --key KEY)",
    "run dead jobs again",
    "Run dead jobs again. Their attempts are counted from the start. With --all every\n"
    "job that is dead when the command starts, with --reason and --key those among them;\n"
    "--spread keeps them from all being due at once.\n"
    "\n"
    "  later ls mail --by reason\n"
    "  later retry mail --reason 'no route to *' --spread 1h",
    1,
    CLI_MANY,
    false,
    retry_options,
    run_retry,
};
