/*
 * From the claim to the start. A claimed job may wait for a place, for its payload, for its due
 * time, or for the answer to a beat.
 */
#include "sched/sched_priv.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/mem.h"

#define UNGUARDED_MS 1000 /* a guarded job is released for this long while no guard lives */

static void start_at(struct sched *s, struct held_job *h, struct mono at)
{
    held_move(&s->held, h, HELD_AHEAD);
    h->start_at = at;
    s->start_at = mono_min(s->start_at, at);
}

/* May a guarded job start? Only if it is sure to be killed before another job can have its
 * permit: the guard lives, and a beat was acknowledged lately. Without such a beat the job waits
 * for the answer to the next one; a job that is released loses its turn at its gate. If that answer
 * is too old as well, the link is slow: the job is released, and a beat is sent before the next
 * sync. Nor soon after a failover: whoever holds the permit by a claim that was lost may still be
 * on its way to the new master. */
static bool may_start_guarded(struct sched *s, struct mono now, struct held_job *h)
{
    if (!s->ops->has_guard(s->ctx)) {
        sched_release(s, h, UNGUARDED_MS, "it holds a lock, and there is no guard process");
        return false;
    }
    if (mono_before(now, s->me.guarded_from)) {
        start_at(s, h, s->me.guarded_from);
        return false;
    }
    if (s->ops->is_fresh(s->ctx))
        return true;
    s->beat.is_first = !s->beat.is_out;
    if (h->state == HELD_AWAITS_BEAT)
        sched_release(s, h, 0, "it holds a lock, and no beat was acknowledged lately");
    else
        held_move(&s->held, h, HELD_AWAITS_BEAT);
    return false;
}

void sched_start(struct sched *s, struct mono now, struct held_job *h)
{
    struct verdict refusal;

    if (sched_is_stopping(s)) {
        sched_release(s, h, 0, "the worker stops");
        return;
    }
    if (h->job.is_guarded && !may_start_guarded(s, now, h))
        return;
    if (!s->ops->admit(s->ctx, &h->job, &refusal)) {
        sched_end_with(s, h, &refusal);
        return;
    }
    held_move(&s->held, h, HELD_RUNNING);
    h->started_at = now;
    s->ops->start(s->ctx, h);
}

void sched_start_due(struct sched *s, struct mono now)
{
    CLEANUP_FREE struct held_job **due = NULL;
    size_t n = 0;

    if (s->start_at.us == INT64_MAX || (!sched_is_stopping(s) && mono_before(now, s->start_at)))
        return;
    s->start_at = MONO_NEVER;
    due = mem_new((s->held.n + 1) * sizeof(struct held_job *));
    for (struct held_job *h = s->held.first; h != NULL; h = h->next) {
        if (h->state != HELD_AHEAD)
            continue;
        if (sched_is_stopping(s) || !mono_before(now, h->start_at))
            due[n++] = h;
        else
            s->start_at = mono_min(s->start_at, h->start_at);
    }
    /* The list begins with the newest claim: start from its end. */
    while (n > 0)
        sched_start(s, now, due[--n]);
}

void sched_start_waiting(struct sched *s, struct mono now)
{
    CLEANUP_FREE struct held_job **waiting = mem_new((s->held.n + 1) * sizeof(struct held_job *));
    size_t n = 0;

    /* The list begins with the newest claim: start from its end. */
    for (struct held_job *h = s->held.first; h != NULL; h = h->next) {
        if (h->state == HELD_AWAITS_BEAT)
            waiting[n++] = h;
    }
    while (n > 0)
        sched_start(s, now, waiting[--n]);
}

/* One millisecond more: Redis cuts its time to whole milliseconds. */
unsigned sched_ahead_ms(const struct sched *s)
{
    return s->conf.ahead_us > 0 ? (unsigned)(s->conf.ahead_us / 1000) + 1 : 0;
}

/* Was it claimed before its due time? A job that is due even later was due when a gate let it in,
 * and Redis' clock was set back since then: it starts at once. */
static bool is_ahead(const struct sched *s, const struct held_job *h)
{
    return h->late_us < 0 && -h->late_us <= 1000 * (int64_t)sched_ahead_ms(s);
}

/* There is a place for this claim: fetch its payload, wait for its due time, or start it. */
static void place_claim(struct sched *s, struct mono now, struct held_job *h)
{
    if (h->job.is_big && !sched_is_stopping(s)) {
        held_move(&s->held, h, HELD_FETCHING);
        if (s->ops->fetch(s->ctx, h->job.id) < 0)
            sched_not_sent(s, now);
    } else if (is_ahead(s, h) && !sched_is_stopping(s)) {
        start_at(s, h, mono_add_us(now, -h->late_us));
    } else {
        sched_start(s, now, h);
    }
}

static bool has_free_place(const struct sched *s, struct mono now)
{
    return !sched_is_host_ill(s, now) && s->held.unended - s->held.nawaiting < sched_places(s);
}

void sched_release_awaiting(struct sched *s, const char *queue)
{
    for (struct held_job *h = s->held.awaiting, *next; h != NULL; h = next) {
        next = h->awaiting_after;
        if (queue == NULL || strcmp(h->job.queue, queue) == 0)
            sched_release(s, h, 0, "its queue has other settings now");
    }
}

void sched_fill_places(struct sched *s, struct mono now)
{
    struct held_job *h;

    /* Until the reconcile is answered, another worker may hold what waits here. */
    if (s->state != READY && !sched_is_stopping(s))
        return;
    while ((h = s->held.awaiting) != NULL) {
        int64_t waited_us = mono_until_us(h->claimed_at, now);

        if (sched_is_stopping(s)) {
            sched_release(s, h, 0, "the worker stops");
        } else if (has_free_place(s, now)) {
            h->late_us += waited_us;
            h->claimed_at = now;
            place_claim(s, now, h);
        } else if (waited_us >= INT64_C(1000) * PREFETCH_WAIT_MS) {
            sched_release(s, h, 0, "no place became free for it");
            prefetch_rest(&s->prefetch, now);
        } else {
            return;
        }
    }
}
