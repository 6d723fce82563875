/*
 * Steps, and the jobs they bring and take: claims, payloads, starts, ends, cancels.
 */
#include "daemon/sched_priv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"

#define HOST_FIRST_MS 100 /* after a host fault; doubles up to */
#define HOST_MAX_MS 10000
#define GATE_MAX_US INT64_C(3600000000) /* the sweep tells of later ones in time */
#define OVERLAP_ENDS                                                                               \
    64 /* so many are worth a second step; one that frees a gate is, and the last is */
#define NOTHING_MS 10        /* a due queue that gave no job is asked again after this */
#define UNGUARDED_MS 1000    /* a job that holds a lock, when there is no guard */
#define STILL_ENDING_MS 1000 /* a job whose former run still ends here goes back for so long */
#define DUE_LATEST_MS INT64_C(100000000000000) /* see L.LATEST */

/* ---- the end of what is held */

/* With its verdict known. */
static void end_with(struct sched *s, struct held *h, const struct verdict *v)
{
    queues_ended(s->queues, h->job.queue);
    held_end(&s->held, h, v, "", 0);
}

static void release(struct sched *s, struct held *h, int64_t delay_ms, const char *why)
{
    struct verdict back = {.verb = STORE_RELEASE, .amount = delay_ms};

    (void)snprintf(back.text, sizeof(back.text), "not started: %s", why);
    end_with(s, h, &back);
    s->is_hurried = true; /* others can have it */
}

/* Without one: it is not ours any more, or never will be run. */
void sched_forget(struct sched *s, struct held *h)
{
    if (h->state == HELD_READYING || h->state == HELD_RUNNING || h->is_refused)
        queues_ended(s->queues, h->job.queue);
    held_remove(&s->held, h);
}

/* Its process ends in its own time, whatever it reports. */
void sched_kill_lost(struct sched *s, struct held *h)
{
    h->is_lost = h->is_killed = true;
    s->ops->kill(s->ctx, h, true);
}

/* ---- jobs */

/* One that holds a lock must be sure to be killed before the lock can be somebody else's. Without a
 * fresh beat it waits for the answer of one: if it went back it would lose its place in the line of
 * its lock. When that answer is stale too the link is ill: it goes back, and comes again behind the
 * answer of a beat that goes first. */
static bool may_lock(struct sched *s, struct held *h, bool has_waited)
{
    if (!s->ops->is_guarded(s->ctx)) {
        release(s, h, UNGUARDED_MS, "it holds a lock, and there is no guard process");
        return false;
    }
    if (s->ops->is_fresh(s->ctx))
        return true;
    s->beat_first = !s->beat_out;
    if (has_waited) {
        release(s, h, 0, "it holds a lock, and no beat was acknowledged lately");
    } else {
        h->state = HELD_READYING;
        h->awaits_beat = true;
    }
    return false;
}

static void start(struct sched *s, struct mono now, struct held *h)
{
    struct verdict refusal;
    bool has_waited = h->awaits_beat;

    h->awaits_beat = false;
    if (s->stopping) {
        release(s, h, 0, "the worker stops");
        return;
    }
    if (h->job.has_lock && !may_lock(s, h, has_waited))
        return;
    if (!s->ops->admit(s->ctx, &h->job, &refusal)) {
        end_with(s, h, &refusal);
        return;
    }
    h->state = HELD_RUNNING;
    h->started_at = now;
    s->ops->start(s->ctx, h);
}

void sched_start_due(struct sched *s, struct mono now)
{
    CLEANUP_FREE struct held **due = NULL;
    size_t n = 0;

    if (s->start_at.us == INT64_MAX || (!s->stopping && mono_before(now, s->start_at)))
        return;
    s->start_at = MONO_NEVER;
    due = mem_new((s->held.n + 1) * sizeof(struct held *));
    for (struct held *h = s->held.first; h != NULL; h = h->next) {
        if (h->start_at.us == 0)
            continue;
        if (s->stopping || !mono_before(now, h->start_at))
            due[n++] = h;
        else
            s->start_at = mono_min(s->start_at, h->start_at);
    }
    /* The newest claim, which is due last, is the first of the list. */
    while (n > 0) {
        due[--n]->start_at = (struct mono){0};
        start(s, now, due[n]);
    }
}

