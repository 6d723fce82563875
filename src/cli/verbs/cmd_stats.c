/* The verbs stats (the queues of a namespace) and workers. */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

#include "cli/args/queue_name.h"
#include "cli/ask/replies.h"
#include "cli/history.h"
#include "cli/metrics.h"
#include "cli/show/json.h"
#include "cli/show/out.h"
#include "cli/show/pause.h"
#include "cli/show/table.h"

/* Of a queue in STATS_STATES; running is empty where it was not counted. */
enum { IN_RUNNING, IN_PARKED, STATE_VALUES };

/* Whether a queue with this value is paused now. */
static bool is_paused(const struct reply *r, int64_t now_ms, struct pause *ret)
{
    return pause_read(r, ret) && (ret->until_ms == 0 || ret->until_ms > now_ms);
}

static const struct reply *queue_value(const struct reply *queues, size_t queue, size_t value)
{
    return reply_at(queues, queue * QUEUE_VALUES + value);
}

/* How many jobs of the queue run or are parked. NULL: that is not known. */
static const struct reply *state_value(const struct reply *r, size_t queue, size_t value)
{
    const struct reply *v = reply_at(reply_at(r, STATS_STATES), queue * STATE_VALUES + value);

    return reply_kind(v) == REPLY_INT ? v : NULL;
}

static json_t *queue_json(const struct reply *r, size_t i, int64_t now_ms)
{
    static const char *const names[QUEUE_VALUES] = {
        "queue", "waiting", "raw", "due_ms", "paused", "dead", "kept", "done", "died", "cancelled"};
    static const char *const states[STATE_VALUES] = {"running", "parked"};
    const struct reply *queues = reply_at(r, STATS_QUEUES);
    json_t *queue = json_object();
    struct pause pause;

    for (size_t v = 0; v < QUEUE_VALUES; v++) {
        const struct reply *value = queue_value(queues, i, v);

        if (v == QUEUE_NAME)
            json_put_text(queue, names[v], reply_str(value), reply_len(value));
        else if (v != QUEUE_PAUSED && !(v == QUEUE_DUE && reply_len(value) == 0))
            json_put_int(queue, names[v], reply_int(value));
    }
    for (size_t v = 0; v < STATE_VALUES; v++) {
        if (state_value(r, i, v) != NULL)
            json_put_int(queue, states[v], reply_int(state_value(r, i, v)));
    }
    if (is_paused(queue_value(queues, i, QUEUE_PAUSED), now_ms, &pause))
        (void)json_object_set_new(queue, "paused", pause_to_json(&pause));
    return queue;
}

static void stats_json(const struct reply *r)
{
    const struct reply *queues = reply_at(r, STATS_QUEUES), *notes = reply_at(r, STATS_NOTES);
    json_t *line = json_object(), *list = json_array(), *seen = json_array();
    int64_t now_ms = reply_int(reply_at(r, STATS_NOW));

    json_put_int(line, "now_ms", now_ms);
    json_put_int(line, "workers", reply_int(reply_at(r, STATS_WORKERS)));
    json_put_int(line, "running", reply_int(reply_at(r, STATS_RUNNING)));
    json_put_int(line, "jobs", reply_int(reply_at(r, STATS_JOBS)));
    for (size_t i = 0; i < reply_count(queues) / QUEUE_VALUES; i++)
        (void)json_array_append_new(list, queue_json(r, i, now_ms));
    (void)json_object_set_new(line, "queues", list);
    json_put_int(line, "more_queues", reply_int(reply_at(r, STATS_MORE)));
    for (size_t i = 0; i + 1 < reply_count(notes); i += 2) {
        json_t *note = json_object();

        json_put_text(note, "note", reply_str(reply_at(notes, i)), reply_len(reply_at(notes, i)));
        json_put_int(note, "seen_ms", reply_int(reply_at(notes, i + 1)));
        (void)json_array_append_new(seen, note);
    }
    (void)json_object_set_new(line, "notes", seen);
    json_print(line);
}

static void put_pause(struct table *t, const struct reply *value, int64_t now_ms)
{
    CLEANUP_BUF struct buf text = BUF_INIT;
    struct pause p;
    char span[48];

    if (is_paused(value, now_ms, &p)) {
        buf_printf(&text, "by %s", p.by);
        if (p.until_ms != 0)
            buf_printf(&text, ", %s left", out_span(p.until_ms - now_ms, span));
        if (p.reason[0] != '\0')
            buf_printf(&text, ": %s", p.reason);
    }
    table_add(t, buf_str(&text), text.len);
}

