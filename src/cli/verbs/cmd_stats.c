/* The verbs stats (the queues of a namespace) and workers. */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

#include "ask/replies.h"
#include "base/text.h"
#include "cli/args/queue_name.h"
#include "cli/each_shard.h"
#include "cli/history.h"
#include "cli/metrics.h"
#include "cli/show/json.h"
#include "cli/show/out.h"
#include "cli/show/table.h"
#include "json/pause.h"
#include "json/stats.h"
#include "json/worker.h"

static void put_pause(struct table *t, const struct stats_rows *r, size_t i, int64_t now_ms)
{
    CLEANUP_BUF struct buf text = BUF_INIT;
    struct pause p;
    char span[48];

    if (stats_pause(r, i, &p)) {
        buf_printf(&text, "by %s", p.by);
        if (p.until_ms != 0)
            buf_printf(&text, ", %s left", text_span(p.until_ms - now_ms, span));
        if (p.reason[0] != '\0')
            buf_printf(&text, ": %s", p.reason);
    }
    table_add(t, buf_str(&text), text.len);
}

static void put_queue(struct table *t, const struct stats_rows *r, size_t i, int64_t now_ms)
{
    static const int counts[] = {QUEUE_DEAD, QUEUE_KEPT, QUEUE_DONE, QUEUE_DIED, QUEUE_CANCELLED};
    const struct reply *name = stats_queue(r, i, QUEUE_NAME), *due = stats_queue(r, i, QUEUE_DUE);
    char when[48];

    table_add(t, reply_str(name), reply_len(name));
    table_printf(t, "%lld",
                 (long long)(reply_int(stats_queue(r, i, QUEUE_WAITING)) +
                             reply_int(stats_queue(r, i, QUEUE_RAW))));
    table_printf(t, "%s", reply_len(due) > 0 ? out_when(reply_int(due), now_ms, when) : "-");
    for (size_t v = 0; v < STATE_VALUES; v++) {
        if (stats_state(r, i, v) != NULL)
            table_printf(t, "%lld", (long long)reply_int(stats_state(r, i, v)));
        else
            table_printf(t, "-");
    }
    for (size_t k = 0; k < sizeof(counts) / sizeof(counts[0]); k++)
        table_printf(t, "%lld", (long long)reply_int(stats_queue(r, i, (size_t)counts[k])));
    put_pause(t, r, i, now_ms);
}

static void put_notes(const struct reply *notes, int64_t now_ms)
{
    char when[48];

    for (size_t i = 0; i + 1 < reply_count(notes); i += 2) {
        out_printf("%s ", i == 0 ? "\nattention:" : "          ");
        out_text(reply_str(reply_at(notes, i)), reply_len(reply_at(notes, i)));
        out_printf(" (seen %s)\n", out_when(reply_int(reply_at(notes, i + 1)), now_ms, when));
    }
}

/* Has the queue nothing that waits, runs or is dead, and no pause? */
static bool is_idle(const struct stats_rows *r, size_t i)
{
    int64_t n = reply_int(stats_queue(r, i, QUEUE_WAITING)) +
                reply_int(stats_queue(r, i, QUEUE_RAW)) + reply_int(stats_queue(r, i, QUEUE_DEAD));

    for (size_t v = 0; v < STATE_VALUES; v++)
        n += stats_state(r, i, v) != NULL ? reply_int(stats_state(r, i, v)) : 0;
    return n == 0 && reply_len(stats_queue(r, i, QUEUE_PAUSED)) == 0;
}

/* By name, those that are idle behind the others: there may be hundreds of them. */
static void put_queues(struct table *t, const struct stats_rows *r, int64_t now_ms)
{
    size_t n = stats_nqueues(r);

    for (int idle = 0; idle < 2; idle++)
        for (size_t i = 0; i < n; i++)
            if (is_idle(r, i) == (idle == 1))
                put_queue(t, r, i, now_ms);
}

static void stats_show(const struct reply *r)
{
    static const struct table_column columns[] = {
        {"QUEUE", false, true},           {"WAITING", true, false},    {"FIRST DUE", false, false},
        {"RUNNING", true, false},         {"PARKED", true, false},     {"DEAD", true, false},
        {"KEPT", true, TABLE_SPARE},      {"DONE", true, TABLE_SPARE}, {"DIED", true, TABLE_SPARE},
        {"CANCELLED", true, TABLE_SPARE}, {"PAUSED", false, true}};
    struct stats_rows rows = stats_rows(r);
    int64_t now_ms = rows.now_ms;
    struct table t;

    out_printf("workers %lld, running %lld, jobs %lld\n",
               (long long)reply_int(reply_at(r, STATS_WORKERS)),
               (long long)reply_int(reply_at(r, STATS_RUNNING)),
               (long long)reply_int(reply_at(r, STATS_JOBS)));
    if (stats_nqueues(&rows) > 0) {
        out_printf("\n");
        table_init(&t, columns, sizeof(columns) / sizeof(columns[0]));
        put_queues(&t, &rows, now_ms);
        table_flush(&t);
        table_done(&t);
    }
    if (reply_int(reply_at(r, STATS_MORE)) > 0)
        out_printf("... and %lld more queues\n", (long long)reply_int(reply_at(r, STATS_MORE)));
    put_notes(reply_at(r, STATS_NOTES), now_ms);
}

