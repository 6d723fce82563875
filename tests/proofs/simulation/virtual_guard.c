#include "virtual_guard.h"

#include <stdlib.h>

#include "base/mem.h"
#include "virtual_pool.h"

#define SILENCE_US (GUARD_UNACKED_MS * MS)

struct guard {
    struct worker *worker;
    int64_t sent_us; /* of the last acknowledged beat */
    struct event *deadline;
};

static bool asleep;

void virtual_guard_asleep(bool is_asleep)
{
    asleep = is_asleep;
}

bool virtual_guard_is_asleep(void)
{
    return asleep;
}

void virtual_guard_alone(struct worker *w)
{
    if (!asleep)
        virtual_pool_kill_locked(w);
}

/* The guard is a process of its own: this happens whatever its worker does. */
static void on_deadline(void *arg)
{
    struct guard *g = arg;

    g->deadline = NULL;
    world_say("the guard of %s: no beat for %d ms", g->worker->owner.name, GUARD_UNACKED_MS);
    virtual_guard_alone(g->worker);
}

struct guard *virtual_guard_new(struct worker *w)
{
    struct guard *g = mem_new(sizeof(*g));

    g->worker = w;
    g->sent_us = INT64_MIN / 2;
    return g;
}

void virtual_guard_free(struct guard *g)
{
    if (g != NULL)
        world_cancel(g->deadline);
    free(g);
}

bool guard_is_up(const struct guard *g)
{
    return g != NULL;
}

bool guard_is_fresh(const struct guard *g, int64_t spare_ms)
{
    return asleep || world.now_us - g->sent_us < SILENCE_US / 3 - spare_ms * MS;
}

bool guard_admits(const struct guard *g)
{
    return guard_is_up(g) && guard_is_fresh(g, 0);
}

void guard_alive(struct guard *g, struct boot sent)
{
    if (sent.us <= g->sent_us)
        return;
    g->sent_us = sent.us;
    world_cancel(g->deadline);
    g->deadline = world_at(sent.us + SILENCE_US, NULL, on_deadline, g, NULL);
}
