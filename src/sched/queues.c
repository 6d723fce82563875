#include "sched/queues.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"

#define STRIDE_ONE (UINT64_C(1) << 20)
#define GATED_TIMES 16 /* other queues and workers take turns with us */

struct queue {
    char name[JOB_QUEUE_MAX + 1];
    unsigned max_at_once, weight, running;
    unsigned asked; /* claims that syncs under way may bring */
    int64_t max_payload;
    struct mono head; /* when its first job is due; us 0: ask at once */
    uint64_t pass;
    uint64_t due_in;   /* the last plan that found it due */
    size_t heap_index; /* in the heap, from 1; 0: it has no room */
    bool woken;        /* a wake came after it was last named: heads told now are old */
    unsigned gated;    /* its jobs may pass at this many more openings of gates */
    bool suspected;    /* a suspect may be due in it */
    bool is_fair;
};

struct queues {
    struct queue *at; /* sorted by name */
    size_t n;
    struct queue **heap; /* those with room; binary, the earliest head first */
    size_t nheap;
    struct queue **gated; /* those whose `gated` is not 0 */
    size_t ngated;
    struct queue **order; /* memory for a plan */
    uint64_t plans;       /* how many plans there were */
    uint64_t looked_at;
    uint64_t pass; /* of the last claim: a queue that was idle starts from it */
    size_t nsuspected;
    size_t found; /* index of the queue found last: jobs of one queue often come together */
};

struct queues *queues_new(void)
{
    struct queues *qs = mem_new(sizeof(*qs));

    qs->plans = 1; /* so that due_in 0 of a new queue is not the last plan */
    return qs;
}

void queues_free(struct queues *qs)
{
    if (qs == NULL)
        return;
    free(qs->at);
    free(qs->heap);
    free(qs->gated);
    free(qs->order);
    free(qs);
}

static int compare_name(const void *key, const void *q)
{
    return strcmp(key, ((const struct queue *)q)->name);
}

static struct queue *find(struct queues *qs, const char *name)
{
    struct queue *q;

    if (qs->found < qs->n && strcmp(qs->at[qs->found].name, name) == 0)
        return &qs->at[qs->found];
    q = qs->n > 0 ? bsearch(name, qs->at, qs->n, sizeof(*qs->at), compare_name) : NULL;
    if (q != NULL)
        qs->found = (size_t)(q - qs->at);
    return q;
}

/* The same for names that come in the order of the table: try the one behind the last. */
static struct queue *find_behind(struct queues *qs, struct queue *last, const char *name)
{
    if (last != NULL && last + 1 < qs->at + qs->n && strcmp(last[1].name, name) == 0)
        return last + 1;
    return find(qs, name);
}

/* ---- which are due: the cost of a plan must not grow with the others */

static unsigned room_of(const struct queue *q)
{
    unsigned taken = q->running + q->asked;

    return q->max_at_once > taken ? q->max_at_once - taken : 0;
}

static void put(struct queues *qs, size_t i, struct queue *q)
{
    qs->heap[i] = q;
    q->heap_index = i + 1;
}

/* Move the queue at i to where its head belongs. */
static void sift(struct queues *qs, size_t i)
{
    struct queue *q = qs->heap[i];

    for (; i > 0 && mono_before(q->head, qs->heap[(i - 1) / 2]->head); i = (i - 1) / 2)
        put(qs, i, qs->heap[(i - 1) / 2]);
    for (;;) {
        size_t child = 2 * i + 1;

        if (child + 1 < qs->nheap && mono_before(qs->heap[child + 1]->head, qs->heap[child]->head))
            child++;
        if (child >= qs->nheap || !mono_before(qs->heap[child]->head, q->head))
            break;
        put(qs, i, qs->heap[child]);
        i = child;
    }
    put(qs, i, q);
}

/* Call it after every change of its head or its room. */
static void reheap(struct queues *qs, struct queue *q)
{
    if (room_of(q) > 0) {
        if (q->heap_index == 0)
            put(qs, qs->nheap++, q);
        sift(qs, q->heap_index - 1);
    } else if (q->heap_index > 0) {
        size_t i = q->heap_index - 1;

        q->heap_index = 0;
        if (i == --qs->nheap)
            return;
        put(qs, i, qs->heap[qs->nheap]);
        sift(qs, i);
    }
}

static void reheap_all(struct queues *qs)
{
    qs->nheap = 0;
    for (size_t i = 0; i < qs->n; i++) {
        qs->at[i].heap_index = 0;
        reheap(qs, &qs->at[i]);
    }
}

/* ---- which there are */

