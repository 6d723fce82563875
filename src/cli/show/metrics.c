#include "cli/show/metrics.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "base/text.h"
#include "cli/show/out.h"
#include "job/counts.h"

#define PAGES_MAX 100000 /* a cursor that runs in a circle would make us ask for ever */

/* later_v1_metrics: the elements of its reply, and those of a queue. */
enum { NOW, CURSOR, RUNNING, RECORDS, QUEUES, COUNTERS };
enum {
    NAME,
    SCHEDULED,
    DUE,
    PARKED,
    RAW,
    DEAD,
    KEPT,
    OLDEST,
    PAUSED,
    DONE,
    DIED,
    CANCELLED,
    QUEUE_VALUES
};
/* later_v1_health: the elements used here, of its reply and of a worker. */
enum { H_WORKERS = 1, H_NOTES = 3 };
enum { W_COUNTER = 1, W_BEAT = 5, W_PLACES = 6, W_UNSENT = 7, W_QUIET = 10 };

#define SILENT_MS 12000 /* the same as in cmd_health.c */

struct queue_figures {
    char name[65];
    int64_t value[QUEUE_VALUES]; /* OLDEST: for how long it has been due, in ms; 0: none is due */
};

struct metrics {
    const char *ns;
    struct queue_figures *queues; /* sorted, each once */
    size_t n;
    int64_t now_ms, running, records;
    int64_t counters[COUNTS_FIELDS];
    int64_t live, quiet, silent, dead; /* workers that run jobs */
    int64_t places, unsent;
    struct buf out;
};

/* ---- what is asked */

/* Read a negative or huge number as 0: a field that somebody overwrote must not make a histogram's
 * buckets decrease or its sums overflow. */
static int64_t count_of(const struct reply *r)
{
    int64_t n = reply_int(r);

    return n > 0 && n < INT64_MAX / (2 * COUNTS_FIELDS) ? n : 0;
}

static void take_queue(struct metrics *m, const struct reply *r, int64_t now_ms)
{
    struct queue_figures *q;

    if (reply_count(r) != QUEUE_VALUES ||
        !text_is_queue_name(reply_str(reply_at(r, NAME)), reply_len(reply_at(r, NAME))))
        return;
    m->queues = mem_grow(m->queues, m->n + 1, sizeof(*m->queues));
    q = &m->queues[m->n++];
    text_copy(q->name, sizeof(q->name), reply_str(reply_at(r, NAME)));
    for (size_t i = NAME + 1; i < QUEUE_VALUES; i++)
        q->value[i] = i == OLDEST ? reply_int(reply_at(r, i)) : count_of(reply_at(r, i));
    if (reply_kind(reply_at(r, OLDEST)) == REPLY_INT)
        q->value[OLDEST] = now_ms > q->value[OLDEST] ? now_ms - q->value[OLDEST] : 0;
}

/* Read one page at cursor, and set cursor to the next page. The first page also brings the counters
 * of all queues together. */
static int take_page(struct metrics *m, struct cli *cli, char cursor[32], struct err *err)
{
    struct cli_call call = {.n = 0};
    char fields[COUNTS_FIELDS][24];
    bool is_first = strcmp(cursor, "0") == 0;
    struct reply *r;

    cli_call_puts(&call, cursor);
    for (size_t i = 0; is_first && i < COUNTS_FIELDS; i++)
        cli_call_puts(&call, counts_field(i, fields[i]));
    r = cli_fcall(cli, "later_v1_metrics", &call, err);
    if (r == NULL)
        return -1;
    m->now_ms = reply_int(reply_at(r, NOW));
    for (size_t i = 0; i < reply_count(reply_at(r, QUEUES)); i++)
        take_queue(m, reply_at(reply_at(r, QUEUES), i), m->now_ms);
    for (size_t i = 0; is_first && i < COUNTS_FIELDS; i++)
        m->counters[i] = count_of(reply_at(reply_at(r, COUNTERS), i));
    m->running = reply_int(reply_at(r, RUNNING));
    m->records = reply_int(reply_at(r, RECORDS));
    text_copy(cursor, 32, reply_str(reply_at(r, CURSOR)));
    reply_free(r);
    return 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct queue_figures *)a)->name, ((const struct queue_figures *)b)->name);
}

/* Sort the queues and drop duplicates. A set that grows or shrinks meanwhile returns some queues
 * twice, but Prometheus refuses a series that occurs twice. */
static void sort_queues(struct metrics *m)
{
    size_t kept = 0;

    if (m->n > 1)
        qsort(m->queues, m->n, sizeof(*m->queues), by_name);
    for (size_t i = 0; i < m->n; i++) {
        if (kept == 0 || strcmp(m->queues[kept - 1].name, m->queues[i].name) != 0)
            m->queues[kept++] = m->queues[i];
    }
    m->n = kept;
}

