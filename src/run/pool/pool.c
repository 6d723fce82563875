#include "run/pool/pool.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/thread.h"
#include "run/pool/stall.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define STACK_BYTES (4096 * 1024) /* red zones and shadow frames */
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define STACK_BYTES (4096 * 1024)
#endif
#endif
#ifndef STACK_BYTES
#define STACK_BYTES (256 * 1024)
#endif

#define ROUSING_MAX 2 /* threads that are roused at the same time; each rouses the next */
#define READY 16      /* so many places and threads, if there are so many, are made at the start */
#define LONG_MS 1     /* quick work that waits longer is not quick: rouse one more thread */

struct pool_place {
    struct pool_work work; /* first */
    struct pool *pool;
    unsigned index;
    struct exec_slot *exec; /* created at the start, or with the first order */
    struct pool_order order;
    struct run_report report;
    bool busy;       /* main thread only: from pool_start until `ended` has returned */
    uint64_t serial; /* of the order */
};

struct pool_thread {
    struct pool *pool;
    pthread_t thread;
    pthread_cond_t rouse;
    struct pool_thread *below; /* next in the stack of idle threads */
    bool is_roused;
};

struct pool {
    struct mailbox *box;
    struct pool_events events;
    unsigned nplaces;
    struct pool_place *places;
    struct loop_hook *hand_over;
    struct loop_timer *check;
    struct pool_work *new_first, **new_end; /* started in this iteration of the loop */
    struct stall_work stall;

    pthread_mutex_t mu; /* protects what follows; innermost but for libc's and the log's */
    struct pool_work *first, **end; /* the queue of waiting work */
    struct pool_thread *threads;
    struct pool_thread *idle; /* a stack: the thread that slept least has the warmest caches */
    unsigned nthreads, waking;
    uint64_t taken;
    bool quit;
};

struct pool_told {
    struct pool_work work; /* first */
    unsigned place;
    uint64_t serial;
    enum run_word word;
    char *text;
};

/* ---- reports, on the main thread */

static void on_ended(struct pool *pool, struct pool_place *at)
{
    pool->events.ended(pool->events.arg, at->index, &at->report);
    run_report_done(&at->report);
    if (at->order.free != NULL)
        at->order.free(at->order.arg);
    at->busy = false;
}

static void on_told(const struct pool *pool, struct pool_told *p)
{
    if (pool->events.told != NULL)
        pool->events.told(pool->events.arg, p->place, p->serial, p->word, p->text);
    free(p->text);
    free(p);
}

static void on_mail(void *arg, struct mail *mail)
{
    struct pool_work *w = (struct pool_work *)mail;
    struct pool_task *task = (struct pool_task *)mail;

    switch (w->kind) {
    case POOL_PLACE:
        on_ended(arg, (struct pool_place *)mail);
        break;
    case POOL_TOLD:
        on_told(arg, (struct pool_told *)mail);
        break;
    case POOL_TASK:
        task->done(task);
        break;
    }
}

static void on_rest(void *arg)
{
    const struct pool *pool = arg;

    if (pool->events.rest != NULL)
        pool->events.rest(pool->events.arg);
}

/* ---- on the threads */

static void on_word(void *arg, enum run_word word, const char *text, size_t n)
{
    const struct pool_place *at = arg;
    struct pool_told *p = mem_new(sizeof(*p));

    p->work.kind = POOL_TOLD;
    p->place = at->index;
    p->serial = at->serial;
    p->word = word;
    p->text = mem_dup(text, n);
    mailbox_post(at->pool->box, &p->work.mail);
}

static void run_place(struct pool_place *at)
{
    const struct exec_hooks hooks = {NULL, NULL, on_word, at};

    if (at->exec == NULL) {
        at->report.end = RUN_HOST_ILL;
        (void)snprintf(at->report.text, sizeof(at->report.text),
                       "cannot start: no descriptor is left");
    } else if (at->order.plugin != NULL) {
        plugin_run(at->order.plugin, at->exec, &hooks, &at->report);
    } else {
        exec_run(at->order.exec, at->exec, &hooks, &at->report);
    }
}

static void run(struct pool *pool, struct pool_work *w)
{
    if (w->kind == POOL_PLACE)
        run_place((struct pool_place *)w);
    else
        ((struct pool_task *)w)->run((struct pool_task *)w);
    mailbox_post(pool->box, &w->mail);
}

static struct pool_thread *one_more(struct pool *pool);
static void rouse(struct pool_thread *t);

/* Wait for work and take it; NULL: the pool is closing. Under the lock. *ret_next: as one_more
 * returns. */
static struct pool_work *take(struct pool *pool, struct pool_thread *me,
                              struct pool_thread **ret_next)
{
    struct pool_work *w;

    *ret_next = NULL;
    while (pool->first == NULL) {
        if (pool->quit)
            return NULL;
        me->below = pool->idle;
        pool->idle = me;
        while (!me->is_roused)
            (void)pthread_cond_wait(&me->rouse, &pool->mu);
        me->is_roused = false;
        pool->waking--;
    }
    w = pool->first;
    pool->first = w->next;
    pool->taken++;
    if (pool->first == NULL)
        pool->end = &pool->first;
    else if (!pool->first->is_quick)
        *ret_next = one_more(pool);
    return w;
}

