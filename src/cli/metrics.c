#include "cli/metrics.h"

#include <stdio.h>
#include <string.h>

#include "ask/figures.h"
#include "ask/replies.h"
#include "ask/schedules.h"
#include "ask/series.h"
#include "ask/shards.h"
#include "ask/topics.h"
#include "base/cleanup.h"
#include "base/mem.h"
#include "base/text.h"
#include "cli/show/out.h"

struct metrics {
    const char *ns;
    int shard; /* -1: the namespace is whole */
    struct figures of;
    int64_t live, quiet, silent, dead; /* workers that run jobs */
    int64_t places, unsent;
    struct buf out;
};

/* ---- what is asked */

static void take_worker(struct metrics *m, const struct reply *w)
{
    const struct reply *beat = reply_at(w, HEALTH_BEAT);

    if (reply_is(reply_at(w, HEALTH_PLACES), "0")) /* later lock or later sem */
        return;
    if (reply_is(reply_at(w, WORKER_COUNTER), "dead")) {
        m->dead++;
        return;
    }
    if (reply_len(beat) > 0 && m->of.now_ms - reply_int(beat) > HEALTH_SILENT_MS)
        m->silent++;
    else if (reply_is(reply_at(w, HEALTH_QUIET), "1"))
        m->quiet++;
    else
        m->live++;
    m->places += reply_int(reply_at(w, HEALTH_PLACES));
    m->unsent += reply_int(reply_at(w, HEALTH_UNSENT));
}

/* ---- what is written */

/* Write NAME{namespace="...",LABEL="..."}, of shards NAME{namespace="...",shard="3",...}, with the
 * pairs of labels up to NULL. Values get the format's escapes; bytes that are no text cannot stand
 * in it and are escaped before. */
static void put_labels(struct metrics *m, const char *name, const char *const *labels)
{
    buf_printf(&m->out, "%s{namespace=\"%s\"", name, m->ns);
    if (m->shard >= 0)
        buf_printf(&m->out, ",shard=\"%d\"", m->shard);
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
    for (size_t i = 0; i < m->of.n; i++) {
        const struct queue_figures *q = &m->of.queues[i];

        for (size_t k = 0; k < n; k++)
            put_int(m, name, LABELS("queue", q->name, label, s[k].label), q->value[s[k].value]);
    }
}

static void put_scaled_series(struct metrics *m, const char *name, enum figure which, int64_t scale)
{
    for (size_t i = 0; i < m->of.n; i++)
        put_scaled(m, name, LABELS("queue", m->of.queues[i].name), m->of.queues[i].value[which],
                   scale);
}

static void put_tenants(struct metrics *m)
{
    family(m, "laterd_due_tenants", "gauge", "Tenants of a fair queue that have due jobs.");
    for (size_t i = 0; i < m->of.n; i++) {
        const struct queue_figures *q = &m->of.queues[i];

        if (q->is_fair)
            put_int(m, "laterd_due_tenants", LABELS("queue", q->name), q->value[FIGURE_TENANTS]);
    }
}

static void put_queues(struct metrics *m)
{
    static const struct series states[] = {{"scheduled", FIGURE_SCHEDULED},
                                           {"due", FIGURE_DUE},
                                           {"parked", FIGURE_PARKED},
                                           {"dead", FIGURE_DEAD},
                                           {"kept", FIGURE_KEPT}};
    static const struct series outcomes[] = {
        {"done", FIGURE_DONE}, {"dead", FIGURE_DIED}, {"cancelled", FIGURE_CANCELLED}};
    static const struct series raw = {NULL, FIGURE_RAW}, paused = {NULL, FIGURE_PAUSED},
                               adopted = {NULL, FIGURE_ADOPTED};

    family(
        m, "laterd_jobs", "gauge",
        "Jobs that wait for their time, are due, are parked before a gate, are dead, or are done "
        "and kept.");
    put_series(m, "laterd_jobs", "state", states, 5);
    family(m, "laterd_raw_jobs", "gauge", "Of the scheduled and due ones, those that ZADD wrote.");
    put_series(m, "laterd_raw_jobs", NULL, &raw, 1);
    family(m, "laterd_oldest_due_seconds", "gauge",
           "Since when the first due job waits to be started; 0 where none is due.");
    put_scaled_series(m, "laterd_oldest_due_seconds", FIGURE_OLDEST_DUE, 1000);
    family(m, "laterd_oldest_parked_seconds", "gauge",
           "Since when the first parked job waits at its gates; 0 where none is parked.");
    put_scaled_series(m, "laterd_oldest_parked_seconds", FIGURE_OLDEST_PARKED, 1000);
    family(m, "laterd_queue_paused", "gauge", "1 while the queue is paused.");
    put_series(m, "laterd_queue_paused", NULL, &paused, 1);
    family(m, "laterd_finished_total", "counter", "Jobs that ended, by how.");
    put_series(m, "laterd_finished_total", "outcome", outcomes, 3);
    family(m, "laterd_adopted_total", "counter",
           "Members of the delay queue that the queue adopts that became jobs.");
    put_series(m, "laterd_adopted_total", NULL, &adopted, 1);
    put_tenants(m);
}

