#include "cli/hold/keeper.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cli/hold/keeper_priv.h"

#define LOST_LEAVE_MS 500 /* as KEEPER_LEAVE_MS, if there is no permit, or Redis refuses */

static bool is_due(struct mono at, struct mono now)
{
    return at.us != INT64_MAX && !mono_before(now, at);
}

struct keeper *keeper_new(const struct keeper_conf *conf, const struct keeper_ops *ops, void *ctx,
                          struct mono now)
{
    struct keeper *k = mem_new(sizeof(*k));

    k->conf = *conf;
    k->ops = ops;
    k->ctx = ctx;
    k->peers = peers_new(ops->is_gone, ctx);
    k->beat_at = k->kill_at = k->ttl_at = k->leave_at = k->away_at = MONO_NEVER;
    k->retry_at = now;
    k->give_up_at = conf->wait_ms > 0 ? mono_add_ms(now, conf->wait_ms) : MONO_NEVER;
    return k;
}

void keeper_free(struct keeper *k)
{
    if (k == NULL)
        return;
    peers_free(k->peers);
    free(k);
}

/* ---- the way out */

void keeper_be_gone(struct keeper *k)
{
    k->stage = GONE;
    k->out = CALL_NONE;
    k->ops->arm(k->ctx, MONO_NEVER);
    k->ops->over(k->ctx, k->end);
}

void keeper_leave(struct keeper *k, struct mono now, enum keeper_end end)
{
    k->end = end;
    k->stage = ENDING;
    k->retry_at = now;
    k->leave_at = mono_add_ms(now, end == KEEPER_LOST || end == KEEPER_FAILED ? LOST_LEAVE_MS
                                                                              : KEEPER_LEAVE_MS);
}

void keeper_fail(struct keeper *k, struct mono now, enum error_class class, const char *text)
{
    k->ops->fail(k->ctx, class, text);
    keeper_leave(k, now, KEEPER_FAILED);
}

void keeper_fail_by_trouble(struct keeper *k, struct mono now)
{
    if (k->trouble.class == ERROR_CLASS_NONE)
        keeper_fail(k, now, ERROR_CLASS_LINK, "Redis did not answer in time");
    else
        keeper_fail(k, now, k->trouble.class, k->trouble.text);
}

static void press(struct keeper *k, int sig)
{
    k->pressed = sig;
    k->ops->kill(k->ctx, sig);
}

void keeper_lose(struct keeper *k, const char *why)
{
    if (!k->is_lost)
        k->ops->tell(k->ctx, why);
    k->is_lost = true;
    if (k->pressed != SIGKILL)
        press(k, SIGKILL);
}

/* ---- inside */

void keeper_try_to_start(struct keeper *k, struct mono now)
{
    if (k->conf.is_once && !k->may_run)
        return;
    if (mono_before(now, k->me.guarded_from)) {
        k->beat_at = mono_min(k->beat_at, k->me.guarded_from);
        return;
    }
    if (!k->is_kept && !k->ops->admits(k->ctx, k->fence))
        return;
    k->stage = INSIDE;
    if (k->conf.ttl_ms > 0)
        k->ttl_at = mono_add_ms(now, k->conf.ttl_ms);
    if (k->ops->start(k->ctx, k->me.epoch, k->fence, !k->is_kept) < 0)
        keeper_leave(k, now, KEEPER_RAN);
}

void keeper_start_or_beat(struct keeper *k, struct mono now)
{
    keeper_try_to_start(k, now);
    if (k->stage == GRANTED && !mono_before(now, k->me.guarded_from))
        k->beat_at = now;
}