void sched_start_waiting(struct sched *s, struct mono now)
{
    CLEANUP_FREE struct held **waiting = mem_new((s->held.n + 1) * sizeof(struct held *));
    size_t n = 0;

    /* The newest claim is the first of the list. */
    for (struct held *h = s->held.first; h != NULL; h = h->next) {
        if (h->awaits_beat)
            waiting[n++] = h;
    }
    while (n > 0)
        start(s, now, waiting[--n]);
}

/* Redis reckons in whole milliseconds, and our clocks may differ by some microseconds. */
static unsigned ahead_ms(const struct sched *s)
{
    return s->conf.ahead_us > 0 ? (unsigned)(s->conf.ahead_us / 1000) + 1 : 0;
}

/* So long ahead Redis gives out plain jobs. One that is due later than that was due when it was let
 * in, and Redis' clock was set back since: nobody waits for it. */
static bool is_ahead(const struct sched *s, const struct held *h)
{
    return h->late_us < 0 && -h->late_us <= 1000 * (int64_t)ahead_ms(s);
}

/* There is a place for it. */
static void place_claim(struct sched *s, struct mono now, struct held *h)
{
    if (h->job.is_big && !s->stopping) {
        h->state = HELD_READYING;
        if (s->ops->fetch(s->ctx, h->job.id) < 0)
            sched_not_sent(s, now);
    } else if (is_ahead(s, h) && !s->stopping) {
        h->state = HELD_READYING;
        h->start_at = mono_add_us(now, -h->late_us);
        s->start_at = mono_min(s->start_at, h->start_at);
    } else {
        start(s, now, h);
    }
}

static bool has_free_place(const struct sched *s, struct mono now)
{
    return !sched_is_host_ill(s, now) && s->held.running - s->held.waiting < s->conf.places;
}

/* Plain jobs that are due go to the pool before a place is free: who ends one there takes the next.
 */
static bool may_start_early(const struct sched *s, struct mono now, const struct held *h,
                            int64_t waited_us)
{
    return h->is_short && !h->job.is_big && h->late_us + waited_us >= 0 &&
           waited_us < INT64_C(1000) * PREFETCH_WAIT_MS && !sched_is_host_ill(s, now) &&
           s->ops->may_start_early(s->ctx, h->job.queue);
}

void sched_leave_line(struct sched *s, const char *queue)
{
    for (struct held *h = s->held.line, *next; h != NULL; h = next) {
        next = h->behind;
        if (queue == NULL || strcmp(h->job.queue, queue) == 0)
            release(s, h, 0, "its queue has other settings now");
    }
}

void sched_start_line(struct sched *s, struct mono now)
{
    struct held *h;

    /* What waits may be another's, as long as the store has not said. */
    if (s->state != READY && !s->stopping)
        return;
    while ((h = s->held.line) != NULL) {
        int64_t waited_us = mono_until_us(h->claimed_at, now);
        bool is_free = has_free_place(s, now);

        if (s->stopping) {
            release(s, h, 0, "the worker stops");
        } else if (is_free || may_start_early(s, now, h, waited_us)) {
            held_leave_line(&s->held, h);
            h->late_us += waited_us;
            h->claimed_at = now;
            h->wait_ms = is_free ? 0 : PREFETCH_WAIT_MS - (unsigned)(waited_us / 1000);
            place_claim(s, now, h);
        } else if (waited_us >= INT64_C(1000) * PREFETCH_WAIT_MS) {
            release(s, h, 0, "no place became free for it");
            prefetch_rest(&s->prefetch, now);
        } else {
            return;
        }
    }
}

