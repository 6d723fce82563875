#include "worker/peers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "worker/watch.h"

#define VICTIMS_MAX 64

struct neighbour {
    struct store_peer peer; /* its texts are ours */
    bool was_gone, is_listed;
};

struct victim {
    int64_t epoch;
    char counter[24];
};

struct peers {
    struct watch *watch;
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

    p->watch = watch_new();
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
    watch_free(p->watch);
    free(p);
}

void peers_trouble(struct peers *p)
{
    watch_reset(p->watch);
    p->nvictims = 0;
}

static void suspect(void *arg, int64_t epoch, const char *counter)
{
    struct peers *p = arg;
    struct victim *v = &p->victims[p->nvictims];

    for (size_t i = 0; i < p->nvictims; i++) {
        if (p->victims[i].epoch == epoch)
            return;
    }
    if (p->nvictims == VICTIMS_MAX)
        return;
    v->epoch = epoch;
    text_copy(v->counter, sizeof(v->counter), counter);
    p->nvictims++;
}

void peers_registered(struct peers *p, struct mono now, const struct store_peer *list, size_t n)
{
    size_t kept = n < WATCH_PEERS_MAX ? n : WATCH_PEERS_MAX;

    forget_all(p);
    p->near = mem_grow(p->near, kept + 1, sizeof(*p->near));
    for (size_t i = 0; i < kept; i++) {
        const struct store_peer *s = &list[i];

        p->near[i] = (struct neighbour){{s->epoch, mem_strdup(s->counter), mem_strdup(s->host),
                                         mem_strdup(s->boot), mem_strdup(s->pidns),
                                         mem_strdup(s->pid), mem_strdup(s->pstart)},
                                        p->is_gone(p->ctx, s),
                                        false};
    }
    p->nnear = kept;
    watch_beat(p->watch, now, list, n, suspect, p);
}

static void look_at(struct peers *p, const struct store_peer *listed)
{
    for (size_t i = 0; i < p->nnear; i++) {
        struct neighbour *n = &p->near[i];
        bool is_gone;

        if (n->peer.epoch != listed->epoch)
            continue;
        is_gone = p->is_gone(p->ctx, &n->peer);
        if (is_gone && n->was_gone)
            suspect(p, listed->epoch, listed->counter);
        n->was_gone = is_gone;
        n->is_listed = true;
        return;
    }
}

void peers_beat(struct peers *p, struct mono now, const struct store_peer *list, size_t n)
{
    size_t kept = 0;

    for (size_t i = 0; i < n; i++)
        look_at(p, &list[i]);
    for (size_t i = 0; i < p->nnear; i++) {
        if (!p->near[i].is_listed) {
            forget(&p->near[i]);
            continue;
        }
        p->near[i].is_listed = false;
        p->near[kept++] = p->near[i];
    }
    p->nnear = kept;
    watch_beat(p->watch, now, list, n, suspect, p);
}

const struct store_peer *peers_victim(const struct peers *p)
{
    struct peers *mine = (struct peers *)(uintptr_t)p;

    if (p->nvictims == 0)
        return NULL;
    mine->first =
        (struct store_peer){.epoch = p->victims[0].epoch, .counter = p->victims[0].counter};
    return &p->first;
}

void peers_refused(struct peers *p)
{
    if (p->nvictims == 0)
        return;
    p->nvictims--;
    memmove(&p->victims[0], &p->victims[1], p->nvictims * sizeof(p->victims[0]));
}

void peers_reaped(struct peers *p, enum store_reap status, int64_t moved)
{
    if (p->nvictims == 0)
        return;
    if (status != STORE_REAP_MORE || moved == 0)
        peers_refused(p);
    else if (strcmp(p->victims[0].counter, "?") != 0) /* the first call has marked it */
        (void)snprintf(p->victims[0].counter, sizeof(p->victims[0].counter), "dead");
}
