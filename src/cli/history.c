#include "cli/history.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ask/series.h"
#include "base/mem.h"
#include "base/text.h"
#include "cli/args/queue_name.h"
#include "cli/show/json.h"
#include "cli/show/out.h"
#include "cli/show/sparkline.h"
#include "cli/show/table.h"
#include "json/history.h"

#define MINUTE_MS 60000
#define HOUR_MS (60 * MINUTE_MS)
#define DAY_MS (24 * HOUR_MS)
#define BUCKETS_MAX 400
#define BUCKETS_NICE 30

/* What is shown, and of which time. */
struct history {
    struct series_span span;
    int64_t unit_ms; /* of the span: a minute or an hour */
    int64_t now_ms;
};

/* One queue. */
struct queue_history {
    const char *queue;
    history_row *buckets, sum;
    int64_t keys; /* different ones; -1: that is not known */
};

/* ---- which time */

/* The shortest nice length with which `since` has at most BUCKETS_NICE buckets. */
static int64_t nice_bucket(int64_t since_ms, int64_t unit_ms)
{
    static const int64_t minutes[] = {1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440};
    size_t i = 0;

    while (i + 1 < sizeof(minutes) / sizeof(minutes[0]) &&
           (minutes[i] * MINUTE_MS < unit_ms || since_ms > minutes[i] * MINUTE_MS * BUCKETS_NICE))
        i++;
    return minutes[i] * MINUTE_MS;
}

static int check_lengths(int64_t since_ms, int64_t by_ms, int64_t unit_ms, struct err *err)
{
    if (since_ms < MINUTE_MS || since_ms > (int64_t)SERIES_HOURS_KEPT * HOUR_MS)
        return err_set(err, ERR_USAGE, "--since takes 1m to 15d: so long the series are kept");
    if (by_ms < MINUTE_MS || by_ms % MINUTE_MS != 0)
        return err_set(err, ERR_USAGE, "--by takes whole minutes");
    if (by_ms % unit_ms != 0)
        return err_set(err, ERR_USAGE,
                       "minutes are kept for 6 hours only: give --since 6h or less, or whole "
                       "hours as --by");
    if (by_ms > since_ms && by_ms > unit_ms)
        return err_set(err, ERR_USAGE, "--by is longer than --since");
    if (since_ms / by_ms >= BUCKETS_MAX)
        return err_set(err, ERR_USAGE, "that is more than %d rows: give a longer --by",
                       BUCKETS_MAX);
    return 0;
}

/* 0, or -1 with err. */
static int read_options(struct history *h, struct cli *cli, struct err *err)
{
    int64_t since_ms = HOUR_MS, by_ms = 0, bucket, first;

    if (cli_duration(cli, "since", &since_ms, err) < 0 || cli_duration(cli, "by", &by_ms, err) < 0)
        return -1;
    h->span.by_hour = since_ms > (int64_t)SERIES_MINUTES_KEPT * MINUTE_MS;
    h->unit_ms = h->span.by_hour ? HOUR_MS : MINUTE_MS;
    if (cli_value(cli, "by") == NULL)
        by_ms = nice_bucket(since_ms, h->unit_ms);
    if (check_lengths(since_ms, by_ms, h->unit_ms, err) < 0)
        return -1;
    if (ask_time(&cli->server, &h->now_ms, err) < 0)
        return err->code != ERR_DENIED
                   ? -1
                   : err_set(err, ERR_DENIED,
                             "cannot ask Redis for its time: this user needs TIME");
    bucket = by_ms / h->unit_ms;
    first = (h->now_ms - since_ms) / h->unit_ms;
    h->span.bucket = bucket;
    h->span.from = first - first % bucket;
    h->span.nbuckets = (size_t)((h->now_ms / h->unit_ms - h->span.from) / bucket + 1);
    return 0;
}

static int64_t bucket_ms(const struct history *h, size_t i)
{
    return (h->span.from + (int64_t)i * h->span.bucket) * h->unit_ms;
}

/* ---- a queue */

static int read_queue(struct queue_history *q, const struct history *h, struct cli *cli,
                      const char *queue, struct err *err)
{
    q->queue = queue;
    q->buckets = mem_new(h->span.nbuckets * sizeof(*q->buckets));
    memset(q->sum, 0, sizeof(q->sum));
    if (series_read(&cli->server, queue, &h->span, q->buckets, err) < 0)
        return -1;
    for (size_t i = 0; i < h->span.nbuckets; i++)
        for (size_t c = 0; c < SERIES_COLUMNS; c++)
            q->sum[c] += q->buckets[i][c];
    return 0;
}

