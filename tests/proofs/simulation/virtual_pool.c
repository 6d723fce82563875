#include "virtual_pool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "chain.h"
#include "serve/backends.h"
#include "ledger.h"
#include "trouble.h"

/* One handler, from its start to its end. */
struct run {
    struct run *next;
    struct pool *pool; /* NULL: an orphan */
    const struct worker *worker;
    size_t folder;
    unsigned place;
    uint64_t serial;
    char id[JOB_ID_LEN + 1];
    int64_t fence, grace_us;
    struct event *end, *kill;
    enum run_end how;
    int code;
    bool is_told, ignores_term, is_guarded;
    bool has_begun; /* false: the guard refused its lock */
};

struct place {
    struct run *run;
    void (*free_order)(void *);
    void *free_arg;
};

struct pool {
    struct worker *worker;
    struct pool_events events;
    unsigned nplaces;
    uint64_t serial;
    struct place *places;
};

/* The end of a run, under way to the main thread. */
struct told_end {
    struct pool *pool;
    unsigned place;
    struct run_report report;
};

static const struct plan *plan;
static struct run *runs;
static size_t nruns;

static void unlink_run(struct run *r)
{
    struct run **at = &runs;

    while (*at != r)
        at = &(*at)->next;
    *at = r->next;
    nruns--;
    world_cancel(r->end);
    world_cancel(r->kill);
    free(r);
}

/* ---- the end */

static void on_mail(void *arg)
{
    struct told_end m = *(struct told_end *)arg;
    struct place p = m.pool->places[m.place];

    free(arg);
    worker_did(m.pool->worker);
    m.pool->places[m.place] = (struct place){NULL, NULL, NULL};
    m.pool->events.ended(m.pool->events.arg, m.place, &m.report);
    buf_done(&m.report.result);
    children_done(&m.report.children);
    m.pool->events.rest(m.pool->events.arg);
    p.free_order(p.free_arg);
}

static const char *describe(enum run_end how)
{
    static const char *const texts[] = {"exit status",    "signal",  "timed out", "stopped",
                                        "told to cancel", "not run", "ill host"};

    return texts[how];
}

static void told_end_free(void *arg)
{
    struct told_end *m = arg;

    buf_done(&m->report.result);
    children_done(&m->report.children);
    free(m);
}

/* What this handler has added while it ran. Children have none, so that all ends. */
static void add_children(const struct run *r, struct children *c)
{
    const struct entry *e = ledger_find(r->id);

    if (e == NULL || e->is_child || !random_chance(plan->children))
        return;
    for (int64_t n = random_between(1, 3); n > 0; n--) {
        bool joins = e->batch > 0 && random_chance(600);
        char batch[16], payload[64];
        const char *words[4] = {plan_queue((unsigned)random_between(0, plan->queues - 1)), "batch",
                                batch, payload};
        size_t lens[4];

        (void)snprintf(batch, sizeof(batch), "b%d", e->batch);
        (void)snprintf(payload, sizeof(payload), CHAIN_CHILD "%s%s", r->id,
                       joins ? CHAIN_JOINS : "");
        if (!joins)
            words[1] = payload;
        for (size_t i = 0; i < 4; i++)
            lens[i] = strlen(words[i]);
        children_add(c, words, lens, joins ? 4 : 2);
    }
}

static void on_end(void *arg)
{
    struct run *r = arg;
    struct told_end *m;

    r->end = NULL;
    ledger_run_ended(r->fence);
    world_say("run of %s fence=%lld ends: %s %d", r->id, (long long)r->fence, describe(r->how),
              r->code);
    if (r->pool != NULL) {
        m = mem_new(sizeof(*m));
        m->pool = r->pool;
        m->place = r->place;
        m->report.end = r->how;
        m->report.code = r->code;
        m->report.retry_in_ms =
            r->how == RUN_EXITED && random_chance(100) ? random_between(0, 2000) : -1;
        m->report.started.us = r->how == RUN_HOST_ILL || !r->has_begun ? 0 : world.now_us;
        (void)snprintf(m->report.text, sizeof(m->report.text), "%s %d", describe(r->how), r->code);
        if (plan->chains > 0 && r->id[JOB_ID_LEN - 1] % 2 == 0)
            buf_puts(&m->report.result, "result");
        if (plan->children > 0)
            add_children(r, &m->report.children);
        r->pool->places[r->place].run = NULL;
        (void)world_in(random_between(5, 300), &r->pool->worker->owner, on_mail, m, told_end_free);
    }
    unlink_run(r);
}

static void end_in(struct run *r, int64_t us, enum run_end how, int code)
{
    world_cancel(r->end);
    r->how = how;
    r->code = code;
    r->end = world_in(us, NULL, on_end, r, NULL);
}

static void on_grace_over(void *arg)
{
    struct run *r = arg;

    r->kill = NULL;
    end_in(r, random_between(100, 5 * MS), r->how, 9);
}

