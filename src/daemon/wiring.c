/*
 * Connects the parts of the daemon: the effects of the scheduler become calls of the store and the
 * runner, and their events go to the scheduler. It also decides how often trouble with the server
 * is logged, and whether `strict` refuses the server.
 */
#include "daemon/daemon_priv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/mem.h"
#include "redis/error_reply.h"

/* ---- effects of the scheduler: calls of the store */

static int op_reg(void *ctx, const struct store_register *req)
{
    struct daemon *d = ctx;
    CLEANUP_BUF struct buf queues = BUF_INIT, at_once = BUF_INIT;
    CLEANUP_FREE char *max = mem_printf("%lld", (long long)d->conf->defaults.max_payload);
    CLEANUP_FREE char *places = mem_printf("%lld", (long long)d->conf->concurrency);
    const char *fields[] = {"host",    d->me.host,
                            "boot",    d->me.boot,
                            "pidns",   d->me.process.pidns,
                            "pid",     d->me.process.pid,
                            "pstart",  d->me.process.pstart,
                            "version", PACKAGE_VERSION,
                            "places",  places,
                            "limits",  NULL,
                            "queues",  NULL};
    const char *config[] = {"max_payload", max};

    queues_names(sched_queues(d->sched), &queues);
    fields[17] = buf_str(&queues);
    daemon_tell_max_at_once(d, &at_once);
    fields[15] = buf_str(&at_once);
    return store_register(d->store, req, d->me.instance, &(struct store_fields){fields, 9},
                          &(struct store_fields){config, 1});
}

static int op_beat(void *ctx, int64_t epoch, const char *queues)
{
    return store_beat(((struct daemon *)ctx)->store, epoch, queues);
}

static int op_reconcile(void *ctx, int64_t epoch, int64_t link, int64_t seen,
                        const struct store_held *held, size_t n)
{
    return store_reconcile(((struct daemon *)ctx)->store, epoch, link, seen, held, n);
}

static int op_sync(void *ctx, const struct store_sync *sync)
{
    return store_sync(((struct daemon *)ctx)->store, sync);
}

static int op_look(void *ctx, int64_t soon_ms, const char *const *queues, size_t n)
{
    return store_look(((struct daemon *)ctx)->store, soon_ms, queues, n);
}

static int op_fetch(void *ctx, const char *id)
{
    return store_fetch(((struct daemon *)ctx)->store, id);
}

static bool is_predecessor(const struct daemon *d, int64_t epoch)
{
    return d->state_folder != NULL && epoch == state_folder_predecessor(d->state_folder);
}

static int op_end_orphans(void *ctx, int64_t victim)
{
    struct daemon *d = ctx;

    return orphans_end(d->orphans, victim, is_predecessor(d, victim));
}

static int op_reap(void *ctx, int64_t epoch, int64_t victim, const char *counter)
{
    struct daemon *d = ctx;

    return store_reap(d->store, epoch, victim, counter, d->conf->defaults.crashes,
                      d->conf->defaults.dead_max);
}

static int op_tidy(void *ctx, int64_t epoch)
{
    return daemon_tidy(ctx, epoch);
}

static int op_leave(void *ctx, int64_t epoch)
{
    struct daemon *d = ctx;

    daemon_tidy_last(d, epoch);
    return store_leave(d->store, epoch);
}

static void op_relink(void *ctx, enum error_class class, const char *text)
{
    link_reset(((struct daemon *)ctx)->link, class, text);
}

/* ---- effects of the scheduler: all others */

static bool op_admit(void *ctx, const struct job *job, struct verdict *refusal)
{
    return runner_admit(((struct daemon *)ctx)->runner, job, refusal);
}

static void op_refuse(void *ctx, const struct job *job, const char *why, struct verdict *verdict)
{
    runner_refuse(((struct daemon *)ctx)->runner, job, why, verdict);
}

static void op_start(void *ctx, struct held_job *h)
{
    runner_start(((struct daemon *)ctx)->runner, h);
}

static void op_kill(void *ctx, const struct held_job *h, bool at_once)
{
    runner_kill(((struct daemon *)ctx)->runner, h->job.id, at_once);
}

static bool op_is_gone(void *ctx, const struct store_peer *peer)
{
    struct daemon *d = ctx;

    /* We hold the lock of the folder in which the predecessor wrote its epoch, so it is gone after
     * a reboot. Otherwise it is judged like any other process. */
    return identity_is_gone(&d->me, peer) ||
           (is_predecessor(d, peer->epoch) && identity_is_of_other_boot(&d->me, peer));
}

