#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

#include "ask/listing.h"
#include "ask/reasons.h"
#include "ask/replies.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "cli/args/job_state.h"
#include "cli/args/queue_name.h"
#include "cli/each_shard.h"
#include "cli/show/groups.h"
#include "cli/show/json.h"
#include "cli/show/out.h"
#include "cli/show/row.h"
#include "cli/show/table.h"
#include "json/outcome.h"

#define LIMIT_ON_TTY 100
#define COLUMNS 11 /* most */

static const struct state_row {
    struct table_column columns[COLUMNS];
} states[JOB_STATE_MAX] = {
    [JOB_STATE_WAITING] = {{{"ID", false, false},
                            {"DUE", false, false},
                            {"PRI", true, false},
                            {"KEY", false, true},
                            {"TRIES", true, false},
                            {"BYTES", true, TABLE_SPARE},
                            {"PAYLOAD", false, true},
                            {"LAST FAILURE", false, true}}},
    [JOB_STATE_RUNNING] = {{{"ID", false, false},
                            {"QUEUE", false, true},
                            {"WORKER", false, false},
                            {"HOST", false, true},
                            {"SINCE", false, false},
                            {"PRI", true, false},
                            {"KEY", false, true},
                            {"TRIES", true, false},
                            {"BYTES", true, TABLE_SPARE},
                            {"PAYLOAD", false, true},
                            {"PROGRESS", false, true}}},
    [JOB_STATE_PARKED] = {{{"ID", false, false},
                           {"PARKED", false, false},
                           {"PRI", true, false},
                           {"KEY", false, true},
                           {"TRIES", true, false},
                           {"BYTES", true, TABLE_SPARE},
                           {"PAYLOAD", false, true},
                           {"WAITS FOR", false, true}}},
    [JOB_STATE_DEAD] = {{{"ID", false, false},
                         {"DIED", false, false},
                         {"PRI", true, false},
                         {"KEY", false, true},
                         {"TRIES", true, false},
                         {"BYTES", true, TABLE_SPARE},
                         {"PAYLOAD", false, true},
                         {"REASON", false, true}}},
    [JOB_STATE_DONE] = {{{"ID", false, false},
                         {"KEPT", false, false},
                         {"PRI", true, false},
                         {"KEY", false, true},
                         {"TRIES", true, false},
                         {"BYTES", true, TABLE_SPARE},
                         {"PAYLOAD", false, true},
                         {"OUTCOME", false, true}}},
};

struct ls {
    struct cli *cli;
    const char *queue; /* "*": all of them; only of running jobs */
    const char *name;  /* of the state */
    const struct state_row *state;
    struct row_filter filter;
    const char *by;        /* reason or key; NULL: list the jobs */
    struct groups *groups; /* of this state, if by is given */
    struct table table;
    int64_t now_ms;
};

static void put_remark(struct ls *ls, const struct reply *last, const struct reply *gate)
{
    struct outcome outcome;

    if (ls->state == &states[JOB_STATE_PARKED]) {
        if (reply_len(gate) > 0)
            table_add(&ls->table, reply_str(gate), reply_len(gate));
        else
            table_printf(&ls->table, "(let in)");
        return;
    }
    if (outcome_parse(reply_str(last), reply_len(last), &outcome) == 0)
        table_add(&ls->table, outcome.reason, outcome.reason_len);
    else
        table_add(&ls->table, reply_str(last), reply_len(last));
}

/* The library gives the first 64 bytes of a payload. */
static void put_preview(struct ls *ls, const struct reply *row)
{
    const struct reply *preview = reply_at(row, ROW_PREVIEW);
    CLEANUP_BUF struct buf text = BUF_INIT;

    buf_add(&text, reply_str(preview), job_row_preview(row));
    if ((int64_t)reply_len(preview) < reply_int(reply_at(row, ROW_BYTES)))
        buf_puts(&text, "...");
    table_add(&ls->table, buf_str(&text), text.len);
}

