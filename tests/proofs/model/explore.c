#include "explore.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "calm.h"
#include "moves.h"

/* ---- states that were visited */

struct seen {
    uint64_t hash;
    uint32_t parent;
};

/* The queue of states, in blocks; a block is freed when all of its states were taken. */
#define BLOCK 4096

struct queue {
    struct state **blocks;
    size_t nblocks;
    size_t first, n; /* numbers of states from the beginning; first: the next one to take */
};

struct search {
    const struct conf *conf;
    const struct limits *limits;
    struct seen *seen;
    uint32_t *table; /* hash -> number + 1 */
    size_t nseen, capacity, size;
    struct queue queue;
    struct calm *calm;
    uint32_t current;
    const struct property *broken;
    uint32_t broken_at;
    struct result *result;
};

static void queue_push(struct queue *q, const struct state *s)
{
    if (q->n % BLOCK == 0) {
        q->blocks = mem_grow(q->blocks, q->nblocks + 1, sizeof(*q->blocks));
        q->blocks[q->nblocks++] = mem_new(BLOCK * sizeof(struct state));
    }
    q->blocks[q->n / BLOCK][q->n % BLOCK] = *s;
    q->n++;
}

static bool queue_pop(struct queue *q, struct state *ret)
{
    if (q->first == q->n)
        return false;
    *ret = q->blocks[q->first / BLOCK][q->first % BLOCK];
    q->first++;
    if (q->first % BLOCK == 0) {
        free(q->blocks[q->first / BLOCK - 1]);
        q->blocks[q->first / BLOCK - 1] = NULL;
    }
    return true;
}

static void queue_free(struct queue *q)
{
    for (size_t i = 0; i < q->nblocks; i++)
        free(q->blocks[i]);
    free(q->blocks);
}

static uint32_t *find(const struct search *e, uint64_t hash)
{
    size_t i = hash & (e->size - 1);

    while (e->table[i] != 0 && e->seen[e->table[i] - 1].hash != hash)
        i = (i + 1) & (e->size - 1);
    return &e->table[i];
}

static void grow_table(struct search *e)
{
    free(e->table);
    e->size *= 2;
    e->table = mem_new(e->size * sizeof(*e->table));
    for (size_t i = 0; i < e->nseen; i++)
        *find(e, e->seen[i].hash) = (uint32_t)i + 1;
}

/* False: it was there already. */
static bool add(struct search *e, uint64_t hash, uint32_t parent)
{
    uint32_t *at;

    if (2 * (e->nseen + 1) > e->size)
        grow_table(e);
    at = find(e, hash);
    if (*at != 0)
        return false;
    if (e->nseen == e->capacity) {
        e->capacity = e->capacity == 0 ? 1024 : 2 * e->capacity;
        e->seen = mem_grow(e->seen, e->capacity, sizeof(*e->seen));
    }
    e->seen[e->nseen++] = (struct seen){hash, parent};
    *at = (uint32_t)e->nseen;
    return true;
}

static size_t bytes_used(const struct search *e)
{
    return (e->queue.n - e->queue.first) * sizeof(struct state) +
           e->capacity * sizeof(struct seen) + e->size * sizeof(uint32_t) + calm_bytes(e->calm);
}

/* ---- the search */

struct sum {
    const struct conf *conf;
    uint64_t hashes;
};

static bool add_hash(void *arg, const struct move *m, struct state *next)
{
    struct sum *sum = arg;

    (void)m;
    state_canon(sum->conf, next);
    sum->hashes += state_hash(next);
    return true;
}

/* A sum over all successors of a state that does not depend on their order. */
static uint64_t sum_of_next(const struct conf *c, const struct state *s)
{
    struct sum sum = {c, 0};

    moves_each(c, s, add_hash, &sum);
    return sum.hashes;
}

static bool visit(void *arg, const struct move *m, struct state *next)
{
    struct search *e = arg;
    uint64_t sum = e->limits->is_double ? sum_of_next(e->conf, next) : 0;

    (void)m;
    e->result->transitions++;
    e->broken = properties_check(e->conf, next);
    state_canon(e->conf, next);
    if (e->limits->is_double && sum_of_next(e->conf, next) != sum)
        e->result->is_unlike = true;
    if (!add(e, state_hash(next), e->current) && e->broken == NULL)
        return true;
    if (e->broken == NULL)
        e->broken = calm_check(e->calm, next);
    if (e->broken != NULL) {
        e->broken_at = *find(e, state_hash(next)) - 1;
        return false;
    }
    queue_push(&e->queue, next);
    return true;
}

