#include "web/about_fleet.h"

#include <string.h>

#include "ask/replies.h"
#include "json/bulk.h"
#include "json/gate.h"
#include "json/put.h"
#include "json/stats.h"
#include "json/worker.h"
#include "web/all_queues.h"
#include "web/fleet_health.h"
#include "web/history.h"

#define GATES_A_CALL 40
#define GATES_MAX 600    /* of a page: more than later_v1_gate_names tells */
#define GATE_NAMES "200" /* entries that it looks at */

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

/* When Redis last took a beat of this worker. health: of later_v1_health. */
static void put_beat(json_t *line, const struct reply *worker, const struct reply *health)
{
    const struct reply *of = reply_at(health, HEALTH_WORKERS);

    for (size_t i = 0; i < reply_count(of); i++) {
        const struct reply *w = reply_at(of, i), *beat = reply_at(w, HEALTH_BEAT);

        if (reply_len(beat) > 0 &&
            reply_is(reply_at(w, WORKER_EPOCH), reply_str(reply_at(worker, WORKER_EPOCH))))
            json_put_int(line, "beat_ms", reply_int(beat));
    }
}

static json_t *workers(struct api_call *call)
{
    struct reply *r = api_ask(call, "later_v1_workers", NULL), *suspected, *beats;
    json_t *out, *list;

    if (r == NULL)
        return NULL;
    suspected = api_ask(call, "later_v1_suspects", NULL);
    beats = api_ask(call, "later_v1_health", HEALTH_LATE_MS, NULL);
    out = api_object(reply_int(reply_at(r, 0)));
    list = json_array();
    for (size_t i = 1; i < reply_count(r); i++) {
        json_t *line = worker_to_json(reply_at(r, i));

        put_beat(line, reply_at(r, i), beats);
        (void)json_array_append_new(list, line);
    }
    json_put(out, "workers", list);
    json_put(out, "suspects", suspects(suspected));
    reply_free(beats);
    reply_free(suspected);
    reply_free(r);
    return out;
}

static json_t *bulks(struct api_call *call)
{
    struct reply *r = api_ask(call, "later_bulk_show", NULL);
    json_t *out, *list;

    if (r == NULL)
        return NULL;
    out = api_object_now(call);
    list = json_array();
    for (size_t i = 0; i < reply_count(r); i++)
        (void)json_array_append_new(list, bulk_to_json(reply_at(r, i)));
    json_put(out, "bulks", list);
    reply_free(r);
    return out;
}

/* ---- gates */

/* These gates, but those that nobody holds or waits for. 0, or -1 with call->err. */
static int put_gates(json_t *list, struct api_call *call, const char *const *ids, size_t n,
                     const struct reply *people)
{
    for (size_t from = 0; from < n;) {
        struct ask_call words = {.n = 0};
        struct reply *r;

        for (size_t i = 0; i < GATES_A_CALL && from < n; i++)
            ask_call_puts(&words, ids[from++]);
        r = ask_fcall(call->server, "later_v1_gates", &words, &call->err);
        if (r == NULL)
            return -1;
        for (size_t i = 0; i < reply_count(r); i++) {
            if (!gate_is_idle(reply_at(r, i)) || n == 1)
                (void)json_array_append_new(list, gate_to_json(reply_at(r, i), people));
        }
        reply_free(r);
    }
    return 0;
}

/* One gate by its id, or a page of those that matter now. */
static json_t *gates(struct api_call *call)
{
    const char *one = http_query(call->request, "gate"), *ids[GATES_MAX];
    struct reply *people = api_ask(call, "later_v1_workers", NULL), *names = NULL;
    json_t *list = json_array(), *out = NULL;
    size_t n = 0;

    if (one[0] != '\0')
        ids[n++] = one;
    else if (people != NULL)
        names = api_ask(call, "later_v1_gate_names", http_query(call->request, "after"), GATE_NAMES,
                        NULL);
    for (size_t i = 1; i < reply_count(names) && n < GATES_MAX; i++)
        ids[n++] = reply_str(reply_at(names, i));
    if (people != NULL && call->err.code == ERR_NONE &&
        put_gates(list, call, ids, n, people) == 0) {
        out = api_object(reply_int(reply_at(people, 0)));
        json_put(out, "gates", json_incref(list));
        json_put_if(out, "after", reply_at(names, 0));
    }
    json_decref(list);
    reply_free(names);
    reply_free(people);
    return out;
}

/* ---- overview */

/* Of later_v1_summary. */
enum {
    SUMMARY_NOW,
    SUMMARY_WORKERS,
    SUMMARY_RUNNING,
    SUMMARY_JOBS,
    SUMMARY_QUEUES,
    SUMMARY_PARKED,
    SUMMARY_PAUSED,
    SUMMARY_UNSERVED,
    SUMMARY_OLDEST,
    SUMMARY_OLDEST_MS,
    SUMMARY_ROWS,
    SUMMARY_STATES
};

static json_t *oldest(const struct reply *r)
{
    json_t *one = json_object();

    json_put_reply(one, "queue", reply_at(r, SUMMARY_OLDEST));
    json_put_int(one, "due_ms", reply_int(reply_at(r, SUMMARY_OLDEST_MS)));
    return one;
}

static json_t *overview(struct api_call *call)
{
    static const struct {
        const char *name;
        size_t at;
    } numbers[] = {{"workers", SUMMARY_WORKERS},  {"running", SUMMARY_RUNNING},
                   {"jobs", SUMMARY_JOBS},        {"queues", SUMMARY_QUEUES},
                   {"parked", SUMMARY_PARKED},    {"paused", SUMMARY_PAUSED},
                   {"unserved", SUMMARY_UNSERVED}};
    struct reply *r = api_ask(call, "later_v1_summary", NULL);
    struct stats_rows rows = {reply_at(r, SUMMARY_ROWS), reply_at(r, SUMMARY_STATES),
                              reply_int(reply_at(r, SUMMARY_NOW))};
    const struct known_queues *all;
    json_t *out, *well, *history;

    if (r == NULL)
        return NULL;
    well = fleet_health(call, rows.now_ms);
    all = all_queues_look(call, 1); /* for a count of the dead that may be late */
    history = kept_get(&call->api->history, history_of_all, call, rows.now_ms);
    out = api_object(rows.now_ms);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        if (reply_kind(reply_at(r, numbers[i].at)) == REPLY_INT)
            json_put_int(out, numbers[i].name, reply_int(reply_at(r, numbers[i].at)));
    }
    if (all != NULL)
        json_put_int(out, "dead", all->dead);
    if (all != NULL && all->is_part)
        json_put(out, "more_dead", json_true());
    if (reply_len(reply_at(r, SUMMARY_OLDEST)) > 0)
        json_put(out, "oldest_due", oldest(r));
    json_put(out, "worst", stats_queues_to_json(&rows));
    json_put(out, "health", well);
    if (history != NULL)
        json_put(out, "history", history);
    reply_free(r);
    return out;
}

const struct route fleet_routes[] = {
    {false, "overview", overview}, {false, "health", fleet_health_ask},
    {false, "workers", workers},   {false, "gates", gates},
    {false, "bulks", bulks},       {false, NULL, NULL},
};
