#include "web/about_queues.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ask/listing.h"
#include "ask/replies.h"
#include "ask/series.h"
#include "base/mem.h"
#include "base/text.h"
#include "json/explain.h"
#include "json/history.h"
#include "json/job_row.h"
#include "json/put.h"
#include "json/stats.h"

#define MINUTE_MS 60000
#define HISTORY_MINUTES 60

static json_t *queues(struct api_call *call)
{
    struct reply *r = api_ask(call, "later_stats", NULL);
    json_t *out, *list;

    if (r == NULL)
        return NULL;
    out = api_object(reply_int(reply_at(r, STATS_NOW)));
    list = json_array();
    for (size_t i = 0; i < stats_nqueues(r); i++)
        (void)json_array_append_new(list, stats_queue_to_json(r, i));
    json_put(out, "queues", list);
    json_put_int(out, "more_queues", reply_int(reply_at(r, STATS_MORE)));
    reply_free(r);
    return out;
}

/* ---- one queue */

/* The last hour by the minute. */
static json_t *history_of(struct api_call *call, const char *queue, int64_t now_ms)
{
    struct series_span span = {
        .from = now_ms / MINUTE_MS - HISTORY_MINUTES + 1, .bucket = 1, .nbuckets = HISTORY_MINUTES};
    history_row *rows = mem_new(HISTORY_MINUTES * sizeof(*rows));
    json_t *out = NULL, *list;

    if (series_read(call->server, queue, &span, rows, &call->err) == 0) {
        out = json_object();
        list = json_array();
        json_put_int(out, "from_ms", span.from * MINUTE_MS);
        json_put_int(out, "by_ms", MINUTE_MS);
        for (size_t i = 0; i < HISTORY_MINUTES; i++)
            (void)json_array_append_new(list, history_row_to_json(rows[i]));
        json_put(out, "buckets", list);
    }
    free(rows);
    return out;
}

static json_t *queue(struct api_call *call)
{
    struct reply *r = api_ask(call, "later_stats", call->name[0], NULL);
    int64_t now_ms = reply_int(reply_at(r, STATS_NOW));
    json_t *out, *history;

    if (r == NULL)
        return NULL;
    history = history_of(call, call->name[0], now_ms);
    if (history == NULL) {
        reply_free(r);
        return NULL;
    }
    out = api_object(now_ms);
    json_put(out, "queue", stats_queue_to_json(r, 0));
    json_put(out, "history", history);
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
    for (size_t i = 1; i < reply_count(r); i++)
        (void)json_array_append_new(
            rows, job_row_to_json(reply_at(r, i), queue_name[0] == '*' ? NULL : queue_name, state));
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
