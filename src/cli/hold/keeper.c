#include "cli/hold/keeper.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "sched/peers.h"

#define RETRY_MS 1000     /* after an error reply, or if a question could not be sent */
#define LOST_LEAVE_MS 500 /* as KEEPER_LEAVE_MS, if the place is lost */

enum place { OUTSIDE, GRANTED, INSIDE, ENDING, GONE };

enum call {
    CALL_NONE,
    CALL_REGISTER,
    CALL_DEFINE,
    CALL_BEAT,
    CALL_ENTER,
    CALL_BEATS,
    CALL_REAP,
    CALL_LEAVE
};

struct keeper {
    struct keeper_conf conf;
    const struct keeper_ops *ops;
    void *ctx;
    struct peers *peers;
    enum place place;
    enum keeper_end end;
    enum call out;
    bool is_up, was_up;
    int64_t epoch; /* 0: not registered */
    int64_t seen, seq;
    int64_t fence;
    bool is_defined;               /* the semaphore's definition was read */
    bool is_kept;                  /* the semaphore says on_lost: keep */
    bool is_regaining;             /* the command runs, but Redis does not know of its place */
    bool is_lost;                  /* the command is being killed */
    bool is_patient;               /* a holder may be dead: go on asking after the time is up */
    bool wants_place, wants_beats; /* send ENTER or BEATS next, if still needed then */
    int pressed;                   /* the last signal that we sent it ourselves, 0: none */
    struct mono sent;              /* when the call under way was sent */
    struct mono acked;             /* when the last acknowledged beat was sent */
    struct mono beat_at;           /* when the next beat is due */
    struct mono kill_at;           /* when KILL follows our TERM */
    int64_t redis_ms;              /* Redis' clock when we registered, */
    struct mono redis_at;          /* and ours */
    struct mono give_up_at, ttl_at, leave_at, away_at, retry_at;
};

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

static void be_gone(struct keeper *k)
{
    k->place = GONE;
    k->out = CALL_NONE;
    k->ops->arm(k->ctx, MONO_NEVER);
    k->ops->done(k->ctx, k->end);
}

/* From here on only tell Redis. */
static void leave(struct keeper *k, struct mono now, enum keeper_end end)
{
    k->end = end;
    k->place = ENDING;
    k->leave_at = mono_add_ms(now, end == KEEPER_LOST ? LOST_LEAVE_MS : KEEPER_LEAVE_MS);
}

static void fail(struct keeper *k, struct mono now, enum fault fault, const char *text)
{
    k->ops->fail(k->ctx, fault, text);
    leave(k, now, KEEPER_FAILED);
}

static void press(struct keeper *k, int sig)
{
    k->pressed = sig;
    k->ops->kill(k->ctx, sig);
}

/* Others may get the place: kill the command now. */
static void lose(struct keeper *k, const char *why)
{
    if (!k->is_lost)
        k->ops->tell(k->ctx, why);
    k->is_lost = true;
    if (k->pressed != SIGKILL)
        press(k, SIGKILL);
}

/* ---- inside */

static void try_to_start(struct keeper *k, struct mono now)
{
    if (!k->is_kept && !k->ops->admits(k->ctx, k->fence))
        return;
    k->place = INSIDE;
    if (k->conf.ttl_ms > 0)
        k->ttl_at = mono_add_ms(now, k->conf.ttl_ms);
    if (k->ops->start(k->ctx, k->epoch, k->fence, !k->is_kept) < 0)
        leave(k, now, KEEPER_RAN);
}

void keeper_on_end(struct keeper *k, struct mono now, bool was_killed)
{
    enum keeper_end end = KEEPER_RAN;

    if (k->place != INSIDE)
        return;
    if (was_killed && !k->is_lost)
        k->ops->tell(k->ctx, "the place was lost: no beat was acknowledged for 15 s, so its guard "
                             "killed the command");
    if (was_killed || k->is_lost)
        end = KEEPER_LOST;
    else if (k->pressed != 0)
        end = KEEPER_OVERRAN;
    /* Even if the command ended in order, nothing that it left may run beside the next holder. */
    if (end != KEEPER_RAN)
        k->ops->kill(k->ctx, SIGKILL);
    leave(k, now, end);
    keeper_on_timer(k, now);
}

