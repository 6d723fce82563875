/*
 * What a sync brings and takes: claims, payloads, ends, cancels.
 */
#include "sched/sched_priv.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"

#define HOST_FIRST_MS 100 /* wait after the host was ill; doubles with each, up to HOST_MAX_MS */
#define HOST_MAX_MS 10000
#define GROW_MS 5000
#define NOTHING_MS 10        /* a due queue that gave no job is asked again after this */
#define STILL_ENDING_MS 1000 /* a job whose former run still ends here goes back for this long */
#define BURIED_MOST 10000    /* dead jobs that a queue keeps when the worker buries one unread */

static const struct verdict_data NO_DATA;

static struct verdict bury_for(const char *why)
{
    struct verdict v = {.verb = STORE_BURY, .amount = BURIED_MOST, .is_error = true};

    text_copy(v.reason, sizeof(v.reason), why);
    return v;
}

/* Its record cannot be read. */
static void bury_claim(struct sched *s, struct job *job, const char *queue, const char *why)
{
    struct verdict v = bury_for(why);

    text_copy(job->queue, sizeof(job->queue), queue);
    held_end(&s->held, held_add(&s->held, job), &v, &NO_DATA);
}

/* What a claim changes for the claims that follow. */
static void note_claim(struct sched *s, struct mono now, const struct held_job *h)
{
    queues_claimed(s->queues, h->job.queue);
    if (queues_is_fair(s->queues, h->job.queue))
        prefetch_short(&s->prefetch, now);
    if (h->is_gated)
        queues_gated(s->queues, h->job.queue);
    session_saw(&s->me, h->job.fence);
}

static void take_claim(struct sched *s, struct mono now, const struct store_claim *c,
                       int64_t now_us)
{
    struct err err = ERR_INIT;
    struct job job = {.start = c->start,
                      .attempt = c->attempt,
                      .crashes = c->crashes,
                      .fence = c->fence,
                      .is_guarded = c->is_guarded,
                      .due = c->due};
    struct held_job *h;

    text_copy(job.id, sizeof(job.id), c->id);
    if (job.due.ms < 0 || job.due.ms > STORE_DUE_LATEST_MS)
        job.due.ms = now_us / 1000;
    /* A job that this worker holds with an earlier start was taken from it before. */
    sched_lose(s, job.id);
    if (job_parse(&job, c->record, c->record_len, &err) < 0) {
        bury_claim(s, &job, c->queue, err.text);
        return;
    }
    h = held_add(&s->held, &job);
    h->claimed_at = now;
    h->late_us = now_us - job.due.ms * 1000;
    h->is_gated = c->is_gated;
    h->is_small = c->is_small;
    if (c->crashes >= 2)
        held_set_solo(&s->held, h);
    note_claim(s, now, h);
    if (held_find_lost(&s->held, h->job.id) != NULL)
        sched_release(s, h, STILL_ENDING_MS, "its former run still ends here");
    else
        held_move(&s->held, h, HELD_AWAITS_PLACE);
}

void sched_on_fetched(struct sched *s, struct mono now, const char *id, const char *payload,
                      size_t n)
{
    struct held_job *h = held_find(&s->held, id);

    if (h == NULL || h->state != HELD_FETCHING)
        return;
    if (payload == NULL) {
        struct verdict v;
        char why[64];

        (void)snprintf(why, sizeof(why), "its payload is missing (the key big:%s)", id);
        v = bury_for(why);
        sched_end_with(s, h, &v);
    } else {
        h->job.payload = mem_dup(payload, n);
        h->job.payload_len = n;
        sched_start(s, now, h);
    }
    s->again_ms = 0;
    sched_go_on(s, now);
}

/*
 * Many jobs meet the same shortage: it counts once until the wait is over. After it half as many
 * run at once, and one more every GROW_MS in which there is none: additive increase, multiplicative
 * decrease (Chiu and Jain, 1989), so that a host that is too small for its places goes on at its
 * own pace. The first job that ends without a shortage resets the wait.
 */
static void take_host(struct sched *s, struct mono now, bool is_fault)
{
    unsigned n = (unsigned)(s->held.unended - s->held.nawaiting), places = sched_places(s);

    if (sched_is_host_ill(s, now))
        return;
    if (is_fault) {
        n = n < places ? n : places;
        s->borne = n > 1 ? n / 2 : 1;
        s->grow_at = mono_add_ms(now, GROW_MS);
        s->host_ms = wait_next_ms(s->host_ms, HOST_FIRST_MS, HOST_MAX_MS);
        s->host_at = mono_add_ms(now, s->host_ms);
        return;
    }
    s->host_ms = 0;
    s->host_at = MONO_NEVER;
    if (s->borne < s->conf.places && sched_is_due(s->grow_at, now)) {
        s->borne++;
        s->grow_at = mono_add_ms(now, GROW_MS);
    }
}

