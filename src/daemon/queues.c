#include "daemon/queues.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define STRIDE_ONE (UINT64_C(1) << 20)
#define GATED_TIMES 16                          /* others take turns with us */
#define HEAD_LATEST_MS INT64_C(100000000000000) /* no job is due later (see L.LATEST) */

struct queue {
    char name[JOB_QUEUE_MAX + 1];
    unsigned limit, weight, running;
    unsigned asked; /* claims that steps under way may bring */
    int64_t max_payload;
    struct mono head; /* when to look; us 0: at once */
    uint64_t pass;
    bool was_due;   /* in the last plan */
    bool woken;     /* since it was last named: a head told by then is old news */
    unsigned gated; /* for so many openings of gates its jobs may come through them */
};

struct queues {
    struct queue *at; /* sorted by name */
    size_t n;
    struct queue **order; /* room for a plan */
    uint64_t pass;        /* of the last claim: where a queue that was idle comes in */
};

struct queues *queues_new(void)
{
    return mem_new(sizeof(struct queues));
}

void queues_free(struct queues *qs)
{
    if (qs == NULL)
        return;
    free(qs->at);
    free(qs->order);
    free(qs);
}

static int compare_name(const void *key, const void *q)
{
    return strcmp(key, ((const struct queue *)q)->name);
}

static struct queue *find(const struct queues *qs, const char *name)
{
    return qs->n > 0 ? bsearch(name, qs->at, qs->n, sizeof(*qs->at), compare_name) : NULL;
}

void queues_set(struct queues *qs, const struct queue_spec *specs, size_t n)
{
    struct queue *at = mem_new(n * sizeof(*at));

    for (size_t i = 0; i < n; i++) {
        const struct queue *was = find(qs, specs[i].name);

        if (was != NULL)
            at[i] = *was;
        else
            at[i].pass = qs->pass;
        (void)snprintf(at[i].name, sizeof(at[i].name), "%s", specs[i].name);
        at[i].limit = specs[i].limit;
        at[i].weight = specs[i].weight;
        at[i].max_payload = specs[i].max_payload;
    }
    free(qs->at);
    qs->at = at;
    qs->n = n;
    qs->order = mem_grow(qs->order, n, sizeof(struct queue *));
}

void queues_set_limit(struct queues *qs, const char *name, unsigned limit)
{
    struct queue *q = find(qs, name);

    if (q != NULL)
        q->limit = limit;
}

size_t queues_count(const struct queues *qs)
{
    return qs->n;
}

void queues_names(const struct queues *qs, struct buf *out)
{
    for (size_t i = 0; i < qs->n; i++)
        buf_printf(out, "%s%s", i > 0 ? "," : "", qs->at[i].name);
}

bool queues_has(const struct queues *qs, const char *name)
{
    return find(qs, name) != NULL;
}

static void wake(struct queue *q)
{
    q->head = (struct mono){0};
    q->woken = true;
}

void queues_wake(struct queues *qs, const char *name)
{
    struct queue *q = find(qs, name);

    if (q != NULL)
        wake(q);
}

void queues_wake_all(struct queues *qs)
{
    for (size_t i = 0; i < qs->n; i++)
        wake(&qs->at[i]);
}

void queues_gated(struct queues *qs, const char *name)
{
    struct queue *q = find(qs, name);

    if (q != NULL)
        q->gated = GATED_TIMES;
}

void queues_wake_gated(struct queues *qs)
{
    for (size_t i = 0; i < qs->n; i++) {
        if (qs->at[i].gated == 0)
            continue;
        qs->at[i].gated--;
        wake(&qs->at[i]);
    }
}

static uint64_t stride(const struct queue *q)
{
    return STRIDE_ONE / q->weight;
}

void queues_claimed(struct queues *qs, const char *name)
{
    struct queue *q = find(qs, name);

    if (q == NULL)
        return;
    q->running++;
    if (q->pass > qs->pass)
        qs->pass = q->pass;
    q->pass += stride(q);
}

void queues_clear(struct queues *qs)
{
    for (size_t i = 0; i < qs->n; i++)
        qs->at[i].running = 0;
}

void queues_took(struct queues *qs, const char *name)
{
    struct queue *q = find(qs, name);

    if (q != NULL)
        q->running++;
}

void queues_ended(struct queues *qs, const char *name)
{
    struct queue *q = find(qs, name);

    if (q != NULL && q->running > 0)
        q->running--;
}

static unsigned room_of(const struct queue *q)
{
    unsigned taken = q->running + q->asked;

    return q->limit > taken ? q->limit - taken : 0;
}

static int compare_turn(const void *a, const void *b)
{
    const struct queue *qa = *(struct queue *const *)a, *qb = *(struct queue *const *)b;

    if (qa->pass != qb->pass)
        return qa->pass < qb->pass ? -1 : 1;
    return strcmp(qa->name, qb->name);
}