static int show_stats(struct cli *cli, struct err *err)
{
    struct reply *r;

    if (cli->argc > 0 && queue_name_check(cli, cli->argv[0], err) < 0)
        return -1;
    r = ask_words(&cli->server, err, "later_stats", cli->argc > 0 ? cli->argv[0] : NULL, NULL);
    if (r == NULL)
        return -1;
    if (cli->json)
        json_print(stats_to_json(r));
    else
        stats_show(r);
    reply_free(r);
    return 0;
}

static int run_stats(struct cli *cli, struct err *err)
{
    if (cli_value(cli, "prometheus") != NULL)
        return metrics_show(cli, err);
    if (cli_value(cli, "since") != NULL || cli_value(cli, "by") != NULL)
        return each_shard(cli, history_show, err);
    return each_shard(cli, show_stats, err);
}

static const struct cli_option stats_options[] = {
    {"since", "DURATION", "what happened since then, by the minute or the hour (1m to 15d)"},
    {"by", "DURATION", "one row for so long (default: at most 30 rows)"},
    {"prometheus", NULL, "as metrics, in Prometheus' text format: write them to a file"},
    {NULL, NULL, NULL},
};

const struct cli_verb cmd_stats = {
    "stats",
    "[QUEUE]",
    "count the jobs of every queue",
    "Show every queue, or one: jobs waiting, when the first is due, how many run, how many of\n"
    "the waiting ones are parked at a gate, dead ones and kept outcomes; and since the namespace "
    "began how many were done, died, were cancelled.\n"
    "Below it what needs attention: stray keys, queues that nobody serves.\n"
    "With --since what happened in a part of the past: jobs added, done, dead, cancelled, "
    "attempts\n"
    "failed, how late half of the starts and 99 in 100 were at most, the time of all runs, and "
    "how\n"
    "many different keys the jobs had. Minutes are kept for 6 hours, hours for 15 days; the "
    "last\n"
    "ten seconds are still to come. At most 256 queues are counted one by one, all others as "
    "~rest.\n"
    "With --prometheus all of them as metrics, for the textfile collector of a node\n"
    "exporter: jobs by queue and state, how late jobs start, what ended how.",
    0,
    1,
    false,
    stats_options,
    run_stats,
};

static void worker_row(struct table *t, const struct reply *worker, int64_t now_ms)
{
    static const int texts[] = {WORKER_EPOCH, WORKER_HOST, WORKER_PID, WORKER_VERSION};
    const struct reply *queues = reply_at(worker, WORKER_SERVES);
    char when[48];

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        table_add(t, reply_str(reply_at(worker, (size_t)texts[i])),
                  reply_len(reply_at(worker, (size_t)texts[i])));
    table_printf(t, "%s", out_when(reply_int(reply_at(worker, WORKER_STARTED)), now_ms, when));
    table_printf(t, "%lld", (long long)worker_running(worker));
    table_printf(t, "%lld",
                 (long long)(reply_int(reply_at(worker, WORKER_HELD)) - worker_running(worker)));
    table_printf(t, "%s", reply_str(reply_at(worker, WORKER_PLACES)));
    table_printf(t, "%s", worker_state(worker));
    table_add(t, reply_str(queues), reply_len(queues));
}

static void workers_show(const struct reply *r)
{
    static const struct table_column columns[] = {
        {"WORKER", false, false},        {"HOST", false, true},           {"PID", true, false},
        {"VERSION", false, TABLE_SPARE}, {"STARTED", false, TABLE_SPARE}, {"RUNNING", true, false},
        {"CLAIMED", true, false},        {"PLACES", true, TABLE_SPARE},   {"STATE", false, false},
        {"QUEUES", false, true}};
    struct table t;

    table_init(&t, columns, sizeof(columns) / sizeof(columns[0]));
    for (size_t i = 1; i < reply_count(r); i++)
        worker_row(&t, reply_at(r, i), reply_int(reply_at(r, 0)));
    table_flush(&t);
    table_done(&t);
}

static int run_workers(struct cli *cli, struct err *err)
{
    struct reply *r = ask_words(&cli->server, err, "later_v1_workers", NULL);

    if (r == NULL)
        return -1;
    for (size_t i = 1; cli->json && i < reply_count(r); i++)
        json_print(worker_to_json(reply_at(r, i)));
    if (!cli->json && reply_count(r) > 1)
        workers_show(r);
    else if (!cli->json)
        out_printf("no worker is running in this namespace\n");
    reply_free(r);
    return 0;
}

static int run_workers_each(struct cli *cli, struct err *err)
{
    return each_shard(cli, run_workers, err);
}

const struct cli_verb cmd_workers = {
    "workers",
    "",
    "list the running daemons",
    "List the daemons of the namespace: the number that `later quiet` takes, where each\n"
    "runs, how many jobs it runs of how many places, how many it has claimed beyond that\n"
    "(their turn comes within milliseconds, or they have just ended), and which queues it\n"
    "serves. \"dead\" is one that fell silent and whose jobs are being put back. With --json one "
    "object a line.",
    0,
    0,
    false,
    NULL,
    run_workers_each,
};