static int read_keys(struct queue_history *q, const struct history *h, struct cli *cli,
                     struct err *err)
{
    q->keys =
        series_distinct(&cli->server, q->queue, bucket_ms(h, 0) / DAY_MS, h->now_ms / DAY_MS, err);
    if (q->keys < 0 && (cli->server.client == NULL || ask_is_broken(&cli->server)))
        return -1;
    /* For Redis it is a write: a user or a replica that only reads gets no answer. */
    if (q->keys < 0)
        *err = (struct err)ERR_INIT;
    return 0;
}

static bool has_any(const struct queue_history *q)
{
    uint64_t any = 0;

    for (size_t c = 0; c < SERIES_COLUMNS; c++)
        any |= q->sum[c];
    return any != 0;
}

/* Only the class of a time is known, so "<=5ms": at most its upper bound; and ">1h" of the last. */
static void put_late(struct table *t, const history_row row, double share)
{
    uint64_t all = 0, seen = 0;
    size_t i = 0;
    char span[48];

    for (size_t c = 0; c < SERIES_LATE_CLASSES; c++)
        all += row[SERIES_LATE + c];
    if (all == 0) {
        table_add(t, "-", 1);
        return;
    }
    while (i < SERIES_LATE_CLASSES - 1 &&
           (double)(seen += row[SERIES_LATE + i]) < share * (double)all)
        i++;
    table_printf(t, i == SERIES_LATE_CLASSES - 1 ? ">%s" : "<=%s",
                 text_span(series_late_ms[i < SERIES_LATE_CLASSES - 1 ? i : i - 1], span));
}

static void put_row(struct table *t, const history_row row)
{
    static const int counts[] = {SERIES_ADDED, SERIES_DONE, SERIES_FAILED, SERIES_DEAD,
                                 SERIES_CANCELLED};
    char span[48];

    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
        table_printf(t, "%llu", (unsigned long long)row[counts[i]]);
    put_late(t, row, 0.5);
    put_late(t, row, 0.99);
    table_printf(t, "%s", text_span((int64_t)row[SERIES_BUSY_MS], span));
}

static void show_json(const struct queue_history *q, const struct history *h)
{
    json_t *line = json_object(), *list = json_array(), *sum = history_row_to_json(q->sum);

    json_put_text(line, "queue", q->queue, strlen(q->queue));
    json_put_int(line, "from_ms", bucket_ms(h, 0));
    json_put_int(line, "by_ms", h->span.bucket * h->unit_ms);
    if (q->keys >= 0)
        json_put_int(sum, "keys", q->keys);
    (void)json_object_set_new(line, "sum", sum);
    for (size_t i = 0; i < h->span.nbuckets; i++)
        (void)json_array_append_new(list, history_row_to_json(q->buckets[i]));
    (void)json_object_set_new(line, "buckets", list);
    json_print(line);
}

/* A line of blocks of one column. */
static void put_spark(const struct queue_history *q, const struct history *h, const char *label,
                      enum series_column column, enum out_style style)
{
    uint64_t *values = mem_new(h->span.nbuckets * sizeof(*values)), highest;

    for (size_t i = 0; i < h->span.nbuckets; i++)
        values[i] = q->buckets[i][column];
    out_printf("%-12.40s ", label);
    highest = sparkline_put(values, h->span.nbuckets, style);
    out_printf(" %llu\n", (unsigned long long)highest);
    free(values);
}

/* ---- one queue, bucket by bucket */

