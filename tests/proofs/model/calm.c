#include "calm.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "store.h"

#define STEPS_MAX 4096 /* moves of one schedule; more means that it runs in a circle */
#define NEVER UINT8_MAX

/* How many rounds a state needs. Stored by the state's hash, so that each state is followed
 * once. */
struct way {
    uint64_t hash;
    uint8_t to_end, to_burial;
};

struct calm {
    const struct conf *conf;
    struct way *ways;
    size_t size, n; /* size: a power of two */
    struct way *walked;
    unsigned rounds;
};

/* The bound on the rounds until all jobs have ended: every attempt may cost a silence, and so may a
 * crashed worker. */
static unsigned most_rounds(const struct conf *c)
{
    return 4U * (c->silence - 1U) + 4U * c->jobs + 8;
}

struct calm *calm_new(const struct conf *c)
{
    struct calm *calm = mem_new(sizeof(*calm));

    calm->conf = c;
    calm->size = 1024;
    calm->ways = mem_new(calm->size * sizeof(*calm->ways));
    calm->walked = mem_new(STEPS_MAX * sizeof(*calm->walked));
    return calm;
}

void calm_free(struct calm *calm)
{
    free(calm->ways);
    free(calm->walked);
    free(calm);
}

unsigned calm_rounds(const struct calm *calm)
{
    return calm->rounds;
}

size_t calm_bytes(const struct calm *calm)
{
    return calm->size * sizeof(*calm->ways);
}

/* ---- the table */

static struct way *slot(struct way *ways, size_t size, uint64_t hash)
{
    size_t i = hash & (size - 1);

    while (ways[i].hash != 0 && ways[i].hash != hash)
        i = (i + 1) & (size - 1);
    return &ways[i];
}

static void grow(struct calm *calm)
{
    struct way *ways = mem_new(2 * calm->size * sizeof(*ways));

    for (size_t i = 0; i < calm->size; i++) {
        if (calm->ways[i].hash != 0)
            *slot(ways, 2 * calm->size, calm->ways[i].hash) = calm->ways[i];
    }
    free(calm->ways);
    calm->ways = ways;
    calm->size *= 2;
}

static void keep(struct calm *calm, const struct way *way)
{
    if (2 * (calm->n + 1) > calm->size)
        grow(calm);
    *slot(calm->ways, calm->size, way->hash) = *way;
    calm->n++;
}

/* ---- the schedule */

/* At least one worker must be up: wake a frozen one, else start one. */
static bool revive(const struct conf *c, struct state *s, struct move *m)
{
    *m = (struct move){.kind = RESTART};
    for (unsigned w = 0; w < c->workers; w++) {
        if (s->workers[w].process == UP)
            return false;
        if (s->workers[w].process == FROZEN)
            *m = (struct move){.kind = WAKE, .worker = (uint8_t)w};
    }
    return move_apply(c, s, m);
}

static void end_trouble(const struct conf *c, struct state *s)
{
    memset(&s->left, 0, sizeof(s->left));
    memset(&s->snapshot, 0, sizeof(s->snapshot));
    s->has_snapshot = s->is_out = 0;
    for (unsigned w = 0; w < c->workers; w++) {
        memset(&s->workers[w].stray, 0, sizeof(s->workers[w].stray));
        /* A worker that is to stop would leave, and come back as another. */
        s->workers[w].is_stopping = 0;
    }
}

static bool is_over(const struct conf *c, const struct state *s)
{
    for (unsigned j = 0; j < c->jobs; j++) {
        if ((s->history.added & BIT(j)) && !(s->redis.jobs[j].sets & TERMINAL))
            return false;
    }
    return true;
}

/* Is nothing left in Redis of workers that are not up? */
static bool is_buried(const struct conf *c, const struct state *s)
{
    for (unsigned i = 0; i < s->redis.nentries; i++) {
        bool is_there = false;

        for (unsigned w = 0; w < c->workers; w++)
            is_there = is_there || (s->workers[w].process == UP &&
                                    s->workers[w].epoch == s->redis.entries[i].epoch);
        if (!is_there)
            return false;
    }
    return true;
}