/* Send TERM, and KILL after the grace time. A handler may finish its work in spite of TERM. */
static void tell(struct run *r, enum run_end how)
{
    if (r->is_told)
        return;
    r->is_told = true;
    if (r->ignores_term) {
        world_cancel(r->end);
        r->end = NULL;
        r->how = how;
        r->kill = world_in(r->grace_us, NULL, on_grace_over, r, NULL);
    } else if (random_chance(150)) {
        end_in(r, random_between(1 * MS, 300 * MS), how, 0);
    } else {
        end_in(r, random_between(1 * MS, 300 * MS), how, 15);
    }
}

static void on_timeout(void *arg)
{
    struct run *r = arg;

    r->end = NULL;
    tell(r, RUN_TIMED_OUT);
}

void pool_control(struct pool *pool, unsigned place, uint64_t serial, enum exec_control what)
{
    struct run *r = pool->places[place].run;

    if (r == NULL || r->serial != serial)
        return;
    world_say("kills %s%s", r->id, what == EXEC_CONTROL_KILL ? " at once" : "");
    if (what == EXEC_CONTROL_KILL) {
        r->is_told = true;
        world_cancel(r->kill);
        r->kill = NULL;
        end_in(r, random_between(100, 5 * MS), RUN_STOPPED, 9);
    } else {
        tell(r, what == EXEC_CONTROL_CANCEL ? RUN_CANCELLED : RUN_STOPPED);
    }
}

/* ---- the start */

static int64_t duration_us(void)
{
    if (plan->quick > 0 && random_chance(plan->quick))
        return random_between(200, 4 * MS);
    if (world.is_calm)
        return random_between(1 * MS, 50 * MS);
    return random_chance(250)   ? random_between(1 * MS, 5 * MS)
           : random_chance(200) ? random_between(2000 * MS, 9000 * MS)
                                : random_between(5 * MS, 1500 * MS);
}

/* Decide how it will end if nothing ends it earlier. */
static void give_fate(struct run *r, int64_t timeout_us)
{
    static const int codes[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 75, 75, 1, 1, 65};
    int64_t us = duration_us();
    bool is_wicked = plan->is_handler_wicked && !world.is_calm;

    r->ignores_term = is_wicked && random_chance(200);
    if (is_wicked && random_chance(50))
        end_in(r, random_between(10, 500), RUN_HOST_ILL, 11);
    else if (us > timeout_us || (is_wicked && random_chance(60)))
        r->end = world_in(timeout_us, NULL, on_timeout, r, NULL);
    else
        end_in(r, us, RUN_EXITED,
               world.is_calm ? 0 : codes[random_between(0, sizeof(codes) / sizeof(codes[0]) - 1)]);
}

static int64_t number_of(const struct exec_order *order, const char *name)
{
    for (size_t i = 0; order->envp[i] != NULL; i++) {
        size_t n = strlen(name);

        if (strncmp(order->envp[i], name, n) == 0 && order->envp[i][n] == '=')
            return atoll(order->envp[i] + n + 1);
    }
    return -1;
}

/* Every run of this pool tells how far it is, and where its next attempt goes on: numbers that
 * rise. */
static void on_words(void *arg)
{
    static int64_t last;
    struct pool *pool = arg;

    for (unsigned i = 0; i < pool->nplaces; i++) {
        struct run *r = pool->places[i].run;
        char text[24];

        if (r == NULL || !r->has_begun)
            continue;
        pool->events.told(pool->events.arg, i, r->serial, RUN_PROGRESS, "half");
        (void)snprintf(text, sizeof(text), "%lld", (long long)++last);
        ledger_checkpoint_told(r->fence, last);
        pool->events.told(pool->events.arg, i, r->serial, RUN_CHECKPOINT, text);
    }
}

uint64_t pool_start(struct pool *pool, unsigned place, const struct pool_order *what)
{
    const struct exec_order *order = what->exec;
    struct run *r = mem_new(sizeof(*r));

    worker_did(pool->worker);
    if (place >= pool->nplaces || pool->places[place].free_arg != NULL)
        world_break("places", "%s starts %s in place %u, which is taken", pool->worker->owner.name,
                    order->id, place);
    for (const struct run *o = runs; o != NULL; o = o->next) {
        if (o->pool == pool && strcmp(o->id, order->id) == 0)
            world_break("I2-two-runs", "%s starts %s while its former run still ends there",
                        pool->worker->owner.name, order->id);
    }
    *r = (struct run){.next = runs,
                      .pool = pool,
                      .worker = pool->worker,
                      .is_guarded = order->guard != NULL,
                      .folder = pool->worker->folder,
                      .place = place,
                      .serial = ++pool->serial,
                      .fence = number_of(order, "LATER_FENCE"),
                      .grace_us = order->kill_grace_ms * MS};
    (void)snprintf(r->id, sizeof(r->id), "%s", order->id);
    runs = r;
    nruns++;
    pool->places[place] = (struct place){r, what->free, what->arg};
    if (r->is_guarded && !guard_admits(order->guard)) {
        end_in(r, 0, RUN_STOPPED, 0);
        return r->serial;
    }
    r->has_begun = true;
    ledger_run_started(pool->worker, r->id, r->fence, number_of(order, "LATER_ATTEMPT"),
                       number_of(order, "LATER_ATTEMPTS_MAX"),
                       number_of(order, "LATER_CHECKPOINT"));
    give_fate(r, order->timeout_ms * MS);
    /* Some ids are poison for any worker. */
    if (plan->has_poison && r->id[JOB_ID_LEN - 1] % 4 == 0)
        trouble_poison(pool->worker);
    if (random_chance(150))
        (void)world_in(random_between(1 * MS, 500 * MS), &pool->worker->owner, on_words, pool,
                       NULL);
    return r->serial;
}