void sched_job_ended(struct sched *s, struct mono now, const char *id, const struct verdict *v,
                     const struct verdict_data *data)
{
    struct held_job *h = held_in_pool(&s->held, id);

    if (h == NULL)
        return;
    take_host(s, now, v->is_host_ill);
    if (h->state == HELD_LOST) {
        log_warn(
            "event=late-result-dropped job=%s queue=%s start=%lld reason=\"not held any more\"",
            h->job.id, h->job.queue, (long long)h->job.start);
        sched_forget(s, h);
    } else {
        queues_ended(s->queues, h->job.queue);
        if (v->verb != STORE_RELEASE)
            prefetch_ran(&s->prefetch, mono_until_us(h->started_at, now));
        /* The sync that takes its end may let in another job of the queue: name the queue in it. */
        if (h->is_gated) {
            queues_wake(s->queues, h->job.queue);
            s->is_hurried = true;
        }
        held_end(&s->held, h, v, data);
    }
}

void sched_jobs_ended(struct sched *s, struct mono now)
{
    sched_solo_seek(s);
    sched_go_on(s, now);
}

void sched_job_progress(struct sched *s, const char *id, const char *text)
{
    struct held_job *h = held_find(&s->held, id);

    if (h == NULL || h->state != HELD_RUNNING)
        return;
    /* The next sync carries it; one is sent every second. */
    text_copy(h->progress, sizeof(h->progress), text);
    h->has_progress = true;
}

void sched_job_checkpoint(struct sched *s, struct mono now, const char *id, const char *text)
{
    struct held_job *h = held_find(&s->held, id);

    if (h == NULL || h->state != HELD_RUNNING)
        return;
    held_note_checkpoint(&s->held, h, text);
    s->checkpoint_at = mono_min(s->checkpoint_at, h->checkpoint_at);
    sched_go_on(s, now);
}

/* ---- the answer to a sync */

/* Redis cannot add the children of a job, so its attempt has failed. */
static void refuse_children(struct sched *s, struct held_job *h, const char *why)
{
    struct verdict v;

    s->ops->refuse(s->ctx, &h->job, why, &v);
    log_warn("event=children-refused job=%s queue=%s outcome=%s reason=\"%s\"", h->job.id,
             h->job.queue, v.verb == STORE_RETRY ? "retry" : "dead", why);
    held_children_refused(&s->held, h, &v);
    s->is_hurried = true;
}

/* If it could not be written, it is sent again with a later sync. */
static void take_checkpoint_answer(struct sched *s, struct held_job *h, enum store_answer answer,
                                   const char *text)
{
    if (answer != STORE_LEFT && answer != STORE_UNWRITTEN)
        return;
    if (answer == STORE_UNWRITTEN)
        log_err("event=checkpoint-refused job=%s queue=%s reason=\"%s\"", h->job.id, h->job.queue,
                text);
    held_resend_checkpoint(&s->held, h);
    s->checkpoint_at = mono_min(s->checkpoint_at, h->checkpoint_at);
}

static void take_answers(struct sched *s, struct mono now, const struct sent_sync *out,
                         const struct store_sync_reply *r)
{
    for (size_t i = 0; i < out->nsent; i++) {
        struct held_job *h = held_find(&s->held, out->sent[i]);

        if (h == NULL || out->verbs[i] == STORE_PROGRESS)
            continue;
        if (out->verbs[i] == STORE_CHECKPOINT) {
            take_checkpoint_answer(s, h, r->answers[i], r->answer_texts[i]);
            continue;
        }
        if (h->state != HELD_SENT)
            continue;
        if (r->answers[i] == STORE_REFUSED) {
            refuse_children(s, h, r->answer_texts[i]);
            continue;
        }
        if (r->answers[i] == STORE_LEFT) {
            held_leave(&s->held, h);
            s->is_hurried = true;
            continue;
        }
        if (r->answers[i] == STORE_UNWRITTEN) {
            log_err("event=result-refused job=%s queue=%s reason=\"%s\"", h->job.id, h->job.queue,
                    r->answer_texts[i]);
            held_put_off(&s->held, h, mono_add_ms(now, AGAIN_MAX_MS));
            /* It still counts for the max_at_once of its queue until Redis takes the result: a
             * queue must not pile up results that nobody takes. */
            if (!h->is_unwritten)
                queues_took(s->queues, h->job.queue);
            h->is_unwritten = true;
            continue;
        }
        if (r->answers[i] == STORE_NOT_HELD)
            log_warn("event=late-result-refused job=%s queue=%s start=%lld reason=\"settled "
                     "without it\"",
                     h->job.id, h->job.queue, (long long)h->job.start);
        sched_forget(s, h);
    }
}