/* Write all kinds, so that each has a sample even while it is 0. */
static void put_attention(struct metrics *m, const struct reply *notes)
{
    static const char *const kinds[] = {
        "stray-key",     "unserved-queue", "no-limit",  "limit-differs", "queue-gates",
        "bad-schedule",  "bad-adoption",   "bad-batch", "bad-queue",     "zone-differs",
        "missing-right", "small-host",     NULL};

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
    put_one(m, "laterd_running_jobs", "gauge", m->of.running, "Jobs that a daemon holds.");
    put_one(m, "laterd_records", "gauge", m->of.records,
            "Jobs of which there is a record: all but the raw ones.");
    put_one(m, "laterd_unsent_results", "gauge", m->unsent,
            "Results of ended attempts that Redis has not taken yet.");
    put_one(m, "laterd_retries_total", "counter", m->of.retried,
            "Attempts that failed and will be made again.");
}

static void put_batches(struct metrics *m, const struct reply *batches)
{
    family(m, "laterd_batches", "gauge", "Batches that have not ended, and that are kept.");
    put_int(m, "laterd_batches", LABELS("state", "open"), reply_int(reply_at(batches, 0)));
    put_int(m, "laterd_batches", LABELS("state", "ended"), reply_int(reply_at(batches, 1)));
}

/* ---- schedules */

static const struct {
    const char *name, *type, *field, *help;
    int64_t scale; /* of the field in the unit of the metric */
} of_schedule[] = {
    {"laterd_schedule_last_timestamp_seconds", "gauge", "last_ms", "When it was due last.", 1000},
    {"laterd_schedule_next_timestamp_seconds", "gauge", "next_ms", "When it is due next.", 1000},
    {"laterd_schedule_jobs_total", "counter", "runs", "Jobs that it has added.", 1},
    {"laterd_schedule_skipped_total", "counter", "skipped",
     "Occurrences without a job, by its overlap or a pause.", 1},
    {"laterd_schedule_missed_total", "counter", "missed",
     "Occurrences without a job, since no worker was there.", 1},
};
#define OF_SCHEDULE (sizeof(of_schedule) / sizeof(of_schedule[0]))

/* The samples of each metric, one metric after the other as the format wants them. */
static bool take_schedule(void *arg, const struct reply *row, int64_t now_ms)
{
    struct metrics *all = arg;

    (void)now_ms;
    for (size_t i = 0; i < OF_SCHEDULE; i++) {
        const struct reply *value = reply_named(row, of_schedule[i].field);
        const char *const *labels = LABELS("schedule", reply_str(reply_named(row, "schedule")));

        if (value != NULL && of_schedule[i].scale > 1)
            put_scaled(&all[i], of_schedule[i].name, labels, reply_int(value),
                       of_schedule[i].scale);
        else if (value != NULL)
            put_int(&all[i], of_schedule[i].name, labels, reply_int(value));
    }
    return true;
}

