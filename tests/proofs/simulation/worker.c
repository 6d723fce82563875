#include "worker.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "foreign.h"
#include "ledger.h"
#include "virtual_guard.h"
#include "virtual_link.h"
#include "virtual_pool.h"

#define BUSY_MAX 100 /* in one millisecond */

/* The content of a worker's state folder: worker/state_folder.h without its file. */
struct state_folder {
    int64_t epoch, predecessor;
    bool is_taken;
};

static struct state_folder folders[WORKERS_FOLDERS];
static struct worker *workers[WORKERS_MAX];
static size_t nworkers;
static const struct plan *plan;
static struct conf *conf;

/* ---- worker/state_folder.h and worker/identity.h, virtual */

int64_t state_folder_predecessor(const struct state_folder *s)
{
    return s->predecessor;
}

void state_folder_set_epoch(struct state_folder *s, int64_t epoch)
{
    s->epoch = epoch;
}

void state_folder_set_fence(struct state_folder *s, unsigned place, int64_t fence)
{
    (void)s;
    (void)place;
    (void)fence;
}

bool identity_is_gone(const struct identity *me, const struct store_peer *peer)
{
    if (strcmp(me->host, peer->host) != 0)
        return false;
    for (size_t i = 0; i < nworkers; i++) {
        if (strcmp(workers[i]->d.me.process.pid, peer->pid) == 0)
            return workers[i]->owner.is_dead;
    }
    return true;
}

bool identity_is_of_other_boot(const struct identity *me, const struct store_peer *peer)
{
    (void)me;
    (void)peer;
    return false;
}

/* ---- worker/orphans.h, virtual */

struct orphans {
    struct worker *worker;
    orphans_f *cb;
    void *arg;
    struct event *event;
    int64_t epoch;
};

struct orphans *orphans_new(struct loop *loop, struct link *link, const char *ns,
                            const struct identity *me, orphans_f *cb, void *arg)
{
    struct orphans *r = mem_new(sizeof(*r));

    (void)link;
    (void)ns;
    (void)me;
    *r = (struct orphans){loop->worker, cb, arg, NULL, 0};
    return r;
}

void orphans_reset(struct orphans *r)
{
    world_cancel(r->event);
    r->event = NULL;
}

void orphans_free(struct orphans *r)
{
    if (r != NULL)
        orphans_reset(r);
    free(r);
}

static void on_searched(void *arg)
{
    struct orphans *r = arg;
    bool is_clear = false;

    r->event = NULL;
    worker_did(r->worker);
    for (size_t i = 0; i < nworkers; i++) {
        const struct worker *w = workers[i];

        if (!w->owner.is_dead || w->epoch != r->epoch ||
            strcmp(w->d.me.host, r->worker->d.me.host) != 0)
            continue;
        if (!virtual_guard_is_asleep())
            virtual_pool_kill_orphans_of(w);
        is_clear = true;
    }
    r->cb(r->arg, r->epoch, is_clear);
}

int orphans_end(struct orphans *r, int64_t epoch, bool may_be_past)
{
    (void)may_be_past;
    if (r->event != NULL)
        return -1;
    r->epoch = epoch;
    r->event = world_in(random_between(1000, 100000), &r->worker->owner, on_searched, r, NULL);
    return 0;
}

/* ---- the part of loop/loop.h that the daemon needs */

struct loop_alarm {
    struct worker *worker;
    struct event *event;
    loop_timer_f *cb;
    void *arg;
};

struct loop_alarm *loop_alarm_new(struct loop *loop, loop_timer_f *cb, void *arg)
{
    struct loop_alarm *a = mem_new(sizeof(*a));

    *a = (struct loop_alarm){loop->worker, NULL, cb, arg};
    return a;
}

static void on_alarm(void *arg)
{
    struct loop_alarm *a = arg;

    a->event = NULL;
    worker_did(a->worker);
    a->cb(a->arg);
}

void loop_alarm_set(struct loop_alarm *a, struct mono at)
{
    world_cancel(a->event);
    a->event = at.us == INT64_MAX
                   ? NULL
                   : world_at(at.us + random_between(1, 200), &a->worker->owner, on_alarm, a, NULL);
}

void loop_alarm_free(struct loop_alarm *a)
{
    if (a != NULL)
        world_cancel(a->event);
    free(a);
}

/* Handlers of this world have no steps: what they keep is told by checkpoints. */
void job_steps_registered(struct job_steps *s, int64_t epoch)
{
    (void)s;
    (void)epoch;
}

void job_steps_link_down(struct job_steps *s)
{
    (void)s;
}

