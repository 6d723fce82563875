/*
 * What is due now, and the timer for the rest: after every event sched_go_on does it with the files
 * that this one names, and so it stands above them. sched_answers.c and sched_claims.c stand above
 * it: they take the answers of Redis. The reasons for the rules are in doc/why.md.
 */
#include "sched/sched_priv.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/mem.h"

/* ---- making and unmaking */

struct sched *sched_new(const struct sched_conf *conf, const struct sched_ops *ops, void *ctx)
{
    struct sched *s = mem_new(sizeof(*s));

    s->conf = *conf;
    s->ops = ops;
    s->ctx = ctx;
    s->queues = queues_new();
    s->peers = peers_new(ops->is_gone, ctx);
    s->beat.at = s->look.at = s->tidy.at = s->again_at = MONO_NEVER;
    s->start_at = MONO_NEVER;
    s->borne = conf->places;
    s->host_at = s->stop.at = s->solo_since = s->gate_at = s->checkpoint_at = MONO_NEVER;
    return s;
}

void sched_free(struct sched *s)
{
    if (s == NULL)
        return;
    held_clear(&s->held);
    queues_free(s->queues);
    peers_free(s->peers);
    free(s);
}

struct queues *sched_queues(struct sched *s)
{
    return s->queues;
}

/* ---- waking */

void sched_on_wake(struct sched *s, struct mono now, const char *text)
{
    if (strcmp(text, "!beat") == 0) {
        s->beat.at = now;
        s->beat.is_wanted = s->beat.is_out;
    } else if (strcmp(text, "!cancel") == 0) {
        s->sync_wanted = true;
    } else if (queues_has(s->queues, text)) {
        queues_wake(s->queues, text);
    } else {
        return;
    }
    sched_go_on(s, now);
}

void sched_on_subscribed(struct sched *s, struct mono now)
{
    sched_look_at_all(s);
    sched_go_on(s, now);
}

/* A queue whose max_at_once is below the number of places keeps it. The other queues may also have
 * the jobs that are claimed beyond the places. */
static unsigned bound(const struct sched *s, unsigned n)
{
    return s->conf.prefetches && n >= s->conf.places ? n + PREFETCH_MAX : n;
}

void sched_set_queues(struct sched *s, struct mono now, const struct queue_spec *specs, size_t n)
{
    CLEANUP_FREE struct queue_spec *bounded = mem_new((n + 1) * sizeof(*bounded));

    for (size_t i = 0; i < n; i++) {
        bounded[i] = specs[i];
        bounded[i].max_at_once = bound(s, specs[i].max_at_once);
    }
    sched_release_awaiting(s, NULL);
    queues_set(s->queues, bounded, n);
    /* Jobs of a queue that was removed may still run when it is added again. */
    queues_clear(s->queues);
    for (const struct held_job *h = s->held.first; h != NULL; h = h->next) {
        if (held_is_unended(h) || h->is_unwritten)
            queues_took(s->queues, h->job.queue);
    }
    s->look.from = 0;
    sched_look_at_all(s);
    s->names.is_changed = true;
    s->beat.at = now;
    s->beat.is_wanted = s->beat.is_out;
    sched_go_on(s, now);
}

void sched_set_max_at_once(struct sched *s, struct mono now, const char *queue, unsigned n)
{
    if (n < s->conf.places)
        sched_release_awaiting(s, queue);
    queues_set_max_at_once(s->queues, queue, bound(s, n));
    sched_go_on(s, now);
}

void sched_set_stop_timeout(struct sched *s, int64_t ms)
{
    s->conf.stop_timeout_ms = ms;
}

/* ---- quiet, and the stop */

void sched_quiet(struct sched *s, struct mono now)
{
    if (s->quiet)
        return;
    s->quiet = true;
    log_notice("event=quiet by=signal running=%zu", s->held.unended);
    sched_go_on(s, now);
}

void sched_stop(struct sched *s, struct mono now)
{
    bool is_second = sched_is_stopping(s);

    if (s->stop.stage > STOP_LETS_FINISH)
        return; /* it cannot go faster */
    log_notice("event=stopping running=%zu now=%s", s->held.unended, is_second ? "1" : "");
    s->stop.stage = STOP_LETS_FINISH;
    s->stop.at = is_second ? now : mono_add_ms(now, s->conf.stop_timeout_ms);
    sched_go_on(s, now);
}

