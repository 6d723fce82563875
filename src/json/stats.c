#include "json/stats.h"

#include "ask/replies.h"
#include "json/put.h"

struct stats_rows stats_rows(const struct reply *r)
{
    return (struct stats_rows){reply_at(r, STATS_QUEUES), reply_at(r, STATS_STATES),
                               reply_int(reply_at(r, STATS_NOW))};
}

struct stats_rows stats_page(const struct reply *r)
{
    return (struct stats_rows){reply_at(r, QUEUES_ROWS), reply_at(r, QUEUES_STATES),
                               reply_int(reply_at(r, QUEUES_NOW))};
}

size_t stats_nqueues(const struct stats_rows *rows)
{
    return reply_count(rows->queues) / QUEUE_VALUES;
}

const struct reply *stats_queue(const struct stats_rows *rows, size_t queue, size_t value)
{
    return reply_at(rows->queues, queue * QUEUE_VALUES + value);
}

const struct reply *stats_state(const struct stats_rows *rows, size_t queue, size_t value)
{
    const struct reply *v = reply_at(rows->states, queue * STATE_VALUES + value);

    return reply_kind(v) == REPLY_INT ? v : NULL;
}

bool stats_pause(const struct stats_rows *rows, size_t queue, struct pause *ret)
{
    return pause_read(stats_queue(rows, queue, QUEUE_PAUSED), ret) &&
           (ret->until_ms == 0 || ret->until_ms > rows->now_ms);
}

json_t *stats_queue_to_json(const struct stats_rows *rows, size_t queue)
{
    static const char *const names[QUEUE_VALUES] = {
        "queue", "waiting", "raw", "due_ms", "paused", "dead", "kept", "done", "died", "cancelled"};
    static const char *const states[STATE_VALUES] = {"running", "parked"};
    json_t *object = json_object();
    struct pause pause;

    for (size_t v = 0; v < QUEUE_VALUES; v++) {
        const struct reply *value = stats_queue(rows, queue, v);

        if (v == QUEUE_NAME)
            json_put_reply(object, names[v], value);
        else if (v != QUEUE_PAUSED && !(v == QUEUE_DUE && reply_len(value) == 0))
            json_put_int(object, names[v], reply_int(value));
    }
    for (size_t v = 0; v < STATE_VALUES; v++) {
        if (stats_state(rows, queue, v) != NULL)
            json_put_int(object, states[v], reply_int(stats_state(rows, queue, v)));
    }
    if (stats_pause(rows, queue, &pause))
        json_put(object, "paused", pause_to_json(&pause));
    return object;
}

json_t *stats_queues_to_json(const struct stats_rows *rows)
{
    json_t *list = json_array();

    for (size_t i = 0; i < stats_nqueues(rows); i++)
        (void)json_array_append_new(list, stats_queue_to_json(rows, i));
    return list;
}

static json_t *notes_to_json(const struct reply *notes)
{
    json_t *list = json_array();

    for (size_t i = 0; i + 1 < reply_count(notes); i += 2) {
        json_t *note = json_object();

        json_put_reply(note, "note", reply_at(notes, i));
        json_put_int(note, "seen_ms", reply_int(reply_at(notes, i + 1)));
        (void)json_array_append_new(list, note);
    }
    return list;
}

json_t *stats_to_json(const struct reply *r)
{
    struct stats_rows rows = stats_rows(r);
    json_t *object = json_object();

    json_put_int(object, "now_ms", reply_int(reply_at(r, STATS_NOW)));
    json_put_int(object, "workers", reply_int(reply_at(r, STATS_WORKERS)));
    json_put_int(object, "running", reply_int(reply_at(r, STATS_RUNNING)));
    json_put_int(object, "jobs", reply_int(reply_at(r, STATS_JOBS)));
    json_put(object, "queues", stats_queues_to_json(&rows));
    json_put_int(object, "more_queues", reply_int(reply_at(r, STATS_MORE)));
    json_put(object, "notes", notes_to_json(reply_at(r, STATS_NOTES)));
    return object;
}
