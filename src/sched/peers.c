#include "sched/peers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "sched/silence.h"

#define VICTIMS_MAX 64

struct neighbour {
    struct store_peer peer; /* owns its texts */
    bool is_listed;
};

/* FOUND: what it left has to be ended. ASKED: that is being done. CLEAR: it may be reaped. */
enum stage { FOUND, ASKED, CLEAR };

struct victim {
    int64_t epoch;
    char counter[24];
    bool had_silence; /* false: its process is gone */
    enum stage stage;
};

struct peers {
    struct silence *watch;
    peers_gone_f *is_gone;
    void *ctx;
    struct neighbour *near;
    size_t nnear;
    struct victim victims[VICTIMS_MAX];
    size_t nvictims;
    struct store_peer first; /* what peers_victim shows */
};

struct peers *peers_new(peers_gone_f *is_gone, void *ctx)
{
    struct peers *p = mem_new(sizeof(*p));

    p->watch = silence_new();
    p->is_gone = is_gone;
    p->ctx = ctx;
    return p;
}

static void forget(const struct neighbour *n)
{
    free((void *)(uintptr_t)n->peer.counter);
    free((void *)(uintptr_t)n->peer.host);
    free((void *)(uintptr_t)n->peer.boot);
    free((void *)(uintptr_t)n->peer.pidns);
    free((void *)(uintptr_t)n->peer.pid);
    free((void *)(uintptr_t)n->peer.pstart);
}

static void forget_all(struct peers *p)
{
    for (size_t i = 0; i < p->nnear; i++)
        forget(&p->near[i]);
    p->nnear = 0;
}

void peers_free(struct peers *p)
{
    if (p == NULL)
        return;
    forget_all(p);
    free(p->near);
    silence_free(p->watch);
    free(p);
}

void peers_trouble(struct peers *p)
{
    silence_reset(p->watch);
    p->nvictims = 0;
}

static struct victim *find(struct peers *p, int64_t epoch)
{
    for (size_t i = 0; i < p->nvictims; i++) {
        if (p->victims[i].epoch == epoch)
            return &p->victims[i];
    }
    return NULL;
}

static void drop(struct peers *p, const struct victim *v)
{
    size_t i = (size_t)(v - p->victims);

    p->nvictims--;
    memmove(&p->victims[i], &p->victims[i + 1], (p->nvictims - i) * sizeof(p->victims[0]));
}

static void add_victim(struct peers *p, int64_t epoch, const char *counter, bool had_silence)
{
    struct victim *v = find(p, epoch);

    if (v != NULL) {
        v->had_silence = v->had_silence || had_silence;
        return;
    }
    if (p->nvictims == VICTIMS_MAX)
        return;
    v = &p->victims[p->nvictims++];
    *v = (struct victim){.epoch = epoch, .had_silence = had_silence, .stage = FOUND};
    text_copy(v->counter, sizeof(v->counter), counter);
}

static void on_silence(void *arg, int64_t epoch, const char *counter)
{
    add_victim(arg, epoch, counter, true);
}

void peers_registered(struct peers *p, struct mono now, const struct store_peer *list, size_t n)
{
    size_t kept = n < SILENCE_PEERS_MAX ? n : SILENCE_PEERS_MAX;

    forget_all(p);
    p->near = mem_grow(p->near, kept + 1, sizeof(*p->near));
    for (size_t i = 0; i < kept; i++) {
        const struct store_peer *s = &list[i];

        p->near[i] = (struct neighbour){{s->epoch, mem_strdup(s->counter), mem_strdup(s->host),
                                         mem_strdup(s->boot), mem_strdup(s->pidns),
                                         mem_strdup(s->pid), mem_strdup(s->pstart)},
                                        false};
        if (p->is_gone(p->ctx, s))
            add_victim(p, s->epoch, s->counter, false);
    }
    p->nnear = kept;
    silence_beat(p->watch, now, list, n, on_silence, p);
}

static void check_listed(struct peers *p, const struct store_peer *listed)
{
    for (size_t i = 0; i < p->nnear; i++) {
        struct neighbour *n = &p->near[i];

        if (n->peer.epoch != listed->epoch)
            continue;
        if (p->is_gone(p->ctx, &n->peer))
            add_victim(p, listed->epoch, listed->counter, false);
        n->is_listed = true;
        return;
    }
}

void peers_beat(struct peers *p, struct mono now, const struct store_peer *list, size_t n)
{
    size_t kept = 0;

    for (size_t i = 0; i < n; i++)
        check_listed(p, &list[i]);
    for (size_t i = 0; i < p->nnear; i++) {
        if (!p->near[i].is_listed) {
            forget(&p->near[i]);
            continue;
        }
        p->near[i].is_listed = false;
        p->near[kept++] = p->near[i];
    }
    p->nnear = kept;
    silence_beat(p->watch, now, list, n, on_silence, p);
}

bool peers_has_gone(const struct peers *p)
{
    return p->nvictims > 0;
}

int64_t peers_to_clear(struct peers *p)
{
    struct victim *next = NULL;

    for (size_t i = p->nvictims; i-- > 0;) {
        if (p->victims[i].stage == ASKED)
            return 0;
        if (p->victims[i].stage == FOUND)
            next = &p->victims[i];
    }
    if (next == NULL)
        return 0;
    next->stage = ASKED;
    return next->epoch;
}

void peers_not_asked(struct peers *p, int64_t epoch)
{
    struct victim *v = find(p, epoch);

    if (v != NULL && v->stage == ASKED)
        v->stage = FOUND;
}

void peers_cleared(struct peers *p, int64_t epoch, bool is_clear)
{
    struct victim *v = find(p, epoch);

    if (v == NULL || v->stage != ASKED)
        return;
    /* A worker that is gone, but not clear, is found again by each beat, until its
     * silence is over. */
    if (is_clear || v->had_silence)
        v->stage = CLEAR;
    else
        drop(p, v);
}

static struct victim *first_clear(struct peers *p)
{
    for (size_t i = 0; i < p->nvictims; i++) {
        if (p->victims[i].stage == CLEAR)
            return &p->victims[i];
    }
    return NULL;
}

const struct store_peer *peers_victim(const struct peers *p)
{
    struct peers *mine = (struct peers *)(uintptr_t)p;
    const struct victim *v = first_clear(mine);

    if (v == NULL)
        return NULL;
    mine->first = (struct store_peer){.epoch = v->epoch, .counter = v->counter};
    return &p->first;
}

void peers_refused(struct peers *p)
{
    const struct victim *v = first_clear(p);

    if (v != NULL)
        drop(p, v);
}

void peers_reaped(struct peers *p, enum store_reap status, int64_t moved)
{
    struct victim *v = first_clear(p);

    if (v == NULL)
        return;
    if (status != STORE_REAP_MORE || moved == 0)
        drop(p, v);
    else if (strcmp(v->counter, "?") != 0) /* the first call has set it so */
        (void)snprintf(v->counter, sizeof(v->counter), "dead");
}