void keeper_on_end(struct keeper *k, struct mono now, enum keeper_command how)
{
    bool was_killed = how == KEEPER_KILLED_BY_GUARD;
    enum keeper_end end = KEEPER_RAN;

    if (k->stage != INSIDE)
        return;
    if (was_killed && !k->is_lost)
        k->ops->tell(k->ctx, "the permit was lost: no beat was acknowledged for 15 s, so its guard "
                             "killed the command");
    if (was_killed || k->is_lost)
        end = KEEPER_LOST;
    else if (k->pressed != 0)
        end = KEEPER_OVERRAN;
    /* Even if the command ended in order, nothing that it left may run beside the next holder. */
    if (end != KEEPER_RAN)
        k->ops->kill(k->ctx, SIGKILL);
    k->is_success = k->conf.is_once && end == KEEPER_RAN && how == KEEPER_SUCCEEDED;
    keeper_leave(k, now, end);
    keeper_on_timer(k, now);
}

void keeper_forgotten(struct keeper *k, bool is_given_up)
{
    peers_trouble(k->peers);
    session_lost(&k->me);
    k->wants_beats = false;
    if (k->stage == GRANTED)
        k->stage = OUTSIDE;
    if (k->stage != INSIDE)
        return;
    if (!k->is_kept && is_given_up)
        keeper_lose(k, "this program was given up, the permit may be another's: the command is "
                       "killed");
    else if (k->is_kept && (!k->is_regaining || k->is_unsure))
        k->ops->tell(k->ctx, KEEPER_GOES_ON);
    k->is_regaining = true;
    k->is_unsure = false;
}

static void press_softly(struct keeper *k, struct mono kill_at, const char *why)
{
    k->ops->tell(k->ctx, why);
    k->kill_at = kill_at;
    press(k, SIGTERM);
}

/* No beat was acknowledged for 12 s: say whether Redis was silent or refused them. */
static void press_unheard(struct keeper *k)
{
    bool is_silent = k->trouble.class == ERROR_CLASS_NONE || k->trouble.class == ERROR_CLASS_LINK;
    char text[400];

    (void)snprintf(text, sizeof(text),
                   "Redis %s for 12 s: the command gets TERM, and KILL after 3 s more, before "
                   "others take its permit%s%s",
                   is_silent ? "did not answer" : "has refused the beats", is_silent ? "" : ": ",
                   is_silent ? "" : k->trouble.text);
    k->is_lost = true;
    press_softly(k, mono_add_ms(k->acked, KEEPER_KILL_MS), text);
}

/* End the command after --ttl, or if the link does not answer, while there is time for an orderly
 * end. */
static void watch_command(struct keeper *k, struct mono now)
{
    if (!k->is_kept && k->pressed == 0 && is_due(mono_add_ms(k->acked, KEEPER_TERM_MS), now))
        press_unheard(k);
    if (k->pressed == 0 && is_due(k->ttl_at, now))
        press_softly(k, mono_add_ms(now, KEEPER_TTL_KILL_MS), KEEPER_OVERRUN_TEXT);
    if (k->pressed == SIGTERM && is_due(k->kill_at, now))
        press(k, SIGKILL);
}

void keeper_on_signal(struct keeper *k, struct mono now, int sig)
{
    if (k->stage == INSIDE) {
        k->ops->kill(k->ctx, sig);
    } else if (k->stage == ENDING) {
        keeper_be_gone(k);
    } else if (k->stage != GONE) {
        keeper_leave(k, now, KEEPER_STOPPED);
        keeper_on_timer(k, now);
    }
}

/* ---- questions, one at a time */

static int send_register(struct keeper *k)
{
    struct store_register req = session_request(&k->me);

    return k->ops->reg(k->ctx, &req);
}

/* Whether to join the waiters. Who does not wait joins them only when a holder seems to be gone; a
 * running command only if it may go on without its permit. */
static bool is_waiting(const struct keeper *k)
{
    if (k->stage == INSIDE)
        return k->is_kept;
    return k->is_patient || k->conf.wait_ms != 0;
}