static void tear_down(struct worker *w)
{
    struct daemon *d = &w->d;
    struct sched_status status;

    sched_status(d->sched, &status);
    w->epoch = status.epoch;
    w->owner.is_dead = true;
    virtual_guard_free(d->guard);
    d->guard = NULL;
    runner_free(d->runner);
    schedules_free(d->parts.schedules);
    foreign_queues_free(d->parts.foreign_queues);
    sched_free(d->sched);
    link_free(d->link);
    orphans_free(d->orphans);
    store_redis_free(d->store);
    unserved_done(&d->unserved);
    loop_alarm_free(d->alarm);
    if (d->state_folder != NULL)
        d->state_folder->is_taken = false;
    d->runner = NULL;
    d->parts.schedules = NULL;
    d->parts.foreign_queues = NULL;
    d->sched = NULL;
    d->link = NULL;
    d->orphans = NULL;
    d->store = NULL;
    d->alarm = NULL;
}

static void on_gone(void *arg)
{
    struct worker *w = arg;

    world_say("exits");
    tear_down(w);
}

/* The daemon is done: nothing runs any more. */
void loop_stop(struct loop *loop)
{
    (void)world_in(0, &loop->worker->owner, on_gone, loop->worker, NULL);
}

/* ---- settings */

static char *no_env[] = {NULL};

static void settings(void)
{
    struct err err = ERR_INIT;

    conf = conf_load(NULL, no_env, &err);
    if (conf == NULL)
        abort();
    conf->concurrency = plan->places;
    conf->stop_timeout = random_between(0, 4000);
    conf->redis_timeout = random_between(500, 5000);
    conf->defaults.attempts = LEDGER_ATTEMPTS;
    conf->defaults.crashes = LEDGER_CRASHES;
    conf->defaults.backoff_first = 200;
    conf->defaults.backoff_max = 3000;
    conf->defaults.timeout = 4000;
    conf->defaults.kill_grace = 500;
}

void workers_begin(const struct plan *p)
{
    plan = p;
    nworkers = 0;
    memset(folders, 0, sizeof(folders));
    settings();
}

void workers_end(void)
{
    for (size_t i = 0; i < nworkers; i++) {
        if (!workers[i]->owner.is_dead)
            tear_down(workers[i]);
    }
}

void workers_free(void)
{
    while (nworkers > 0)
        free(workers[--nworkers]);
    conf_free(conf);
    conf = NULL;
}

/* ---- life */

/* A folder belongs to one host. */
static void identify(struct worker *w, size_t folder)
{
    unsigned host = folder != SIZE_MAX ? WORKERS_MAX + (unsigned)folder : w->pid;

    struct identity *me = &w->d.me;

    (void)snprintf(me->host, sizeof(me->host), "host-%u", plan->same_host ? 0 : host);
    (void)snprintf(me->boot, sizeof(me->boot), "boot");
    (void)snprintf(me->process.pidns, sizeof(me->process.pidns), "1");
    (void)snprintf(me->process.pid, sizeof(me->process.pid), "%u", w->pid);
    (void)snprintf(me->process.pstart, sizeof(me->process.pstart), "1");
    (void)snprintf(me->instance, sizeof(me->instance), "instance-%u", w->pid);
}

/* Like serve() of daemon.c. */
static void serve(struct worker *w, unsigned queues)
{
    static char *argv[] = {(char *)(uintptr_t) "/bin/true", NULL};
    struct queue_spec specs[PLAN_QUEUES];
    size_t n = 0;

    for (unsigned i = 0; i < plan->queues; i++) {
        struct served_queue *q = &w->served_at[n];

        if ((queues & (1U << i)) == 0)
            continue;
        (void)snprintf(q->name, sizeof(q->name), "%s", plan_queue(i));
        q->argv = argv;
        q->env = no_env;
        q->conf = plan->members > 0 && i == 0 ? foreign_conf(&conf->defaults) : &conf->defaults;
        specs[n++] = (struct queue_spec){q->name, plan->places, i + 1, conf->defaults.max_payload,
                                         (plan->fair & (1U << i)) != 0};
    }
    w->served = (struct served_queues){.at = w->served_at, .n = n};
    runner_set(w->d.runner, conf, &w->served);
    foreign_queues_set(w->d.parts.foreign_queues, &w->served);
    sched_set_queues(w->d.sched, mono_now(), specs, n);
}

/* Like daemon.c. */
static void build(struct worker *w)
{
    struct daemon *d = &w->d;
    struct link_events link_events = daemon_link_events(d);
    struct store_events store_events = daemon_store_events(d);
    struct runner_events runner_events = daemon_runner_events(d);
    struct sched_conf sched_conf = {plan->places, SCHED_AHEAD_US, conf->stop_timeout, true};
    struct err err = ERR_INIT;

    d->conf = conf;
    d->loop = &w->loop;
    d->served = &w->served;
    d->link = link_new(d->loop, &d->url, "default", conf->redis_timeout, &link_events);
    d->alarm_at = MONO_NEVER;
    d->alarm = loop_alarm_new(d->loop, daemon_on_alarm, d);
    d->orphans = orphans_new(d->loop, d->link, "default", &d->me, daemon_on_orphans_ended, d);
    d->store = store_redis_new(d->link, "default", &store_events);
    /* Not by default: a run without schedules goes as it did before there were any. */
    if (plan->schedules > 0)
        d->parts.schedules =
            schedules_new(d->loop, d->link, d->store, "default", conf->redis_timeout);
    if (plan->members > 0)
        d->parts.foreign_queues =
            foreign_queues_new(d->loop, d->link, "default", conf->redis_timeout);
    d->runner = runner_new(d->loop, plan->places, "default", d->state_folder, &runner_events, &err);
    d->guard = virtual_guard_new(w);
    runner_set_guard(d->runner, d->guard);
    d->sched = sched_new(&sched_conf, &daemon_ops, d);
    serve(w, ~0U);
    link_start(d->link);
}