static void take_claim(struct sched *s, struct mono now, const struct store_claim *c,
                       int64_t now_us)
{
    struct err err = ERR_INIT;
    struct job job = {.start = c->start,
                      .attempt = c->attempt,
                      .crashes = c->crashes,
                      .fence = c->fence,
                      .has_lock = c->has_lock,
                      .due = c->due};
    struct held *h;

    text_copy(job.id, sizeof(job.id), c->id);
    if (job.due.ms < 0 || job.due.ms > DUE_LATEST_MS)
        job.due.ms = now_us / 1000;
    /* Redis gave out a later start: what we have of an earlier one is history. */
    sched_lose(s, job.id);
    if (job_parse(&job, c->record, c->record_len, &err) < 0) {
        struct verdict v = {.verb = STORE_BURY, .amount = 10000, .is_error = true};

        text_copy(job.queue, sizeof(job.queue), c->queue);
        text_copy(v.text, sizeof(v.text), err.text);
        h = held_add(&s->held, &job);
        held_end(&s->held, h, &v, "", 0);
        return;
    }
    h = held_add(&s->held, &job);
    h->claimed_at = now;
    h->late_us = now_us - job.due.ms * 1000;
    if (c->crashes >= 2)
        held_mark_solo(&s->held, h);
    h->is_gated = c->is_gated;
    h->is_short = c->is_short;
    queues_claimed(s->queues, h->job.queue);
    if (h->is_gated)
        queues_gated(s->queues, h->job.queue);
    sched_saw(s, c->fence);
    if (held_find_lost(&s->held, h->job.id) != NULL) {
        release(s, h, STILL_ENDING_MS, "its former run still ends here");
    } else {
        h->state = HELD_READYING;
        held_queue_up(&s->held, h);
    }
}

/* Its payload, not a place, the answer of a beat, or the time when it is due. */
static bool awaits_payload(const struct held *h)
{
    return h->state == HELD_READYING && !h->is_in_line && !h->awaits_beat && h->start_at.us == 0;
}

void sched_on_fetched(struct sched *s, struct mono now, const char *id, const char *payload,
                      size_t n)
{
    struct held *h = held_find(&s->held, id);

    if (h == NULL || !awaits_payload(h))
        return;
    if (payload == NULL) {
        struct verdict v = {.verb = STORE_BURY, .amount = 10000, .is_error = true};

        (void)snprintf(v.text, sizeof(v.text), "its payload is missing (the key big:%s)", id);
        end_with(s, h, &v);
    } else {
        h->job.payload = mem_dup(payload, n);
        h->job.payload_len = n;
        start(s, now, h);
    }
    s->retry_ms = 0;
    sched_go_on(s, now);
}

/* Many jobs meet one shortage: it counts once until the wait is over, and so does its end. */
static void take_host(struct sched *s, struct mono now, bool is_fault)
{
    if (sched_is_host_ill(s, now))
        return;
    if (!is_fault) {
        s->host_ms = 0;
        s->host_at = MONO_NEVER;
        return;
    }
    s->host_ms = s->host_ms == 0 ? HOST_FIRST_MS : s->host_ms * 2;
    if (s->host_ms > HOST_MAX_MS)
        s->host_ms = HOST_MAX_MS;
    s->host_at = mono_add_ms(now, s->host_ms);
}