static int take_queues(struct metrics *m, struct cli *cli, struct err *err)
{
    char cursor[32] = "0";
    int pages = 0;

    do {
        if (take_page(m, cli, cursor, err) < 0)
            return -1;
        if (++pages == PAGES_MAX || cursor[0] == '\0')
            return err_set(err, ERR_DATA, "the list of queues does not end");
    } while (strcmp(cursor, "0") != 0);
    sort_queues(m);
    return 0;
}

static void take_worker(struct metrics *m, const struct reply *w)
{
    const struct reply *beat = reply_at(w, W_BEAT);

    if (reply_is(reply_at(w, W_PLACES), "0")) /* later lock or later sem */
        return;
    if (reply_is(reply_at(w, W_COUNTER), "dead")) {
        m->dead++;
        return;
    }
    if (reply_len(beat) > 0 && m->now_ms - reply_int(beat) > SILENT_MS)
        m->silent++;
    else if (reply_is(reply_at(w, W_QUIET), "1"))
        m->quiet++;
    else
        m->live++;
    m->places += reply_int(reply_at(w, W_PLACES));
    m->unsent += reply_int(reply_at(w, W_UNSENT));
}

/* ---- what is written */

/* Write NAME{namespace="...",LABEL="..."}, with the pairs of labels up to NULL. Values get the
 * format's escapes; bytes that are no text cannot stand in it and are escaped before. */
static void put_labels(struct metrics *m, const char *name, const char *const *labels)
{
    buf_printf(&m->out, "%s{namespace=\"%s\"", name, m->ns);
    for (; labels != NULL && labels[0] != NULL; labels += 2) {
        CLEANUP_BUF struct buf value = BUF_INIT;

        text_escape(&value, labels[1], strlen(labels[1]));
        buf_printf(&m->out, ",%s=\"", labels[0]);
        for (const char *p = buf_str(&value); *p != '\0'; p++)
            buf_printf(&m->out, *p == '\\' || *p == '"' ? "\\%c" : "%c", *p);
        buf_puts(&m->out, "\"");
    }
    buf_puts(&m->out, "} ");
}

#define LABELS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void put_int(struct metrics *m, const char *name, const char *const *labels, int64_t value)
{
    put_labels(m, name, labels);
    buf_printf(&m->out, "%lld\n", (long long)value);
}

/* Write thousandths or millionths (scale) as a decimal fraction. */
static void put_scaled(struct metrics *m, const char *name, const char *const *labels,
                       int64_t value, int64_t scale)
{
    put_labels(m, name, labels);
    buf_printf(&m->out, "%lld.%0*lld\n", (long long)(value / scale), scale == 1000 ? 3 : 6,
               (long long)(value % scale));
}

