/*
 * Calls that make a worker READY and keep it alive: registration, beats, reconciles; and the
 * reaping of others. sched_answers.c takes the answers.
 */
#include "sched/sched_priv.h"

#include "base/cleanup.h"
#include "base/mem.h"

void sched_send_register(struct sched *s, struct mono now)
{
    CLEANUP_FREE struct store_held *held = NULL;
    struct store_register req = session_request(&s->me);

    if (s->me.epoch != 0) {
        req.nheld = held_names(&s->held, &held);
        req.held = held;
    }
    sched_move(s, REGISTERING);
    s->names.is_changed = false;
    s->names.is_out = true;
    if (s->ops->reg(s->ctx, &req) < 0)
        sched_not_sent(s, now);
}

void sched_send_beat(struct sched *s, struct mono now)
{
    CLEANUP_BUF struct buf names = BUF_INIT;

    if (s->names.is_changed)
        queues_names(s->queues, &names);
    if (s->ops->beat(s->ctx, s->me.epoch, s->names.is_changed ? buf_str(&names) : NULL) < 0) {
        sched_not_sent(s, now);
        return;
    }
    s->beat.is_out = true;
    s->beat.is_first = false;
    s->beat.is_early = mono_before(now, s->beat.at);
    s->names.is_out = s->names.is_changed;
    s->names.is_changed = false;
    s->beat.is_exact = s->syncs_out == 0;
}

void sched_send_reconcile(struct sched *s, struct mono now)
{
    CLEANUP_FREE struct store_held *held = NULL;
    size_t n = held_names(&s->held, &held);

    sched_move(s, RECONCILING);
    if (s->ops->reconcile(s->ctx, s->me.epoch, s->link, s->me.seen, held, n) < 0)
        sched_not_sent(s, now);
}

void sched_become_ready(struct sched *s, struct mono now)
{
    sched_move(s, READY);
    s->beat.at = mono_add_ms(now, SCHED_BEAT_MS);
    sched_look_at_all(s); /* a wake may have been missed meanwhile */
    if (s->tidy.at.us == INT64_MAX || sched_is_due(s->tidy.at, now))
        s->tidy.at = mono_add_ms(now, 1000 + s->ops->random(s->ctx) % 1000);
}

void sched_enter(struct sched *s, struct mono now)
{
    if (s->me.epoch == 0 || s->me.has_moved) {
        sched_send_register(s, now);
    } else {
        sched_move(s, BEATING);
        sched_send_beat(s, now);
    }
}

static void send_clear(struct sched *s)
{
    int64_t epoch = peers_to_clear(s->peers);

    if (epoch != 0 && s->ops->end_orphans(s->ctx, epoch) < 0)
        peers_not_asked(s->peers, epoch);
}

void sched_send_reap(struct sched *s)
{
    const struct store_peer *victim;

    if (s->state != READY)
        return;
    send_clear(s);
    victim = peers_victim(s->peers);
    if (!s->reap_out && victim != NULL &&
        s->ops->reap(s->ctx, s->me.epoch, victim->epoch, victim->counter) == 0)
        s->reap_out = true;
}