/* The queue of a running job, its worker, the host, and since when it runs. */
static void put_where(struct ls *ls, const struct reply *row)
{
    static const enum row_field fields[] = {ROW_QUEUE, ROW_SCORE, ROW_HOST};
    int64_t since_ms = reply_int(reply_at(row, ROW_SINCE));
    char when[48];

    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
        table_add(&ls->table, reply_str(reply_at(row, fields[i])),
                  reply_len(reply_at(row, fields[i])));
    table_printf(&ls->table, "%s", since_ms > 0 ? out_when(since_ms, ls->now_ms, when) : "-");
}

static void put_row(struct ls *ls, const struct reply *row)
{
    const struct reply *id = reply_at(row, ROW_ID);
    const struct reply *score = reply_at(row, ROW_SCORE), *key = reply_at(row, ROW_KEY);
    long long tries[3];
    char when[48];

    job_row_tries(row, tries);
    if (reply_len(id) > 0)
        table_add(&ls->table, reply_str(id), reply_len(id));
    else
        table_printf(&ls->table, "(raw)");
    if (ls->state == &states[JOB_STATE_RUNNING])
        put_where(ls, row);
    else if (ls->state == &states[JOB_STATE_PARKED]) /* a ticket is about a time in us */
        table_printf(&ls->table, "%s", out_when(reply_int(score) / 1000, ls->now_ms, when));
    else
        table_printf(&ls->table, "%s", out_when(reply_int(score), ls->now_ms, when));
    table_add(&ls->table, reply_str(reply_at(row, ROW_PRIORITY)),
              reply_len(reply_at(row, ROW_PRIORITY)));
    if (reply_len(key) > 0)
        table_add(&ls->table, reply_str(key), reply_len(key));
    else
        table_printf(&ls->table, "-");
    table_printf(&ls->table, "%lld", tries[1]);
    table_printf(&ls->table, "%lld", (long long)reply_int(reply_at(row, ROW_BYTES)));
    put_preview(ls, row);
    put_remark(ls, reply_at(row, ROW_LAST), reply_at(row, ROW_GATE));
}

/* A job that has never failed has no reason, and is in no group then. */
static void count_row(struct ls *ls, const struct reply *row)
{
    const struct reply *id = reply_at(row, ROW_ID), *key = reply_at(row, ROW_KEY);
    struct outcome outcome = {.when_ms = 0};
    bool has_failed = job_row_outcome(row, &outcome) == 0, by_key = strcmp(ls->by, "key") == 0;

    CLEANUP_BUF struct buf text = BUF_INIT;

    if (!by_key && !has_failed)
        return;
    if (by_key)
        buf_add(&text, reply_str(key), reply_len(key));
    else
        groups_fold(outcome.reason, outcome.reason_len, &text);
    groups_add(ls->groups, buf_str(&text), text.len, reply_str(id), reply_len(id), outcome.when_ms);
}

static void print_row(const struct ls *ls, const struct reply *row)
{
    json_t *line = job_row_to_json(row, ls->queue[0] == '*' ? NULL : ls->queue, ls->name);

    job_row_put_start(line, row);
    json_print(line);
}

/* Returns whether the job counts against the limit. */
static bool take_row(struct ls *ls, const struct reply *row)
{
    if (!row_is_wanted(&ls->filter, row))
        return false;
    if (ls->by != NULL)
        count_row(ls, row);
    else if (ls->cli->json)
        print_row(ls, row);
    else
        put_row(ls, row);
    return true;
}

static bool is_table(const struct ls *ls)
{
    return !ls->cli->json && ls->by == NULL;
}

/* limit: lowered by the jobs that are shown. */
static int show_pages(struct ls *ls, int64_t *limit, struct err *err)
{
    struct listing list;

    listing_init(&list, ls->queue, ls->name);
    while (!list.is_over && *limit > 0 && !out_has_failed()) {
        struct reply *r = listing_next(&list, &ls->cli->server,
                                       *limit < LISTING_PAGE ? *limit : LISTING_PAGE, err);

        if (r == NULL)
            return -1;
        for (size_t i = 1; i < reply_count(r) && *limit > 0; i++)
            *limit -= take_row(ls, reply_at(r, i));
        reply_free(r);
        if (is_table(ls))
            table_flush(&ls->table);
    }
    if (!list.is_over && out_is_tty() && is_table(ls))
        out_printf("... there are more: --limit N shows them\n");
    return 0;
}

