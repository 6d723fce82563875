#include "trouble.h"

#include <string.h>

#include "audit.h"
#include "ledger.h"
#include "net.h"
#include "server.h"
#include "worker.h"

static const struct plan *plan;
static int64_t highest_step_us;

/* ---- workers */

static void on_start(void *arg)
{
    size_t folder = (size_t)random_between(0, WORKERS_FOLDERS - 1);

    (void)arg;
    if (world.is_calm) /* trouble_end made sure that a worker works */
        return;
    /* A new folder, that of a predecessor, or none. */
    if (random_chance(300) || !worker_folder_is_free(folder))
        folder = SIZE_MAX;
    (void)worker_start(folder);
}

static void start_soon(void)
{
    (void)world_in(random_between(0, random_chance(700) ? 2 * SECOND : 20 * SECOND), NULL, on_start,
                   NULL, NULL);
}

static void on_crash(void *arg)
{
    struct worker *w = worker_any();

    (void)arg;
    if (world.is_calm || w == NULL)
        return;
    worker_crash(w, random_chance(500));
    start_soon();
}

static void on_fatal(void *arg)
{
    struct worker *w = arg;

    if (world.is_calm || w->owner.is_dead)
        return;
    worker_crash(w, random_chance(500));
    start_soon();
}

/* A worker that dies while it reaps leaves its victim written off, and the victim may wake
 * then. */
void trouble_sent(struct worker *w, const char *function)
{
    bool reaps = plan->fatal > 0 && strcmp(function, "later_v1_reap") == 0;

    if (!world.is_calm && random_chance(reaps ? 200 : plan->fatal))
        (void)world_in(random_between(0, 2 * MS), NULL, on_fatal, w, NULL);
}

void trouble_poison(struct worker *w)
{
    (void)world_in(random_between(1 * MS, 20 * MS), NULL, on_fatal, w, NULL);
}

static void on_partition(void *arg)
{
    struct worker *w = worker_any();

    (void)arg;
    if (!world.is_calm && w != NULL)
        worker_cut_off(w, random_chance(500) ? random_between(10 * MS, 5 * SECOND)
                                             : random_between(18 * SECOND, 27 * SECOND));
}

static void on_reload(void *arg)
{
    struct worker *w = worker_any();

    (void)arg;
    if (!world.is_calm && w != NULL)
        worker_serve(w, (unsigned)random_between(0, (1 << PLAN_QUEUES) - 1));
}

static void on_stop(void *arg)
{
    struct worker *w = worker_any();

    (void)arg;
    if (world.is_calm || w == NULL)
        return;
    worker_stop(w);
    if (random_chance(300))
        worker_stop(w);
    start_soon();
}

static void on_freeze(void *arg)
{
    struct worker *w = worker_any();

    (void)arg;
    if (!world.is_calm && w != NULL)
        worker_freeze(w, random_chance(500)   ? random_between(10 * MS, 3 * SECOND)
                         : random_chance(500) ? random_between(18 * SECOND, 27 * SECOND)
                                              : random_between(3 * SECOND, 60 * SECOND));
}

static void on_quiet(void *arg)
{
    struct worker *w = worker_any();

    (void)arg;
    if (!world.is_calm && w != NULL)
        worker_quiet(w);
}

/* ---- Redis */

static void on_hang(void *arg)
{
    int64_t us = random_chance(600) ? random_between(10 * MS, 4 * SECOND)
                                    : random_between(4 * SECOND, 60 * SECOND);

    (void)arg;
    if (world.is_calm || net_is_down())
        return;
    world_say("Redis hangs for %lld ms", (long long)(us / MS));
    net_hang(world.now_us + us);
}

static void on_up(void *arg)
{
    (void)arg;
    if (net_is_down())
        world_say("Redis is up");
    net_up();
}

static void down_for_a_while(void)
{
    net_down();
    (void)world_in(random_between(10 * MS, random_chance(800) ? 3 * SECOND : 30 * SECOND), NULL,
                   on_up, NULL, NULL);
}

static void on_outage(void *arg)
{
    (void)arg;
    if (world.is_calm || net_is_down())
        return;
    world_say("Redis is down");
    down_for_a_while();
}

/* Redis crashes or fails over, and comes back with older data; or an operator restores a dump
 * under it, and no link breaks. */
static void on_loss(void *arg)
{
    (void)arg;
    if (world.is_calm || net_is_down())
        return;
    world_say("Redis loses data");
    server_lose();
    ledger_lose();
    server_save();
    audit();
    if (random_chance(400))
        down_for_a_while();
}

static void on_save(void *arg)
{
    (void)arg;
    if (world.is_calm || net_is_down())
        return;
    world_say("saved");
    audit_meet();
    server_save();
    ledger_save();
}

static void on_clock(void *arg)
{
    (void)arg;
    if (world.is_calm)
        return;
    world.wall_step_us += random_chance(500) ? random_between(-3600, 3600) * SECOND
                                             : random_between(-5000, 5000) * MS;
    if (world.wall_step_us > highest_step_us)
        highest_step_us = world.wall_step_us;
    world_say("the clock of Redis is stepped to %+lld ms", (long long)(world.wall_step_us / MS));
}

/* ---- all troubles */

static void plan_some(unsigned n, event_f *fn)
{
    for (unsigned i = 0; i < n; i++)
        (void)world_in(random_between(200 * MS, plan->chaos_us), NULL, fn, NULL, NULL);
}

void trouble_begin(const struct plan *p)
{
    plan = p;
    highest_step_us = 0;
    for (unsigned i = 0; i < p->workers; i++)
        (void)world_in(random_between(0, 500 * MS), NULL, on_start, NULL, NULL);
    plan_some(p->crashes, on_crash);
    plan_some(p->stops, on_stop);
    plan_some(p->freezes, on_freeze);
    plan_some(p->quiets, on_quiet);
    plan_some(p->partitions, on_partition);
    plan_some(p->reloads, on_reload);
    plan_some(p->hangs, on_hang);
    plan_some(p->outages, on_outage);
    plan_some(p->clock_steps, on_clock);
    if (p->losses == 0)
        return;
    server_save();
    ledger_save();
    for (int64_t us = random_between(0, SECOND); us < p->chaos_us;
         us += random_between(100 * MS, 4 * SECOND))
        (void)world_in(us, NULL, on_save, NULL, NULL);
    plan_some(p->losses, on_loss);
}

static bool works(const struct worker *w)
{
    return !w->owner.is_dead && !w->is_stopping && !w->is_quiet;
}

void trouble_end(void)
{
    size_t working = 0;

    world.is_calm = true;
    world_say("calm");
    net_up();
    /* Future times that the clock once showed count as due now. */
    world.wall_step_us = highest_step_us;
    for (size_t i = 0; i < workers_count(); i++) {
        working += works(worker_at(i));
        if (!worker_at(i)->owner.is_dead)
            worker_serve(worker_at(i), ~0U);
        /* What was broadcast to it waits for it. */
        if (plan->broadcasts > 0 && !worker_at(i)->owner.is_dead && worker_at(i)->is_quiet)
            worker_stop(worker_at(i));
    }
    if (working == 0)
        (void)worker_start(SIZE_MAX);
}