/* An alarm that is set for an earlier instant stays: when it rings, the scheduler sets it anew.
 * That is rare, and events that put the next instant off are frequent. */
static void op_arm(void *ctx, struct mono at)
{
    struct daemon *d = ctx;

    if (!mono_before(at, d->alarm_at))
        return;
    d->alarm_at = at;
    loop_alarm_set(d->alarm, at);
}

static void op_registered(void *ctx, int64_t epoch)
{
    struct daemon *d = ctx;

    log_set_worker(epoch);
    d->tell_at = (struct mono){0}; /* Redis knows nothing of this epoch yet */
    if (d->state_folder != NULL)
        state_folder_set_epoch(d->state_folder, epoch);
    parts_registered(&d->parts, epoch);
    job_steps_registered(d->job_steps, epoch);
}

/* Jobs that still run when the stop is over are killed; they will be run again. */
static void op_gone(void *ctx)
{
    runner_end(((struct daemon *)ctx)->runner);
}

static uint32_t op_random(void *ctx)
{
    uint32_t r = 0;

    (void)ctx;
    (void)getrandom(&r, sizeof(r), GRND_NONBLOCK);
    return r;
}

static bool op_has_guard(void *ctx)
{
    const struct guard *g = ((struct daemon *)ctx)->guard;

    return g != NULL && guard_is_up(g);
}

static bool op_is_fresh(void *ctx)
{
    const struct guard *g = ((struct daemon *)ctx)->guard;

    return g != NULL && guard_is_fresh(g, GUARD_SPARE_MS);
}

const struct sched_ops daemon_ops = {
    .reg = op_reg,
    .beat = op_beat,
    .reconcile = op_reconcile,
    .sync = op_sync,
    .look = op_look,
    .fetch = op_fetch,
    .end_orphans = op_end_orphans,
    .reap = op_reap,
    .tidy = op_tidy,
    .leave = op_leave,
    .relink = op_relink,
    .admit = op_admit,
    .refuse = op_refuse,
    .start = op_start,
    .kill = op_kill,
    .is_gone = op_is_gone,
    .arm = op_arm,
    .registered = op_registered,
    .gone = op_gone,
    .random = op_random,
    .has_guard = op_has_guard,
    .is_fresh = op_is_fresh,
    .emptying = daemon_emptying,
};

/* ---- events of the other parts */

void daemon_on_alarm(void *arg)
{
    struct daemon *d = arg;

    d->alarm_at = MONO_NEVER;
    sched_on_timer(d->sched, mono_now());
}

/* Tell the guard first: the scheduler may start a job at once. */
static void on_registered(void *arg, const struct store_register_reply *r)
{
    struct daemon *d = arg;

    if (d->guard != NULL)
        guard_alive(d->guard, r->sent);
    parts_note_date(&d->parts, r->now_us);
    sched_on_registered(d->sched, mono_now(), r);
}

static void on_beat(void *arg, const struct store_beat_reply *r)
{
    struct daemon *d = arg;

    if (r->now_us > 0)
        d->skew_ms = wall_skew_ms(r->now_us);
    parts_note_date(&d->parts, r->now_us);
    if (r->status == STORE_OK && d->guard != NULL)
        guard_alive(d->guard, r->sent);
    sched_on_beat(d->sched, mono_now(), r);
    if (r->status != STORE_OK)
        return;
    parts_note_time(&d->parts, r->now_us);
    parts_beat(&d->parts, r->schedules);
}

static void on_reconciled(void *arg, const struct store_reconcile_reply *r)
{
    sched_on_reconciled(((struct daemon *)arg)->sched, mono_now(), r);
}

static void on_sync(void *arg, const struct store_sync_reply *r)
{
    struct daemon *d = arg;

    parts_note_time(&d->parts, r->now_us);
    sched_on_sync(d->sched, mono_now(), r);
}

static void on_looked(void *arg, const struct store_look_reply *r)
{
    struct daemon *d = arg;

    parts_note_time(&d->parts, r->now_us);
    sched_on_looked(d->sched, mono_now(), r);
}

static void on_fetched(void *arg, const char *id, const char *payload, size_t n)
{
    sched_on_fetched(((struct daemon *)arg)->sched, mono_now(), id, payload, n);
}

void daemon_on_orphans_ended(void *arg, int64_t victim, bool is_clear)
{
    sched_on_orphans_ended(((struct daemon *)arg)->sched, mono_now(), victim, is_clear);
}

static void on_reaped(void *arg, enum store_reap status, int64_t moved)
{
    sched_on_reaped(((struct daemon *)arg)->sched, mono_now(), status, moved);
}