/* ---- what is due now, and the timer for the rest */

static void send_tidy(struct sched *s, struct mono now)
{
    int64_t calls = 1 + (int64_t)(queues_count(s->queues) / (SCHED_TIDY_QUEUES + 1));

    if (s->state != READY || s->tidy.is_out || !sched_is_due(s->tidy.at, now))
        return;
    s->tidy.at =
        mono_add_ms(now, SCHED_TIDY_MS / calls > SCHED_TIDY_LEAST_MS ? SCHED_TIDY_MS / calls
                                                                     : SCHED_TIDY_LEAST_MS);
    s->tidy.is_out = s->ops->tidy(s->ctx, s->me.epoch) == 0;
}

void sched_on_tidied(struct sched *s, struct mono now)
{
    s->tidy.is_out = false;
    sched_go_on(s, now);
}

static void arm(struct sched *s, struct mono now)
{
    struct mono at = sched_is_stopping(s) ? s->stop.at : MONO_NEVER;

    at = mono_min(at, s->start_at);
    if (s->held.awaiting != NULL && s->state == READY)
        at = mono_min(at, mono_add_ms(s->held.awaiting->claimed_at, PREFETCH_WAIT_MS));
    if (s->state == BACKING_OFF)
        at = mono_min(at, s->again_at);
    if (s->state == READY) {
        if (!s->beat.is_out)
            at = mono_min(at, s->beat.at);
        if (!s->tidy.is_out)
            at = mono_min(at, s->tidy.at);
        if (!s->look.is_out)
            at = mono_min(at, s->look.at);
        if (s->syncs_out == 0) {
            at = mono_min(at, mono_min(s->gate_at, s->checkpoint_at));
            if (sched_free_places(s, now) > 0)
                at = mono_min(at, mono_add_us(queues_next(s->queues), -s->conf.ahead_us));
            else if (sched_is_host_ill(s, now))
                at = mono_min(at, s->host_at);
        }
    }
    s->ops->arm(s->ctx, at);
}

void sched_go_on(struct sched *s, struct mono now)
{
    if (s->state == GONE)
        return;
    sched_start_due(s, now);
    sched_fill_places(s, now);
    sched_press_stop(s, now);
    if (sched_try_to_leave(s, now))
        return;
    if (s->state == BACKING_OFF && sched_is_due(s->again_at, now))
        sched_enter(s, now);
    if (s->state == READY && !s->beat.is_out && s->beat.is_first)
        sched_send_beat(s, now);
    if (s->state == READY)
        sched_plan_look(s, now);
    if (s->state == READY)
        sched_plan_sync(s, now);
    if (s->state == READY && !s->beat.is_out && sched_is_due(s->beat.at, now))
        sched_send_beat(s, now);
    sched_send_reap(s);
    send_tidy(s, now);
    arm(s, now);
}

void sched_on_timer(struct sched *s, struct mono now)
{
    sched_go_on(s, now);
}

size_t sched_runs(const struct sched *s, struct mono now, int64_t least_ms, struct sched_run *out,
                  size_t max)
{
    size_t n = 0;

    /* The list has the newest first, so older ones take the places of newer ones. */
    for (const struct held_job *h = s->held.first; h != NULL; h = h->next) {
        int64_t ms = mono_until_us(h->started_at, now) / 1000;

        if (h->state == HELD_RUNNING && ms >= least_ms)
            out[n++ % max] = (struct sched_run){&h->job, ms};
    }
    return n < max ? n : max;
}

void sched_status(const struct sched *s, struct sched_status *ret)
{
    size_t unwritten = 0;

    for (const struct held_job *h = s->held.first; h != NULL; h = h->next)
        unwritten += h->is_unwritten;
    *ret = (struct sched_status){.running = s->held.unended - s->held.nawaiting,
                                 .unwritten = unwritten,
                                 .unsent = s->held.n - s->held.unended,
                                 .is_ready = s->state == READY,
                                 .is_quiet = s->quiet || s->quiet_told,
                                 .is_stopping = sched_is_stopping(s),
                                 .epoch = s->me.epoch,
                                 .places = sched_places(s)};
}
