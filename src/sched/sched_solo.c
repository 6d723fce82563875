/*
 * Suspects: a job that killed two workers runs alone. Redis gives it only to a worker that runs
 * nothing. This file makes the worker idle for a suspect, and finds the suspect then. The answer to
 * a sync says whether one of its queues has a suspect that is due. If so, all these queues count as
 * suspected until a sync that names them says that there is none. Suspected queues are named by one
 * sync a second, and by the first sync of a worker that has become idle.
 */
#include "sched/sched_priv.h"

/* A worker that claims nothing looks like one that hangs: say when that begins, and when it ends.
 */
static void tell_emptying(struct sched *s, struct mono now)
{
    bool dries = sched_solo_dries(s, now);

    if (dries == s->is_emptying)
        return;
    s->is_emptying = dries;
    s->ops->emptying(s->ctx, dries);
}

void sched_solo_told(struct sched *s, struct mono now, const struct sent_sync *sync, bool is_due)
{
    queues_suspect(s->queues, sync->rooms, sync->nrooms, is_due);
    if (queues_suspected(s->queues) == 0)
        s->solo_since = MONO_NEVER;
    else if (s->solo_since.us == INT64_MAX)
        s->solo_since = now;
    tell_emptying(s, now);
}

/* A suspect that has waited too long makes the worker claim nothing for a while, so that it becomes
 * idle. Only now and then: where jobs run for hours no worker becomes idle, and other jobs want to
 * run. */
bool sched_solo_dries(const struct sched *s, struct mono now)
{
    int64_t waited_ms;

    if (queues_suspected(s->queues) == 0 || s->held.unended == 0)
        return false;
    waited_ms = mono_until_us(s->solo_since, now) / 1000 - SCHED_SOLO_WAIT_MS;
    return waited_ms > 0 && waited_ms % SCHED_SOLO_EVERY_MS < SCHED_SOLO_DRY_MS;
}

void sched_solo_seek(struct sched *s)
{
    if (queues_suspected(s->queues) > 0 && s->held.unended == 0)
        s->sync_wanted = true;
}