static void tell_unserved(void *arg, const char *queue)
{
    (void)arg;
    log_warn("event=unserved-queue queue=%s reason=\"it has due jobs and no worker serves it: a "
             "handler is missing, or its name is misspelt\"",
             queue);
}

static void on_tidied(void *arg, const char *const *unserved, size_t n, int64_t bulks)
{
    struct daemon *d = arg;

    if (d->tidy_tells)
        unserved_take(&d->unserved, unserved, n, mono_now(), tell_unserved, NULL);
    if (bulks > 0)
        bulks_wake(d->parts.bulks);
    sched_on_tidied(d->sched, mono_now());
}

static void on_left(void *arg, bool is_clean)
{
    struct daemon *d = arg;

    if (d->state_folder != NULL && is_clean)
        state_folder_set_epoch(d->state_folder, 0);
    sched_on_left(d->sched, mono_now());
}

static void on_declared(void *arg, const struct store_declare_reply *r)
{
    gate_settings_declared(((struct daemon *)arg)->parts.gate_settings, r);
}

/* Also tell whether the link is up: the line that said it may be a suppressed one. */
void daemon_tell_suppressed(struct daemon *d)
{
    if (d->trouble_since.us == 0 ||
        mono_until_us(d->trouble_since, mono_now()) <= DAEMON_TROUBLE_MS * 1000)
        return;
    if (d->trouble_lines > DAEMON_TROUBLE_LINES)
        log_warn("event=link state=%s suppressed_lines=%u", link_is_up(d->link) ? "up" : "down",
                 d->trouble_lines - DAEMON_TROUBLE_LINES);
    d->trouble_since = (struct mono){0};
    d->trouble_lines = 0;
}

/* A link that comes up and is refused again and again must not fill the log. */
static bool may_log(struct daemon *d)
{
    daemon_tell_suppressed(d);
    if (d->trouble_since.us == 0)
        d->trouble_since = mono_now();
    return ++d->trouble_lines <= DAEMON_TROUBLE_LINES;
}

static void tell_refusal(enum error_class class, const char *text)
{
    struct err err = ERR_INIT;

    (void)error_reply_err(&err, text);
    if (error_reply_is_between_nodes(text))
        log_warn("event=slot-moves reason=\"%s\"", err.text);
    else
        log_err("event=refused class=%s reason=\"%s\"", error_class_name(class), text);
}

static void on_error(void *arg, enum error_class class, const char *text)
{
    struct daemon *d = arg;

    if (may_log(d))
        tell_refusal(class, text);
    sched_on_error(d->sched, mono_now(), class, text);
}

/* Only until the link was up once: a worker that holds jobs should go on and report the problem. */
static bool is_strict(const struct daemon *d)
{
    return d->conf->strict != 0 && !d->has_been_up;
}

/* Before the first job: end, with the cause. Stream processes may run already. */
static void refuse(struct daemon *d, const char *what, const char *text)
{
    if (d->refusal.code != ERR_NONE)
        return;
    (void)err_set(&d->refusal, ERR_CONFIG, "%s: %.200s", what, text);
    runner_end(d->runner);
}

/* Log the findings once, and again when they have changed. */
static void tell_preflight(struct daemon *d, const struct preflight *p)
{
    if (preflight_equal(&d->preflight, p))
        return;
    for (size_t i = 0; i < p->n; i++)
        log_warn("event=preflight check=%s reason=\"%s\"", p->at[i].check, p->at[i].text);
    d->preflight = *p;
}

/* Without a right or a command our calls are refused, and our link goes down and up again: each
 * time say so where `later health` looks. */
static void note_missing(struct daemon *d, const struct preflight *p)
{
    for (size_t i = 0; i < p->n; i++) {
        CLEANUP_FREE char *note = NULL;

        if (strcmp(p->at[i].check, "rights") != 0 && strcmp(p->at[i].check, "commands") != 0)
            continue;
        note = mem_printf("%s %s %s", d->me.host, d->me.process.pid, p->at[i].text);
        (void)store_note(d->store, "missing-right", note);
    }
}

