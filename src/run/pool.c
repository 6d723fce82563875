#include "run/pool.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "loop/mailbox.h"

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

/* An order on its way: set by the main thread, taken by the slot's thread. */
struct pool_work {
    const struct exec_order *order; /* NULL: none */
    uint64_t serial;
    void (*free_order)(void *);
    void *free_arg;
};

struct pool_slot {
    struct pool *pool;
    unsigned index;
    struct exec_slot *exec;
    pthread_t thread;
    bool has_thread;
    bool busy;          /* main thread only: from pool_start until done is called */
    uint64_t serial;    /* pool thread only: of the job that runs */
    pthread_mutex_t mu; /* guards work and quit; a leaf */
    pthread_cond_t wake;
    struct pool_work work;
    bool quit;
};

struct pool {
    struct mailbox *box;
    struct pool_events events;
    unsigned nslots;
    struct pool_slot *slots;
};

enum pool_mail_kind { POOL_PROGRESS, POOL_DONE };

struct pool_mail {
    struct mail mail; /* first */
    enum pool_mail_kind kind;
    unsigned slot;
    struct pool_work work; /* DONE: to be freed; PROGRESS: its serial */
    struct exec_result result;
    char *text;
};

static struct pool_mail *mail_new(enum pool_mail_kind kind, unsigned slot)
{
    struct pool_mail *m = mem_new(sizeof(*m));

    m->kind = kind;
    m->slot = slot;
    exec_result_init(&m->result);
    return m;
}

static void mail_free(struct pool_mail *m)
{
    exec_result_done(&m->result);
    free(m->text);
    free(m);
}

/* Main thread. The slot is free before done is called, which may start the next job on it. */
static void on_mail(void *arg, struct mail *mail)
{
    struct pool *pool = arg;
    struct pool_mail *m = (struct pool_mail *)mail;

    if (m->kind == POOL_PROGRESS) {
        if (pool->events.progress != NULL)
            pool->events.progress(pool->events.arg, m->slot, m->work.serial, m->text);
    } else {
        pool->slots[m->slot].busy = false;
        pool->events.done(pool->events.arg, m->slot, &m->result);
        if (m->work.free_order != NULL)
            m->work.free_order(m->work.free_arg);
    }
    mail_free(m);
}

static void on_rest(void *arg)
{
    const struct pool *pool = arg;

    if (pool->events.rest != NULL)
        pool->events.rest(pool->events.arg);
}

static void on_progress(void *arg, const char *text, size_t n)
{
    const struct pool_slot *s = arg;
    struct pool_mail *m = mail_new(POOL_PROGRESS, s->index);

    m->work.serial = s->serial;
    m->text = mem_dup(text, n);
    mailbox_post(s->pool->box, &m->mail);
}

/* False: the pool is closing. */
static bool take_work(struct pool_slot *s, struct pool_work *ret)
{
    bool got;

    (void)pthread_mutex_lock(&s->mu);
    while (s->work.order == NULL && !s->quit)
        (void)pthread_cond_wait(&s->wake, &s->mu);
    *ret = s->work;
    s->work.order = NULL;
    got = ret->order != NULL;
    (void)pthread_mutex_unlock(&s->mu);
    return got;
}

static void *thread_main(void *arg)
{
    struct pool_slot *s = arg;
    const struct exec_hooks hooks = {NULL, NULL, on_progress, s};
    struct pool_work work;

    while (take_work(s, &work)) {
        struct pool_mail *m = mail_new(POOL_DONE, s->index);

        s->serial = work.serial;
        exec_run(work.order, s->exec, &hooks, &m->result);
        m->work = work;
        mailbox_post(s->pool->box, &m->mail);
    }
    return NULL;
}

static int slot_start(struct pool_slot *s, const pthread_attr_t *attr, struct err *err)
{
    char name[16];
    int e;

    s->exec = exec_slot_new();
    if (s->exec == NULL)
        return err_sys(err, errno, "cannot make pool slot %u", s->index);
    e = pthread_create(&s->thread, attr, thread_main, s);
    if (e != 0)
        return err_sys(err, e, "cannot start pool thread %u of %u", s->index, s->pool->nslots);
    s->has_thread = true;
    (void)snprintf(name, sizeof(name), "job-%u", s->index);
    (void)pthread_setname_np(s->thread, name);
    return 0;
}

/* All signals are the main thread's: threads inherit the mask they are born under. */
static int start_threads(struct pool *pool, struct err *err)
{
    sigset_t all, was;
    pthread_attr_t attr;
    int rc = 0;

    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &was);
    (void)pthread_attr_init(&attr);
    (void)pthread_attr_setstacksize(&attr, STACK_BYTES);
    for (unsigned i = 0; rc == 0 && i < pool->nslots; i++)
        rc = slot_start(&pool->slots[i], &attr, err);
    (void)pthread_attr_destroy(&attr);
    (void)pthread_sigmask(SIG_SETMASK, &was, NULL);
    return rc;
}

struct pool *pool_new(struct loop *loop, unsigned nslots, const struct pool_events *events,
                      struct err *err)
{
    struct pool *pool = mem_new(sizeof(*pool));

    pool->events = *events;
    pool->nslots = nslots;
    pool->slots = mem_new(nslots * sizeof(*pool->slots));
    for (unsigned i = 0; i < nslots; i++) {
        pool->slots[i].pool = pool;
        pool->slots[i].index = i;
        (void)pthread_mutex_init(&pool->slots[i].mu, NULL);
        (void)pthread_cond_init(&pool->slots[i].wake, NULL);
    }
    pool->box = mailbox_new(loop, on_mail, on_rest, pool);
    if (pool->box == NULL) {
        (void)err_sys(err, errno, "cannot make the pool's mailbox");
        goto fail;
    }
    if (start_threads(pool, err) != 0)
        goto fail;
    return pool;
fail:
    pool_free(pool);
    return NULL;
}

static void slot_stop(struct pool_slot *s)
{
    assert(!s->busy);
    (void)pthread_mutex_lock(&s->mu);
    s->quit = true;
    (void)pthread_cond_signal(&s->wake);
    (void)pthread_mutex_unlock(&s->mu);
    if (s->has_thread)
        (void)pthread_join(s->thread, NULL);
    exec_slot_free(s->exec);
    (void)pthread_mutex_destroy(&s->mu);
    (void)pthread_cond_destroy(&s->wake);
}

void pool_free(struct pool *pool)
{
    if (pool == NULL)
        return;
    for (unsigned i = 0; i < pool->nslots; i++)
        slot_stop(&pool->slots[i]);
    mailbox_free(pool->box);
    free(pool->slots);
    free(pool);
}

uint64_t pool_start(struct pool *pool, unsigned slot, const struct exec_order *order,
                    void (*free_order)(void *), void *free_arg)
{
    struct pool_slot *s = &pool->slots[slot];
    uint64_t serial;

    assert(slot < pool->nslots && !s->busy);
    serial = exec_slot_arm(s->exec);
    s->busy = true;
    (void)pthread_mutex_lock(&s->mu);
    s->work = (struct pool_work){order, serial, free_order, free_arg};
    (void)pthread_cond_signal(&s->wake);
    (void)pthread_mutex_unlock(&s->mu);
    return serial;
}

void pool_control(struct pool *pool, unsigned slot, uint64_t serial, enum exec_control what)
{
    exec_slot_control(pool->slots[slot].exec, serial, what);
}
