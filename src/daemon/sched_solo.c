/*
 * Suspects: a job that killed two workers runs alone. Redis gives it only to a worker that runs
 * nothing; here is how this one becomes idle for it, and how it finds it then.
 */
#include "daemon/sched_priv.h"

/* A step that names some queues says nothing about the suspects of the others: only a whole sweep
 * can tell that there is none. One that began with one due looks at none, and is whole. */
void sched_solo_told(struct sched *s, struct mono now, const struct sent_step *step, bool is_due)
{
    if (is_due) {
        if (!s->solo_due)
            s->solo_since = now;
        s->solo_due = s->solo_seen = true;
        if (step->sweep_from != SWEEP_NOWHERE)
            s->solo_from = step->sweep_from;
    } else if (step->sweep_from == s->solo_from) {
        s->solo_from = SWEEP_NOWHERE;
    }
    if (!step->sweep_ends)
        return;
    if (!s->solo_seen) {
        s->solo_due = false;
        s->solo_since = MONO_NEVER;
    }
    s->solo_seen = false;
}

/* Claim nothing for a while when it waits too long, so that it may find us idle. Only now and then,
 * since where jobs run for hours nobody becomes idle, and the others want to run. */
bool sched_solo_dries(const struct sched *s, struct mono now)
{
    int64_t waited_ms;

    if (!s->solo_due || s->held.running == 0)
        return false;
    waited_ms = mono_until_us(s->solo_since, now) / 1000 - SCHED_SOLO_WAIT_MS;
    return waited_ms > 0 && waited_ms % SCHED_SOLO_EVERY_MS < SCHED_SOLO_DRY_MS;
}

/* Nothing runs: a new sweep begins where one told of it. When it is there no more the sweeps go on
 * as they are, else none would come to its end among jobs that are short. */
void sched_solo_seek(struct sched *s, struct mono now)
{
    if (!s->solo_due || s->held.running > 0)
        return;
    s->sweep_at = now;
    if (s->solo_from == SWEEP_NOWHERE)
        return;
    s->sweeping = false;
    s->sweep_cursor = s->solo_from;
}

/* It is claimed before all others of its call: where one is due, whoever could fill the places
 * first has to be in the same call, which names as many queues as one may. */
size_t sched_solo_names(const struct sched *s)
{
    return s->solo_due && s->held.running == 0 ? ROOMS_MAX : STEP_NAMES;
}