static void on_up(void *arg, const struct probe_result *server)
{
    struct daemon *d = arg;
    char where[320];

    if (may_log(d))
        log_notice("event=link state=up server=\"%s\" version=%s library=%ld loaded=%s",
                   url_show(&server->url, where), server->server, server->lib.number,
                   server->lib.loaded ? "1" : "");
    tell_preflight(d, &server->preflight);
    for (size_t i = 0; is_strict(d) && i < server->preflight.n; i++) {
        const struct preflight_finding *f = &server->preflight.at[i];

        /* Two may pass by themselves, and rights that nobody can tell may all be there. */
        if (strcmp(f->check, "disk") != 0 && strcmp(f->check, "memory") != 0 &&
            strcmp(f->check, "acl") != 0) {
            CLEANUP_FREE char *what = mem_printf("strict: %s", f->check);

            refuse(d, what, f->text);
            return;
        }
    }
    note_missing(d, &server->preflight);
    if (server->has_failed_over) {
        log_warn("event=failover reason=\"a replica has taken over: what had not reached it is "
                 "lost\"");
        sched_failed_over(d->sched);
    }
    d->was_up = d->has_been_up = true;
    d->down_logged = (struct mono){0};
    sched_link_up(d->sched, mono_now());
}

static void on_down(void *arg, enum error_class class, const char *text)
{
    struct daemon *d = arg;

    if (is_strict(d) && class == ERROR_CLASS_DENIED) {
        refuse(d, "strict: redis", text);
        return;
    }
    /* Later on, another server may have come to this address for a moment. */
    if (class == ERROR_CLASS_UNFIT && !d->has_been_up) {
        refuse(d, "redis", text);
        return;
    }
    if ((d->down_logged.us == 0 ||
         mono_until_us(d->down_logged, mono_now()) > DAEMON_DOWN_LOG_MS * 1000) &&
        may_log(d)) {
        log_err("event=link state=down class=%s reason=\"%s\"", error_class_name(class), text);
        d->down_logged = mono_now();
    }
    if (d->was_up) {
        d->was_up = false;
        store_redis_reset(d->store);
        orphans_reset(d->orphans);
        parts_link_down(&d->parts);
        job_steps_link_down(d->job_steps);
        sched_link_down(d->sched, mono_now());
    }
}

static void on_subscribed(void *arg)
{
    struct daemon *d = arg;

    bulks_wake(d->parts.bulks);
    sched_on_subscribed(d->sched, mono_now());
}

static void on_wake(void *arg, const char *text, size_t n)
{
    struct daemon *d = arg;

    if (n != strlen(text))
        return;
    if (strcmp(text, "!schedules") == 0)
        schedules_wake(d->parts.schedules);
    else if (strcmp(text, "!bulk") == 0)
        bulks_wake(d->parts.bulks);
    else
        sched_on_wake(d->sched, mono_now(), text);
}

static void on_changed(void *arg, const char *key)
{
    foreign_queues_changed(((struct daemon *)arg)->parts.foreign_queues, key);
}

static void on_denied(void *arg, const char *text)
{
    (void)arg;
    log_warn("event=wake-denied reason=\"%s\" effect=\"raw jobs may start up to a second late for "
             "each 1,000 queues\"",
             text);
}

static void on_ended(void *arg, const char *id, const struct verdict *v,
                     const struct verdict_data *data)
{
    sched_job_ended(((struct daemon *)arg)->sched, mono_now(), id, v, data);
}

static void on_told(void *arg, const char *id, enum run_word word, const char *text)
{
    struct daemon *d = arg;

    if (word == RUN_CHECKPOINT)
        sched_job_checkpoint(d->sched, mono_now(), id, text);
    else
        sched_job_progress(d->sched, id, text);
}

static void on_max_at_once(void *arg, const char *queue, unsigned n)
{
    sched_set_max_at_once(((struct daemon *)arg)->sched, mono_now(), queue, n);
}

static void on_rest(void *arg)
{
    sched_jobs_ended(((struct daemon *)arg)->sched, mono_now());
}

static void on_idle(void *arg)
{
    loop_stop(((struct daemon *)arg)->loop);
}

static void on_password(void *arg, const char *text)
{
    (void)arg;
    log_err("event=password effect=\"the link goes on with the one that it has\" reason=\"%s\"",
            text);
}

struct link_events daemon_link_events(struct daemon *d)
{
    return (struct link_events){on_up,      on_down,   on_subscribed, on_wake,
                                on_changed, on_denied, on_password,   d};
}

struct store_events daemon_store_events(struct daemon *d)
{
    return (struct store_events){on_registered, on_beat,     on_reconciled, on_sync,
                                 on_looked,     on_fetched,  on_reaped,     on_tidied,
                                 on_left,       on_declared, on_error,      d};
}

struct runner_events daemon_runner_events(struct daemon *d)
{
    return (struct runner_events){on_ended, on_told, on_max_at_once, on_rest, on_idle, d};
}