/* Some of the jobs that were claimed go on where an earlier attempt stopped. */
static void take_checkpoints(struct sched *s, const struct store_sync_reply *r)
{
    for (size_t i = 0; i < r->ncheckpoints; i++) {
        struct held_job *h = held_find(&s->held, r->checkpoints[2 * i]);

        if (h != NULL && held_is_unstarted(h) && h->job.checkpoint == NULL)
            h->job.checkpoint = mem_strdup(r->checkpoints[2 * i + 1]);
    }
}

static void take_cancels(struct sched *s, const struct store_sync_reply *r)
{
    for (size_t i = 0; i < r->ncancels; i++) {
        struct held_job *h = held_find(&s->held, r->cancels[i]);

        if (h != NULL && h->state == HELD_AWAITS_PLACE) {
            sched_release(s, h, 0, "cancelled"); /* Redis ends a cancelled job that is released */
            continue;
        }
        if (h == NULL || h->is_killed || h->state != HELD_RUNNING)
            continue;
        log_notice("event=cancel job=%s queue=%s", h->job.id, h->job.queue);
        h->is_killed = true;
        s->ops->kill(s->ctx, h, false);
    }
}

/* now_us: what Redis' clock shows now. A job that was due soon enough to be claimed ahead, and was
 * not, has to be claimed at its time: its queue is asked again when it is due, not before. */
static void tell_heads(struct sched *s, struct mono now, int64_t now_us,
                       const struct sent_sync *out, const struct store_sync_reply *r)
{
    int64_t heads[SYNC_NAMES];

    for (size_t i = 0; i < out->nrooms; i++) {
        int64_t in_us = r->heads[i] > 0 && r->heads[i] <= STORE_DUE_LATEST_MS
                            ? r->heads[i] * 1000 - now_us
                            : -1;

        heads[i] = r->heads[i];
        if (in_us > 0 && in_us <= s->conf.ahead_us)
            heads[i] += s->conf.ahead_us / 1000;
        /* Due by our estimate of Redis' clock, and not yet by that clock: ask again in 1 ms. */
        if (out->rooms[i].room > 0 && in_us <= 0 && r->heads[i] > r->now_us / 1000 &&
            r->heads[i] <= STORE_DUE_LATEST_MS)
            heads[i] = now_us / 1000 + 1;
    }
    queues_heads(s->queues, out->rooms, heads, out->nrooms, now_us, now);
}

/* A due queue that gave no job (Redis only buried some) is not asked again at once. */
static void take_heads(struct sched *s, struct mono now, int64_t now_us,
                       const struct sent_sync *out, const struct store_sync_reply *r)
{
    tell_heads(s, now, now_us, out, r);
    for (size_t i = 0; r->nclaims == 0 && !sched_is_due(s->gate_at, now) && i < out->nrooms; i++) {
        if (out->rooms[i].room > 0 && r->heads[i] >= 0 && r->heads[i] <= r->now_us / 1000)
            queues_defer(s->queues, out->rooms[i].queue, now, NOTHING_MS);
    }
}

static bool is_fetching(const struct sched *s)
{
    for (const struct held_job *h = s->held.first; h != NULL; h = h->next) {
        if (h->state == HELD_FETCHING)
            return true;
    }
    return false;
}

/* May more jobs be claimed than there are places? Not while the claimed jobs hold gates, for which
 * others wait, or have a large payload. */
static bool may_wait(const struct store_sync_reply *r)
{
    for (size_t i = 0; i < r->nclaims; i++) {
        if (r->claims[i].is_gated || !r->claims[i].is_small)
            return false;
    }
    return true;
}

void sched_on_sync(struct sched *s, struct mono now, const struct store_sync_reply *r)
{
    const struct sent_sync *out = &s->syncs[s->sync_first];
    int64_t now_us;

    if (s->syncs_out == 0)
        return;
    s->sync_first = (s->sync_first + 1) % STORE_SYNCS_MAX;
    s->syncs_out--;
    queues_answered(s->queues, out->rooms, out->nrooms);
    if (sched_is_not_ok(s, now, r->status))
        return;
    now_us = server_clock_note_time(&s->clock, out->asked, now, r->now_us);
    take_answers(s, now, out, r);
    s->gate_at = sched_gate_at(now, r->now_us, r->timer_ms);
    take_heads(s, now, now_us, out, r);
    for (size_t i = 0; i < r->nerrors; i++) {
        log_err("event=queue-broken queue=%s reason=\"%s\"", r->errors[2 * i],
                r->errors[2 * i + 1]);
        queues_failed(s->queues, r->errors[2 * i], now);
    }
    for (size_t i = 0; i < r->nclaims; i++)
        take_claim(s, now, &r->claims[i], now_us);
    take_checkpoints(s, r);
    if (!may_wait(r))
        prefetch_rest(&s->prefetch, now);
    sched_fill_places(s, now);
    s->is_more = r->nclaims > 0 && r->nclaims == out->max;
    take_cancels(s, r);
    sched_solo_told(s, now, out, r->solo_due);
    if (!is_fetching(s))
        s->again_ms = 0;
    sched_go_on(s, now);
}
