/* later bulk: one change of many jobs of a queue. One function for each of its subcommands. */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "cli/args/queue_name.h"
#include "cli/args/subcommands.h"
#include "cli/args/whoami.h"
#include "cli/each_shard.h"
#include "cli/question.h"
#include "cli/show/bulk.h"
#include "cli/show/json.h"
#include "cli/show/out.h"
#include "cli/show/row.h"
#include "cli/show/status.h"
#include "cli/show/table.h"
#include "json/bulk.h"

/* ---- retry, cancel, reschedule, purge */

/* The state that is meant; NULL with err. */
static const char *state_of(const struct cli *cli, struct err *err)
{
    const char *state = cli_value(cli, "state"), *verb = cli->argv[0];

    if (state != NULL)
        return state;
    if (strcmp(verb, "retry") == 0)
        return "dead";
    (void)err_set(err, ERR_USAGE, "which jobs? --state %s",
                  strcmp(verb, "purge") == 0 ? "due, parked, dead or done" : "due or parked");
    return NULL;
}

/* How many jobs are in this state. -1 with err. */
static int64_t count(struct cli *cli, const char *state, struct err *err)
{
    struct reply *r =
        ask_words(&cli->server, err, "later_v1_purge", cli->argv[1], state, "0", NULL);
    int64_t n = reply_int(reply_at(r, 1));

    if (r == NULL)
        return -1;
    reply_free(r);
    return n;
}

/* A job that is cancelled or purged does not come back. 1: go on. 0: no. -1 with err. */
static int ask(struct cli *cli, const char *state, struct err *err)
{
    bool is_purge = strcmp(cli->argv[0], "purge") == 0;
    const char *most = cli_value(cli, "reason") != NULL || cli_value(cli, "key") != NULL
                           ? "those that are meant of "
                           : "";
    CLEANUP_FREE char *question = NULL, *yes = NULL;
    int64_t n;

    if (cli_value(cli, "yes") != NULL || (!is_purge && strcmp(cli->argv[0], "cancel") != 0))
        return 1;
    n = count(cli, state, err);
    if (n < 0)
        return -1;
    question = mem_printf("%s %s%lld %s %s of queue %s?", is_purge ? "Remove" : "Cancel", most,
                          (long long)n, state, n == 1 ? "job" : "jobs", cli->argv[1]);
    yes = mem_printf("%s %s%lld %s %s of queue %s", is_purge ? "removes" : "cancels", most,
                     (long long)n, state, n == 1 ? "job" : "jobs", cli->argv[1]);
    return question_ask(question, yes, err);
}

/* What it became, as `later bulk show` has it for scripts. 0, or -1 with err. */
static int show_new(struct cli *cli, const char *id, struct err *err)
{
    struct reply *r = ask_words(&cli->server, err, "later_bulk_show", id, NULL);
    bool is_done = reply_is(reply_named(r, "status"), "done");
    long long failed = reply_named_int(r, "failed", 0), total = reply_named_int(r, "total", 0);

    if (r == NULL)
        return -1;
    if (cli->json)
        json_print(bulk_to_json(r));
    else if (is_done)
        out_printf("%s done: %lld of %lld changed, %lld failed\n", id,
                   (long long)reply_named_int(r, "changed", 0), total, failed);
    else
        out_printf("%s has begun with %lld jobs at most: later bulk show %s\n", id, total, id);
    if (failed > 0 && !cli->json) {
        out_label("last error");
        out_text(reply_str(reply_named(r, "error")), reply_len(reply_named(r, "error")));
        out_printf("\n");
    }
    reply_free(r);
    return 0;
}

static int put_time(struct ask_call *call, const struct cli *cli, char **from_now, struct err *err)
{
    const char *in = cli_value(cli, "in"), *at = cli_value(cli, "at");

    if (in != NULL && at != NULL)
        return err_set(err, ERR_USAGE, "give the new time: either --in D or --at TIME");
    if (strcmp(cli->argv[0], "reschedule") == 0 && in == NULL && at == NULL)
        return err_set(err, ERR_USAGE, "give the new time: --in D or --at TIME");
    if (in == NULL && at == NULL)
        return 0;
    if (in != NULL)
        *from_now = mem_printf("+%s", in);
    ask_call_puts(call, "at");
    ask_call_puts(call, in != NULL ? *from_now : at);
    return 0;
}

static int begin(struct cli *cli, struct err *err)
{
    static const char *const names[] = {"reason", "key", "to", "rate", "spread", "by", "why", NULL};
    const char *state = state_of(cli, err);
    CLEANUP_FREE char *from_now = NULL;
    struct ask_call call = {.n = 0};
    struct row_filter filter;
    char who[192], id[16];
    struct reply *r;
    int wants;

    if (state == NULL || row_filter_read(cli, &filter, err) < 0 ||
        queue_name_check(cli, cli->argv[1], err) < 0)
        return -1;
    ask_call_puts(&call, cli->argv[0]);
    ask_call_puts(&call, cli->argv[1]);
    ask_call_puts(&call, state);
    cli_call_options(&call, cli, names);
    if (put_time(&call, cli, &from_now, err) < 0)
        return -1;
    if (cli_value(cli, "by") == NULL) {
        whoami(who, sizeof(who));
        ask_call_puts(&call, "by");
        ask_call_puts(&call, who);
    }
    wants = ask(cli, state, err);
    if (wants <= 0)
        return wants;
    r = ask_fcall(&cli->server, "later_bulk", &call, err);
    if (r == NULL)
        return -1;
    (void)snprintf(id, sizeof(id), "%.15s", reply_str(reply_at(r, 0)));
    reply_free(r);
    return show_new(cli, id, err);
}