static void *thread_main(void *arg)
{
    struct pool_thread *me = arg;
    struct pool *pool = me->pool;
    struct pool_thread *next;
    struct pool_work *w;

    (void)pthread_mutex_lock(&pool->mu);
    pool->waking--;
    while ((w = take(pool, me, &next)) != NULL) {
        (void)pthread_mutex_unlock(&pool->mu);
        rouse(next);
        run(pool, w);
        (void)pthread_mutex_lock(&pool->mu);
    }
    (void)pthread_mutex_unlock(&pool->mu);
    return NULL;
}

/* ---- threads, under the lock */

static int add_thread(struct pool *pool)
{
    struct pool_thread *t = &pool->threads[pool->nthreads];
    char name[16];
    int e;

    t->pool = pool;
    e = thread_start(thread_main, t, STACK_BYTES, &t->thread);
    if (e != 0)
        return e;
    (void)snprintf(name, sizeof(name), "later-job-%u", pool->nthreads);
    (void)pthread_setname_np(t->thread, name);
    pool->nthreads++;
    pool->waking++;
    return 0;
}

static struct pool_thread *take_idle(struct pool *pool)
{
    struct pool_thread *t = pool->idle;

    pool->idle = t->below;
    pool->waking++;
    t->is_roused = true;
    return t;
}

/* Call it after unlocking: the thread takes the lock as soon as it is awake. NULL is fine. */
static void rouse(struct pool_thread *t)
{
    if (t != NULL)
        (void)pthread_cond_signal(&t->rouse);
}

/* One more thread for the waiting work, idle or new. Returns the thread to rouse after unlocking;
 * NULL: none. If no thread can be created, the work waits for an existing one; so it does in a pool
 * that closes, which joins the threads that it has. */
static struct pool_thread *one_more(struct pool *pool)
{
    int e;

    if (pool->waking >= ROUSING_MAX || pool->quit)
        return NULL;
    if (pool->idle != NULL)
        return take_idle(pool);
    if (pool->nthreads < pool->nplaces + (pool->first->kind == POOL_TASK)) {
        e = add_thread(pool);
        if (e != 0)
            log_warn("event=pool threads=%u reason=\"cannot make another thread: %s\"",
                     pool->nthreads, strerrordesc_np(e));
    }
    return NULL;
}

/* ---- from the main thread */

/* Is a thread awake? It will take the work when it is done with its own. */
static bool has_awake(const struct pool *pool)
{
    unsigned idle = 0;

    for (const struct pool_thread *t = pool->idle; t != NULL; t = t->below)
        idle++;
    return idle < pool->nthreads;
}

static void hand_over(void *arg)
{
    struct pool *pool = arg;
    struct pool_thread *next = NULL;

    if (pool->new_first == NULL)
        return;
    (void)pthread_mutex_lock(&pool->mu);
    *pool->end = pool->new_first;
    pool->end = pool->new_end;
    if (!pool->first->is_quick || !has_awake(pool))
        next = one_more(pool);
    (void)pthread_mutex_unlock(&pool->mu);
    rouse(next);
    pool->new_first = NULL;
    pool->new_end = &pool->new_first;
    if (!loop_timer_is_set(pool->check))
        loop_timer_set(pool->check, LONG_MS);
}

static void on_check(void *arg)
{
    struct pool *pool = arg;
    struct pool_thread *next = NULL;
    bool is_waiting;

    (void)pthread_mutex_lock(&pool->mu);
    is_waiting = pool->first != NULL;
    if (is_waiting)
        next = one_more(pool);
    (void)pthread_mutex_unlock(&pool->mu);
    rouse(next);
    if (is_waiting)
        loop_timer_set(pool->check, LONG_MS);
}

static void submit(struct pool *pool, struct pool_work *w, bool is_quick)
{
    w->next = NULL;
    w->is_quick = is_quick;
    *pool->new_end = w;
    pool->new_end = &w->next;
}

/* ---- create and free */

static void init(struct pool *pool, unsigned nplaces)
{
    pool->nplaces = nplaces;
    pool->places = mem_new(nplaces * sizeof(*pool->places));
    pool->threads = mem_new((nplaces + 1) * sizeof(*pool->threads));
    pool->end = &pool->first;
    pool->new_end = &pool->new_first;
    (void)pthread_mutex_init(&pool->mu, NULL);
    for (unsigned i = 0; i < nplaces; i++) {
        pool->places[i].work.kind = POOL_PLACE;
        pool->places[i].pool = pool;
        pool->places[i].index = i;
    }
    for (unsigned i = 0; i <= nplaces; i++)
        (void)pthread_cond_init(&pool->threads[i].rouse, NULL);
}