struct worker *worker_start(size_t folder)
{
    const struct owner *was = world.current;
    struct worker *w;

    if (nworkers == WORKERS_MAX)
        return NULL;
    w = mem_new(sizeof(*w));
    w->pid = (unsigned)nworkers + 1;
    (void)snprintf(w->owner.name, sizeof(w->owner.name), "w%u", w->pid);
    w->loop.worker = w;
    w->last_beat_us = world.now_us;
    workers[nworkers++] = w;
    identify(w, folder);
    world.current = &w->owner;
    if (folder != SIZE_MAX) {
        w->d.state_folder = &folders[folder];
        folders[folder].is_taken = true;
        folders[folder].predecessor = folders[folder].epoch;
        virtual_pool_kill_orphans(folder);
    }
    w->folder = folder;
    world_say("starts folder=%d", folder == SIZE_MAX ? -1 : (int)folder);
    build(w);
    world.current = was;
    return w;
}

void worker_crash(struct worker *w, bool has_orphans)
{
    world_say("%s crashes%s", w->owner.name, has_orphans ? ", its handlers live on" : "");
    virtual_pool_orphan(w, has_orphans);
    /* The guard notices at once. */
    virtual_guard_alone(w);
    tear_down(w);
}

void worker_freeze(struct worker *w, int64_t us)
{
    world_say("%s is stopped by SIGSTOP for %lld ms", w->owner.name, (long long)(us / MS));
    /* Never shorten it: events for its end are planned already. */
    if (world.now_us + us > w->owner.frozen_until)
        w->owner.frozen_until = world.now_us + us;
}

void worker_cut_off(struct worker *w, int64_t us)
{
    world_say("%s does not reach Redis for %lld ms", w->owner.name, (long long)(us / MS));
    w->cut_off_until = world.now_us + us;
    virtual_link_break(w->d.link);
}

static void on_term(void *arg)
{
    struct worker *w = arg;

    schedules_stop(w->d.parts.schedules);
    foreign_queues_stop(w->d.parts.foreign_queues);
    sched_stop(w->d.sched, mono_now());
}

static void on_usr1(void *arg)
{
    struct worker *w = arg;

    sched_quiet(w->d.sched, mono_now());
}

/* Signals are events of the worker: a frozen worker gets them when it wakes. */
void worker_stop(struct worker *w)
{
    w->is_stopping = true;
    (void)world_in(0, &w->owner, on_term, w, NULL);
}

void worker_quiet(struct worker *w)
{
    w->is_quiet = true;
    (void)world_in(0, &w->owner, on_usr1, w, NULL);
}

struct reload {
    struct worker *worker;
    unsigned queues;
};

static void on_hup(void *arg)
{
    struct reload r = *(struct reload *)arg;

    free(arg);
    world_say("reloads queues=%x", r.queues);
    serve(r.worker, r.queues);
}

void worker_serve(struct worker *w, unsigned queues)
{
    struct reload *r = mem_new(sizeof(*r));

    w->is_reloaded = true;
    *r = (struct reload){w, queues};
    (void)world_in(0, &w->owner, on_hup, r, free);
}

/* ---- the workers */

size_t workers_count(void)
{
    return nworkers;
}

struct worker *worker_at(size_t i)
{
    return workers[i];
}

struct worker *worker_any(void)
{
    size_t n = 0;

    for (size_t i = 0; i < nworkers; i++)
        n += !workers[i]->owner.is_dead;
    if (n == 0)
        return NULL;
    n = (size_t)random_between(1, (int64_t)n);
    for (size_t i = 0; i < nworkers; i++) {
        if (!workers[i]->owner.is_dead && --n == 0)
            return workers[i];
    }
    return NULL;
}

bool worker_folder_is_free(size_t folder)
{
    return !folders[folder].is_taken;
}

void worker_did(struct worker *w)
{
    if (w->busy_ms != world.now_us / MS) {
        w->busy_ms = world.now_us / MS;
        w->busy = 0;
    }
    if (++w->busy > BUSY_MAX)
        world_break("busy-loop", "%s did %u things in one millisecond", w->owner.name, w->busy);
}
