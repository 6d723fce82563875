/*
 * The link, and the answers of Redis to all calls but a sync (sched_claims.c).
 *
 * A status other than ok: `dead`: others gave this worker up, so it kills and drops all its jobs
 * and registers anew. `unknown`: Redis has no entry for it, so it registers anew and adopts its
 * jobs. `link`: its link number is old, so a beat learns the present one.
 */
#include "sched/sched_priv.h"

#include <string.h>

#include "base/log.h"

/* ---- the link */

void sched_link_up(struct sched *s, struct mono now)
{
    if (s->state == GONE)
        return;
    sched_no_calls_out(s);
    sched_enter(s, now);
    sched_go_on(s, now);
}

void sched_failed_over(struct sched *s)
{
    session_failed_over(&s->me);
}

void sched_link_down(struct sched *s, struct mono now)
{
    if (s->state == GONE)
        return;
    sched_no_calls_out(s);
    peers_trouble(s->peers);
    sched_drop_unstarted(s);
    s->clock = (struct server_clock){0}; /* the next link may lead to another server */
    s->again_ms = 0;                     /* the link backs off by itself */
    sched_move(s, OFFLINE);
    sched_go_on(s, now);
}

/* ---- a worker that Redis does not know */

/* The worker was given up: it does not own its running jobs any more. */
static void drop_all(struct sched *s)
{
    struct held_job *next;

    for (struct held_job *h = s->held.first; h != NULL; h = next) {
        next = h->next;
        if (h->state == HELD_LOST)
            continue;
        if (h->state == HELD_RUNNING) {
            sched_kill_lost(s, h);
            continue;
        }
        if (!held_is_unended(h))
            log_warn("event=late-result-dropped job=%s queue=%s start=%lld reason=\"this worker "
                     "was given up\"",
                     h->job.id, h->job.queue, (long long)h->job.start);
        sched_forget(s, h);
    }
}

static void on_dead(struct sched *s, struct mono now)
{
    log_warn("event=given-up epoch=%lld running=%zu reason=\"others gave this worker up: "
             "its jobs are theirs now\"",
             (long long)s->me.epoch, s->held.unended);
    sched_no_calls_out(s);
    peers_trouble(s->peers);
    drop_all(s);
    session_lost(&s->me);
    sched_send_register(s, now);
}

static void on_unknown(struct sched *s, struct mono now)
{
    log_warn("event=forgotten epoch=%lld running=%zu reason=\"Redis does not know this worker (any "
             "more): registering anew\"",
             (long long)s->me.epoch, s->held.unended);
    sched_no_calls_out(s);
    peers_trouble(s->peers);
    sched_drop_unstarted(s);
    sched_send_register(s, now);
}

bool sched_is_not_ok(struct sched *s, struct mono now, enum store_status status)
{
    switch (status) {
    case STORE_OK:
        return false;
    case STORE_GIVEN_UP:
        on_dead(s, now);
        break;
    case STORE_UNKNOWN:
        on_unknown(s, now);
        break;
    case STORE_OLD_LINK: /* a delayed reconcile of ours came first: ask for the number again */
        sched_no_calls_out(s);
        sched_move(s, BEATING);
        sched_send_beat(s, now);
        break;
    }
    sched_go_on(s, now);
    return true;
}

/* ---- answers */

void sched_on_orphans_ended(struct sched *s, struct mono now, int64_t victim, bool is_clear)
{
    peers_cleared(s->peers, victim, is_clear);
    sched_go_on(s, now);
}

void sched_on_reaped(struct sched *s, struct mono now, enum store_reap status, int64_t moved)
{
    const struct store_peer *victim = peers_victim(s->peers);

    if (!s->reap_out)
        return;
    s->reap_out = false;
    if (victim != NULL && (moved > 0 || status == STORE_REAP_DONE))
        log_notice("event=reaped epoch=%lld jobs=%lld more=%s", (long long)victim->epoch,
                   (long long)moved, status == STORE_REAP_MORE ? "1" : "");
    peers_reaped(s->peers, status, moved);
    sched_go_on(s, now);
}

/* Redis forgot the job, by what it lost or by a failover. */
static void tell_lost(const struct held_job *h)
{
    log_warn("event=data-loss job=%s queue=%s start=%lld reason=\"Redis does not hold this job any "
             "more: %s\"",
             h->job.id, h->job.queue, (long long)h->job.start,
             h->job.is_guarded    ? "it is ended, since its lock is lost with it"
             : held_is_unended(h) ? "it runs to its end here, and its result goes nowhere"
                                  : "its result goes nowhere");
}

/* The answers are in the order of held_names. */
static void take_adoptions(struct sched *s, const struct store_register_reply *r)
{
    struct held_job *next;
    bool is_lossy = r->rewound || s->me.has_moved;
    size_t i = 0;

    for (struct held_job *h = s->held.first; h != NULL; h = next) {
        enum store_adopt how;

        next = h->next;
        if (!held_is_named(h))
            continue;
        how = r->adopted[i++];
        /* A job that Redis lost may run to its end, unless it is guarded: Redis lost its permit
         * as well, and another job may have it by now. */
        if (how == STORE_GONE && is_lossy)
            tell_lost(h);
        if (how == STORE_GONE && is_lossy && !h->job.is_guarded)
            h->has_no_record = true;
        if (how == STORE_ADOPTED || h->has_no_record)
            continue;
        log_warn("event=%s job=%s queue=%s start=%lld reason=\"%s\"",
                 h->state == HELD_RUNNING ? "not-adopted" : "late-result-refused", h->job.id,
                 h->job.queue, (long long)h->job.start,
                 how != STORE_GONE ? "it was started elsewhere"
                 : is_lossy        ? "Redis lost it, and with it the lock that it held"
                                   : "it has ended elsewhere");
        if (h->state == HELD_RUNNING)
            sched_kill_lost(s, h);
        else
            sched_forget(s, h);
    }
}