/* Redis does not know us any more, or took us for dead. */
static void forgotten(struct keeper *k, bool is_dead)
{
    peers_trouble(k->peers);
    k->epoch = 0;
    k->wants_beats = false;
    if (k->place == GRANTED)
        k->place = OUTSIDE;
    if (k->place != INSIDE)
        return;
    if (!k->is_kept && is_dead)
        lose(k, "this program was taken for dead, the place may be another's: the command is "
                "killed");
    else if (k->is_kept && !k->is_regaining)
        k->ops->tell(k->ctx, "the place was lost; the command goes on (on_lost: keep)");
    k->is_regaining = true;
}

static void press_softly(struct keeper *k, struct mono kill_at, const char *why)
{
    k->ops->tell(k->ctx, why);
    k->kill_at = kill_at;
    press(k, SIGTERM);
}

/* End the command after --ttl, or if the link is silent, while there is time for an orderly end. */
static void watch_command(struct keeper *k, struct mono now)
{
    if (!k->is_kept && k->pressed == 0 && is_due(mono_add_ms(k->acked, KEEPER_TERM_MS), now)) {
        k->is_lost = true;
        press_softly(k, mono_add_ms(k->acked, KEEPER_KILL_MS),
                     "Redis did not answer for 12 s: the command gets TERM, and KILL after 3 s "
                     "more, before others take its place");
    }
    if (k->pressed == 0 && is_due(k->ttl_at, now))
        press_softly(k, mono_add_ms(now, KEEPER_TTL_KILL_MS), KEEPER_OVERRUN_TEXT);
    if (k->pressed == SIGTERM && is_due(k->kill_at, now))
        press(k, SIGKILL);
}

void keeper_on_signal(struct keeper *k, struct mono now, int sig)
{
    if (k->place == INSIDE) {
        k->ops->kill(k->ctx, sig);
    } else if (k->place == ENDING) {
        be_gone(k);
    } else if (k->place != GONE) {
        leave(k, now, KEEPER_STOPPED);
        keeper_on_timer(k, now);
    }
}

/* ---- questions, one at a time */

static int send_register(struct keeper *k)
{
    struct store_register req = {k->seen, ++k->seq, 0, NULL, 0};

    return k->ops->reg(k->ctx, &req);
}

/* Whether to stand in line. With -n only if a holder seems to be dead; a running command only if it
 * may go on without its place. */
static bool is_waiting(const struct keeper *k)
{
    if (k->place == INSIDE)
        return k->is_kept;
    return k->is_patient || k->conf.wait_ms != 0;
}

static int send(struct keeper *k, enum call call)
{
    const struct store_peer *victim;

    switch (call) {
    case CALL_REGISTER:
        return send_register(k);
    case CALL_DEFINE:
        return k->ops->define(k->ctx);
    case CALL_BEAT:
        return k->ops->beat(k->ctx, k->epoch);
    case CALL_ENTER:
        k->wants_place = false;
        return k->ops->enter(k->ctx, k->epoch, is_waiting(k));
    case CALL_BEATS:
        k->wants_beats = false;
        return k->ops->beats(k->ctx);
    case CALL_REAP:
        victim = peers_victim(k->peers);
        return k->ops->reap(k->ctx, k->epoch, victim->epoch, victim->counter);
    case CALL_LEAVE:
        return k->ops->leave(k->ctx, k->epoch);
    case CALL_NONE:
        break;
    }
    return 0;
}

static enum call next_call(const struct keeper *k, struct mono now)
{
    if (k->place == ENDING)
        return k->epoch != 0 ? CALL_LEAVE : CALL_NONE;
    if (k->is_lost && k->epoch == 0)
        return CALL_NONE;
    if (k->conf.is_sem && !k->is_defined)
        return CALL_DEFINE;
    if (k->epoch == 0)
        return CALL_REGISTER;
    if (is_due(k->beat_at, now))
        return CALL_BEAT;
    if (k->wants_place && (k->place == OUTSIDE || k->is_regaining))
        return CALL_ENTER;
    if (k->wants_beats && k->place == OUTSIDE)
        return CALL_BEATS;
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

    if (k->is_up && k->epoch != 0 && k->place < ENDING)
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
        k->retry_at = mono_add_ms(now, RETRY_MS);
    }
}

static struct mono next_at(const struct keeper *k)
{
    struct mono at = mono_min(k->give_up_at, k->away_at);

    if (k->place == ENDING)
        return k->leave_at;
    if (k->place != INSIDE)
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
        else if (k->epoch != 0)
            at = mono_min(at, k->beat_at);
    }
    k->ops->arm(k->ctx, at);
}