static int send(struct keeper *k, enum call call)
{
    const struct store_peer *victim;

    switch (call) {
    case CALL_REGISTER:
        return send_register(k);
    case CALL_ASK_LIMIT:
        return k->ops->ask_limit(k->ctx);
    case CALL_BEAT:
        return k->ops->beat(k->ctx, k->me.epoch);
    case CALL_ENTER:
        k->wants_permit = false;
        return k->ops->enter(k->ctx, k->me.epoch, is_waiting(k));
    case CALL_ASK_BEATS:
        k->wants_beats = false;
        return k->ops->ask_beats(k->ctx);
    case CALL_REAP:
        victim = peers_victim(k->peers);
        return k->ops->reap(k->ctx, k->me.epoch, victim->epoch, victim->counter);
    case CALL_ASK_DONE:
        return k->ops->ask_done(k->ctx);
    case CALL_TELL_DONE:
        return k->ops->tell_done(k->ctx);
    case CALL_LEAVE:
        return k->ops->leave(k->ctx, k->me.epoch);
    case CALL_NONE:
        break;
    }
    return 0;
}

static enum call next_call(const struct keeper *k, struct mono now)
{
    if (k->stage == ENDING && k->is_success)
        return CALL_TELL_DONE;
    if (k->stage == ENDING)
        return k->me.epoch != 0 ? CALL_LEAVE : CALL_NONE;
    if (k->is_lost && k->me.epoch == 0)
        return CALL_NONE;
    if (k->conf.is_sem && !k->knows_limit)
        return CALL_ASK_LIMIT;
    if (k->me.epoch == 0)
        return CALL_REGISTER;
    if (is_due(k->beat_at, now))
        return CALL_BEAT;
    if (k->stage == GRANTED && k->conf.is_once && !k->may_run)
        return CALL_ASK_DONE;
    if (k->wants_permit && (k->stage == OUTSIDE || k->is_regaining))
        return CALL_ENTER;
    if (k->wants_beats && k->stage == OUTSIDE)
        return CALL_ASK_BEATS;
    return peers_victim(k->peers) != NULL ? CALL_REAP : CALL_NONE;
}

static void clear(struct keeper *k)
{
    int64_t epoch = peers_to_clear(k->peers);

    if (epoch != 0 && k->ops->clear(k->ctx, epoch) < 0)
        peers_not_asked(k->peers, epoch);
}

static void ask(struct keeper *k, struct mono now)
{
    enum call call;

    if (k->is_up && k->me.epoch != 0 && k->stage < ENDING)
        clear(k);
    if (!k->is_up || k->out != CALL_NONE || mono_before(now, k->retry_at))
        return;
    call = next_call(k, now);
    if (call == CALL_NONE)
        return;
    k->out = call;
    k->sent = now;
    if (send(k, call) < 0) {
        k->out = CALL_NONE;
        k->retry_at = mono_add_ms(now, KEEPER_RETRY_MS);
    }
}

static struct mono next_at(const struct keeper *k)
{
    struct mono at = mono_min(k->give_up_at, k->away_at);

    if (k->stage == ENDING)
        return k->leave_at;
    if (k->stage != INSIDE)
        return at;
    if (k->pressed != 0)
        return k->pressed == SIGKILL ? MONO_NEVER : k->kill_at;
    return k->is_kept ? k->ttl_at : mono_min(k->ttl_at, mono_add_ms(k->acked, KEEPER_TERM_MS));
}

static void arm(struct keeper *k)
{
    struct mono at = next_at(k);

    if (k->is_up && k->out == CALL_NONE) {
        if (next_call(k, k->retry_at) != CALL_NONE)
            at = mono_min(at, k->retry_at);
        else if (k->me.epoch != 0)
            at = mono_min(at, k->beat_at);
    }
    k->ops->arm(k->ctx, at);
}

bool keeper_is_hurried(const struct keeper *k)
{
    return k->conf.wait_ms == 0 && !k->conf.is_once;
}