void queues_set(struct queues *qs, const struct queue_spec *specs, size_t n)
{
    struct queue *at = mem_new(n * sizeof(*at));

    for (size_t i = 0; i < n; i++) {
        const struct queue *was = find(qs, specs[i].name);

        if (was != NULL)
            at[i] = *was;
        else
            at[i] = (struct queue){.pass = qs->pass, .head = MONO_NEVER};
        text_copy(at[i].name, sizeof(at[i].name), specs[i].name);
        at[i].max_at_once = specs[i].max_at_once;
        at[i].weight = specs[i].weight;
        at[i].max_payload = specs[i].max_payload;
        at[i].is_fair = specs[i].is_fair;
    }
    free(qs->at);
    qs->at = at;
    qs->n = n;
    qs->order = mem_grow(qs->order, n, sizeof(struct queue *));
    qs->heap = mem_grow(qs->heap, n, sizeof(struct queue *));
    qs->gated = mem_grow(qs->gated, n, sizeof(struct queue *));
    qs->ngated = qs->nsuspected = 0;
    for (size_t i = 0; i < n; i++) {
        if (at[i].gated > 0)
            qs->gated[qs->ngated++] = &at[i];
        qs->nsuspected += at[i].suspected;
    }
    reheap_all(qs);
}

void queues_set_max_at_once(struct queues *qs, const char *name, unsigned n)
{
    struct queue *q = find(qs, name);

    if (q == NULL)
        return;
    q->max_at_once = n;
    reheap(qs, q);
}

size_t queues_count(const struct queues *qs)
{
    return qs->n;
}

const char *queues_name(const struct queues *qs, size_t i)
{
    return qs->at[i].name;
}

void queues_names(const struct queues *qs, struct buf *out)
{
    for (size_t i = 0; i < qs->n; i++)
        buf_printf(out, "%s%s", i > 0 ? "," : "", qs->at[i].name);
}

bool queues_has(struct queues *qs, const char *name)
{
    return find(qs, name) != NULL;
}

/* ---- what happens to them */

static void set_head(struct queues *qs, struct queue *q, struct mono head)
{
    if (q->head.us == head.us)
        return;
    q->head = head;
    reheap(qs, q);
}

static void wake(struct queues *qs, struct queue *q)
{
    q->woken = true;
    set_head(qs, q, (struct mono){0});
}

void queues_wake(struct queues *qs, const char *name)
{
    struct queue *q = find(qs, name);

    if (q != NULL)
        wake(qs, q);
}

/* Unlike queues_wake: the head that a sync under way will tell is newer than this. */
void queues_found(struct queues *qs, const char *name)
{
    struct queue *q = find(qs, name);

    if (q != NULL)
        set_head(qs, q, (struct mono){0});
}

void queues_gated(struct queues *qs, const char *name)
{
    struct queue *q = find(qs, name);

    if (q == NULL)
        return;
    if (q->gated == 0)
        qs->gated[qs->ngated++] = q;
    q->gated = GATED_TIMES;
}

void queues_wake_gated(struct queues *qs)
{
    for (size_t i = qs->ngated; i-- > 0;) {
        struct queue *q = qs->gated[i];

        wake(qs, q);
        if (--q->gated == 0)
            qs->gated[i] = qs->gated[--qs->ngated];
    }
}

static uint64_t stride(const struct queue *q)
{
    return STRIDE_ONE / q->weight;
}

bool queues_is_fair(struct queues *qs, const char *name)
{
    const struct queue *q = find(qs, name);

    return q != NULL && q->is_fair;
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
    reheap(qs, q);
}

void queues_clear(struct queues *qs)
{
    for (size_t i = 0; i < qs->n; i++)
        qs->at[i].running = 0;
    reheap_all(qs);
}

void queues_took(struct queues *qs, const char *name)
{
    struct queue *q = find(qs, name);

    if (q == NULL)
        return;
    q->running++;
    reheap(qs, q);
}

void queues_ended(struct queues *qs, const char *name)
{
    struct queue *q = find(qs, name);

    if (q == NULL || q->running == 0)
        return;
    q->running--;
    reheap(qs, q);
}

/* ---- plans */

static int compare_turn(const void *a, const void *b)
{
    const struct queue *qa = *(struct queue *const *)a, *qb = *(struct queue *const *)b;

    if (qa->pass != qb->pass)
        return qa->pass < qb->pass ? -1 : 1;
    return qa < qb ? -1 : qa > qb; /* by name: the table is sorted by it */
}

static void add_if_due(struct queues *qs, size_t i, struct mono now, size_t *n)
{
    if (i >= qs->nheap)
        return;
    qs->looked_at++;
    if (!mono_before(now, qs->heap[i]->head))
        qs->order[(*n)++] = qs->heap[i];
}

/* Put the due queues with room into qs->order, in the order of their turns. Below a queue that is
 * not due none is due, so they are found from the root down. -> how many */
