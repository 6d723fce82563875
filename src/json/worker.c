#include "json/worker.h"

#include <string.h>

#include "ask/replies.h"
#include "json/put.h"

int64_t worker_running(const struct reply *worker)
{
    int64_t held = reply_int(reply_at(worker, WORKER_HELD)),
            places = reply_int(reply_at(worker, WORKER_PLACES));

    return reply_len(reply_at(worker, WORKER_PLACES)) > 0 && places < held ? places : held;
}

const char *worker_state(const struct reply *worker)
{
    if (reply_is(reply_at(worker, WORKER_COUNTER), "dead"))
        return "dead";
    return reply_is(reply_at(worker, WORKER_QUIET), "1") ? "quiet" : "live";
}

json_t *worker_to_json(const struct reply *worker)
{
    static const char *const names[] = {
        [WORKER_EPOCH] = "worker",    [WORKER_HOST] = "host",          [WORKER_PID] = "pid",
        [WORKER_VERSION] = "version", [WORKER_STARTED] = "started_ms", [WORKER_HELD] = "held",
        [WORKER_SERVES] = "queues"};
    json_t *line = json_object();

    for (size_t v = 0; v < sizeof(names) / sizeof(names[0]); v++) {
        const struct reply *value = reply_at(worker, v);

        if (names[v] == NULL)
            continue;
        if (v == WORKER_HOST || v == WORKER_VERSION || v == WORKER_SERVES)
            json_put_text(line, names[v], reply_str(value), reply_len(value));
        else
            json_put_int(line, names[v], reply_int(value));
    }
    json_put_int(line, "running", worker_running(worker));
    if (reply_len(reply_at(worker, WORKER_PLACES)) > 0)
        json_put_int(line, "places", reply_int(reply_at(worker, WORKER_PLACES)));
    json_put_text(line, "state", worker_state(worker), strlen(worker_state(worker)));
    return line;
}
