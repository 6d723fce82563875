#include "json/stats.h"

#include "ask/replies.h"
#include "json/put.h"

size_t stats_nqueues(const struct reply *r)
{
    return reply_count(reply_at(r, STATS_QUEUES)) / QUEUE_VALUES;
}

const struct reply *stats_queue(const struct reply *r, size_t queue, size_t value)
{
    return reply_at(reply_at(r, STATS_QUEUES), queue * QUEUE_VALUES + value);
}

const struct reply *stats_state(const struct reply *r, size_t queue, size_t value)
{
    const struct reply *v = reply_at(reply_at(r, STATS_STATES), queue * STATE_VALUES + value);

    return reply_kind(v) == REPLY_INT ? v : NULL;
}

bool stats_pause(const struct reply *r, size_t queue, struct pause *ret)
{
    return pause_read(stats_queue(r, queue, QUEUE_PAUSED), ret) &&
           (ret->until_ms == 0 || ret->until_ms > reply_int(reply_at(r, STATS_NOW)));
}

json_t *stats_queue_to_json(const struct reply *r, size_t queue)
{
    static const char *const names[QUEUE_VALUES] = {
        "queue", "waiting", "raw", "due_ms", "paused", "dead", "kept", "done", "died", "cancelled"};
    static const char *const states[STATE_VALUES] = {"running", "parked"};
    json_t *object = json_object();
    struct pause pause;

    for (size_t v = 0; v < QUEUE_VALUES; v++) {
        const struct reply *value = stats_queue(r, queue, v);

        if (v == QUEUE_NAME)
            json_put_reply(object, names[v], value);
        else if (v != QUEUE_PAUSED && !(v == QUEUE_DUE && reply_len(value) == 0))
            json_put_int(object, names[v], reply_int(value));
    }
    for (size_t v = 0; v < STATE_VALUES; v++) {
        if (stats_state(r, queue, v) != NULL)
            json_put_int(object, states[v], reply_int(stats_state(r, queue, v)));
    }
    if (stats_pause(r, queue, &pause))
        json_put(object, "paused", pause_to_json(&pause));
    return object;
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
    json_t *object = json_object(), *queues = json_array();

    json_put_int(object, "now_ms", reply_int(reply_at(r, STATS_NOW)));
    json_put_int(object, "workers", reply_int(reply_at(r, STATS_WORKERS)));
    json_put_int(object, "running", reply_int(reply_at(r, STATS_RUNNING)));
    json_put_int(object, "jobs", reply_int(reply_at(r, STATS_JOBS)));
    for (size_t i = 0; i < stats_nqueues(r); i++)
        (void)json_array_append_new(queues, stats_queue_to_json(r, i));
    json_put(object, "queues", queues);
    json_put_int(object, "more_queues", reply_int(reply_at(r, STATS_MORE)));
    json_put(object, "notes", notes_to_json(reply_at(r, STATS_NOTES)));
    return object;
}
