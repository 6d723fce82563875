#include "plan.h"

#include <string.h>

#include "world.h"

static unsigned some(unsigned permille, int64_t from, int64_t to)
{
    return random_chance(permille) ? (unsigned)random_between(from, to) : 0;
}

void plan_make(struct plan *p, uint64_t seed)
{
    memset(p, 0, sizeof(*p));
    p->workers = (unsigned)random_between(1, 3);
    p->places = (unsigned)random_between(1, 4);
    p->queues = (unsigned)random_between(1, PLAN_QUEUES);
    p->jobs = (unsigned)random_between(3, 25);
    p->chaos_us =
        random_chance(150) ? random_between(30, 70) * SECOND : random_between(3, 15) * SECOND;
    p->refused = some(300, 5, 80);
    p->cut = some(400, 5, 60);
    p->unheard = some(500, 5, 80);
    p->late = some(500, 5, 80);
    p->fatal = some(300, 1, 20);
    p->lost_wake = some(400, 50, 1000);
    p->crashes = some(400, 1, 3);
    p->stops = some(300, 1, 2);
    p->freezes = some(250, 1, 2);
    p->quiets = some(100, 1, 1);
    p->partitions = some(200, 1, 2);
    p->reloads = some(200, 1, 3);
    p->hangs = some(200, 1, 2);
    p->outages = some(200, 1, 2);
    p->losses = some(200, 1, 4);
    /* Numbers of the hybrid clock may repeat if Redis loses data and its clock also steps back. */
    p->clock_steps = p->losses > 0 ? 0 : some(200, 1, 2);
    p->operators = some(600, 1, 15);
    p->gates = some(400, 100, 1000);
    p->same_host = random_chance(500);
    p->has_poison = random_chance(150);
    p->is_handler_wicked = random_chance(400);
    p->quick = some(250, 970, 1000);
    /* Not by chance: the other seeds go on as they did before there were chains. */
    p->chains = seed % 4 == 3 ? 500 : 0;
    p->batches = seed % 8 == 5 || seed % 8 == 7 ? 1 + (unsigned)(seed / 8 % 3) : 0;
    p->schedules = seed % 4 == 2 ? 1 + (unsigned)(seed / 4 % PLAN_SCHEDULES) : 0;
    p->members = seed % 4 == 0 ? 5 + (unsigned)(seed / 4 % (PLAN_MEMBERS - 4)) : 0;
    p->broadcasts = seed % 4 == 1 ? 1 + (unsigned)(seed / 4 % PLAN_BROADCASTS) : 0;
    p->fair = seed % 3 == 0 ? 1 + 2 * (unsigned)(seed / 3 % 4) : 0;
    p->fair_changes = seed % 6 == 0 ? 1 + (unsigned)(seed / 6 % 5) : 0;
    p->children = p->batches > 0 ? 300 : 0;
    if (p->quick > 0)
        p->jobs += (unsigned)random_between(20, 60);
}

const char *plan_queue(unsigned n)
{
    static const char *const names[PLAN_QUEUES] = {"alpha", "beta", "gamma"};

    return names[n];
}

void plan_say(const struct plan *p)
{
    world_say(
        "plan workers=%u places=%u queues=%u jobs=%u chaos_s=%lld same_host=%d poison=%d wicked=%d "
        "quick=%u",
        p->workers, p->places, p->queues, p->jobs, (long long)(p->chaos_us / SECOND), p->same_host,
        p->has_poison, p->is_handler_wicked, p->quick);
    world_say("plan refused=%u cut=%u unheard=%u late=%u fatal=%u lost_wake=%u", p->refused, p->cut,
              p->unheard, p->late, p->fatal, p->lost_wake);
    world_say("plan crashes=%u stops=%u freezes=%u quiets=%u partitions=%u reloads=%u hangs=%u "
              "outages=%u "
              "losses=%u clock_steps=%u operators=%u gates=%u chains=%u batches=%u "
              "schedules=%u members=%u broadcasts=%u fair=%u fair_changes=%u",
              p->crashes, p->stops, p->freezes, p->quiets, p->partitions, p->reloads, p->hangs,
              p->outages, p->losses, p->clock_steps, p->operators, p->gates, p->chains, p->batches,
              p->schedules, p->members, p->broadcasts, p->fair, p->fair_changes);
}