static size_t due_in_turn(struct queues *qs, struct mono now)
{
    size_t n = 0;

    qs->plans++;
    add_if_due(qs, 0, now, &n);
    for (size_t i = 0; i < n; i++) {
        struct queue *q = qs->order[i];
        size_t index = q->heap_index;

        /* A queue that had nothing to do has saved up no turns. */
        if (q->due_in != qs->plans - 1 && q->pass < qs->pass)
            q->pass = qs->pass;
        q->due_in = qs->plans;
        add_if_due(qs, 2 * index - 1, now, &n);
        add_if_due(qs, 2 * index, now, &n);
    }
    qsort(qs->order, n, sizeof(struct queue *), compare_turn);
    return n;
}

/* Which of order[0..n) has the next turn, after the places in out were dealt; n when none has
 * room. */
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

/* Deal `free` places out turn by turn; queues that get none are not named. */
static size_t share(struct queue **order, size_t n, unsigned free, struct store_room *out,
                    size_t max)
{
    size_t named = n < max ? n : max, kept = 0;

    /* `free` places reach at most `free` queues. */
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

/* Add the suspected queues behind the n that are due. -> how many in all */
static size_t plan_suspected(struct queues *qs, unsigned free, struct store_room *out, size_t n,
                             size_t most)
{
    size_t due = n;

    for (size_t i = 0; i < qs->n && n < most; i++) {
        struct queue *q = &qs->at[i];
        unsigned room = free > 0 && room_of(q) > 0;

        if (!q->suspected || is_named(out, due, q->name))
            continue;
        /* Without room the sync does not claim from it: a wake stays unanswered. */
        q->woken = q->woken && room == 0;
        out[n++] = (struct store_room){q->name, room, q->max_payload};
    }
    return n;
}

size_t queues_plan(struct queues *qs, struct mono now, unsigned free, bool suspected,
                   struct store_room *out, size_t most)
{
    bool both = suspected && qs->nsuspected > 0;
    size_t n =
        free > 0 ? share(qs->order, due_in_turn(qs, now), free, out, both ? most / 2 : most) : 0;
    struct queue *q = NULL;

    if (both)
        n = plan_suspected(qs, free, out, n, most);
    for (size_t i = 0; i < n; i++) {
        q = find_behind(qs, q, out[i].queue);
        if (out[i].room == 0)
            continue;
        q->asked += out[i].room;
        reheap(qs, q);
    }
    return n;
}

void queues_answered(struct queues *qs, const struct store_room *rooms, size_t n)
{
    struct queue *q = NULL;

    for (size_t i = 0; i < n; i++) {
        q = find_behind(qs, q, rooms[i].queue);
        if (q == NULL || rooms[i].room == 0)
            continue;
        q->asked = q->asked > rooms[i].room ? q->asked - rooms[i].room : 0;
        reheap(qs, q);
    }
}

void queues_unanswered(struct queues *qs)
{
    for (size_t i = 0; i < qs->n; i++)
        qs->at[i].asked = 0;
    reheap_all(qs);
}

void queues_heads(struct queues *qs, const struct store_room *rooms, const int64_t *heads, size_t n,
                  int64_t now_us, struct mono now)
{
    struct queue *q = NULL;

    for (size_t i = 0; i < n; i++) {
        q = find_behind(qs, q, rooms[i].queue);
        if (q == NULL || q->woken)
            continue;
        if (heads[i] < 0 || heads[i] > STORE_DUE_LATEST_MS)
            set_head(qs, q, MONO_NEVER);
        else
            set_head(qs, q, mono_add_us(now, heads[i] * 1000 - now_us));
    }
}

void queues_suspect(struct queues *qs, const struct store_room *rooms, size_t n, bool is_due)
{
    struct queue *q = NULL;

    for (size_t i = 0; i < n && (is_due || qs->nsuspected > 0); i++) {
        q = find_behind(qs, q, rooms[i].queue);
        if (q == NULL || q->suspected == is_due)
            continue;
        q->suspected = is_due;
        if (is_due)
            qs->nsuspected++;
        else
            qs->nsuspected--;
    }
}

size_t queues_suspected(const struct queues *qs)
{
    return qs->nsuspected;
}

void queues_failed(struct queues *qs, const char *name, struct mono now)
{
    struct queue *q = find(qs, name);

    if (q != NULL)
        set_head(qs, q, mono_add_ms(now, QUEUES_ERROR_MS));
}

void queues_defer(struct queues *qs, const char *name, struct mono now, int64_t ms)
{
    struct queue *q = find(qs, name);

    /* A head in the future is not put off: it is exact to the microsecond. */
    if (q != NULL && !q->woken && !mono_before(now, q->head))
        set_head(qs, q, mono_add_ms(now, ms));
}

struct mono queues_next(const struct queues *qs)
{
    return qs->nheap > 0 ? qs->heap[0]->head : MONO_NEVER;
}

uint64_t queues_examined(const struct queues *qs)
{
    return qs->looked_at;
}
