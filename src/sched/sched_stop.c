/*
 * The stop. Claims end at once. Running jobs may finish until stop_timeout is over. Then they are
 * told to end by TERM, and STOP_KILL_MS later by KILL, whatever the grace of their queue. Last,
 * Redis must be told of the ends; STOP_CONFIRM_MS is the time for that.
 */
#include "sched/sched_priv.h"

#include "base/log.h"

#define STOP_KILL_MS 6000
#define STOP_CONFIRM_MS 2000

static void enter_stage(struct sched *s, enum stop_stage stage, struct mono until)
{
    s->stop.stage = stage;
    s->stop.at = until;
}

static void kill_all(struct sched *s, bool at_once)
{
    for (struct held_job *h = s->held.first; h != NULL; h = h->next) {
        if (held_is_in_pool(h) && (at_once || !h->is_killed)) {
            h->is_killed = true;
            s->ops->kill(s->ctx, h, at_once);
        }
    }
}

void sched_press_stop(struct sched *s, struct mono now)
{
    if (!sched_is_due(s->stop.at, now))
        return;
    if (s->stop.stage == STOP_LETS_FINISH) {
        kill_all(s, false);
        enter_stage(s, STOP_SENT_TERM, mono_add_ms(now, STOP_KILL_MS));
    } else if (s->stop.stage == STOP_SENT_TERM) {
        kill_all(s, true);
        enter_stage(s, STOP_CONFIRMS, mono_add_ms(now, STOP_CONFIRM_MS));
    }
}

static void be_gone(struct sched *s)
{
    if (s->held.n > 0)
        log_warn(
            "event=unconfirmed jobs=%zu reason=\"Redis did not answer: they will be run again\"",
            s->held.n);
    /* A late answer must not make the worker register again. */
    sched_no_calls_out(s);
    sched_move(s, GONE);
    s->ops->arm(s->ctx, MONO_NEVER);
    s->ops->gone(s->ctx);
}

void sched_on_left(struct sched *s, struct mono now)
{
    (void)now;
    if (s->state == LEAVING)
        be_gone(s);
}

bool sched_try_to_leave(struct sched *s, struct mono now)
{
    if (!sched_is_stopping(s) ||
        (s->held.unended > 0 && !(s->stop.stage == STOP_CONFIRMS && sched_is_due(s->stop.at, now))))
        return false;
    if (s->stop.stage != STOP_CONFIRMS)
        enter_stage(s, STOP_CONFIRMS, mono_add_ms(now, STOP_CONFIRM_MS));
    if (s->state == READY && s->held.n == 0 && s->syncs_out == 0) {
        sched_no_calls_out(s);
        sched_move(s, LEAVING);
        if (s->ops->leave(s->ctx, s->me.epoch) < 0)
            sched_not_sent(s, now);
    }
    /* Without a link Redis cannot be told; other workers reap what is still held. */
    if ((s->held.n == 0 && s->state == OFFLINE) || sched_is_due(s->stop.at, now)) {
        be_gone(s);
        return true;
    }
    return false;
}