/* Create the first n places and threads. A daemon that cannot have these has to fail at once. */
static int make_ready(struct pool *pool, unsigned n, struct err *err)
{
    int e = 0;

    for (unsigned i = 0; i < n; i++) {
        pool->places[i].exec = exec_slot_new();
        if (pool->places[i].exec == NULL)
            return err_sys(err, errno, "cannot make place %u of the pool", i);
    }
    (void)pthread_mutex_lock(&pool->mu);
    while (e == 0 && pool->nthreads < n)
        e = add_thread(pool);
    (void)pthread_mutex_unlock(&pool->mu);
    if (e != 0)
        return err_sys(err, e, "cannot start pool thread %u of %u", pool->nthreads, n);
    return 0;
}

struct pool *pool_new(struct loop *loop, unsigned nplaces, const struct pool_events *events,
                      struct err *err)
{
    struct pool *pool = mem_new(sizeof(*pool));

    init(pool, nplaces);
    pool->events = *events;
    pool->box = mailbox_new(loop, on_mail, on_rest, pool);
    if (pool->box == NULL) {
        (void)err_sys(err, errno, "cannot make the pool's mailbox");
        goto fail;
    }
    pool->hand_over = loop_hook_new(loop, LOOP_HOOK_GATHERED, hand_over, pool);
    pool->check = loop_timer_new(loop, on_check, pool);
    if (make_ready(pool, nplaces < READY ? nplaces : READY, err) == 0)
        return pool;
fail:
    pool_free(pool);
    return NULL;
}

static void stop_threads(struct pool *pool)
{
    unsigned n;

    (void)pthread_mutex_lock(&pool->mu);
    pool->quit = true;
    while (pool->idle != NULL)
        rouse(take_idle(pool));
    n = pool->nthreads;
    (void)pthread_mutex_unlock(&pool->mu);
    for (unsigned i = 0; i < n; i++)
        (void)pthread_join(pool->threads[i].thread, NULL);
}

void pool_free(struct pool *pool)
{
    if (pool == NULL)
        return;
    hand_over(pool);
    stop_threads(pool);
    loop_hook_free(pool->hand_over);
    loop_timer_free(pool->check);
    mailbox_free(pool->box);
    for (unsigned i = 0; i < pool->nplaces; i++) {
        assert(!pool->places[i].busy);
        exec_slot_free(pool->places[i].exec);
    }
    for (unsigned i = 0; i <= pool->nplaces; i++)
        (void)pthread_cond_destroy(&pool->threads[i].rouse);
    (void)pthread_mutex_destroy(&pool->mu);
    free(pool->threads);
    free(pool->places);
    free(pool);
}

/* ---- orders */

uint64_t pool_start(struct pool *pool, unsigned place, const struct pool_order *order)
{
    struct pool_place *at = &pool->places[place];

    assert(place < pool->nplaces && !at->busy);
    if (at->exec == NULL)
        at->exec = exec_slot_new();
    at->serial = at->exec != NULL ? exec_slot_arm(at->exec) : 0;
    at->busy = true;
    at->order = *order;
    run_report_init(&at->report);
    submit(pool, &at->work, order->plugin != NULL && plugin_is_quick(order->plugin->plugin));
    return at->serial;
}

void pool_control(struct pool *pool, unsigned place, uint64_t serial, enum exec_control what)
{
    if (pool->places[place].exec != NULL)
        exec_slot_control(pool->places[place].exec, serial, what);
}

/* Only for jobs: tasks have no time limit, and are short. */
static int64_t overdue_ms(const struct pool_place *at, struct mono now)
{
    const struct exec_order *e = at->order.exec;
    struct stall_job job = {.timeout_ms = at->order.plugin != NULL ? at->order.plugin->timeout_ms
                                                                   : e->timeout_ms,
                            .kill_grace_ms = at->order.plugin != NULL ? 0 : e->kill_grace_ms};

    exec_slot_heard(at->exec, &job.started, &job.said);
    return stall_overdue_ms(&job, now);
}

bool pool_is_well(struct pool *pool, struct mono now, char *why, size_t size)
{
    bool is_waiting, is_free;
    uint64_t taken;
    int64_t ms;

    for (unsigned i = 0; i < pool->nplaces; i++) {
        const struct pool_place *at = &pool->places[i];

        if (!at->busy || at->exec == NULL || (ms = overdue_ms(at, now)) <= 0)
            continue;
        (void)snprintf(why, size,
                       "job %s of queue %s should have ended %lld s ago, and its thread "
                       "says nothing",
                       at->order.plugin != NULL ? at->order.plugin->job.id : at->order.exec->id,
                       at->order.plugin != NULL ? at->order.plugin->job.queue
                                                : at->order.exec->queue,
                       (long long)((ms + STALL_MARGIN_MS) / 1000));
        return false;
    }
    (void)pthread_mutex_lock(&pool->mu);
    is_waiting = pool->first != NULL;
    is_free = pool->idle != NULL || pool->waking > 0;
    taken = pool->taken;
    (void)pthread_mutex_unlock(&pool->mu);
    if (!stall_work(&pool->stall, is_waiting, is_free, taken, now))
        return true;
    (void)snprintf(why, size, "work waits, threads are free, and none takes it");
    return false;
}

void pool_do(struct pool *pool, struct pool_task *task)
{
    task->work.kind = POOL_TASK;
    submit(pool, &task->work, false);
}
