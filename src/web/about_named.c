#include "web/about_named.h"

#include <stdio.h>
#include <string.h>

#include "ask/occurrences.h"
#include "job/job.h"
#include "json/batch.h"
#include "json/put.h"
#include "json/schedule.h"

#define AHEAD 10 /* times of a schedule that are told */

/* Add `after` for the next page, if there is one. */
static void put_next(json_t *out, const struct reply *cursor)
{
    if (!reply_is(cursor, "0"))
        json_put_reply(out, "after", cursor);
}

static const char *cursor_of(const struct api_call *call)
{
    const char *after = http_query(call->request, "after");

    return after[0] != '\0' ? after : "0";
}

/* A page [CURSOR, row...] as an object with the rows under this name. */
static json_t *page_of(struct api_call *call, struct reply *r, const char *name,
                       json_t *(*to_json)(const struct reply *row))
{
    json_t *out, *list;

    if (r == NULL)
        return NULL;
    out = api_object_now(call);
    list = json_array();
    for (size_t i = 1; i < reply_count(r); i++)
        (void)json_array_append_new(list, to_json(reply_at(r, i)));
    json_put(out, name, list);
    put_next(out, reply_at(r, 0));
    reply_free(r);
    return out;
}

static json_t *schedules(struct api_call *call)
{
    return page_of(call, api_ask(call, "later_schedules", "cursor", cursor_of(call), NULL),
                   "schedules", schedule_to_json);
}

static json_t *ahead(const struct reply *row, int64_t now_ms)
{
    int64_t at[AHEAD];
    size_t n = occurrences_of(row, now_ms, at, AHEAD);
    json_t *list = json_array();

    for (size_t i = 0; i < n; i++)
        (void)json_array_append_new(list, json_integer(at[i]));
    return list;
}

static json_t *schedule(struct api_call *call)
{
    struct reply *r = api_ask(call, "later_schedules", call->name[0], NULL);
    int64_t now_ms;
    json_t *out, *one;

    if (r == NULL)
        return NULL;
    now_ms = ask_now_ms(call->server);
    out = api_object(now_ms);
    json_put(out, "ahead_ms", ahead(r, now_ms));
    one = schedule_to_json(r);
    if (call->api->shows_payloads)
        json_put_bytes(one, "payload", reply_str(reply_named(r, "payload")),
                       reply_len(reply_named(r, "payload")));
    json_put(out, "schedule", one);
    reply_free(r);
    return out;
}

static json_t *batches(struct api_call *call)
{
    return page_of(call, api_ask(call, "later_v1_batches", cursor_of(call), NULL), "batches",
                   batch_row_to_json);
}

static json_t *members(const struct reply *page)
{
    json_t *list = json_array();

    for (size_t i = 1; i < reply_count(page); i++) {
        json_t *one = json_object();

        json_put_reply(one, "id", reply_at(reply_at(page, i), 0));
        json_put_reply(one, "state", reply_at(reply_at(page, i), 1));
        (void)json_array_append_new(list, one);
    }
    return list;
}

static json_t *batch(struct api_call *call)
{
    struct reply *r = api_ask(call, "later_batch_show", call->name[0], NULL), *page;
    int64_t now_ms;
    json_t *out, *one;

    if (r == NULL)
        return NULL;
    page = api_ask(call, "later_batch_jobs", call->name[0], cursor_of(call), NULL);
    now_ms = ask_now_ms(call->server);
    out = api_object(now_ms);
    one = batch_to_json(r, now_ms);
    if (call->api->shows_payloads)
        batch_put_payload(one, r);
    json_put(out, "batch", one);
    json_put(out, "jobs", members(page));
    if (page != NULL)
        put_next(out, reply_at(page, 0));
    reply_free(page);
    reply_free(r);
    return out;
}

/* ---- search */

static void put_found(json_t *list, const char *kind, const char *name)
{
    json_t *one = json_object();

    json_put_text(one, "kind", kind, strlen(kind));
    json_put_bytes(one, "name", name, strlen(name));
    (void)json_array_append_new(list, one);
}

/* A job by its id, and names by how they begin. */
static json_t *search(struct api_call *call)
{
    const char *q = http_query(call->request, "q");
    struct reply *r = api_ask(call, "later_find", q, "limit", "50", NULL);
    json_t *out, *list;

    if (r == NULL)
        return NULL;
    out = api_object_now(call);
    list = json_array();
    if (job_is_id(q, strlen(q)))
        put_found(list, "job", q);
    for (size_t i = 0; i + 1 < reply_count(r); i += 2)
        put_found(list, reply_str(reply_at(r, i)), reply_str(reply_at(r, i + 1)));
    json_put(out, "found", list);
    reply_free(r);
    return out;
}

const struct route named_routes[] = {
    {false, "schedules", schedules}, {false, "schedules/*", schedule}, {false, "batches", batches},
    {false, "batches/*", batch},     {false, "search", search},        {false, NULL, NULL},
};