static int put_schedules(struct metrics *m, struct cli *cli, struct err *err)
{
    struct metrics all[OF_SCHEDULE] = {{.ns = m->ns}};
    int rc;

    for (size_t i = 0; i < OF_SCHEDULE; i++) {
        all[i].ns = m->ns;
        all[i].shard = m->shard;
    }
    rc = schedules_each(&cli->server, take_schedule, all, err);
    for (size_t i = 0; i < OF_SCHEDULE; i++) {
        family(m, of_schedule[i].name, of_schedule[i].type, of_schedule[i].help);
        buf_add(&m->out, all[i].out.data, all[i].out.len);
        buf_done(&all[i].out);
    }
    return rc;
}

/* ---- topics */

/* How many rows from row i on are of the same subscription. */
static size_t queues_of(const struct topics *t, size_t i)
{
    const char *topic = reply_str(reply_at(t->row[i], TOPICS_TOPIC));
    size_t n = 1;

    while (i + n < t->n && strcmp(reply_str(reply_at(t->row[i + n], TOPICS_TOPIC)), topic) == 0)
        n++;
    return n;
}

static int put_topics(struct metrics *m, struct cli *cli, struct err *err)
{
    static const char queues[] = "laterd_topic_queues",
                      published[] = "laterd_topic_published_total";
    struct topics all;
    int rc = topics_read(&all, &cli->server, err);

    family(m, queues, "gauge", "Queues that a subscription has.");
    for (size_t i = 0; rc == 0 && i < all.n; i += queues_of(&all, i))
        put_int(m, queues, LABELS("topic", reply_str(reply_at(all.row[i], TOPICS_TOPIC))),
                (int64_t)queues_of(&all, i));
    family(m, published, "counter", "Messages that a subscription fitted, since it has a queue.");
    for (size_t i = 0; rc == 0 && i < all.n; i += queues_of(&all, i))
        put_int(m, published, LABELS("topic", reply_str(reply_at(all.row[i], TOPICS_TOPIC))),
                reply_int(reply_at(all.row[i], TOPICS_PUBLISHED)));
    put_one(m, "laterd_topic_unheard_total", "counter", m->of.unheard,
            "Messages that no queue has subscribed to.");
    topics_done(&all);
    return rc;
}

/* ---- histograms */

struct histogram {
    const char *name, *help;
    enum series_column first, sum_us;
    size_t nclasses;
    const int64_t *bounds_ms;
};

static void put_histogram(struct metrics *m, const struct histogram *h,
                          const struct series_total *of)
{
    char name[64];
    uint64_t count = 0;

    (void)snprintf(name, sizeof(name), "%s_bucket", h->name);
    for (size_t i = 0; i < h->nclasses; i++) {
        char bound[32] = "+Inf";

        if (i + 1 < h->nclasses)
            (void)snprintf(bound, sizeof(bound), "%g", (double)h->bounds_ms[i] / 1000);
        count += of->at[h->first + i];
        put_int(m, name, LABELS("queue", of->queue, "le", bound), (int64_t)count);
    }
    (void)snprintf(name, sizeof(name), "%s_sum", h->name);
    put_scaled(m, name, LABELS("queue", of->queue), (int64_t)of->at[h->sum_us], 1000000);
    (void)snprintf(name, sizeof(name), "%s_count", h->name);
    put_int(m, name, LABELS("queue", of->queue), (int64_t)count);
}

static int put_histograms(struct metrics *m, struct cli *cli, struct err *err)
{
    static const struct histogram both[] = {
        {"laterd_start_lateness_seconds", "How late attempts started after they were due.",
         SERIES_LATE, SERIES_LATE_US, SERIES_LATE_CLASSES, series_late_ms},
        {"laterd_run_seconds", "How long attempts ran that have ended, however.", SERIES_RUN,
         SERIES_RUN_US, SERIES_RUN_CLASSES, series_run_ms}};
    struct series_totals totals;
    int rc = series_totals_read(&totals, &cli->server, err);

    for (size_t k = 0; rc == 0 && k < 2; k++) {
        family(m, both[k].name, "histogram", both[k].help);
        for (size_t i = 0; i < totals.n; i++)
            put_histogram(m, &both[k], &totals.of[i]);
    }
    if (rc == 0) {
        family(m, "laterd_added_total", "counter", "Jobs that were added, by whatever way.");
        for (size_t i = 0; i < totals.n; i++)
            put_int(m, "laterd_added_total", LABELS("queue", totals.of[i].queue),
                    (int64_t)totals.of[i].at[SERIES_ADDED]);
        family(m, "laterd_failed_attempts_total", "counter",
               "Attempts that failed, of jobs that are made again or died.");
        for (size_t i = 0; i < totals.n; i++)
            put_int(m, "laterd_failed_attempts_total", LABELS("queue", totals.of[i].queue),
                    (int64_t)totals.of[i].at[SERIES_FAILED]);
    }
    series_totals_done(&totals);
    return rc;
}