/* The library counts the dead jobs by reason: so their outcomes need not come here. */
static int count_dead(struct ls *ls, struct err *err)
{
    struct reasons reasons;
    int result = 0;

    reasons_init(&reasons, ls->queue);
    while (!reasons.is_over && result == 0 && !out_has_failed()) {
        struct reply *page = reasons_next(&reasons, &ls->cli->server, err);

        for (size_t i = REASONS_FIRST; i < reply_count(page); i++) {
            const struct reply *row = reply_at(page, i), *text = reply_at(row, REASON_TEXT);

            groups_join(
                ls->groups, reply_str(text), reply_len(text),
                reply_int(reply_at(row, REASON_COUNT)), reply_int(reply_at(row, REASON_FIRST_MS)),
                reply_int(reply_at(row, REASON_LAST_MS)), reply_str(reply_at(row, REASON_LAST_ID)));
        }
        result = page == NULL ? -1 : 0;
        reply_free(page);
    }
    reasons_done(&reasons);
    return result;
}

/* Are all dead jobs of the queue to be counted by reason? */
static bool are_dead_counted(const struct ls *ls)
{
    return strcmp(ls->by, "reason") == 0 && ls->state == &states[JOB_STATE_DEAD] &&
           ls->filter.key == NULL && ls->filter.reason == NULL &&
           cli_value(ls->cli, "limit") == NULL;
}

/* The groups of this state, or its jobs. */
static int show_groups(struct ls *ls, int64_t *limit, struct err *err)
{
    int result;

    ls->groups = groups_new();
    result = are_dead_counted(ls) ? count_dead(ls, err) : show_pages(ls, limit, err);
    if (result == 0)
        groups_show(ls->groups, ls->cli->json, ls->by, ls->name, ls->now_ms);
    groups_free(ls->groups);
    return result;
}

/* How many jobs of the queue are in this state. stats: later_stats of it. */
static int64_t in_state(const struct reply *stats, int state)
{
    const struct reply *row = reply_at(stats, STATS_QUEUES),
                       *beside = reply_at(stats, STATS_STATES);
    int64_t parked = reply_int(reply_at(beside, 1));

    switch (state) {
    case JOB_STATE_WAITING:
        return reply_int(reply_at(row, QUEUE_WAITING)) + reply_int(reply_at(row, QUEUE_RAW)) -
               parked;
    case JOB_STATE_RUNNING:
        return reply_int(reply_at(beside, 0));
    case JOB_STATE_PARKED:
        return parked;
    case JOB_STATE_DEAD:
        return reply_int(reply_at(row, QUEUE_DEAD));
    default:
        return reply_int(reply_at(row, QUEUE_KEPT));
    }
}

/* Nothing was shown: say where the queue's jobs are, since a bare header looks like an empty queue.
 */
static void tell_elsewhere(const struct ls *ls)
{
    struct ask_call call = {.n = 0};
    CLEANUP_BUF struct buf text = BUF_INIT;
    struct reply *r;

    if (ls->cli->json || ls->queue[0] == '*' || ls->filter.key != NULL || ls->filter.reason != NULL)
        return;
    ask_call_puts(&call, ls->queue);
    (void)out_flush();
    r = ask_aside(&ls->cli->server, "later_stats", &call);
    for (int s = 0; s < JOB_STATE_MAX; s++) {
        const char *name = job_state_name((enum job_state)s);

        if (in_state(r, s) > 0 && strcmp(name, ls->name) != 0)
            buf_printf(&text, "%s %lld %s (--state %s)", text.len > 0 ? "," : "",
                       (long long)in_state(r, s), s == JOB_STATE_DONE ? "kept" : name, name);
    }
    reply_free(r);
    if (text.len > 0)
        (void)fprintf(stderr, "later: queue %s has no job in state %s; it has%s\n", ls->queue,
                      ls->name, buf_str(&text));
}

/* A table for each state; of several states each has its name above it. */
static int show_state(struct ls *ls, enum job_state which, bool is_one_of_several, int64_t *limit,
                      struct err *err)
{
    int64_t before;
    size_t n;
    int result;

