/* What the keeper does with each answer of Redis. */
#include "cli/hold/keeper_answers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/hold/keeper_priv.h"

/* False: this is not the answer that we wait for. */
static bool take(struct keeper *k, enum call call)
{
    if (k->out != call || k->stage == GONE)
        return false;
    k->out = CALL_NONE;
    if (k->trouble.call == call)
        k->trouble = (struct trouble){.class = ERROR_CLASS_NONE};
    return true;
}

void keeper_on_registered(struct keeper *k, struct mono now, const struct store_register_reply *r)
{
    if (!take(k, CALL_REGISTER))
        return;
    session_registered(&k->me, now, r->epoch);
    k->acked = k->sent;
    k->redis_ms = r->now_us / 1000;
    k->redis_at = now;
    k->beat_at = mono_add_ms(k->sent, KEEPER_BEAT_MS);
    k->wants_permit = true;
    peers_registered(k->peers, now, r->peers, r->npeers);
    keeper_on_timer(k, now);
}

void keeper_on_limit(struct keeper *k, struct mono now, const char *limit)
{
    size_t n = strlen(limit);

    if (!take(k, CALL_ASK_LIMIT))
        return;
    k->knows_limit = true;
    k->is_kept = n >= 4 && strcmp(limit + n - 4, "keep") == 0;
    keeper_on_timer(k, now);
}

void keeper_on_beat(struct keeper *k, struct mono now, const struct store_beat_reply *r)
{
    if (!take(k, CALL_BEAT))
        return;
    if (r->status != STORE_OK) {
        keeper_forgotten(k, r->status == STORE_GIVEN_UP);
    } else {
        session_accepted(&k->me, now);
        k->acked = k->sent;
        k->beat_at = mono_add_ms(k->sent, KEEPER_BEAT_MS);
        peers_beat(k->peers, now, r->peers, r->npeers);
        if (k->stage == GRANTED)
            keeper_try_to_start(k, now);
        k->wants_permit = true;
        k->wants_beats = k->stage == OUTSIDE && k->is_patient;
    }
    keeper_on_timer(k, now);
}

/* The answer to ENTER while the command runs and Redis had not known of its permit. */
static void regain(struct keeper *k, bool is_granted, int64_t fence)
{
    bool was_there = k->is_unsure && (k->conf.is_sem || fence == k->fence);

    if (is_granted && was_there) {
        k->is_regaining = k->is_unsure = false;
    } else if (is_granted) {
        k->is_regaining = k->is_unsure = false;
        k->ops->tell(k->ctx, k->conf.is_sem
                                 ? "Redis had lost the permit; it is held again"
                                 : "Redis had lost the lock; it is held again, but with another "
                                   "fence: what checks LATER_FENCE refuses the command now");
    } else if (k->is_kept && k->is_unsure) {
        k->is_unsure = false;
        k->ops->tell(k->ctx, KEEPER_GOES_ON);
    } else if (!k->is_kept) {
        keeper_lose(k, "Redis had lost the permit, and another has it now: the command is killed");
    }
}

void keeper_on_entered(struct keeper *k, struct mono now, const struct gate_enter_reply *r)
{
    if (!take(k, CALL_ENTER))
        return;
    if (r->status != STORE_OK) {
        keeper_forgotten(k, r->status == STORE_GIVEN_UP);
    } else if (k->stage == INSIDE && k->is_regaining) {
        regain(k, r->is_granted, r->fence);
    } else if (k->stage == OUTSIDE && r->is_granted) {
        session_accepted(&k->me, now);
        k->stage = GRANTED;
        k->may_run = false;
        /* A semaphore has no fence. Use the epoch, since the guard finds processes by a fence. */
        k->fence = r->fence != 0 ? r->fence : k->me.epoch;
        if (!k->conf.is_once)
            keeper_start_or_beat(k, now);
    } else if (k->stage == OUTSIDE && k->conf.wait_ms == 0 && !k->is_patient) {
        keeper_give_up(k, now);
    }
    keeper_on_timer(k, now);
}

/* How old a beat is, ago_ms by Redis' clock. That clock may have been set by step_ms since we
 * registered, before or after the beat: believe what makes the beat more recent. A beat far in the
 * future was also made before the clock was set. It tells nothing and counts as old. */
static int64_t age_ms(int64_t ago_ms, int64_t step_ms)
{
    int64_t as_it_is = llabs(ago_ms), before_the_step = llabs(ago_ms - step_ms);

    return as_it_is < before_the_step ? as_it_is : before_the_step;
}

/* The age of the oldest beat of all workers. */
static int64_t unheard_ms(const struct keeper *k, struct mono now, const struct gate_beats_reply *r)
{
    int64_t step_ms = r->now_ms - k->redis_ms - mono_until_us(k->redis_at, now) / 1000;
    int64_t oldest_ms = 0;

    for (size_t i = 0; i < r->n; i++) {
        int64_t ms = r->beats_ms[i] > 0 ? age_ms(r->now_ms - r->beats_ms[i], step_ms) : 0;

        if (ms > oldest_ms)
            oldest_ms = ms;
    }
    return oldest_ms;
}

/* A holder may be gone. Who does not wait is only told so. */
static void tell_unheard(struct keeper *k, int64_t ms)
{
    char text[200];

    (void)snprintf(text, sizeof(text),
                   "it is taken, and a worker that may hold it has been silent for %lld s: a "
                   "running laterd takes its permit back, and so does a command that waits (-w 40)",
                   (long long)(ms / 1000));
    k->ops->tell(k->ctx, text);
}

