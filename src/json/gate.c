#include "json/gate.h"

#include <string.h>

#include "ask/replies.h"
#include "json/put.h"

bool gate_is_idle(const struct reply *row)
{
    return reply_int(reply_at(row, HOLDERS)) == 0 && reply_int(reply_at(row, WAITING)) == 0;
}

const struct reply *gate_worker(const struct reply *workers, const char *who)
{
    for (size_t i = 1; i < reply_count(workers); i++) {
        if (reply_is(reply_at(reply_at(workers, i), WORKER_EPOCH), who + 1))
            return reply_at(workers, i);
    }
    return NULL;
}

static json_t *who_json(const struct reply *workers, const char *who, bool is_waiter)
{
    json_t *one = json_object();
    const struct reply *w = who[0] == '@' ? gate_worker(workers, who) : NULL;

    if (who[0] == '@')
        json_put_text(one, "program", who + 1, strlen(who + 1));
    else if (who[0] == '=')
        json_put_text(one, "caller", who + 1, strlen(who + 1));
    else
        json_put_text(one, is_waiter ? "queue" : "job", who, strlen(who));
    if (w != NULL) {
        json_put_reply(one, "host", reply_at(w, WORKER_HOST));
        json_put_int(one, "pid", reply_int(reply_at(w, WORKER_PID)));
    }
    return one;
}

json_t *gate_to_json(const struct reply *row, const struct reply *workers)
{
    static const char *const numbers[] = {NULL, "since_ms", "until_ms", "fence"};
    const char *id = reply_str(reply_at(row, GATE)), *colon = strchr(id, ':');
    const char *name = colon != NULL ? colon + 1 : id;
    const struct reply *list = reply_at(row, LIST), *queue = reply_at(row, WAITERS);
    json_t *line = json_object(), *holders = json_array(), *waiters = json_array();

    json_put_text(line, "kind", id, colon != NULL ? (size_t)(colon - id) : 0);
    json_put_bytes(line, "name", name, strlen(name));
    json_put_if(line, "limit", reply_at(row, LIMIT));
    json_put_int(line, "held", reply_int(reply_at(row, HOLDERS)));
    for (size_t i = 0; i + HOLDER <= reply_count(list); i += HOLDER) {
        json_t *one = who_json(workers, reply_str(reply_at(list, i)), false);

        for (size_t k = 1; k < HOLDER; k++) {
            if (reply_int(reply_at(list, i + k)) != 0)
                json_put_int(one, numbers[k], reply_int(reply_at(list, i + k)));
        }
        (void)json_array_append_new(holders, one);
    }
    json_put(line, "holders", holders);
    json_put_int(line, "waiting", reply_int(reply_at(row, WAITING)));
    for (size_t i = 0; i + WAITER <= reply_count(queue); i += WAITER) {
        json_t *one = who_json(workers, reply_str(reply_at(queue, i)), true);

        json_put_int(one, "waiting", reply_int(reply_at(queue, i + 1)));
        json_put_int(one, "since_ms", reply_int(reply_at(queue, i + 2)));
        (void)json_array_append_new(waiters, one);
    }
    json_put(line, "waiters", waiters);
    if (reply_int(reply_at(row, OPENS)) > 0)
        json_put_int(line, "opens_ms", reply_int(reply_at(row, OPENS)));
    return line;
}