void sched_job_ended(struct sched *s, struct mono now, const char *id, const struct verdict *v,
                     const char *tail, size_t tail_len)
{
    struct held *h = held_in_pool(&s->held, id);

    if (h == NULL)
        return;
    take_host(s, now, v->is_host_fault);
    if (h->is_lost) {
        log_warn(
            "event=late-result-dropped job=%s queue=%s start=%lld reason=\"not held any more\"",
            h->job.id, h->job.queue, (long long)h->job.start);
        sched_forget(s, h);
    } else {
        queues_ended(s->queues, h->job.queue);
        if (v->verb != STORE_RELEASE)
            prefetch_ran(&s->prefetch, mono_until_us(h->started_at, now));
        else if (h->wait_ms > 0)
            prefetch_rest(&s->prefetch, now);
        /* The step that takes its end hands its place on: ask for the next one in the same call. */
        if (h->is_gated) {
            queues_wake(s->queues, h->job.queue);
            s->is_hurried = true;
        }
        held_end(&s->held, h, v, tail, tail_len);
    }
}

void sched_jobs_ended(struct sched *s, struct mono now)
{
    sched_solo_seek(s, now);
    sched_go_on(s, now);
}

void sched_job_progress(struct sched *s, const char *id, const char *text)
{
    struct held *h = held_find(&s->held, id);

    if (h == NULL || h->state != HELD_RUNNING)
        return;
    /* It travels with the next step; the sweep makes one at least every second. */
    text_copy(h->progress, sizeof(h->progress), text);
    h->has_progress = true;
}

/* ---- the step */

/* Claims that the steps under way may bring. */
static unsigned promised(const struct sched *s)
{
    unsigned n = 0;

    for (unsigned i = 0; i < s->steps_out; i++)
        n += s->steps[(s->step_first + i) % STORE_STEPS_MAX].max;
    return n;
}

static void send_step(struct sched *s, struct mono now, unsigned places, bool sweep)
{
    struct sent_step *out = &s->steps[(s->step_first + s->steps_out) % STORE_STEPS_MAX];
    struct store_result results[SCHED_STEP_JOBS];
    struct store_step step = {.epoch = s->epoch, .link = s->link};
    enum queues_sweep kind = sweep ? sched_look_kind(s) : QUEUES_DUE;

    step.max = places < SCHED_STEP_JOBS ? places : SCHED_STEP_JOBS;

    step.nresults = held_collect(&s->held, now, results, SCHED_STEP_JOBS);
    step.results = results;
    out->nsent = step.nresults;
    for (size_t i = 0; i < step.nresults; i++)
        text_copy(out->sent[i], sizeof(out->sent[i]),
                  results[i].verb == STORE_PROGRESS ? "" : results[i].id);
    out->sweep_from = kind == QUEUES_ALL ? s->sweep_cursor : SWEEP_NOWHERE;
    out->nrooms = queues_plan(s->queues, mono_add_us(now, s->conf.ahead_us), step.max, kind,
                              &s->sweep_cursor, out->rooms, sched_solo_names(s));
    /* The table may be set anew before the reply comes. */
    for (size_t i = 0; i < out->nrooms; i++) {
        memcpy(out->room_names[i], out->rooms[i].queue, strlen(out->rooms[i].queue) + 1);
        out->rooms[i].queue = out->room_names[i];
    }
    step.rooms = out->rooms;
    step.nrooms = out->nrooms;
    /* Those that may be on their way count as if they were here: no suspect comes beside them. */
    step.held = (unsigned)s->held.running + promised(s);
    step.ahead_ms = ahead_ms(s);
    out->max = step.max;
    s->step_wanted = s->is_hurried = false;
    s->sweeping = sweep && s->sweep_cursor > 0;
    out->sweep_ends = sweep && !s->sweeping && s->sweep_is_whole;
    s->beat_counts = false;
    s->steps_out++;
    s->gate_at = MONO_NEVER;
    if (s->ops->step(s->ctx, &step) < 0)
        sched_not_sent(s, now);
}

