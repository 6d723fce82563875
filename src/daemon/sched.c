/*
 * The state machine: what is due now, what later, and how the worker stops. Registration, beats and
 * errors are in sched_enter.c, steps and jobs in sched_step.c, looks in sched_look.c, suspects in
 * sched_solo.c. The reasoning behind each rule is in doc/architecture.md, "The worker's side".
 */
#include "daemon/sched.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/mem.h"
#include "daemon/sched_priv.h"

#define STOP_KILL_MS 6000    /* a stop sends KILL so long after TERM, whatever the grace */
#define STOP_CONFIRM_MS 2000 /* and waits so much longer for Redis to hear of it */

/* ---- making and unmaking */

struct sched *sched_new(const struct sched_conf *conf, const struct sched_ops *ops, void *ctx)
{
    struct sched *s = mem_new(sizeof(*s));

    s->conf = *conf;
    s->ops = ops;
    s->ctx = ctx;
    s->queues = queues_new();
    s->peers = peers_new(ops->is_gone, ctx);
    s->beat_at = s->look_at = s->tidy_at = s->retry_at = MONO_NEVER;
    s->start_at = MONO_NEVER;
    s->host_at = s->stop_at = s->solo_since = s->gate_at = MONO_NEVER;
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

/* ---- small questions */

static unsigned room(const struct sched *s, struct mono now, unsigned most)
{
    if (s->quiet || s->quiet_told || s->stopping || s->held.solos > 0 || sched_solo_dries(s, now))
        return 0;
    if (sched_is_host_ill(s, now))
        return 0;
    return s->held.running < most ? most - (unsigned)s->held.running : 0;
}

unsigned sched_free_places(const struct sched *s, struct mono now)
{
    return room(s, now, s->conf.places);
}

unsigned sched_room(const struct sched *s, struct mono now)
{
    unsigned beyond = s->conf.prefetches ? prefetch_most(&s->prefetch, s->conf.places, now) : 0;

    return room(s, now, s->conf.places + beyond);
}

/* A queue with a bound of its own keeps to it; the others share the places, and what is claimed
 * beyond them. */
static unsigned bound(const struct sched *s, unsigned limit)
{
    return s->conf.prefetches && limit >= s->conf.places ? limit + PREFETCH_MAX : limit;
}

/* ---- waking */

void sched_on_wake(struct sched *s, struct mono now, const char *text)
{
    if (strcmp(text, "!beat") == 0) {
        s->beat_at = now;
        s->beat_wanted = s->beat_out;
    } else if (strcmp(text, "!cancel") == 0) {
        s->step_wanted = true;
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

void sched_set_queues(struct sched *s, struct mono now, const struct queue_spec *specs, size_t n)
{
    CLEANUP_FREE struct queue_spec *bounded = mem_new((n + 1) * sizeof(*bounded));

    for (size_t i = 0; i < n; i++) {
        bounded[i] = specs[i];
        bounded[i].limit = bound(s, specs[i].limit);
    }
    sched_leave_line(s, NULL);
    queues_set(s->queues, bounded, n);
    /* Jobs of a queue that was removed may still run when it is added again. */
    queues_clear(s->queues);
    for (const struct held *h = s->held.first; h != NULL; h = h->next) {
        if (h->state == HELD_READYING || h->state == HELD_RUNNING || h->is_refused)
            queues_took(s->queues, h->job.queue);
    }
    s->look_from = 0;
    sched_look_at_all(s);
    s->names_changed = true;
    s->beat_at = now;
    s->beat_wanted = s->beat_out;
    sched_go_on(s, now);
}

void sched_set_limit(struct sched *s, struct mono now, const char *queue, unsigned limit)
{
    if (limit < s->conf.places)
        sched_leave_line(s, queue);
    queues_set_limit(s->queues, queue, bound(s, limit));
    sched_go_on(s, now);
}

void sched_set_stop_timeout(struct sched *s, int64_t ms)
{
    s->conf.stop_timeout_ms = ms;
}

/* ---- stopping */

void sched_quiet(struct sched *s, struct mono now)
{
    if (s->quiet)
        return;
    s->quiet = true;
    log_notice("event=quiet by=signal running=%zu", s->held.running);
    sched_go_on(s, now);
}

void sched_stop(struct sched *s, struct mono now)
{
    if (!s->stopping)
        s->stop_at = mono_add_ms(now, s->conf.stop_timeout_ms);
    else if (s->stop_stage == 0)
        s->stop_at = now;
    else
        return; /* it cannot be hurried more */
    log_notice("event=stopping running=%zu now=%s", s->held.running, s->stopping ? "1" : "");
    s->stopping = true;
    sched_go_on(s, now);
}

static void kill_all(struct sched *s, bool at_once)
{
    for (struct held *h = s->held.first; h != NULL; h = h->next) {
        if (h->state == HELD_RUNNING && (at_once || !h->is_killed)) {
            h->is_killed = true;
            s->ops->kill(s->ctx, h, at_once);
        }
    }
}

/* TERM, then KILL, then leave without the answers of Redis. */
static void press(struct sched *s, struct mono now)
{
    if (s->stop_stage == 0 && sched_is_due(s->stop_at, now)) {
        kill_all(s, false);
        s->stop_at = mono_add_ms(now, STOP_KILL_MS);
        s->stop_stage = 1;
    } else if (s->stop_stage == 1 && sched_is_due(s->stop_at, now)) {
        kill_all(s, true);
        s->stop_at = mono_add_ms(now, STOP_CONFIRM_MS);
        s->stop_stage = 2;
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
    s->state = GONE;
    s->ops->arm(s->ctx, MONO_NEVER);
    s->ops->gone(s->ctx);
}

void sched_on_left(struct sched *s, struct mono now)
{
    (void)now;
    if (s->state == LEAVING)
        be_gone(s);
}

static bool try_to_leave(struct sched *s, struct mono now)
{
    if (!s->stopping ||
        (s->held.running > 0 && !(s->stop_stage == 2 && sched_is_due(s->stop_at, now))))
        return false;
    if (s->stop_stage < 2) { /* nothing runs: only Redis is waited for */
        s->stop_at = mono_add_ms(now, STOP_CONFIRM_MS);
        s->stop_stage = 2;
    }
    if (s->state == READY && s->held.n == 0 && s->steps_out == 0) {
        sched_no_calls_out(s);
        s->state = LEAVING;
        if (s->ops->leave(s->ctx, s->epoch) < 0)
            sched_not_sent(s, now);
    }
    /* Without a link Redis cannot be told; other workers reap what is still held. */
    if ((s->held.n == 0 && s->state == OFFLINE) || sched_is_due(s->stop_at, now)) {
        be_gone(s);
        return true;
    }
    return false;
}

/* ---- what is due now, and the timer for the rest */

static void send_tidy(struct sched *s, struct mono now)
{
    int64_t calls = 1 + (int64_t)(queues_count(s->queues) / (SCHED_TIDY_QUEUES + 1));

    if (s->state != READY || s->tidy_out || !sched_is_due(s->tidy_at, now))
        return;
    s->tidy_at =
        mono_add_ms(now, SCHED_TIDY_MS / calls > SCHED_TIDY_LEAST_MS ? SCHED_TIDY_MS / calls
                                                                     : SCHED_TIDY_LEAST_MS);
    s->tidy_out = s->ops->tidy(s->ctx, s->epoch) == 0;
}

void sched_on_tidied(struct sched *s, struct mono now)
{
    s->tidy_out = false;
    sched_go_on(s, now);
}

static void arm(struct sched *s, struct mono now)
{
    struct mono at = s->stopping ? s->stop_at : MONO_NEVER;

    at = mono_min(at, s->start_at);
    if (s->held.line != NULL && s->state == READY)
        at = mono_min(at, mono_add_ms(s->held.line->claimed_at, PREFETCH_WAIT_MS));
    if (s->state == WAITING)
        at = mono_min(at, s->retry_at);
    if (s->state == READY) {
        if (!s->beat_out)
            at = mono_min(at, s->beat_at);
        if (!s->tidy_out)
            at = mono_min(at, s->tidy_at);
        if (!s->look_out)
            at = mono_min(at, s->look_at);
        if (s->steps_out == 0) {
            at = mono_min(at, s->gate_at);
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
    sched_start_line(s, now);
    if (s->stopping)
        press(s, now);
    if (try_to_leave(s, now))
        return;
    if (s->state == WAITING && sched_is_due(s->retry_at, now))
        sched_enter(s, now);
    if (s->state == READY && !s->beat_out && s->beat_first)
        sched_send_beat(s, now);
    if (s->state == READY)
        sched_plan_look(s, now);
    if (s->state == READY)
        sched_plan_step(s, now);
    if (s->state == READY && !s->beat_out && sched_is_due(s->beat_at, now))
        sched_send_beat(s, now);
    sched_send_reap(s);
    send_tidy(s, now);
    arm(s, now);
}

void sched_on_timer(struct sched *s, struct mono now)
{
    sched_go_on(s, now);
}

void sched_status(const struct sched *s, struct sched_status *ret)
{
    size_t refused = 0;

    for (const struct held *h = s->held.first; h != NULL; h = h->next)
        refused += h->is_refused;
    *ret = (struct sched_status){.running = s->held.running - s->held.waiting,
                                 .refused = refused,
                                 .unsent = s->held.n - s->held.running,
                                 .is_ready = s->state == READY,
                                 .is_quiet = s->quiet || s->quiet_told,
                                 .is_stopping = s->stopping,
                                 .epoch = s->epoch};
}
