#include "web/about_fleet.h"

#include <string.h>

#include "ask/replies.h"
#include "health/namespace.h"
#include "json/gate.h"
#include "json/put.h"
#include "json/worker.h"

#define GATES_A_CALL 40

/* The health of the namespace. That Redis cannot be asked is an answer, too. */
static json_t *health(struct api_call *call)
{
    struct err err = ERR_INIT;
    struct health h;

    health_init(&h);
    if (health_namespace(&h, call->server, &err) < 0) {
        health_done(&h);
        health_init(&h);
        health_add(h.causes, "cause", "redis", "%s", err.text);
        return health_to_json(&h, "down");
    }
    if (h.live == 0)
        health_no_worker(&h);
    return health_to_json(&h, json_array_size(h.causes) > 0 ? "degraded" : "ok");
}

static json_t *suspects(const struct reply *r)
{
    json_t *list = json_array();

    for (size_t i = 1; i < reply_count(r); i++) {
        const struct reply *row = reply_at(r, i);
        json_t *one = json_object();

        json_put_reply(one, "id", reply_at(row, SUSPECT_ID));
        json_put_reply(one, "queue", reply_at(row, SUSPECT_QUEUE));
        json_put_int(one, "due_ms", reply_int(reply_at(row, SUSPECT_DUE)));
        json_put_int(one, "crashes", reply_int(reply_at(row, SUSPECT_CRASHES)));
        (void)json_array_append_new(list, one);
    }
    return list;
}

static json_t *workers(struct api_call *call)
{
    struct reply *r = api_ask(call, "later_v1_workers", NULL), *suspected;
    json_t *out, *list;

    if (r == NULL)
        return NULL;
    suspected = api_ask(call, "later_v1_suspects", NULL);
    out = api_object(reply_int(reply_at(r, 0)));
    list = json_array();
    for (size_t i = 1; i < reply_count(r); i++)
        (void)json_array_append_new(list, worker_to_json(reply_at(r, i)));
    json_put(out, "workers", list);
    json_put(out, "suspects", suspects(suspected));
    reply_free(suspected);
    reply_free(r);
    return out;
}

/* ---- gates */

/* Those that are held or waited for, of these names: kind, name, kind, name... */
static int put_gates(struct api_call *call, const struct reply *names, const struct reply *people,
                     json_t *list)
{
    char ids[GATES_A_CALL][300];
    size_t from = 0, n = reply_count(names) / 2;

    while (from < n) {
        struct ask_call words = {.n = 0};
        struct reply *r;

        for (size_t i = 0; i < GATES_A_CALL && from < n; i++, from++) {
            (void)snprintf(ids[i], sizeof(ids[i]), "%s:%s", reply_str(reply_at(names, 2 * from)),
                           reply_str(reply_at(names, 2 * from + 1)));
            ask_call_puts(&words, ids[i]);
        }
        r = ask_fcall(call->server, "later_v1_gates", &words, &call->err);
        if (r == NULL)
            return -1;
        for (size_t i = 0; i < reply_count(r); i++)
            (void)json_array_append_new(list, gate_to_json(reply_at(r, i), people));
        reply_free(r);
    }
    return 0;
}

static json_t *gates(struct api_call *call)
{
    struct reply *names = api_ask(call, "later_find", "", "kind", "gate", "limit", "400", NULL);
    struct reply *people = names != NULL ? api_ask(call, "later_v1_workers", NULL) : NULL;
    json_t *out = NULL, *list = json_array();

    if (people != NULL && put_gates(call, names, people, list) == 0) {
        out = api_object(reply_int(reply_at(people, 0)));
        json_put(out, "gates", json_incref(list));
    }
    json_decref(list);
    reply_free(people);
    reply_free(names);
    return out;
}

const struct route fleet_routes[] = {
    {false, "health", health},
    {false, "workers", workers},
    {false, "gates", gates},
    {false, NULL, NULL},
};