static void family(struct metrics *m, const char *name, const char *type, const char *help)
{
    buf_printf(&m->out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void put_one(struct metrics *m, const char *name, const char *type, int64_t value,
                    const char *help)
{
    family(m, name, type, help);
    put_int(m, name, NULL, value);
}

/* A sample for each queue and each of these values. */
struct series {
    const char *label; /* label of the value; NULL: it is the only one */
    int value;
};

static void put_series(struct metrics *m, const char *name, const char *label,
                       const struct series *s, size_t n)
{
    for (size_t i = 0; i < m->n; i++) {
        const struct queue_figures *q = &m->queues[i];

        for (size_t k = 0; k < n; k++)
            put_int(m, name, LABELS("queue", q->name, label, s[k].label), q->value[s[k].value]);
    }
}

static void put_queues(struct metrics *m)
{
    static const struct series states[] = {
        {"scheduled", SCHEDULED}, {"due", DUE}, {"parked", PARKED}, {"dead", DEAD}, {"kept", KEPT}};
    static const struct series outcomes[] = {
        {"done", DONE}, {"dead", DIED}, {"cancelled", CANCELLED}};
    static const struct series raw = {NULL, RAW}, paused = {NULL, PAUSED};

    family(
        m, "laterd_jobs", "gauge",
        "Jobs that wait for their time, are due, are parked before a gate, are dead, or are done "
        "and kept.");
    put_series(m, "laterd_jobs", "state", states, 5);
    family(m, "laterd_raw_jobs", "gauge", "Of the scheduled and due ones, those that ZADD wrote.");
    put_series(m, "laterd_raw_jobs", NULL, &raw, 1);
    family(m, "laterd_oldest_due_seconds", "gauge",
           "Since when the first due job waits to be started; 0 where none is due.");
    for (size_t i = 0; i < m->n; i++)
        put_scaled(m, "laterd_oldest_due_seconds", LABELS("queue", m->queues[i].name),
                   m->queues[i].value[OLDEST], 1000);
    family(m, "laterd_queue_paused", "gauge", "1 while the queue is paused.");
    put_series(m, "laterd_queue_paused", NULL, &paused, 1);
    family(m, "laterd_finished_total", "counter", "Jobs that ended, by how.");
    put_series(m, "laterd_finished_total", "outcome", outcomes, 3);
}

static void put_lateness(struct metrics *m)
{
    static const char name[] = "laterd_start_lateness_seconds";
    int64_t count = 0;

    family(m, name, "histogram", "How late attempts started after they were due.");
    for (size_t i = 0; i <= COUNTS_INF; i++) {
        char bound[32] = "+Inf";

        if (i < COUNTS_BOUNDS)
            (void)snprintf(bound, sizeof(bound), "%g", (double)counts_bounds_ms[i] / 1000);
        count += m->counters[i];
        put_int(m, "laterd_start_lateness_seconds_bucket", LABELS("le", bound), count);
    }
    put_scaled(m, "laterd_start_lateness_seconds_sum", NULL, m->counters[COUNTS_LATE_US], 1000000);
    put_int(m, "laterd_start_lateness_seconds_count", NULL, count);
}

/* Write all kinds, so that each has a sample even while it is 0. */
static void put_attention(struct metrics *m, const struct reply *notes)
{
    static const char *const kinds[] = {"stray-key",     "unserved-queue", "no-limit",
                                        "limit-differs", "queue-gates",    NULL};

    family(m, "laterd_attention", "gauge",
           "Things that later stats shows under attention, by kind.");
    for (size_t k = 0; kinds[k] != NULL; k++) {
        size_t len = strlen(kinds[k]);
        int64_t n = 0;

        for (size_t i = 0; i + 1 < reply_count(notes); i += 2) {
            const char *note = reply_str(reply_at(notes, i));

            n += strncmp(note, kinds[k], len) == 0 && note[len] == ':';
        }
        put_int(m, "laterd_attention", LABELS("kind", kinds[k]), n);
    }
}

static void put_workers(struct metrics *m)
{
    family(m, "laterd_workers", "gauge",
           "Daemons: live, quiet (they claim no more), silent (no beat for 12 s), dead (their jobs "
           "are being put back).");
    put_int(m, "laterd_workers", LABELS("state", "live"), m->live);
    put_int(m, "laterd_workers", LABELS("state", "quiet"), m->quiet);
    put_int(m, "laterd_workers", LABELS("state", "silent"), m->silent);
    put_int(m, "laterd_workers", LABELS("state", "dead"), m->dead);
    put_one(m, "laterd_places", "gauge", m->places,
            "Jobs that the daemons, but the dead ones, can run at once.");
    put_one(m, "laterd_running_jobs", "gauge", m->running, "Jobs that a daemon holds.");
    put_one(m, "laterd_records", "gauge", m->records,
            "Jobs of which there is a record: all but the raw ones.");
    put_one(m, "laterd_unsent_results", "gauge", m->unsent,
            "Results of ended attempts that Redis has not taken yet.");
    put_one(m, "laterd_retries_total", "counter", m->counters[COUNTS_RETRIED],
            "Attempts that failed and will be made again.");
}

int metrics_show(struct cli *cli, struct err *err)
{
    struct metrics m = {.n = 0};
    struct cli_call health = {.n = 0};
    struct reply *r;
    int rc;

    if (cli->json || cli->argc > 0)
        return err_set(err, ERR_USAGE,
                       "--prometheus shows all queues, in a format of its own: "
                       "neither QUEUE nor --json goes with it");
    cli_call_puts(&health, "12000");
    r = cli_fcall(cli, "later_v1_health", &health, err);
    rc = r != NULL ? take_queues(&m, cli, err) : -1;
    if (rc == 0) {
        m.ns = cli->target.ns;
        for (size_t i = 0; i < reply_count(reply_at(r, H_WORKERS)); i++)
            take_worker(&m, reply_at(reply_at(r, H_WORKERS), i));
        family(&m, "laterd_info", "gauge", "The version of the command that wrote this.");
        put_int(&m, "laterd_info", LABELS("version", PACKAGE_VERSION), 1);
        put_workers(&m);
        put_attention(&m, reply_at(r, H_NOTES));
        put_lateness(&m);
        put_queues(&m);
        out_bytes(m.out.data, m.out.len);
    }
    reply_free(r);
    free(m.queues);
    buf_done(&m.out);
    return rc;
}