/* Make the next move: the first that a worker can make; if there is none, the round ends. */
static bool next(const struct conf *c, struct state *s, struct move *m)
{
    static const uint8_t order[] = {DELIVER, EXECUTE,   LINK_UP,   END_LOST,
                                    END,     SEND_SYNC, SEND_REAP, SEND_BEAT};

    if (revive(c, s, m))
        return true;
    for (unsigned w = 0; w < c->workers; w++) {
        for (unsigned i = 0; i < sizeof(order); i++) {
            for (unsigned j = 0; j < c->jobs; j++) {
                *m = (struct move){.kind = order[i], .worker = (uint8_t)w, .job = (uint8_t)j};
                if (s->workers[w].process != UP)
                    continue;
                /* The job that a sync considers first: any that is possible. */
                if (order[i] == EXECUTE)
                    m->choice = (uint8_t)j;
                if (move_apply(c, s, m))
                    return true;
            }
        }
    }
    *m = (struct move){.kind = TICK};
    return move_apply(c, s, m);
}

/* ---- walking */

/* Count the rounds backwards along the states that were followed. */
static const struct property *count_rounds(struct calm *calm, size_t n, struct way way,
                                           const bool *is_round)
{
    unsigned most = most_rounds(calm->conf);

    for (size_t i = n; i > 0; i--) {
        way.hash = calm->walked[i - 1].hash;
        if (is_round[i - 1] && way.to_end < NEVER)
            way.to_end++;
        if (is_round[i - 1] && way.to_burial < NEVER)
            way.to_burial++;
        if (calm->walked[i - 1].to_end == 0)
            way.to_end = 0;
        if (calm->walked[i - 1].to_burial == 0)
            way.to_burial = 0;
        keep(calm, &way);
    }
    if (way.to_end < NEVER && way.to_end > calm->rounds)
        calm->rounds = way.to_end;
    if (way.to_burial > most)
        return &reaper_progress;
    return way.to_end > most ? &eventually_terminal : NULL;
}

const struct property *calm_check(struct calm *calm, const struct state *from)
{
    const struct conf *c = calm->conf;
    bool is_round[STEPS_MAX];
    struct state s = *from;
    struct way way = {0, NEVER, NEVER};
    struct move m;
    size_t n = 0;

    end_trouble(c, &s);
    for (; n < STEPS_MAX; n++) {
        struct state canon = s;
        const struct way *known;

        state_canon(c, &canon);
        way.hash = state_hash(&canon);
        known = slot(calm->ways, calm->size, way.hash);
        if (known->hash != 0) {
            way = *known;
            break;
        }
        calm->walked[n].hash = way.hash;
        calm->walked[n].to_end = !is_over(c, &s);
        calm->walked[n].to_burial = !is_buried(c, &s);
        is_round[n] = false;
        if (is_over(c, &s) && is_buried(c, &s)) {
            way.to_end = way.to_burial = 0;
            n++;
            break;
        }
        if (!next(c, &s, &m))
            break;
        /* The search makes these moves, too: it will find this violation with a shorter trace. */
        if (properties_check(c, &s) != NULL)
            return NULL;
        is_round[n] = m.kind == TICK;
    }
    return count_rounds(calm, n, way, is_round);
}

void calm_print(const struct conf *c, const struct state *from, unsigned most, FILE *out)
{
    struct state s = *from, before;
    struct move m;

    end_trouble(c, &s);
    fprintf(out, "  without further trouble:\n");
    for (unsigned i = 0; i < most && !(is_over(c, &s) && is_buried(c, &s)); i++) {
        before = s;
        if (!next(c, &s, &m))
            break;
        fprintf(out, "  %3u  ", i + 1);
        move_print(c, &before, &m, out);
        state_print(c, &s, out);
    }
}