    ls->name = job_state_name(which);
    ls->state = &states[which];
    if (is_one_of_several && !ls->cli->json)
        out_printf("%s%s:%s\n", out_style(OUT_BOLD), ls->name, out_style(OUT_PLAIN));
    if (ls->by != NULL)
        return show_groups(ls, limit, err);
    for (n = 0; n < COLUMNS && ls->state->columns[n].title != NULL;)
        n++;
    before = *limit;
    table_init(&ls->table, ls->state->columns, n);
    result = show_pages(ls, limit, err);
    table_done(&ls->table);
    if (result == 0 && *limit == before && !is_one_of_several)
        tell_elsewhere(ls);
    return result;
}

static int run(struct cli *cli, struct err *err)
{
    const char *given = cli_value(cli, "state"), *limit = cli_value(cli, "limit");
    const char *by = cli_value(cli, "by");
    int64_t max = out_is_tty() && by == NULL ? LIMIT_ON_TTY : INT64_MAX;
    bool is_everywhere = cli->argc == 0, is_running = cli_value(cli, "running") != NULL;
    struct ls ls = {.cli = cli, .queue = is_everywhere ? "*" : cli->argv[0], .by = by};
    bool is_wanted[JOB_STATE_MAX];
    int n = 0, result = 0;

    if (is_running && given != NULL)
        return err_set(err, ERR_USAGE, "--running is --state running: give one of them");
    if (is_everywhere && !is_running)
        return err_set(err, ERR_USAGE,
                       "give a queue; later ls --running lists the running jobs of all queues");
    if (row_filter_read(cli, &ls.filter, err) < 0)
        return -1;
    if (is_running)
        given = "running";
    if (given == NULL)
        given =
            (by != NULL && strcmp(by, "reason") == 0) || ls.filter.reason != NULL ? "dead" : "due";
    job_states_of(given, is_wanted);
    if (limit != NULL && text_parse_int(limit, 1, INT64_MAX, &max) < 0)
        return err_set(err, ERR_USAGE, "--limit is not a number from 1 on");
    if (!is_everywhere && queue_name_check(cli, ls.queue, err) < 0)
        return -1;
    if (!cli->json)
        ls.now_ms = ask_now_ms(&cli->server);
    for (int i = 0; i < JOB_STATE_MAX; i++)
        n += is_wanted[i];
    for (int i = 0; i < JOB_STATE_MAX && result == 0; i++) {
        if (is_wanted[i])
            result = show_state(&ls, (enum job_state)i, n > 1, &max, err);
    }
    return result;
}

static const struct cli_option options[] = {
    {"state", JOB_STATES_ARG, "which jobs (default: due; with reasons: dead)"},
    {"running", NULL, "the running ones; without QUEUE those of all queues"},
    {"key", "KEY", "only jobs with this key"},
    {"reason", "TEXT", "only jobs that last failed with this reason; * and ? as in a shell"},
    {"by", "reason|key", "count them: by the reason of their last failure, or by key"},
    {"limit", "N", "at most N jobs (default: 100 on a terminal, else all)"},
    {NULL, NULL, NULL},
};

static int run_each(struct cli *cli, struct err *err)
{
    return each_shard(cli, run, err);
}

const struct cli_verb cmd_ls = {
    "ls",
    "[QUEUE]",
    "list a queue's jobs",
    "List the jobs of QUEUE, state by state: first what runs first, the dead and the kept\n"
    "by time. Parked jobs wait for a gate: a lock, a semaphore or a rate. \"(raw)\" are\n"
    "members written by ZADD, which get an id when they start. Of a payload the first 64\n"
    "bytes are shown, with \"...\" where there are more: `later show ID` and `later export`\n"
    "have all of it. With --json one object a line. Jobs that move meanwhile may be missed\n"
    "or come twice. Of a running job HOST is where, and SINCE from when it runs (\"-\" for\n"
    "its first five to ten seconds).\n"
    "\n"
    "  later ls mail --by reason              # what do they die of?\n"
    "  later ls mail --reason 'no route to *'\n"
    "  later ls mail --state all --key user:42\n"
    "  later ls --running                     # of all queues",
    0,
    1,
    false,
    options,
    run_each,
};