static void take_answers(struct sched *s, struct mono now, const struct sent_step *out,
                         const struct store_step_reply *r)
{
    for (size_t i = 0; i < out->nsent; i++) {
        struct held *h = out->sent[i][0] != '\0' ? held_find(&s->held, out->sent[i]) : NULL;

        if (h == NULL || h->state != HELD_SENT)
            continue;
        if (r->answers[i] == STORE_FAILED) {
            log_err("event=result-refused job=%s queue=%s reason=\"%s\"", h->job.id, h->job.queue,
                    r->answer_texts[i]);
            held_refused(&s->held, h);
            h->not_before = mono_add_ms(now, RETRY_MAX_MS);
            /* Its queue must not pile up results that nobody takes. */
            if (!h->is_refused)
                queues_took(s->queues, h->job.queue);
            h->is_refused = true;
            continue;
        }
        if (r->answers[i] == STORE_SETTLED)
            log_warn("event=late-result-refused job=%s queue=%s start=%lld reason=\"settled "
                     "without it\"",
                     h->job.id, h->job.queue, (long long)h->job.start);
        sched_forget(s, h);
    }
}

static void take_cancels(struct sched *s, const struct store_step_reply *r)
{
    for (size_t i = 0; i < r->ncancels; i++) {
        struct held *h = held_find(&s->held, r->cancels[i]);

        if (h != NULL && h->is_in_line) {
            release(s, h, 0, "cancelled"); /* which ends it */
            continue;
        }
        if (h == NULL || h->is_killed || h->state != HELD_RUNNING)
            continue;
        log_notice("event=cancel job=%s queue=%s", h->job.id, h->job.queue);
        h->is_killed = true;
        s->ops->kill(s->ctx, h, false);
    }
}

/* When a gate wants a step: due at once when this one had to stop looking past shut gates. */
static void take_timer(struct sched *s, struct mono now, const struct store_step_reply *r)
{
    int64_t in_us = r->timer_ms * 1000 - r->now_us;

    s->gate_at = MONO_NEVER;
    if (r->timer_ms != STORE_HEAD_NONE && in_us <= GATE_MAX_US)
        s->gate_at = mono_add_us(now, in_us > 0 ? in_us : 0);
}

/* now_us: what Redis' clock shows now. A head that could have been claimed ahead and was not is
 * none that may be: it is asked for again when it is due, no earlier. */
static void tell_heads(struct sched *s, struct mono now, int64_t now_us,
                       const struct sent_step *out, const struct store_step_reply *r)
{
    int64_t heads[ROOMS_MAX];

    for (size_t i = 0; i < out->nrooms; i++) {
        int64_t in_us =
            r->heads[i] > 0 && r->heads[i] <= DUE_LATEST_MS ? r->heads[i] * 1000 - now_us : -1;

        heads[i] = r->heads[i];
        if (in_us > 0 && in_us <= s->conf.ahead_us)
            heads[i] += s->conf.ahead_us / 1000;
        /* Due by what we take Redis' clock for, and not by itself: not again at once. */
        if (out->rooms[i].room > 0 && in_us <= 0 && r->heads[i] > r->now_us / 1000 &&
            r->heads[i] <= DUE_LATEST_MS)
            heads[i] = now_us / 1000 + 1;
    }
    queues_heads(s->queues, out->rooms, heads, out->nrooms, now_us, now);
}

/* A due queue that gave nothing (it only buried) is let alone for a moment. Most that a sweep names
 * are not due: they need not be looked for. */
static void take_heads(struct sched *s, struct mono now, int64_t now_us,
                       const struct sent_step *out, const struct store_step_reply *r)
{
    tell_heads(s, now, now_us, out, r);
    for (size_t i = 0; r->nclaims == 0 && !sched_is_due(s->gate_at, now) && i < out->nrooms; i++) {
        if (out->rooms[i].room > 0 && r->heads[i] >= 0 && r->heads[i] <= r->now_us / 1000)
            queues_defer(s->queues, out->rooms[i].queue, now, NOTHING_MS);
    }
}

static bool is_fetching(const struct sched *s)
{
    for (const struct held *h = s->held.first; h != NULL; h = h->next) {
        if (awaits_payload(h))
            return true;
    }
    return false;
}

