#include "web/about_dead.h"

#include <stdlib.h>
#include <string.h>

#include "ask/reasons.h"
#include "ask/replies.h"
#include "base/mem.h"
#include "json/put.h"
#include "json/stats.h"

#define SEEN_MAX 10000 /* jobs of a queue; more are told as "more" */
#define QUEUES_MAX 20  /* that are looked at for the page of all dead jobs, */
#define SEEN_EACH 1000 /* and their jobs */
#define ROWS_MAX 200   /* reasons of an answer: those of the most jobs */
#define QUEUE_PAGE "100"
#define QUEUE_PAGES_MAX 100

/* Counts by reason: an object reason -> row, which is one of the answer. */
struct tally {
    json_t *rows, *of;
    int64_t seen;
    bool has_more;
};

static void put_later(json_t *row, const struct reply *told)
{
    json_put_int(row, "last_ms", reply_int(reply_at(told, REASON_LAST_MS)));
    json_put_reply(row, "last_id", reply_at(told, REASON_LAST_ID));
}

static int64_t number(const json_t *row, const char *name)
{
    return json_integer_value(json_object_get(row, name));
}

/* Add a row of later_v1_reasons to the one of the same text. */
static void add(struct tally *t, const char *queue, const struct reply *told)
{
    const struct reply *text = reply_at(told, REASON_TEXT);
    int64_t first_ms = reply_int(reply_at(told, REASON_FIRST_MS));
    json_t *key = json_object(), *row;

    json_put_reply(key, "reason", text);
    row = json_object_get(t->of, json_string_value(json_object_get(key, "reason")));
    if (row == NULL) {
        row = json_incref(key);
        json_put_text(row, "queue", queue, strlen(queue));
        json_put_int(row, "count", 0);
        json_put_int(row, "first_ms", first_ms);
        put_later(row, told);
        (void)json_array_append(t->rows, row);
        (void)json_object_set_new(t->of, json_string_value(json_object_get(row, "reason")), row);
    }
    json_put_int(row, "count",
                 reply_sum(number(row, "count"), reply_int(reply_at(told, REASON_COUNT))));
    if (first_ms < number(row, "first_ms"))
        json_put_int(row, "first_ms", first_ms);
    if (reply_int(reply_at(told, REASON_LAST_MS)) > number(row, "last_ms"))
        put_later(row, told);
    json_decref(key);
}

/* Count the reasons of a queue, of its last `most` dead jobs. 0, or -1 with call->err. */
static int count(struct tally *t, struct api_call *call, const char *queue, int64_t most)
{
    struct reasons pages;
    int64_t seen = 0;
    int rc = 0;

    reasons_init(&pages, queue);
    t->of = json_object();
    while (rc == 0 && !pages.is_over && seen < most) {
        struct reply *page = reasons_next(&pages, call->server, &call->err);

        rc = page != NULL ? 0 : -1;
        seen = reply_sum(seen, reply_int(reply_at(page, REASONS_SEEN)));
        for (size_t i = REASONS_FIRST; i < reply_count(page); i++)
            add(t, queue, reply_at(page, i));
        reply_free(page);
    }
    t->seen = reply_sum(t->seen, seen);
    t->has_more = t->has_more || !pages.is_over;
    json_decref(t->of);
    reasons_done(&pages);
    return rc;
}

struct row {
    json_t *told;
};

static int compare(int64_t one, int64_t other)
{
    return (one > other) - (one < other);
}

static int by_count(const void *a, const void *b)
{
    const struct row *one = a, *other = b;
    int more = compare(number(other->told, "count"), number(one->told, "count"));

    return more != 0 ? more : compare(number(other->told, "last_ms"), number(one->told, "last_ms"));
}

/* The rows, those of the most jobs first. Texts may all differ, so not all rows are shown. */
static json_t *shown(const struct tally *t)
{
    size_t n = json_array_size(t->rows);
    struct row *sorted = mem_new((n + 1) * sizeof(*sorted));
    json_t *list = json_array();

    for (size_t i = 0; i < n; i++)
        sorted[i].told = json_array_get(t->rows, i);
    qsort(sorted, n, sizeof(*sorted), by_count);
    for (size_t i = 0; i < n && i < ROWS_MAX; i++)
        (void)json_array_append(list, sorted[i].told);
    free(sorted);
    return list;
}

static json_t *give(struct api_call *call, struct tally *t)
{
    json_t *out = api_object_now(call);

    json_put(out, "reasons", shown(t));
    json_put_int(out, "seen", t->seen);
    if (t->has_more || json_array_size(t->rows) > ROWS_MAX)
        json_put(out, "more", json_true());
    return out;
}

static json_t *reasons(struct api_call *call)
{
    struct tally t = {.rows = json_array()};
    json_t *out = count(&t, call, call->name[0], SEEN_MAX) == 0 ? give(call, &t) : NULL;

    json_decref(t.rows);
    return out;
}

/* ---- all queues */

/* Append {queue, dead} of the queues of a page that have dead jobs. */
static void take_queues(json_t *list, const struct reply *page)
{
    struct stats_rows rows = stats_page(page);

    for (size_t i = 0; i < stats_nqueues(&rows); i++) {
        int64_t n = reply_int(stats_queue(&rows, i, QUEUE_DEAD));
        json_t *one;

        if (n == 0)
            continue;
        one = json_object();
        json_put_reply(one, "queue", stats_queue(&rows, i, QUEUE_NAME));
        json_put_int(one, "dead", n);
        (void)json_array_append_new(list, one);
    }
}

/* {queues, more} of all queues with dead jobs, page by page. NULL with call->err. */
static json_t *find_queues(struct api_call *call, int64_t now_ms)
{
    json_t *list = json_array(), *out;
    struct reply *page = NULL;
    int pages = 0;

    (void)now_ms;
    do {
        struct reply *next = api_ask(call, "later_v1_queues",
                                     reply_str(reply_at(page, QUEUES_NEXT)), QUEUE_PAGE, NULL);

        reply_free(page);
        page = next;
        if (page == NULL) {
            json_decref(list);
            return NULL;
        }
        take_queues(list, page);
    } while (reply_len(reply_at(page, QUEUES_NEXT)) > 0 && ++pages < QUEUE_PAGES_MAX);
    out = json_object();
    json_put(out, "queues", list);
    json_put(out, "more", json_boolean(reply_len(reply_at(page, QUEUES_NEXT)) > 0));
    reply_free(page);
    return out;
}

/* A walk over ten thousand queues is not made for each look. */
static json_t *dead(struct api_call *call)
{
    struct tally t = {.rows = json_array()};
    json_t *found = kept_get(&call->api->dead_queues, find_queues, call, 0), *out = NULL;
    json_t *list = json_object_get(found, "queues");
    size_t n = json_array_size(list), i = 0;

    while (i < n && i < QUEUES_MAX &&
           count(&t, call, json_string_value(json_object_get(json_array_get(list, i), "queue")),
                 SEEN_EACH) == 0)
        i++;
    t.has_more = t.has_more || i < n || json_is_true(json_object_get(found, "more"));
    if (found != NULL && call->err.code == ERR_NONE) {
        out = give(call, &t);
        json_put(out, "queues", json_incref(list));
    }
    json_decref(found);
    json_decref(t.rows);
    return out;
}

const struct route dead_routes[] = {
    {false, "dead", dead},
    {false, "queues/*/reasons", reasons},
    {false, NULL, NULL},
};