/* Due queues with room in the order of their turns, into qs->order. */
static size_t due_in_turn(struct queues *qs, struct mono now)
{
    size_t n = 0;

    for (size_t i = 0; i < qs->n; i++) {
        struct queue *q = &qs->at[i];
        bool due = !mono_before(now, q->head) && room_of(q) > 0;

        /* A queue that had nothing to do has saved up no turns. */
        if (due && !q->was_due && q->pass < qs->pass)
            q->pass = qs->pass;
        q->was_due = due;
        if (due)
            qs->order[n++] = q;
    }
    qsort(qs->order, n, sizeof(struct queue *), compare_turn);
    return n;
}

/* Who of order[0..n) has the next turn when those in out are dealt already; n when none has room.
 */
static size_t next_turn(struct queue *const *order, size_t n, const struct store_room *out)
{
    size_t best = n;
    uint64_t best_pass = UINT64_MAX;

    for (size_t i = 0; i < n; i++) {
        uint64_t pass = order[i]->pass + out[i].room * stride(order[i]);

        if (out[i].room < room_of(order[i]) && pass < best_pass) {
            best = i;
            best_pass = pass;
        }
    }
    return best;
}

/* Deal `free` places out turn by turn; those who get none are not named. */
static size_t share(struct queue **order, size_t n, unsigned free, struct store_room *out,
                    size_t max)
{
    size_t named = n < max ? n : max, kept = 0;

    /* So many turns reach no further than so many queues. */
    if (named > free)
        named = free;
    for (size_t i = 0; i < named; i++)
        out[i] = (struct store_room){order[i]->name, 0, order[i]->max_payload};
    for (; free > 0; free--) {
        size_t i = next_turn(order, named, out);

        if (i == named)
            break;
        out[i].room++;
    }
    for (size_t i = 0; i < named; i++) {
        if (out[i].room == 0)
            continue;
        order[i]->woken = false;
        out[kept++] = out[i];
    }
    return kept;
}

static bool is_named(const struct store_room *out, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++) {
        if (out[i].queue == name)
            return true;
    }
    return false;
}

static size_t plan(struct queues *qs, struct mono now, unsigned free, bool sweep, size_t *cursor,
                   struct store_room *out, size_t max)
{
    size_t n = free > 0 ? share(qs->order, due_in_turn(qs, now), free, out, max) : 0;
    size_t due = n;

    if (!sweep)
        return n;
    for (; *cursor < qs->n && n < max; ++*cursor) {
        struct queue *q = &qs->at[*cursor];
        unsigned room = free > 0 && room_of(q) > 0;

        /* A swept queue that is not known to be due may turn out to be: one place will do, the
         * rest is asked for once its head is known. */
        if (is_named(out, due, q->name))
            continue;
        /* Without room it is not asked what it was woken for. */
        q->woken = q->woken && room == 0;
        out[n++] = (struct store_room){q->name, room, q->max_payload};
    }
    if (*cursor >= qs->n)
        *cursor = 0;
    return n;
}

size_t queues_plan(struct queues *qs, struct mono now, unsigned free, bool sweep, size_t *cursor,
                   struct store_room *out, size_t max)
{
    size_t n = plan(qs, now, free, sweep, cursor, out, max);

    for (size_t i = 0; i < n; i++) {
        struct queue *q = find(qs, out[i].queue);

        q->asked += out[i].room;
    }
    return n;
}

void queues_answered(struct queues *qs, const struct store_room *rooms, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct queue *q = find(qs, rooms[i].queue);

        if (q != NULL)
            q->asked = q->asked > rooms[i].room ? q->asked - rooms[i].room : 0;
    }
}

void queues_unanswered(struct queues *qs)
{
    for (size_t i = 0; i < qs->n; i++)
        qs->at[i].asked = 0;
}

void queues_heads(struct queues *qs, const struct store_room *rooms, const int64_t *heads, size_t n,
                  int64_t now_us, struct mono now)
{
    for (size_t i = 0; i < n; i++) {
        struct queue *q = find(qs, rooms[i].queue);

        if (q == NULL || q->woken)
            continue;
        if (heads[i] < 0 || heads[i] > HEAD_LATEST_MS)
            q->head = MONO_NEVER;
        else
            q->head = mono_add_us(now, heads[i] * 1000 - now_us);
    }
}

void queues_failed(struct queues *qs, const char *name, struct mono now)
{
    struct queue *q = find(qs, name);

    if (q != NULL)
        q->head = mono_add_ms(now, QUEUES_ERROR_MS);
}

void queues_defer(struct queues *qs, const char *name, struct mono now, int64_t ms)
{
    struct queue *q = find(qs, name);

    /* One that is due in a moment is not put off: it is exact to the microsecond. */
    if (q != NULL && !q->woken && !mono_before(now, q->head))
        q->head = mono_add_ms(now, ms);
}

struct mono queues_next(const struct queues *qs)
{
    struct mono next = MONO_NEVER;

    for (size_t i = 0; i < qs->n; i++) {
        if (room_of(&qs->at[i]) > 0)
            next = mono_min(next, qs->at[i].head);
    }
    return next;
}
