/*
 * Under the other files of the scheduler: the moves between its states, the ends of held
 * jobs, and trouble with a call.
 */
#include "sched/sched_priv.h"

#include <assert.h>
#include <stdio.h>

#include "base/log.h"

#define AGAIN_FIRST_MS 100 /* after an error reply; doubles up to AGAIN_MAX_MS */
/* A new master may refuse all writes until it has a replica. Those who may hold a lock there must
 * say so before SESSION_FAILOVER_MS have passed for the first that is let in. */
#define AGAIN_MOVED_MS 1000

/* ---- states */

/* From -> to, the states of sched.h. */
#define TO(state) (1U << (state))
static const unsigned moves[SCHED_STATES] = {
    [OFFLINE] = TO(REGISTERING) | TO(BEATING) | TO(GONE),
    [BACKING_OFF] = TO(OFFLINE) | TO(REGISTERING) | TO(BEATING) | TO(GONE),
    [REGISTERING] = TO(OFFLINE) | TO(BACKING_OFF) | TO(READY) | TO(GONE),
    /* To itself: a foreign library may answer a beat with `link`. */
    [BEATING] =
        TO(BEATING) | TO(OFFLINE) | TO(BACKING_OFF) | TO(REGISTERING) | TO(RECONCILING) | TO(GONE),
    [RECONCILING] =
        TO(OFFLINE) | TO(BACKING_OFF) | TO(REGISTERING) | TO(BEATING) | TO(READY) | TO(GONE),
    [READY] = TO(OFFLINE) | TO(BACKING_OFF) | TO(REGISTERING) | TO(BEATING) | TO(RECONCILING) |
              TO(LEAVING) | TO(GONE),
    [LEAVING] = TO(OFFLINE) | TO(BACKING_OFF) | TO(GONE),
};

void sched_move(struct sched *s, enum sched_state to)
{
    assert((moves[s->state] & TO(to)) != 0);
    s->state = to;
}

/* ---- ends of held jobs */

static const struct verdict_data NO_DATA;

void sched_end_with(struct sched *s, struct held_job *h, const struct verdict *v)
{
    queues_ended(s->queues, h->job.queue);
    held_end(&s->held, h, v, &NO_DATA);
}

void sched_release(struct sched *s, struct held_job *h, int64_t delay_ms, const char *why)
{
    struct verdict back = {.verb = STORE_RELEASE, .amount = delay_ms};

    (void)snprintf(back.reason, sizeof(back.reason), "not started: %s", why);
    sched_end_with(s, h, &back);
    s->is_hurried = true; /* another worker may start it now */
}

void sched_forget(struct sched *s, struct held_job *h)
{
    if (held_is_unended(h) || h->is_unwritten)
        queues_ended(s->queues, h->job.queue);
    held_remove(&s->held, h);
}

void sched_kill_lost(struct sched *s, struct held_job *h)
{
    held_move(&s->held, h, HELD_LOST);
    h->is_killed = true;
    s->ops->kill(s->ctx, h, true);
}

void sched_lose(struct sched *s, const char *id)
{
    struct held_job *h = held_find(&s->held, id);

    if (h == NULL)
        return;
    /* The link broke while its result was under way, so Redis most likely has it: nothing is wrong.
     */
    if (!held_is_unended(h))
        log_notice("event=settled job=%s queue=%s start=%lld reason=\"its result was taken, or "
                   "came too late\"",
                   h->job.id, h->job.queue, (long long)h->job.start);
    else
        log_warn("event=lost job=%s queue=%s start=%lld reason=\"this worker does not hold it any "
                 "more\"",
                 h->job.id, h->job.queue, (long long)h->job.start);
    if (h->state == HELD_RUNNING)
        sched_kill_lost(s, h);
    else
        sched_forget(s, h);
}

/* ---- trouble */

void sched_no_calls_out(struct sched *s)
{
    s->beat.is_out = s->reap_out = s->tidy.is_out = s->beat.is_wanted = false;
    s->look.is_out = false;
    s->syncs_out = 0;
    queues_unanswered(s->queues);
    s->names.is_changed = s->names.is_changed || s->names.is_out;
    s->names.is_out = false;
    held_unsend(&s->held);
    s->checkpoint_at = held_checkpoint_at(&s->held);
}

void sched_drop_unstarted(struct sched *s)
{
    struct held_job *next;

    for (struct held_job *h = s->held.first; h != NULL; h = next) {
        next = h->next;
        if (held_is_unstarted(h))
            sched_forget(s, h);
    }
}

void sched_back_off(struct sched *s, struct mono now)
{
    s->again_ms =
        wait_next_ms(s->again_ms, AGAIN_FIRST_MS, s->me.has_moved ? AGAIN_MOVED_MS : AGAIN_MAX_MS);
    s->again_at = mono_add_ms(now, s->again_ms);
    sched_move(s, BACKING_OFF);
    sched_no_calls_out(s);
    sched_drop_unstarted(s);
}

void sched_not_sent(struct sched *s, struct mono now)
{
    peers_trouble(s->peers);
    sched_back_off(s, now);
}