void sched_on_registered(struct sched *s, struct mono now, const struct store_register_reply *r)
{
    if (s->state != REGISTERING)
        return;
    if (s->me.epoch != 0)
        take_adoptions(s, r);
    session_registered(&s->me, now, r->epoch);
    s->link = r->link;
    s->names.is_out = false;
    for (size_t k = 0; k < r->npeers; k++)
        session_saw(&s->me, r->peers[k].epoch);
    /* The silence of the peers counts from here, not from the first beat. */
    peers_registered(s->peers, now, r->peers, r->npeers);
    s->ops->registered(s->ctx, s->me.epoch);
    log_notice("event=registered epoch=%lld link=%lld rewound=%s", (long long)s->me.epoch,
               (long long)s->link, r->rewound ? "1" : "");
    sched_become_ready(s, now);
    sched_go_on(s, now);
}

/* How many jobs Redis should count for this worker. */
static int64_t count_named(const struct sched *s)
{
    int64_t n = 0;

    for (const struct held_job *h = s->held.first; h != NULL; h = h->next)
        n += held_is_named(h);
    return n;
}

static void take_quiet(struct sched *s, const struct store_beat_reply *r)
{
    if (s->quiet_told != r->quiet)
        log_notice("event=%s by=remote", r->quiet ? "quiet" : "awake");
    s->quiet_told = r->quiet;
}

void sched_on_beat(struct sched *s, struct mono now, const struct store_beat_reply *r)
{
    int64_t mine;

    if (!s->beat.is_out)
        return;
    s->beat.is_out = s->names.is_out = false;
    if (sched_is_not_ok(s, now, r->status))
        return;
    if (s->beat.is_wanted || !s->beat.is_early)
        s->beat.at = s->beat.is_wanted ? now : mono_add_ms(now, SCHED_BEAT_MS);
    s->beat.is_wanted = false;
    s->link = r->link;
    take_quiet(s, r);
    /* With the counter "?" the epoch belongs to no worker. It is the score of a running job, which
     * anybody may have written. */
    for (size_t i = 0; i < r->npeers; i++) {
        if (strcmp(r->peers[i].counter, "?") != 0)
            session_saw(&s->me, r->peers[i].epoch);
    }
    peers_beat(s->peers, now, r->peers, r->npeers);
    if (s->state == BEATING) {
        sched_send_reconcile(s, now);
    } else if (s->state == READY && s->beat.is_exact && s->syncs_out == 0 &&
               (mine = count_named(s)) != r->held) {
        log_warn("event=count-differs here=%lld redis=%lld", (long long)mine, (long long)r->held);
        sched_send_reconcile(s, now);
    }
    /* In other states they start after the reconcile: until then, another worker may hold them. */
    if (s->state == READY)
        sched_start_waiting(s, now);
    sched_go_on(s, now);
}

void sched_on_reconciled(struct sched *s, struct mono now, const struct store_reconcile_reply *r)
{
    if (s->state != RECONCILING)
        return;
    if (sched_is_not_ok(s, now, r->status))
        return;
    s->link = r->link;
    for (size_t i = 0; i < r->nlost; i++)
        sched_lose(s, r->lost[i]);
    if (r->released > 0 || r->nlost > 0 || r->rewound)
        log_notice("event=reconciled released=%lld lost=%zu rewound=%s", (long long)r->released,
                   r->nlost, r->rewound ? "1" : "");
    sched_become_ready(s, now);
    sched_start_waiting(s, now);
    sched_go_on(s, now);
}

void sched_on_error(struct sched *s, struct mono now, enum error_class class, const char *text)
{
    if (s->state == GONE)
        return;
    if (class == ERROR_CLASS_MOVED || class == ERROR_CLASS_LIBRARY || class == ERROR_CLASS_DENIED) {
        s->ops->relink(s->ctx, class, text);
        return;
    }
    if (s->state == LEAVING) {
        sched_on_left(s, now);
        return;
    }
    if (s->state == BACKING_OFF || s->state == OFFLINE)
        return;
    /* Redis would refuse the same call again. If it is still needed, the next beats tell. */
    if (s->reap_out)
        peers_refused(s->peers);
    /* A refused call, other than a beat, tells nothing about the beats of the peers. */
    if ((class != ERROR_CLASS_TYPE && class != ERROR_CLASS_CALL) || s->beat.is_out)
        peers_trouble(s->peers);
    sched_back_off(s, now);
    sched_go_on(s, now);
}

void sched_on_looked(struct sched *s, struct mono now, const struct store_look_reply *r)
{
    if (!s->look.is_out)
        return;
    for (size_t i = 0; i < r->n; i++)
        queues_found(s->queues, r->queues[i]);
    s->gate_at = mono_min(s->gate_at, sched_gate_at(now, r->now_us, r->timer_ms));
    s->look.is_out = false;
    s->sync_wanted = s->sync_wanted || s->held.n > 0 || queues_suspected(s->queues) > 0;
    sched_go_on(s, now);
}