/* Append those of the namespace, or of the present one of its shards. 0, or -1 with err. */
static int read_all(struct cli *cli, struct buf *out, struct err *err)
{
    struct metrics m = {.ns = cli->server.target.base,
                        .shard = cli->server.target.shards > 0 ? cli->server.shard : -1};
    struct reply *r = ask_words(&cli->server, err, "later_v1_health", HEALTH_LATE_MS, NULL);
    int rc = r != NULL ? figures_read(&m.of, &cli->server, err) : -1;

    if (rc == 0) {
        for (size_t i = 0; i < reply_count(reply_at(r, HEALTH_WORKERS)); i++)
            take_worker(&m, reply_at(reply_at(r, HEALTH_WORKERS), i));
        family(&m, "laterd_info", "gauge", "The version of the command that wrote this.");
        put_int(&m, "laterd_info", LABELS("version", PACKAGE_VERSION), 1);
        put_workers(&m);
        put_attention(&m, reply_at(r, HEALTH_NOTES));
        put_batches(&m, reply_at(r, HEALTH_BATCHES));
        put_queues(&m);
        rc = put_schedules(&m, cli, err);
    }
    if (rc == 0)
        rc = put_topics(&m, cli, err);
    if (rc == 0)
        rc = put_histograms(&m, cli, err);
    if (rc == 0)
        buf_add(out, m.out.data, m.out.len);
    reply_free(r);
    figures_done(&m.of);
    buf_done(&m.out);
    return rc;
}

/* ---- shards: the format wants all samples of a family together */

#define HEAD "# HELP "

/* From the head of a family to that of the next one. */
static size_t family_size(const char *at)
{
    const char *next = strstr(at + strlen(HEAD), "\n" HEAD);

    return next != NULL ? (size_t)(next + 1 - at) : strlen(at);
}

/* Append the samples of the same family of another shard, which has the same families. */
static void put_samples(struct buf *out, const char *head, const char *text)
{
    size_t line = strcspn(head, "\n") + 1, both = line + strcspn(head + line, "\n") + 1;
    CLEANUP_FREE char *two = mem_printf("%.*s", (int)both, head);
    const char *at = strstr(text, two);

    if (at != NULL)
        buf_add(out, at + both, family_size(at) - both);
}

static void merge(struct buf *out, struct buf *of, int n)
{
    size_t size;

    for (const char *at = buf_str(&of[0]); *at != '\0'; at += size) {
        size = family_size(at);
        buf_add(out, at, size);
        for (int i = 1; i < n; i++)
            put_samples(out, at, buf_str(&of[i]));
    }
}

int metrics_show(struct cli *cli, struct err *err)
{
    struct buf of[SHARDS_MAX] = {BUF_INIT};
    CLEANUP_BUF struct buf all = BUF_INIT;
    int n, rc;

    if (cli->json || cli->argc > 0 || cli_value(cli, "since") != NULL ||
        cli_value(cli, "by") != NULL)
        return err_set(err, ERR_USAGE,
                       "--prometheus shows all queues, in a format of its own: "
                       "neither QUEUE nor --json, --since and --by go with it");
    rc = ask_target(&cli->server, err);
    n = shards_count(&cli->server);
    for (int i = 0; rc == 0 && i < n; i++) {
        shards_use(&cli->server, i);
        rc = read_all(cli, &of[i], err);
    }
    if (rc == 0) {
        merge(&all, of, n);
        out_bytes(all.data, all.len);
    }
    for (int i = 0; i < n; i++)
        buf_done(&of[i]);
    return rc;
}