/* How many moves lead from the start to this state? */
static unsigned depth_of(const struct search *e, uint32_t i)
{
    unsigned depth = 0;

    for (; i != 0; i = e->seen[i].parent)
        depth++;
    return depth;
}

static bool is_enough(struct search *e)
{
    const struct limits *l = e->limits;

    /* Memory changes slowly. */
    if (e->current % BLOCK == 0 && l->bytes != 0 && bytes_used(e) > l->bytes)
        return true;
    if (l->depth != 0 && depth_of(e, e->current) >= l->depth)
        return true;
    return l->states != 0 && e->nseen >= l->states;
}

static void search(struct search *e)
{
    struct state s;

    state_init(e->conf, &s);
    state_canon(e->conf, &s);
    (void)add(e, state_hash(&s), 0);
    queue_push(&e->queue, &s);
    e->result->is_whole = true;
    for (e->current = 0; queue_pop(&e->queue, &s); e->current++) {
        if (is_enough(e)) {
            e->result->is_whole = false;
            break;
        }
        moves_each(e->conf, &s, visit, e);
        if (e->broken != NULL)
            break;
    }
}

/* ---- the trace */

/* Looks for the move that leads to a state with this hash. */
struct seeker {
    const struct conf *conf;
    uint64_t hash;
    bool is_found;
    struct move move;
    struct state state;
};

static bool seek(void *arg, const struct move *m, struct state *next)
{
    struct seeker *k = arg;
    struct state canon = *next;

    state_canon(k->conf, &canon);
    if (state_hash(&canon) != k->hash)
        return true;
    k->is_found = true;
    k->move = *m;
    k->state = *next;
    return false;
}

static void print_trace(const struct search *e, FILE *out)
{
    unsigned n = depth_of(e, e->broken_at);
    uint32_t *path = mem_new((n + 1) * sizeof(*path));
    struct state s;

    for (uint32_t i = e->broken_at, k = n; i != 0; i = e->seen[i].parent)
        path[k--] = i;
    fprintf(out, "%s is broken: %s\n", e->broken->name, e->broken->text);
    state_init(e->conf, &s);
    state_print(e->conf, &s, out);
    for (unsigned i = 1; i <= n; i++) {
        struct seeker k = {.conf = e->conf, .hash = e->seen[path[i]].hash};

        moves_each(e->conf, &s, seek, &k);
        if (!k.is_found) {
            fprintf(out, "  the trace is lost: state_canon maps unlike states onto one\n");
            break;
        }
        fprintf(out, "  %3u  ", i);
        move_print(e->conf, &s, &k.move, out);
        s = k.state;
        state_tidy_history(e->conf, &s);
        state_print(e->conf, &s, out);
    }
    if (e->broken == &eventually_terminal || e->broken == &reaper_progress) {
        /* The schedule depends on the order of the workers, so take that of the representative. */
        state_canon(e->conf, &s);
        calm_print(e->conf, &s, 60, out);
    }
    free(path);
}

static double seconds_now(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

void explore(const struct conf *c, const struct limits *limits, FILE *trace, struct result *ret)
{
    struct search e = {.conf = c, .limits = limits, .size = 1024, .result = ret};
    double began = seconds_now();

    *ret = (struct result){0};
    e.table = mem_new(e.size * sizeof(*e.table));
    e.calm = calm_new(c);
    search(&e);
    ret->states = e.nseen;
    ret->depth = depth_of(&e, e.broken != NULL ? e.broken_at : (uint32_t)e.nseen - 1);
    ret->rounds = calm_rounds(e.calm);
    ret->broken = e.broken;
    ret->seconds = seconds_now() - began;
    if (e.broken != NULL && !limits->is_untold)
        print_trace(&e, trace);
    queue_free(&e.queue);
    calm_free(e.calm);
    free(e.seen);
    free(e.table);
}