/* The time is up, or -n allows none. First ask for the beats: a dead holder does not count. */
static void give_up(struct keeper *k, struct mono now)
{
    k->give_up_at = MONO_NEVER;
    if (k->is_patient || !k->is_up || k->epoch == 0)
        leave(k, now, KEEPER_BUSY);
    else
        k->wants_beats = true;
}

void keeper_on_timer(struct keeper *k, struct mono now)
{
    if (k->place == GONE)
        return;
    if ((k->place == OUTSIDE || k->place == GRANTED) && is_due(k->away_at, now))
        fail(k, now, FAULT_LINK, "the connection to Redis is gone for 30 s");
    if (k->place == OUTSIDE && is_due(k->give_up_at, now))
        give_up(k, now);
    if (k->place == INSIDE)
        watch_command(k, now);
    if (k->place == ENDING &&
        ((k->epoch == 0 && k->out != CALL_REGISTER) || is_due(k->leave_at, now))) {
        if (k->epoch != 0 && k->end == KEEPER_RAN)
            k->ops->tell(k->ctx, "Redis could not be told of the end: the place comes free when "
                                 "others miss this program, in half a minute");
        be_gone(k);
        return;
    }
    ask(k, now);
    arm(k);
}

/* ---- the link */

void keeper_link_up(struct keeper *k, struct mono now)
{
    if (k->place == GONE)
        return;
    k->is_up = k->was_up = true;
    k->out = CALL_NONE;
    k->away_at = MONO_NEVER;
    k->retry_at = now;
    if (k->epoch != 0)
        k->beat_at = now;
    keeper_on_timer(k, now);
}

void keeper_link_down(struct keeper *k, struct mono now, enum fault fault, const char *text)
{
    if (k->place == GONE)
        return;
    k->is_up = false;
    k->out = CALL_NONE;
    k->wants_beats = false;
    peers_trouble(k->peers);
    if (k->place < INSIDE && (!k->was_up || fault == FAULT_DENIED))
        fail(k, now, fault, text);
    if (k->away_at.us == INT64_MAX)
        k->away_at = mono_add_ms(now, KEEPER_AWAY_MS);
    keeper_on_timer(k, now);
}

void keeper_on_wake(struct keeper *k, struct mono now, const char *text)
{
    char mine[32];

    (void)snprintf(mine, sizeof(mine), "@%lld", (long long)k->epoch);
    if (k->epoch == 0 || strcmp(text, mine) != 0)
        return;
    k->wants_place = true;
    keeper_on_timer(k, now);
}

void keeper_on_subscribed(struct keeper *k, struct mono now)
{
    k->wants_place = true;
    keeper_on_timer(k, now);
}

/* ---- answers */

/* False: this is not the answer that we wait for. */
static bool take(struct keeper *k, enum call call)
{
    if (k->out != call || k->place == GONE)
        return false;
    k->out = CALL_NONE;
    return true;
}

void keeper_on_registered(struct keeper *k, struct mono now, const struct store_register_reply *r)
{
    if (!take(k, CALL_REGISTER))
        return;
    k->epoch = r->epoch;
    k->acked = k->sent;
    k->redis_ms = r->now_us / 1000;
    k->redis_at = now;
    k->beat_at = mono_add_ms(k->sent, KEEPER_BEAT_MS);
    k->wants_place = true;
    if (r->epoch > k->seen)
        k->seen = r->epoch;
    peers_registered(k->peers, now, r->peers, r->npeers);
    keeper_on_timer(k, now);
}

void keeper_on_defined(struct keeper *k, struct mono now, const char *limit)
{
    size_t n = strlen(limit);

    if (!take(k, CALL_DEFINE))
        return;
    k->is_defined = true;
    k->is_kept = n >= 4 && strcmp(limit + n - 4, "keep") == 0;
    keeper_on_timer(k, now);
}

void keeper_on_beat(struct keeper *k, struct mono now, const struct store_beat_reply *r)
{
    if (!take(k, CALL_BEAT))
        return;
    if (r->status != STORE_OK) {
        forgotten(k, r->status == STORE_DEAD);
    } else {
        k->acked = k->sent;
        k->beat_at = mono_add_ms(k->sent, KEEPER_BEAT_MS);
        peers_beat(k->peers, now, r->peers, r->npeers);
        if (k->place == GRANTED)
            try_to_start(k, now);
        k->wants_place = true;
        k->wants_beats = k->place == OUTSIDE && k->is_patient;
    }
    keeper_on_timer(k, now);
}