static int run_new(struct cli *cli, struct err *err)
{
    return each_shard(cli, begin, err);
}

/* ---- ls, show, abort */

static int list(struct cli *cli, struct err *err)
{
    struct reply *r = ask_words(&cli->server, err, "later_bulk_show", NULL);
    struct table table;

    if (r == NULL)
        return -1;
    bulk_table_init(&table);
    for (size_t i = 0; i < reply_count(r); i++) {
        if (cli->json)
            json_print(bulk_to_json(reply_at(r, i)));
        else
            bulk_put_row(&table, reply_at(r, i));
    }
    if (!cli->json)
        table_flush(&table);
    table_done(&table);
    reply_free(r);
    return 0;
}

static int run_ls(struct cli *cli, struct err *err)
{
    return each_shard(cli, list, err);
}

static int run_show(struct cli *cli, struct err *err)
{
    struct reply *r = ask_words(&cli->server, err, "later_bulk_show", cli->argv[1], NULL);

    if (r == NULL)
        return -1;
    if (cli->json)
        json_print(bulk_to_json(r));
    else
        bulk_show(r, ask_now_ms(&cli->server));
    reply_free(r);
    return 0;
}

static int run_abort(struct cli *cli, struct err *err)
{
    const char *by = cli_value(cli, "by");
    struct reply *r;
    char who[192];

    whoami(who, sizeof(who));
    r = ask_words(&cli->server, err, "later_bulk_abort", cli->argv[1], by != NULL ? by : who, NULL);
    if (r == NULL)
        return -1;
    status_show(cli, "bulk", cli->argv[1], reply_str(reply_at(r, 1)));
    reply_free(r);
    return 0;
}

/* ---- the verb */

static const struct subcommand subcommands[] = {
    {"retry", 1, 1, "one QUEUE",
     (const char *const[]){"state", "reason", "key", "to", "rate", "spread", "in", "at", "by",
                           "why", NULL},
     run_new},
    {"cancel", 1, 1, "one QUEUE",
     (const char *const[]){"state", "reason", "key", "rate", "by", "why", "yes", NULL}, run_new},
    {"reschedule", 1, 1, "one QUEUE",
     (const char *const[]){"state", "reason", "key", "rate", "in", "at", "by", "why", NULL},
     run_new},
    {"purge", 1, 1, "one QUEUE",
     (const char *const[]){"state", "reason", "key", "rate", "by", "why", "yes", NULL}, run_new},
    {"ls", 0, 0, "no operand", (const char *const[]){NULL}, run_ls},
    {"show", 1, 1, "one ID", (const char *const[]){NULL}, run_show},
    {"abort", 1, 1, "one ID", (const char *const[]){"by", NULL}, run_abort},
    {NULL, 0, 0, NULL, NULL, NULL},
};

static const struct cli_option options[] = {
    {"state", "due|parked|dead|done", "which jobs (retry: dead; cancel, reschedule: due, parked)"},
    {"reason", "TEXT", "only those that last failed with this reason; * and ? as in a shell"},
    {"key", "KEY", "only those with this key"},
    {"to", "QUEUE", "retry: there, not in their own queue"},
    {"rate", "N/D", "so many jobs in a time: 50/s 100/1m"},
    {"spread", "D", "retry: make them due evenly over this time"},
    {"in", "D", "reschedule, retry: the new due time, this long from now"},
    {"at", "TIME", "the same: tomorrow 09:00, 18:00, 2030-01-31T09:00:00Z, @SECONDS"},
    {"by", "WHO", "who does it (default: USER@HOST)"},
    {"why", "TEXT", "why, for those who look at it"},
    {"yes", NULL, "cancel, purge: do not ask"},
    {NULL, NULL, NULL},
};

static int run(struct cli *cli, struct err *err)
{
    return subcommands_run(cli, subcommands, err);
}

const struct cli_verb cmd_bulk = {
    "bulk",
    "retry|cancel|reschedule|purge QUEUE --state S | ls | show ID | abort ID",
    "change many jobs of a queue, which the workers do bit by bit",
    "Retry, cancel, reschedule or purge all jobs of QUEUE in one state, or those of them that\n"
    "--reason and --key name. Which jobs is fixed when the command runs: none that comes\n"
    "later belongs to them, nor does one that is retried and dies again. Raw members (ZADD)\n"
    "have no id and are left. Fewer than 200 jobs are done at once; more are changed bit by\n"
    "bit by the workers, at --rate if that is given, and this command need not wait.\n"
    "\n"
    "  later bulk retry mail --reason 'no route to *' --rate 50/s\n"
    "  later bulk retry mail --to mail-slow --spread 1h --why 'outage of 3 May'\n"
    "  later bulk cancel mail --state due --key user:42\n"
    "  later bulk ls\n"
    "\n"
    "A job that cannot be changed (another has its unique key, say) counts as failed, and\n"
    "the rest go on. abort: what is changed stays so, what is left stays as it is. show and\n"
    "ls have a bulk for a day after its end.",
    1,
    2,
    false,
    options,
    run,
};