/* ---- pools */

struct pool *pool_new(struct loop *loop, unsigned nplaces, const struct pool_events *events,
                      struct err *err)
{
    struct pool *pool = mem_new(sizeof(*pool));

    (void)err;
    pool->worker = loop->worker;
    pool->events = *events;
    pool->nplaces = nplaces;
    pool->places = mem_new(nplaces * sizeof(*pool->places));
    return pool;
}

void pool_free(struct pool *pool)
{
    for (unsigned i = 0; i < pool->nplaces; i++) {
        if (pool->places[i].free_arg != NULL)
            pool->places[i].free_order(pool->places[i].free_arg);
        if (pool->places[i].run != NULL)
            pool->places[i].run->pool = NULL;
    }
    free(pool->places);
    free(pool);
}

void virtual_pool_orphan(struct worker *w, bool live_on)
{
    for (struct run *r = runs, *next; r != NULL; r = next) {
        next = r->next;
        if (r->pool == NULL || r->pool->worker != w)
            continue;
        r->pool->places[r->place].run = NULL;
        r->pool = NULL;
        if (!live_on) {
            ledger_run_ended(r->fence);
            unlink_run(r);
        }
    }
}

void virtual_pool_kill_locked(struct worker *w)
{
    for (struct run *r = runs, *next; r != NULL; r = next) {
        next = r->next;
        if (r->worker != w || !r->is_guarded)
            continue;
        world_say("the guard kills %s", r->id);
        if (r->pool != NULL) {
            end_in(r, 0, RUN_STOPPED, 0);
            ledger_run_ended(r->fence);
        } else {
            ledger_run_ended(r->fence);
            unlink_run(r);
        }
    }
}

static void kill_orphan(struct run *r)
{
    world_say("kills the orphan of %s", r->id);
    ledger_run_ended(r->fence);
    unlink_run(r);
}

void virtual_pool_kill_orphans(size_t folder)
{
    for (struct run *r = runs, *next; r != NULL; r = next) {
        next = r->next;
        if (r->pool == NULL && r->folder == folder)
            kill_orphan(r);
    }
}

void virtual_pool_kill_orphans_of(const struct worker *w)
{
    for (struct run *r = runs, *next; r != NULL; r = next) {
        next = r->next;
        if (r->pool == NULL && r->worker == w)
            kill_orphan(r);
    }
}

size_t virtual_pool_live(void)
{
    return nruns;
}

void virtual_pool_begin(const struct plan *p)
{
    plan = p;
}

void virtual_pool_end(void)
{
    while (runs != NULL)
        unlink_run(runs);
}

/* ---- backends: here every job has its own process */

struct backends {
    struct backends_events events;
};

struct backends *backends_new(struct loop *loop, struct pool *pool, const char *ns,
                              const struct backends_events *events)
{
    struct backends *b = mem_new(sizeof(*b));

    (void)loop;
    (void)pool;
    (void)ns;
    b->events = *events;
    return b;
}

void backends_free(struct backends *b)
{
    free(b);
}

void backends_set(struct backends *b, const struct served_queues *served, unsigned places)
{
    (void)b;
    (void)served;
    (void)places;
}

unsigned backends_max_at_once(struct backends *b, const struct served_queue *q, unsigned places)
{
    (void)b;
    (void)q;
    return places;
}

bool backends_can_run(struct backends *b, const struct served_queue *q)
{
    (void)b;
    (void)q;
    return true;
}

const char *backends_defect(struct backends *b, const struct served_queue *q)
{
    (void)b;
    (void)q;
    return NULL;
}

void backends_start_no_more(struct backends *b)
{
    (void)b;
}

struct backend *backends_take(struct backends *b, const char *queue)
{
    (void)b;
    (void)queue;
    return NULL;
}

void backends_put(struct backends *b, struct backend *at)
{
    (void)b;
    (void)at;
}

struct stream *backend_stream(const struct backend *at)
{
    (void)at;
    return NULL;
}

int64_t stream_start(struct stream *s, const struct stream_job *job)
{
    (void)s;
    (void)job;
    return 0;
}

void stream_control(struct stream *s, unsigned place, enum exec_control what)
{
    (void)s;
    (void)place;
    (void)what;
}

struct plugin *backend_plugin(const struct backend *at)
{
    (void)at;
    return NULL;
}

void backends_end(struct backends *b, bool at_once)
{
    (void)at_once;
    b->events.gone(b->events.arg);
}

bool pool_is_well(struct pool *pool, struct mono now, char *why, size_t size)
{
    (void)pool;
    (void)now;
    (void)why;
    (void)size;
    return true;
}