static void show_queue(const struct queue_history *q, const struct history *h)
{
    static const struct table_column columns[] = {
        {"FROM", false, false},    {"ADDED", true, false},    {"DONE", true, false},
        {"FAILED", true, false},   {"DEAD", true, false},     {"CANCELLED", true, TABLE_SPARE},
        {"LATE P50", true, false}, {"LATE P99", true, false}, {"BUSY", true, TABLE_SPARE}};
    struct table t;
    char text[48];

    table_init(&t, columns, sizeof(columns) / sizeof(columns[0]));
    for (size_t i = 0; i < h->span.nbuckets; i++) {
        table_printf(&t, "%.16s", out_instant(bucket_ms(h, i), text));
        put_row(&t, q->buckets[i]);
    }
    table_add(&t, "all", 3);
    put_row(&t, q->sum);
    table_flush(&t);
    table_done(&t);
    if (q->keys >= 0)
        out_printf("\ndifferent keys: %lld\n", (long long)q->keys);
    out_printf("\n");
    put_spark(q, h, "added", SERIES_ADDED, OUT_PLAIN);
    put_spark(q, h, "done", SERIES_DONE, OUT_GOOD);
    put_spark(q, h, "failed", SERIES_FAILED, OUT_BAD);
}

/* ---- all queues */

static void put_queue(struct table *t, const struct queue_history *q)
{
    table_add(t, q->queue, strlen(q->queue));
    put_row(t, q->sum);
    if (q->keys >= 0)
        table_printf(t, "%lld", (long long)q->keys);
    else
        table_add(t, "-", 1);
}

static void show_all(const struct queue_history *all, size_t n, const struct history *h)
{
    static const struct table_column columns[] = {
        {"QUEUE", false, true},     {"ADDED", true, false},    {"DONE", true, false},
        {"FAILED", true, false},    {"DEAD", true, false},     {"CANCELLED", true, TABLE_SPARE},
        {"LATE P50", true, false},  {"LATE P99", true, false}, {"BUSY", true, TABLE_SPARE},
        {"KEYS", true, TABLE_SPARE}};
    struct table t;
    char span[48];

    table_init(&t, columns, sizeof(columns) / sizeof(columns[0]));
    for (size_t i = 0; i < n; i++)
        put_queue(&t, &all[i]);
    table_flush(&t);
    table_done(&t);
    out_printf("\ndone in each %s, and the most:\n", text_span(h->span.bucket * h->unit_ms, span));
    for (size_t i = 0; i < n; i++)
        put_spark(&all[i], h, all[i].queue, SERIES_DONE, OUT_GOOD);
}

/* Queues in which nothing happened are left out. */
static int read_all(struct queue_history *all, size_t *n, const struct reply *names,
                    const struct history *h, struct cli *cli, struct err *err)
{
    for (size_t i = 0; i < reply_count(names); i++) {
        struct queue_history *q = &all[*n];

        int rc = read_queue(q, h, cli, reply_str(reply_at(names, i)), err);

        if (rc == 0 && !has_any(q)) {
            free(q->buckets);
            continue;
        }
        (*n)++;
        if (rc < 0 || read_keys(q, h, cli, err) < 0)
            return -1;
    }
    return 0;
}

static int show_names(const struct reply *names, const struct history *h, struct cli *cli,
                      struct err *err)
{
    struct queue_history *all = mem_new((reply_count(names) + 1) * sizeof(*all));
    size_t n = 0;
    int rc = read_all(all, &n, names, h, cli, err);

    for (size_t i = 0; rc == 0 && cli->json && i < n; i++)
        show_json(&all[i], h);
    if (rc == 0 && !cli->json && n > 0)
        show_all(all, n, h);
    else if (rc == 0 && !cli->json)
        out_printf("nothing was counted in this time\n");
    for (size_t i = 0; i < n; i++)
        free(all[i].buckets);
    free(all);
    return rc;
}

/* A queue may be forgotten while its past is still there. */
static int show_one(const struct history *h, struct cli *cli, struct err *err)
{
    struct queue_history q;
    int rc = read_queue(&q, h, cli, cli->argv[0], err);

    if (rc == 0)
        rc = read_keys(&q, h, cli, err);
    if (rc == 0 && !has_any(&q) && strcmp(cli->argv[0], SERIES_REST) != 0)
        rc = queue_name_check(cli, cli->argv[0], err);
    if (rc == 0 && cli->json)
        show_json(&q, h);
    else if (rc == 0)
        show_queue(&q, h);
    free(q.buckets);
    return rc;
}

int history_show(struct cli *cli, struct err *err)
{
    struct history h = {.now_ms = 0};
    struct reply *names;
    int rc;

    if (read_options(&h, cli, err) < 0)
        return -1;
    if (cli->argc > 0)
        return show_one(&h, cli, err);
    names = series_names(&cli->server, err);
    rc = names != NULL ? show_names(names, &h, cli, err) : -1;
    reply_free(names);
    return rc;
}