static void put_queue(struct table *t, const struct reply *r, size_t i, int64_t now_ms)
{
    static const int counts[] = {QUEUE_DEAD, QUEUE_KEPT, QUEUE_DONE, QUEUE_DIED, QUEUE_CANCELLED};
    const struct reply *queues = reply_at(r, STATS_QUEUES);
    const struct reply *name = queue_value(queues, i, QUEUE_NAME),
                       *due = queue_value(queues, i, QUEUE_DUE);
    char when[48];

    table_add(t, reply_str(name), reply_len(name));
    table_printf(t, "%lld",
                 (long long)(reply_int(queue_value(queues, i, QUEUE_WAITING)) +
                             reply_int(queue_value(queues, i, QUEUE_RAW))));
    table_printf(t, "%s", reply_len(due) > 0 ? out_when(reply_int(due), now_ms, when) : "-");
    for (size_t v = 0; v < STATE_VALUES; v++) {
        if (state_value(r, i, v) != NULL)
            table_printf(t, "%lld", (long long)reply_int(state_value(r, i, v)));
        else
            table_printf(t, "-");
    }
    for (size_t k = 0; k < sizeof(counts) / sizeof(counts[0]); k++)
        table_printf(t, "%lld", (long long)reply_int(queue_value(queues, i, (size_t)counts[k])));
    put_pause(t, queue_value(queues, i, QUEUE_PAUSED), now_ms);
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
static bool is_idle(const struct reply *r, size_t i)
{
    const struct reply *queues = reply_at(r, STATS_QUEUES);
    int64_t n = reply_int(queue_value(queues, i, QUEUE_WAITING)) +
                reply_int(queue_value(queues, i, QUEUE_RAW)) +
                reply_int(queue_value(queues, i, QUEUE_DEAD));

    for (size_t v = 0; v < STATE_VALUES; v++)
        n += state_value(r, i, v) != NULL ? reply_int(state_value(r, i, v)) : 0;
    return n == 0 && reply_len(queue_value(queues, i, QUEUE_PAUSED)) == 0;
}

/* By name, those that are idle behind the others: there may be hundreds of them. */
static void put_queues(struct table *t, const struct reply *r, int64_t now_ms)
{
    size_t n = reply_count(reply_at(r, STATS_QUEUES)) / QUEUE_VALUES;

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
    const struct reply *queues = reply_at(r, STATS_QUEUES);
    int64_t now_ms = reply_int(reply_at(r, STATS_NOW));
    struct table t;

    out_printf("workers %lld, running %lld, jobs %lld\n",
               (long long)reply_int(reply_at(r, STATS_WORKERS)),
               (long long)reply_int(reply_at(r, STATS_RUNNING)),
               (long long)reply_int(reply_at(r, STATS_JOBS)));
    if (reply_count(queues) >= QUEUE_VALUES) {
        out_printf("\n");
        table_init(&t, columns, sizeof(columns) / sizeof(columns[0]));
        put_queues(&t, r, now_ms);
        table_flush(&t);
        table_done(&t);
    }
    if (reply_int(reply_at(r, STATS_MORE)) > 0)
        out_printf("... and %lld more queues\n", (long long)reply_int(reply_at(r, STATS_MORE)));
    put_notes(reply_at(r, STATS_NOTES), now_ms);
}

static int run_stats(struct cli *cli, struct err *err)
{
    struct reply *r;

    if (cli_value(cli, "prometheus") != NULL)
        return metrics_show(cli, err);
    if (cli_value(cli, "since") != NULL || cli_value(cli, "by") != NULL)
        return history_show(cli, err);
    if (cli->argc > 0 && queue_name_check(cli, cli->argv[0], err) < 0)
        return -1;
    r = ask_words(&cli->server, err, "later_stats", cli->argc > 0 ? cli->argv[0] : NULL, NULL);
    if (r == NULL)
        return -1;
    if (cli->json)
        stats_json(r);
    else
        stats_show(r);
    reply_free(r);
    return 0;
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

/* How many of its jobs have a place. The others wait for one (sched/prefetch.h), or
 * have ended and Redis does not know it yet. */
static int64_t running_of(const struct reply *worker)
{
    int64_t held = reply_int(reply_at(worker, WORKER_HELD)),
            places = reply_int(reply_at(worker, WORKER_PLACES));

    return reply_len(reply_at(worker, WORKER_PLACES)) > 0 && places < held ? places : held;
}

static const char *state_of(const struct reply *worker)
{
    if (reply_is(reply_at(worker, WORKER_COUNTER), "dead"))
        return "dead";
    return reply_is(reply_at(worker, WORKER_QUIET), "1") ? "quiet" : "live";
}

static void worker_json(const struct reply *worker)
{
    static const char *const names[] = {
        [WORKER_EPOCH] = "worker",    [WORKER_HOST] = "host",          [WORKER_PID] = "pid",
        [WORKER_VERSION] = "version", [WORKER_STARTED] = "started_ms", [WORKER_HELD] = "held",
        [WORKER_SERVES] = "queues"};
    json_t *line = json_object();

    for (size_t v = 0; v < sizeof(names) / sizeof(names[0]); v++) {
        const struct reply *value = reply_at(worker, v);

        if (names[v] == NULL)
            continue;
        if (v == WORKER_HOST || v == WORKER_VERSION || v == WORKER_SERVES)
            json_put_text(line, names[v], reply_str(value), reply_len(value));
        else
            json_put_int(line, names[v], reply_int(value));
    }
    json_put_int(line, "running", running_of(worker));
    if (reply_len(reply_at(worker, WORKER_PLACES)) > 0)
        json_put_int(line, "places", reply_int(reply_at(worker, WORKER_PLACES)));
    json_put_text(line, "state", state_of(worker), strlen(state_of(worker)));
    json_print(line);
}

static void worker_row(struct table *t, const struct reply *worker, int64_t now_ms)
{
    static const int texts[] = {WORKER_EPOCH, WORKER_HOST, WORKER_PID, WORKER_VERSION};
    const struct reply *queues = reply_at(worker, WORKER_SERVES);
    char when[48];

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        table_add(t, reply_str(reply_at(worker, (size_t)texts[i])),
                  reply_len(reply_at(worker, (size_t)texts[i])));
    table_printf(t, "%s", out_when(reply_int(reply_at(worker, WORKER_STARTED)), now_ms, when));
    table_printf(t, "%lld", (long long)running_of(worker));
    table_printf(t, "%lld",
                 (long long)(reply_int(reply_at(worker, WORKER_HELD)) - running_of(worker)));
    table_printf(t, "%s", reply_str(reply_at(worker, WORKER_PLACES)));
    table_printf(t, "%s", state_of(worker));
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
        worker_json(reply_at(r, i));
    if (!cli->json && reply_count(r) > 1)
        workers_show(r);
    else if (!cli->json)
        out_printf("no worker is running in this namespace\n");
    reply_free(r);
    return 0;
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
    run_workers,
};
