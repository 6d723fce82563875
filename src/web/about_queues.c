#include "web/about_queues.h"

#include <stdio.h>
#include <string.h>

#include "ask/listing.h"
#include "ask/next_job.h"
#include "ask/replies.h"
#include "base/text.h"
#include "json/explain.h"
#include "json/job_row.h"
#include "json/put.h"
#include "json/stats.h"
#include "web/all_queues.h"
#include "web/history.h"

#define MINUTE_MS 60000
#define QUEUES_MAX 100 /* of a page */

/* ---- pages of queues */

/* How many jobs of each queue run, as far as that is told. running: of later_v1_running. */
static void put_running(json_t *list, const struct reply *running)
{
    const struct reply *counts = reply_at(running, 1);
    json_t *of = json_object();

    for (size_t i = 0; i + 1 < reply_count(counts); i += 2)
        json_put_int(of, reply_str(reply_at(counts, i)), reply_int(reply_at(counts, i + 1)));
    for (size_t i = 0; reply_kind(counts) == REPLY_ARRAY && i < json_array_size(list); i++) {
        json_t *row = json_array_get(list, i);
        const json_t *n = json_object_get(of, json_string_value(json_object_get(row, "queue")));

        json_put_int(row, "running", json_integer_value(n));
    }
    json_decref(of);
}

/* The worst first; "after" is how many stand before the page. */
static json_t *queues(struct api_call *call)
{
    size_t from = (size_t)api_number(call, "after", 0, ALL_QUEUES_MAX, 0);
    size_t to = from + (size_t)api_number(call, "count", 1, QUEUES_MAX, QUEUES_MAX);
    const struct known_queues *all = all_queues_look(call, ALL_QUEUES_PAGES);
    struct reply *running;
    json_t *out, *list;
    char next[24];

    if (all == NULL)
        return NULL;
    list = json_array();
    for (size_t i = from; i < to && i < json_array_size(all->rows); i++)
        (void)json_array_append_new(list, json_copy(json_array_get(all->rows, i)));
    running = api_ask(call, "later_v1_running", NULL);
    put_running(list, running);
    reply_free(running);
    out = api_object_now(call);
    json_put(out, "queues", list);
    (void)snprintf(next, sizeof(next), "%zu", to);
    if (to < json_array_size(all->rows))
        json_put_text(out, "after", next, strlen(next));
    if (all->is_part)
        json_put(out, "more", json_true());
    return out;
}

/* ---- one queue */

/* How many jobs are due in each of the next sixty minutes. */
static void put_ahead(json_t *out, struct api_call *call, int64_t now_ms)
{
    char from[24];
    struct reply *r;
    json_t *list;

    (void)snprintf(from, sizeof(from), "%lld", (long long)now_ms);
    r = api_ask(call, "later_v1_ahead", call->name[0], from, "60000", "60", NULL);
    if (r == NULL)
        return;
    list = json_array();
    for (size_t i = 0; i < reply_count(r); i++) {
        json_t *one = json_object();

        json_put_int(one, "from_ms", now_ms + (int64_t)i * MINUTE_MS);
        json_put_int(one, "jobs", reply_int(reply_at(r, i)));
        (void)json_array_append_new(list, one);
    }
    json_put(out, "ahead", list);
    reply_free(r);
}

/* Why the job that would start next does not, if there is one. */
static void put_next(json_t *out, struct api_call *call, int64_t now_ms)
{
    struct next_job next;
    struct reply *r;

    if (next_job_find(call->server, call->name[0], now_ms, &next, &call->err) < 0 ||
        next.id[0] == '\0')
        return;
    r = api_ask(call, "later_explain", next.id, NULL);
    if (r != NULL)
        json_put(out, "next", explain_to_json(r));
    reply_free(r);
}

static json_t *queue(struct api_call *call)
{
    struct reply *r = api_ask(call, "later_stats", call->name[0], NULL);
    int64_t now_ms = reply_int(reply_at(r, STATS_NOW));
    struct stats_rows rows;
    json_t *out, *history;

    if (r == NULL)
        return NULL;
    history = history_of_queue(call, call->name[0], now_ms);
    if (history == NULL) {
        reply_free(r);
        return NULL;
    }
    rows = stats_rows(r);
    out = api_object(now_ms);
    json_put(out, "queue", stats_queue_to_json(&rows, 0));
    json_put(out, "history", history);
    put_ahead(out, call, now_ms);
    put_next(out, call, now_ms);
    reply_free(r);
    return out;
}

/* ---- jobs */

static bool is_state(const char *text)
{
    static const char *const states[] = {"due", "parked", "running", "dead", "done"};

    for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++)
        if (strcmp(text, states[i]) == 0)
            return true;
    return false;
}

/* A page of a listing. queue "*": the running jobs of all queues. */
static json_t *list(struct api_call *call, const char *queue_name, const char *state)
{
    const char *cursor = http_query(call->request, "cursor");
    int64_t count = api_number(call, "count", 1, LISTING_PAGE, LISTING_PAGE);
    struct listing l;
    struct reply *r;
    json_t *out, *rows;

    listing_init(&l, queue_name, state);
    text_copy(l.cursor, sizeof(l.cursor), cursor);
    r = listing_next(&l, call->server, count, &call->err);
    if (r == NULL)
        return NULL;
    out = api_object_now(call);
    rows = json_array();
    for (size_t i = 1; i < reply_count(r); i++) {
        json_t *row =
            job_row_to_json(reply_at(r, i), queue_name[0] == '*' ? NULL : queue_name, state);

        if (call->api->shows_payloads)
            job_row_put_start(row, reply_at(r, i));
        (void)json_array_append_new(rows, row);
    }
    json_put(out, "jobs", rows);
    if (!l.is_over)
        json_put_text(out, "cursor", l.cursor, strlen(l.cursor));
    reply_free(r);
    return out;
}

static json_t *queue_jobs(struct api_call *call)
{
    const char *state = http_query(call->request, "state");

    if (state[0] == '\0')
        state = "due";
    if (!is_state(state)) {
        err_fill(&call->err, ERR_USAGE, "state is one of due parked running dead done");
        return NULL;
    }
    return list(call, call->name[0], state);
}

static json_t *running(struct api_call *call)
{
    return list(call, "*", "running");
}

const struct route queue_routes[] = {
    {false, "queues", queues},   {false, "queues/*", queue}, {false, "queues/*/jobs", queue_jobs},
    {false, "running", running}, {false, NULL, NULL},
};
