#include "web/about_dead.h"

#include <stdlib.h>
#include <string.h>

#include "ask/reasons.h"
#include "base/mem.h"
#include "json/put.h"
#include "web/all_queues.h"

#define PAGES_MAX 40    /* of 250 jobs, for one question */
#define REASONS_MAX 500 /* that differ: behind them a question reads no further page */
#define QUEUES_MAX                                                                                 \
    20               /* those with the most dead jobs are looked at for the page of all dead jobs */
#define ROWS_MAX 200 /* reasons of an answer: those of the most jobs */
#define LISTED_MAX 100 /* queues of an answer */
#define STEPS 12       /* when they died: the last day */
#define STEP_MS INT64_C(7200000)

/* Counts by reason: an object reason -> row, which is one of the answer. */
struct tally {
    json_t *rows, *of;
    int64_t seen, now_ms, from_ms; /* from_ms: of the first step */
    int pages;
    bool has_more;
};

/* Steps begin at full hours, so that they stand still from look to look. */
static void tally_init(struct tally *t, struct api_call *call)
{
    *t = (struct tally){.rows = json_array(), .now_ms = ask_now_ms(call->server)};
    t->from_ms = (t->now_ms / STEP_MS - STEPS + 1) * STEP_MS;
}

static bool is_tired(const struct tally *t)
{
    return t->pages >= PAGES_MAX || json_array_size(t->rows) >= REASONS_MAX;
}

static void put_later(json_t *row, const struct reply *told)
{
    json_put_int(row, "last_ms", reply_int(reply_at(told, REASON_LAST_MS)));
    json_put_reply(row, "last_id", reply_at(told, REASON_LAST_ID));
}

static json_t *no_deaths(void)
{
    json_t *list = json_array();

    for (int i = 0; i < STEPS; i++)
        (void)json_array_append_new(list, json_integer(0));
    return list;
}

/* deaths: of later_v1_reasons, [step, jobs, ...]; a clock that was set back makes steps to come. */
static void add_deaths(const json_t *row, const struct reply *deaths)
{
    const json_t *list = json_object_get(row, "deaths");

    for (size_t i = 0; i + 1 < reply_count(deaths); i += 2) {
        int64_t step = reply_int(reply_at(deaths, i));
        json_t *n = step >= 0 && step < STEPS ? json_array_get(list, (size_t)step) : NULL;

        if (n != NULL)
            (void)json_integer_set(n, json_integer_value(n) + reply_int(reply_at(deaths, i + 1)));
    }
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
        json_put(row, "deaths", no_deaths());
        (void)json_array_append(t->rows, row);
        (void)json_object_set_new(t->of, json_string_value(json_object_get(row, "reason")), row);
    }
    json_put_int(row, "count",
                 reply_sum(json_int(row, "count"), reply_int(reply_at(told, REASON_COUNT))));
    if (first_ms < json_int(row, "first_ms"))
        json_put_int(row, "first_ms", first_ms);
    if (reply_int(reply_at(told, REASON_LAST_MS)) > json_int(row, "last_ms"))
        put_later(row, told);
    add_deaths(row, reply_at(told, REASON_DEATHS));
    json_decref(key);
}

/* Count the reasons of a queue, of its last `most` pages. 0, or -1 with call->err. */
static int count(struct tally *t, struct api_call *call, const char *queue, int most)
{
    struct reasons pages;
    int rc = 0;

    reasons_init(&pages, queue);
    pages.from_ms = t->from_ms;
    pages.step_ms = STEP_MS;
    t->of = json_object();
    while (rc == 0 && !pages.is_over && most-- > 0 && !is_tired(t)) {
        struct reply *page = reasons_next(&pages, call->server, &call->err);

        rc = page != NULL ? 0 : -1;
        t->pages++;
        t->seen = reply_sum(t->seen, reply_int(reply_at(page, REASONS_SEEN)));
        for (size_t i = REASONS_FIRST; i < reply_count(page); i++)
            add(t, queue, reply_at(page, i));
        reply_free(page);
    }
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
    int more = compare(json_int(other->told, "count"), json_int(one->told, "count"));

    return more != 0 ? more
                     : compare(json_int(other->told, "last_ms"), json_int(one->told, "last_ms"));
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

static json_t *give(const struct tally *t)
{
    json_t *out = api_object(t->now_ms);

    json_put(out, "reasons", shown(t));
    json_put_int(out, "seen", t->seen);
    json_put_int(out, "from_ms", t->from_ms);
    json_put_int(out, "by_ms", STEP_MS);
    if (t->has_more || json_array_size(t->rows) > ROWS_MAX)
        json_put(out, "more", json_true());
    return out;
}

static json_t *reasons(struct api_call *call)
{
    struct tally t;
    json_t *out;

    tally_init(&t, call);
    out = count(&t, call, call->name[0], PAGES_MAX) == 0 ? give(&t) : NULL;
    json_decref(t.rows);
    return out;
}

/* ---- all queues */

static int by_dead(const void *a, const void *b)
{
    const struct row *one = a, *other = b;

    return compare(json_int(other->told, "dead"), json_int(one->told, "dead"));
}

/* {queue, dead} of the queues with dead jobs, those with the most first. */
static json_t *list_queues(const struct known_queues *all)
{
    size_t n = 0;
    struct row *sorted = mem_new((json_array_size(all->rows) + 1) * sizeof(*sorted));
    json_t *list = json_array();

    for (size_t i = 0; i < json_array_size(all->rows); i++) {
        sorted[n].told = json_array_get(all->rows, i);
        n += json_int(sorted[n].told, "dead") > 0;
    }
    qsort(sorted, n, sizeof(*sorted), by_dead);
    for (size_t i = 0; i < n; i++) {
        json_t *one = json_object();

        json_put(one, "queue", json_incref(json_object_get(sorted[i].told, "queue")));
        json_put_int(one, "dead", json_int(sorted[i].told, "dead"));
        (void)json_array_append_new(list, one);
    }
    free(sorted);
    return list;
}

/* The reasons of these queues, together. NULL with call->err. */
static json_t *count_all(struct api_call *call, json_t *queues, bool is_part)
{
    size_t n = json_array_size(queues), i = 0;
    struct tally t;
    json_t *out = NULL;
    int rc = 0;

    tally_init(&t, call);
    for (; rc == 0 && i < n && i < QUEUES_MAX && !is_tired(&t); i++) {
        const json_t *one = json_array_get(queues, i);

        rc = count(&t, call, json_string_value(json_object_get(one, "queue")),
                   PAGES_MAX / (int)(n < QUEUES_MAX ? n : QUEUES_MAX));
    }
    t.has_more = t.has_more || i < n || is_part;
    if (rc == 0)
        out = give(&t);
    json_decref(t.rows);
    return out;
}

static json_t *dead(struct api_call *call)
{
    const struct known_queues *all = all_queues_look(call, ALL_QUEUES_PAGES);
    json_t *list, *out;

    if (all == NULL)
        return NULL;
    list = list_queues(all);
    out = count_all(call, list, all->is_part);
    if (out != NULL) {
        json_put_int(out, "dead", all->dead);
        json_put_int(out, "dead_queues", (int64_t)json_array_size(list));
        while (json_array_size(list) > LISTED_MAX)
            (void)json_array_remove(list, json_array_size(list) - 1);
        json_put(out, "queues", json_incref(list));
    }
    json_decref(list);
    return out;
}

const struct route dead_routes[] = {
    {false, "dead", dead},
    {false, "queues/*/reasons", reasons},
    {false, NULL, NULL},
};