/* The answer to ENTER while the command runs and Redis had not known of its place. */
static void regain(struct keeper *k, bool is_granted)
{
    if (is_granted) {
        k->is_regaining = false;
        k->ops->tell(k->ctx, k->conf.is_sem
                                 ? "Redis had lost the place; it is held again"
                                 : "Redis had lost the lock; it is held again, but with another "
                                   "fence: what checks LATER_FENCE refuses the command now");
    } else if (!k->is_kept) {
        lose(k, "Redis had lost the place, and another has it now: the command is killed");
    }
}

void keeper_on_entered(struct keeper *k, struct mono now, const struct gate_enter_reply *r)
{
    if (!take(k, CALL_ENTER))
        return;
    if (r->status != STORE_OK) {
        forgotten(k, r->status == STORE_DEAD);
    } else if (k->place == INSIDE && k->is_regaining) {
        regain(k, r->is_granted);
    } else if (k->place == OUTSIDE && r->is_granted) {
        k->place = GRANTED;
        /* A semaphore has no fence. Use the epoch, since the guard finds processes by a fence. */
        k->fence = r->fence != 0 ? r->fence : k->epoch;
        try_to_start(k, now);
        if (k->place == GRANTED) /* not admitted: the last beat is too old */
            k->beat_at = now;
    } else if (k->place == OUTSIDE && k->conf.wait_ms == 0 && !k->is_patient) {
        give_up(k, now);
    }
    keeper_on_timer(k, now);
}

/* Whether a beat is too old, ago_ms by Redis' clock. That clock may have been set by step_ms since
 * we registered, before or after the beat: believe what makes the beat more recent. A beat far in
 * the future was also made before the clock was set. It tells nothing and counts as old. */
static bool is_old(int64_t ago_ms, int64_t step_ms)
{
    return llabs(ago_ms) >= KEEPER_STALE_MS && llabs(ago_ms - step_ms) >= KEEPER_STALE_MS;
}

static bool may_be_dead(const struct keeper *k, struct mono now, const struct gate_beats_reply *r)
{
    int64_t step_ms = r->now_ms - k->redis_ms - mono_until_us(k->redis_at, now) / 1000;

    for (size_t i = 0; i < r->n; i++) {
        if (r->beats_ms[i] > 0 && is_old(r->now_ms - r->beats_ms[i], step_ms))
            return true;
    }
    return false;
}

void keeper_on_beats(struct keeper *k, struct mono now, const struct gate_beats_reply *r)
{
    if (!take(k, CALL_BEATS))
        return;
    if (k->place == OUTSIDE && !may_be_dead(k, now, r)) {
        leave(k, now, KEEPER_BUSY);
    } else if (k->place == OUTSIDE && !k->is_patient) {
        k->is_patient = k->wants_place = true;
        k->give_up_at = mono_add_ms(now, KEEPER_LOOK_MS);
    }
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
    k->wants_place = true;
    k->wants_beats = k->place == OUTSIDE && k->is_patient;
    keeper_on_timer(k, now);
}

void keeper_on_left(struct keeper *k, struct mono now, bool is_clean)
{
    (void)now;
    if (!take(k, CALL_LEAVE))
        return;
    if (!is_clean && k->end == KEEPER_RAN && !k->is_kept)
        k->ops->tell(k->ctx, "Redis did not know of the place any more when the command ended");
    be_gone(k);
}

/* Redis refused the question under way. */
void keeper_on_fault(struct keeper *k, struct mono now, enum fault fault, const char *text)
{
    enum call call = k->out;

    if (k->place == GONE)
        return;
    k->out = CALL_NONE;
    k->retry_at = mono_add_ms(now, RETRY_MS);
    if (fault == FAULT_MOVED || fault == FAULT_LIBRARY) {
        k->ops->relink(k->ctx, fault, text);
        return;
    }
    if (call == CALL_LEAVE) {
        be_gone(k);
        return;
    }
    if (call == CALL_REAP)
        peers_refused(k->peers);
    else
        peers_trouble(k->peers);
    if (call == CALL_BEAT)
        k->beat_at = k->retry_at;
    else if (call == CALL_BEATS && k->place == OUTSIDE)
        leave(k, now, KEEPER_BUSY);
    else if (call == CALL_ENTER && k->place == INSIDE && fault == FAULT_CALL)
        lose(k, "the place is lost, and Redis refuses to give it again: the command is killed");
    else if (call != CALL_REAP && k->place == OUTSIDE &&
             (k->conf.wait_ms == 0 || (fault != FAULT_WAIT && fault != FAULT_FULL)))
        fail(k, now, fault, text);
    else if (call == CALL_ENTER)
        k->wants_place = true;
    keeper_on_timer(k, now);
}