static bool are_plain(const struct store_step_reply *r)
{
    for (size_t i = 0; i < r->nclaims; i++) {
        if (!r->claims[i].is_short)
            return false;
    }
    return true;
}

void sched_on_step(struct sched *s, struct mono now, const struct store_step_reply *r)
{
    const struct sent_step *out = &s->steps[s->step_first];
    int64_t now_us;

    if (s->steps_out == 0)
        return;
    s->step_first = (s->step_first + 1) % STORE_STEPS_MAX;
    s->steps_out--;
    queues_answered(s->queues, out->rooms, out->nrooms);
    if (sched_is_not_ok(s, now, r->status))
        return;
    now_us = server_clock_hear(&s->clock, now, r->now_us);
    take_answers(s, now, out, r);
    take_timer(s, now, r);
    take_heads(s, now, now_us, out, r);
    for (size_t i = 0; i < r->nerrors; i++) {
        log_err("event=queue-broken queue=%s reason=\"%s\"", r->errors[2 * i],
                r->errors[2 * i + 1]);
        queues_failed(s->queues, r->errors[2 * i], now);
    }
    for (size_t i = 0; i < r->nclaims; i++)
        take_claim(s, now, &r->claims[i], now_us);
    if (!are_plain(r))
        prefetch_rest(&s->prefetch, now);
    sched_start_line(s, now);
    s->is_more = r->nclaims > 0 && r->nclaims == out->max;
    take_cancels(s, r);
    sched_solo_told(s, now, out, r->solo_due);
    if (!is_fetching(s))
        s->retry_ms = 0;
    sched_go_on(s, now);
}

/* A second one overlaps with the first: what it says and takes must not depend on what that one
 * brings. Sweeps, gates and wakes wait until none is under way, and none is sent before them. Few
 * ends wait too: they travel with those that come meanwhile, for a fraction of a millisecond. */
static bool may_overlap(const struct sched *s, bool alone, bool claims, bool results)
{
    if (s->steps_out == STORE_STEPS_MAX || alone || s->step_wanted)
        return false;
    return (results && (s->held.ended >= OVERLAP_ENDS || s->held.running == 0 || s->is_hurried)) ||
           (claims && s->is_more);
}

/* More than half of what may wait here for a place does: the next claims are not needed yet, and
 * the ends travel with them. No end waits for longer than those in line do, which is not long. */
static bool is_stocked(const struct sched *s, struct mono now)
{
    return s->held.waiting > 0 && !s->is_hurried && !s->step_wanted &&
           s->held.ended < OVERLAP_ENDS &&
           2 * s->held.waiting > prefetch_most(&s->prefetch, s->conf.places, now);
}

void sched_plan_step(struct sched *s, struct mono now)
{
    unsigned free = sched_room(s, now), taken = promised(s);
    unsigned places = free > taken ? free - taken : 0;
    bool claims =
        places > 0 && sched_is_due(queues_next(s->queues), mono_add_us(now, s->conf.ahead_us));
    bool results = held_has_results(&s->held, now);
    bool sweep = s->sweeping || sched_is_due(s->sweep_at, now);
    bool gate = sched_is_due(s->gate_at, now);

    if (!sweep && !gate && is_stocked(s, now))
        return;
    if (s->steps_out > 0 ? !may_overlap(s, sweep || gate, claims, results)
                         : !(results || claims || sweep || gate || s->step_wanted))
        return;
    if (sweep && !s->sweeping) {
        s->sweep_is_whole = s->sweep_cursor == 0;
        s->sweep_at = mono_add_ms(now, SCHED_SWEEP_MS * 9 / 10 +
                                           s->ops->random(s->ctx) % (SCHED_SWEEP_MS / 5));
        sched_look(s, now);
        if (s->state != READY)
            return;
    }
    /* What the opened gate grants is claimed in the same call, and nobody has to be woken. */
    if (gate)
        queues_wake_gated(s->queues);
    send_step(s, now, places, sweep);
}