void keeper_give_up(struct keeper *k, struct mono now)
{
    k->give_up_at = MONO_NEVER;
    if (k->trouble.class != ERROR_CLASS_NONE || !k->is_up || k->me.epoch == 0) {
        keeper_fail_by_trouble(k, now);
    } else if (k->stage == GRANTED) { /* it starts, once a beat is acknowledged */
        k->give_up_at = mono_add_ms(now, KEEPER_RETRY_MS);
    } else if (k->is_patient) {
        keeper_leave(k, now, KEEPER_BUSY);
    } else if (keeper_is_hurried(k) && peers_has_gone(k->peers)) {
        k->is_patient = k->wants_permit = true;
        k->give_up_at = mono_add_ms(now, KEEPER_REAP_MS);
    } else {
        k->wants_beats = true;
    }
}

/* Whether there is nothing more to tell Redis, or no more time for it. */
static bool is_over(const struct keeper *k, struct mono now)
{
    bool is_told = k->me.epoch == 0 && k->out != CALL_REGISTER && !k->is_success;

    return is_told || is_due(k->leave_at, now);
}

void keeper_on_timer(struct keeper *k, struct mono now)
{
    if (k->stage == GONE)
        return;
    if (k->stage < INSIDE && is_due(k->away_at, now))
        keeper_fail_by_trouble(k, now);
    if (k->stage < INSIDE && is_due(k->give_up_at, now))
        keeper_give_up(k, now);
    if (k->stage == INSIDE)
        watch_command(k, now);
    if (k->stage == ENDING && is_over(k, now)) {
        if (k->is_success)
            k->ops->tell(k->ctx, KEEPER_NOT_TOLD);
        if (k->me.epoch != 0 && k->end == KEEPER_RAN)
            k->ops->tell(k->ctx, KEEPER_NOT_LEFT);
        keeper_be_gone(k);
        return;
    }
    ask(k, now);
    arm(k);
}

/* ---- the link */

void keeper_link_up(struct keeper *k, struct mono now)
{
    if (k->stage == GONE)
        return;
    k->is_up = k->was_up = true;
    k->out = CALL_NONE;
    k->away_at = MONO_NEVER;
    k->retry_at = now;
    if (k->trouble.call == CALL_NONE)
        k->trouble = (struct trouble){.class = ERROR_CLASS_NONE};
    if (k->me.epoch != 0)
        k->beat_at = now;
    keeper_on_timer(k, now);
}

void keeper_failed_over(struct keeper *k)
{
    session_failed_over(&k->me);
    k->wants_permit = true;
    if (k->stage == GRANTED)
        k->stage = OUTSIDE;
    if (k->stage == INSIDE && !k->is_regaining)
        k->is_regaining = k->is_unsure = true;
}

void keeper_link_down(struct keeper *k, struct mono now, enum error_class class, const char *text)
{
    if (k->stage == GONE)
        return;
    k->is_up = false;
    k->out = CALL_NONE;
    k->wants_beats = false;
    /* Where it was closed for a refusal, that is the reason. */
    if (k->trouble.class != class || k->trouble.call == CALL_NONE) {
        k->trouble = (struct trouble){.class = class};
        (void)snprintf(k->trouble.text, sizeof(k->trouble.text), "%s", text);
    }
    peers_trouble(k->peers);
    if (k->stage < INSIDE && (!k->was_up || class == ERROR_CLASS_DENIED))
        keeper_fail(k, now, class, text);
    if (k->away_at.us == INT64_MAX)
        k->away_at = mono_add_ms(now, KEEPER_AWAY_MS);
    keeper_on_timer(k, now);
}

void keeper_on_wake(struct keeper *k, struct mono now, const char *text)
{
    char mine[32];

    (void)snprintf(mine, sizeof(mine), "@%lld", (long long)k->me.epoch);
    if (k->me.epoch == 0 || strcmp(text, mine) != 0)
        return;
    k->wants_permit = true;
    keeper_on_timer(k, now);
}

void keeper_on_subscribed(struct keeper *k, struct mono now)
{
    k->wants_permit = true;
    keeper_on_timer(k, now);
}
