#include "web/all_queues.h"

#include <stdlib.h>
#include <string.h>

#include "ask/replies.h"
#include "base/mem.h"
#include "json/put.h"
#include "json/stats.h"
#include "web/fleet_health.h"

#define PAGE "50"
#define PAGES_MAX 1000 /* of a walk: queues with jobs in many sets come in small pages */
#define EACH_MS 10000
#define LATE_MS 5000 /* a job that has been due for less is none of trouble */

struct all_queues {
    struct known_queues known;
    json_t *rows; /* of the walk under way; NULL: there is none */
    char *after;
    int pages;
    bool has_walked;   /* a walk has ended */
    struct mono again; /* when the next one begins */
};

/* ---- order */

/* What keeps most jobs from being done comes first. */
enum { BY_CAUSE, BY_PAUSE, BY_LATENESS, BY_DEAD, BY_PARKED, BY_WAITING, WEIGHTS };

struct weighed {
    json_t *row;
    size_t place; /* of equal ones the first stays the first */
    int64_t by[WEIGHTS];
};

/* The names of the queues that are a cause of bad health, as the keys of an object. */
static json_t *accused(struct api_call *call, int64_t now_ms)
{
    json_t *health = fleet_health(call, now_ms), *names = json_object();
    const json_t *causes = json_object_get(health, "causes");

    for (size_t i = 0; i < json_array_size(causes); i++) {
        const char *queue = json_string_value(json_object_get(json_array_get(causes, i), "queue"));

        if (queue != NULL)
            (void)json_object_set_new(names, queue, json_true());
    }
    json_decref(health);
    return names;
}

static void weigh(struct weighed *w, const json_t *causes, int64_t now_ms)
{
    const json_t *due = json_object_get(w->row, "due_ms");
    int64_t late_ms = due != NULL ? now_ms - json_integer_value(due) - LATE_MS : 0;

    w->by[BY_WAITING] = json_int(w->row, "waiting") + json_int(w->row, "raw");
    w->by[BY_PARKED] = json_int(w->row, "parked");
    w->by[BY_DEAD] = json_int(w->row, "dead");
    w->by[BY_LATENESS] = late_ms > 0 ? late_ms : 0;
    w->by[BY_PAUSE] = json_object_get(w->row, "paused") != NULL && w->by[BY_WAITING] > 0;
    w->by[BY_CAUSE] =
        json_object_get(causes, json_string_value(json_object_get(w->row, "queue"))) != NULL;
}

static int worst_first(const void *a, const void *b)
{
    const struct weighed *one = a, *other = b;

    for (size_t i = 0; i < WEIGHTS; i++)
        if (one->by[i] != other->by[i])
            return one->by[i] > other->by[i] ? -1 : 1;
    return one->place < other->place ? -1 : 1;
}

/* What these rows say becomes what is known. */
static void know(struct known_queues *q, struct api_call *call, const json_t *rows, int64_t now_ms)
{
    size_t n = json_array_size(rows);
    struct weighed *sorted = mem_new((n + 1) * sizeof(*sorted));
    json_t *causes = accused(call, now_ms);

    for (size_t i = 0; i < n; i++) {
        sorted[i].row = json_array_get(rows, i);
        sorted[i].place = i;
        weigh(&sorted[i], causes, now_ms);
    }
    qsort(sorted, n, sizeof(*sorted), worst_first);
    json_decref(q->rows);
    q->rows = json_array();
    q->dead = 0;
    for (size_t i = 0; i < n; i++) {
        (void)json_array_append(q->rows, sorted[i].row);
        q->dead += sorted[i].by[BY_DEAD];
    }
    json_decref(causes);
    free(sorted);
}

/* ---- walk */

static void end_walk(struct all_queues *q)
{
    json_decref(q->rows);
    free(q->after);
    q->rows = NULL;
    q->after = NULL;
}

static void begin_walk(struct all_queues *q)
{
    q->rows = json_array();
    q->after = mem_strdup("");
    q->pages = 0;
    q->again = mono_add_ms(mono_now(), EACH_MS);
}

/* Read a page. The time of its answer, -1 with call->err. */
static int64_t read_page(struct all_queues *q, struct api_call *call)
{
    struct reply *r = api_ask(call, "later_v1_queues", q->after, PAGE, NULL);
    struct stats_rows rows = stats_page(r);
    json_t *list;

    if (r == NULL)
        return -1;
    list = stats_queues_to_json(&rows);
    (void)json_array_extend(q->rows, list);
    json_decref(list);
    free(q->after);
    q->after = mem_strdup(reply_str(reply_at(r, QUEUES_NEXT)));
    q->pages++;
    reply_free(r);
    return rows.now_ms;
}

static bool is_cut(const struct all_queues *q)
{
    return q->pages >= PAGES_MAX || json_array_size(q->rows) > ALL_QUEUES_MAX;
}

/* 0, or -1 with call->err: then the next question begins anew. */
static int walk(struct all_queues *q, struct api_call *call, int most)
{
    int64_t now_ms = 0;
    bool is_over = false;

    for (int i = 0; i < most && !is_over; i++) {
        now_ms = read_page(q, call);
        if (now_ms < 0) {
            end_walk(q);
            return -1;
        }
        is_over = q->after[0] == '\0' || is_cut(q);
    }
    if (is_over || !q->has_walked) {
        know(&q->known, call, q->rows, now_ms);
        q->known.is_part = q->after[0] != '\0';
    }
    if (!is_over)
        return 0;
    q->has_walked = true;
    if (q->pages == 1)
        q->again = mono_now();
    end_walk(q);
    return 0;
}

const struct known_queues *all_queues_look(struct api_call *call, int most)
{
    struct all_queues *q = call->api->all_queues;

    if (q->rows == NULL && (!q->has_walked || !mono_before(mono_now(), q->again)))
        begin_walk(q);
    return q->rows == NULL || walk(q, call, most) == 0 ? &q->known : NULL;
}

struct all_queues *all_queues_new(void)
{
    return mem_new(sizeof(struct all_queues));
}

void all_queues_free(struct all_queues *q)
{
    if (q == NULL)
        return;
    end_walk(q);
    json_decref(q->known.rows);
    free(q);
}