void keeper_on_beats(struct keeper *k, struct mono now, const struct gate_beats_reply *r)
{
    int64_t ms = unheard_ms(k, now, r);

    if (!take(k, CALL_ASK_BEATS))
        return;
    if (k->stage == OUTSIDE && ms < KEEPER_STALE_MS) {
        keeper_leave(k, now, KEEPER_BUSY);
    } else if (k->stage == OUTSIDE && keeper_is_hurried(k)) {
        tell_unheard(k, ms);
        keeper_leave(k, now, KEEPER_BUSY);
    } else if (k->stage == OUTSIDE && !k->is_patient) {
        k->is_patient = k->wants_permit = true;
        k->give_up_at = mono_add_ms(now, KEEPER_PATIENCE_MS);
    }
    keeper_on_timer(k, now);
}

void keeper_on_done_asked(struct keeper *k, struct mono now, bool is_done)
{
    if (!take(k, CALL_ASK_DONE))
        return;
    k->may_run = !is_done;
    if (k->stage == GRANTED && is_done)
        keeper_leave(k, now, KEEPER_REPEATED);
    else if (k->stage == GRANTED)
        keeper_start_or_beat(k, now);
    keeper_on_timer(k, now);
}

void keeper_on_done_told(struct keeper *k, struct mono now)
{
    if (!take(k, CALL_TELL_DONE))
        return;
    k->is_success = false;
    keeper_on_timer(k, now);
}

void keeper_on_cleared(struct keeper *k, struct mono now, int64_t victim, bool is_clear)
{
    peers_cleared(k->peers, victim, is_clear);
    keeper_on_timer(k, now);
}

void keeper_on_reaped(struct keeper *k, struct mono now, enum store_reap status, int64_t moved)
{
    if (!take(k, CALL_REAP))
        return;
    peers_reaped(k->peers, status, moved);
    k->wants_permit = true;
    k->wants_beats = k->stage == OUTSIDE && k->is_patient;
    keeper_on_timer(k, now);
}

void keeper_on_left(struct keeper *k, struct mono now, bool is_clean)
{
    (void)now;
    if (!take(k, CALL_LEAVE))
        return;
    if (!is_clean && k->end == KEEPER_RAN && !k->is_kept)
        k->ops->tell(k->ctx, "Redis did not know of the permit any more when the command ended");
    keeper_be_gone(k);
}

/* Redis refused to keep that the command is done. If that may pass, ask again while there is time,
 * also for giving the permit back then. */
static void not_told(struct keeper *k, struct mono now, enum error_class class)
{
    bool is_passing = class == ERROR_CLASS_WAIT || class == ERROR_CLASS_FULL;

    if (is_passing && mono_before(mono_add_ms(now, 3 * KEEPER_RETRY_MS), k->leave_at))
        return;
    k->ops->tell(k->ctx, KEEPER_NOT_TOLD);
    k->is_success = false;
}

/* Remember why there is no permit, or no beat. Who waits longer than a moment says what for, once.
 */
static void note(struct keeper *k, enum call call, enum error_class class, const char *text)
{
    struct trouble *t = &k->trouble;
    char line[400];

    if (call == CALL_REAP || call == CALL_LEAVE)
        return;
    t->class = class;
    t->call = call;
    t->times++;
    (void)snprintf(t->text, sizeof(t->text), "%s", text);
    if (k->stage >= INSIDE || k->conf.wait_ms == 0 || t->times != 2)
        return;
    (void)snprintf(line, sizeof(line), "waits until Redis accepts it: %s", text);
    k->ops->tell(k->ctx, line);
}

/* The address may lead to another server now, or the library be loaded there. Who does not wait
 * tries that once. */
static bool must_relink(const struct keeper *k, enum error_class class)
{
    if (class != ERROR_CLASS_MOVED && class != ERROR_CLASS_LIBRARY)
        return false;
    return k->stage >= INSIDE || k->conf.wait_ms != 0 || k->trouble.times < 2;
}

/* No permit was got by this call, and it is not worth waiting for one. */
static bool is_final(const struct keeper *k, enum call call, enum error_class class)
{
    if (k->stage >= INSIDE || call == CALL_REAP || call == CALL_ASK_BEATS)
        return false;
    return k->conf.wait_ms == 0 || (class != ERROR_CLASS_WAIT && class != ERROR_CLASS_FULL);
}

/* Redis refused the question under way. */
void keeper_on_error(struct keeper *k, struct mono now, enum error_class class, const char *text)
{
    enum call call = k->out;

    if (k->stage == GONE)
        return;
    k->out = CALL_NONE;
    k->retry_at = mono_add_ms(now, KEEPER_RETRY_MS);
    note(k, call, class, text);
    if (must_relink(k, class)) {
        k->ops->relink(k->ctx, class, text);
        return;
    }
    if (call == CALL_LEAVE) {
        if (k->end == KEEPER_RAN)
            k->ops->tell(k->ctx, KEEPER_NOT_LEFT);
        keeper_be_gone(k);
        return;
    }
    if (call == CALL_TELL_DONE)
        not_told(k, now, class);
    if (call == CALL_REAP)
        peers_refused(k->peers);
    else
        peers_trouble(k->peers);
    if (is_final(k, call, class))
        keeper_fail(k, now, class, text);
    else if (call == CALL_BEAT)
        k->beat_at = k->retry_at;
    else if (call == CALL_ASK_BEATS && k->stage == OUTSIDE)
        keeper_leave(k, now, KEEPER_BUSY);
    else if (call == CALL_ENTER && k->stage == INSIDE && class == ERROR_CLASS_CALL && !k->is_kept)
        keeper_lose(
            k, "the permit is lost, and Redis refuses to give it again: the command is killed");
    else if (call == CALL_ENTER)
        k->wants_permit = true;
    keeper_on_timer(k, now);
}
