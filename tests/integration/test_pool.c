/* The loop, the mailbox and the pool, with real threads, timers and processes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "loop/mailbox.h"
#include "run/pool/pool.h"

#define DEADLINE_MS 60000

static struct loop *loop;
static struct loop_timer *guard;

static void on_guard(void *arg)
{
    (void)arg;
    print_error("nothing happened for %d ms\n", DEADLINE_MS);
    abort();
}

static int setup(void **state)
{
    (void)state;
    (void)signal(SIGPIPE, SIG_IGN);
    log_init(LOG_LEVEL_ERR);
    loop = loop_new();
    guard = loop_timer_new(loop, on_guard, NULL);
    loop_timer_set(guard, DEADLINE_MS);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    loop_timer_free(guard);
    loop_free(loop);
    return 0;
}

/* ---- the loop ---- */

static void test_stop_before_run_holds(void **state)
{
    (void)state;
    loop_stop(loop);
    loop_run(loop);
}

struct ring {
    struct loop_alarm *alarm;
    struct loop_timer *timer;
    struct mono at, rang;
    int rings;
};

static void on_ring(void *arg)
{
    struct ring *r = arg;

    r->rang = mono_now();
    r->rings++;
    loop_stop(loop);
}

static void test_alarm_is_exact(void **state)
{
    struct ring r = {0};

    (void)state;
    r.alarm = loop_alarm_new(loop, on_ring, &r);
    for (int i = 1; i <= 10; i++) {
        r.at = mono_add_us(mono_now(), 2500);
        loop_alarm_set(r.alarm, r.at);
        loop_run(loop);
        assert_int_equal(r.rings, i);
        assert_false(mono_before(r.rang, r.at)); /* never early */
    }
    loop_alarm_set(r.alarm, (struct mono){-5}); /* the past: now */
    loop_run(loop);
    assert_int_equal(r.rings, 11);
    loop_alarm_free(r.alarm);
}

static void test_alarm_can_be_moved_and_switched_off(void **state)
{
    struct ring off = {0}, on = {0};

    (void)state;
    off.alarm = loop_alarm_new(loop, on_ring, &off);
    on.alarm = loop_alarm_new(loop, on_ring, &on);
    loop_alarm_set(off.alarm, mono_add_ms(mono_now(), 5));
    loop_alarm_set(off.alarm, MONO_NEVER);
    on.at = mono_add_ms(mono_now(), 30);
    loop_alarm_set(on.alarm, mono_add_ms(mono_now(), 1));
    loop_alarm_set(on.alarm, on.at);
    loop_run(loop);
    assert_int_equal(off.rings, 0);
    assert_int_equal(on.rings, 1);
    assert_false(mono_before(on.rang, on.at));
    loop_alarm_free(off.alarm);
    loop_alarm_free(on.alarm);
}

static void on_timer_free_itself(void *arg)
{
    struct ring *r = arg;

    assert_false(loop_timer_is_set(r->timer));
    loop_timer_free(r->timer);
    on_ring(r);
}

static void test_timer_counts_from_now(void **state)
{
    struct ring r = {0};
    struct mono set;

    (void)state;
    r.timer = loop_timer_new(loop, on_timer_free_itself, &r);
    assert_false(loop_timer_is_set(r.timer));
    /* The loop's own idea of the present time is older than this. */
    for (set = mono_now(); mono_until_us(set, mono_now()) < 20000;)
        continue;
    set = mono_now();
    loop_timer_set(r.timer, 10);
    assert_true(loop_timer_is_set(r.timer));
    loop_run(loop);
    assert_true(mono_until_us(set, r.rang) >= 9900);
}

struct fds {
    struct loop_fd *a, *b;
    int calls;
};

static void on_either(void *arg, int events)
{
    struct fds *f = arg;

    assert_int_equal(events, LOOP_READ);
    f->calls++;
    /* Both are ready in this turn: the callback of the one that is freed must not be called. */
    loop_fd_free(f->a);
    loop_fd_free(f->b);
    loop_stop(loop);
}

static void test_watchers_are_freed_in_callbacks(void **state)
{
    struct fds f = {0};
    int a[2], b[2];

    (void)state;
    assert_int_equal(pipe(a) | pipe(b), 0);
    assert_int_equal(write(a[1], "x", 1) + write(b[1], "x", 1), 2);
    f.a = loop_fd_new(loop, a[0], 0, on_either, &f);
    f.b = loop_fd_new(loop, b[0], LOOP_READ, on_either, &f);
    loop_fd_events(f.a, LOOP_READ);
    loop_run(loop);
    assert_int_equal(f.calls, 1);
    for (int i = 0; i < 2; i++)
        (void)(close(a[i]) | close(b[i]));
}

/* ---- the mailbox ---- */

#define POSTERS 4
#define POSTS 2000

struct letter {
    struct mail mail;
    int from, number;
};

struct office {
    struct mailbox *box;
    int next[POSTERS];
    int got, want;
};

struct poster {
    struct office *office;
    int number;
};

static void on_letter(void *arg, struct mail *mail)
{
    struct office *o = arg;
    struct letter *l = (struct letter *)mail;

    assert_int_equal(l->number, o->next[l->from]++); /* order is kept */
    free(l);
    if (++o->got == o->want)
        loop_stop(loop);
}

static void post(struct office *o, int from, int number)
{
    struct letter *l = mem_new(sizeof(*l));

    l->from = from;
    l->number = number;
    mailbox_post(o->box, &l->mail);
}

static void *post_all(void *arg)
{
    const struct poster *p = arg;

    for (int i = 0; i < POSTS; i++)
        post(p->office, p->number, i);
    return NULL;
}

static void test_mailbox_from_many_threads(void **state)
{
    struct office o = {.want = POSTERS * POSTS};
    struct poster posters[POSTERS];
    pthread_t threads[POSTERS];

    (void)state;
    o.box = mailbox_new(loop, on_letter, NULL, &o);
    for (int i = 0; i < POSTERS; i++) {
        posters[i] = (struct poster){&o, i};
        assert_int_equal(pthread_create(&threads[i], NULL, post_all, &posters[i]), 0);
    }
    loop_run(loop);
    for (int i = 0; i < POSTERS; i++)
        (void)pthread_join(threads[i], NULL);
    assert_int_equal(o.got, o.want);
    post(&o, 0, POSTS); /* not delivered by the loop, but by the free */
    mailbox_free(o.box);
    assert_int_equal(o.got, o.want + 1);
}

/* ---- the pool ---- */

#define PLACES 4
#define JOBS 60

/* Even jobs end by themselves, with their number as exit status. Odd ones report progress and are
 * then stopped. */
struct job {
    struct exec_order order;
    char *argv[5];
    char number[16];
};

struct bench {
    struct pool *pool;
    int started, done, freed;
    int current[PLACES];
    bool is_free[PLACES];
    uint64_t serial[PLACES], serial_before[PLACES];
};

static struct bench *the_bench;

static void free_job(void *arg)
{
    free(arg);
    the_bench->freed++;
}

static void start_job(struct bench *b, unsigned place)
{
    static char *const env[] = {NULL};
    struct job *j = mem_new(sizeof(*j));
    int n = b->started++;

    (void)snprintf(j->number, sizeof(j->number), "%d", n);
    j->argv[0] = (char *)"/bin/sh";
    j->argv[1] = (char *)"-c";
    j->argv[2] = n % 2 == 0 ? (char *)"exit $0" : (char *)"echo progress $0 >&3; exec sleep 600";
    j->argv[3] = j->number;
    j->order =
        (struct exec_order){"j", "q", j->argv, env, "payload", 7, INT64_MAX, 1000, NULL, 0, 0};
    b->current[place] = n;
    b->serial_before[place] = b->serial[place];
    b->serial[place] = pool_start(
        b->pool, place, &(struct pool_order){.exec = &j->order, .free = free_job, .arg = j});
    /* A control for the job before must not reach this one. */
    pool_control(b->pool, place, b->serial_before[place], EXEC_CONTROL_KILL);
}

static void on_ended(void *arg, unsigned place, const struct run_report *r)
{
    struct bench *b = arg;
    int n = b->current[place];

    assert_int_equal(r->end, n % 2 == 0 ? RUN_EXITED : RUN_STOPPED);
    assert_int_equal(r->code, n % 2 == 0 ? n : SIGTERM);
    b->done++;
    b->is_free[place] = true;
    if (b->done == JOBS)
        loop_stop(loop);
}

static void on_rest(void *arg)
{
    struct bench *b = arg;

    for (unsigned place = 0; place < PLACES && b->started < JOBS; place++) {
        if (b->is_free[place]) {
            b->is_free[place] = false;
            start_job(b, place);
        }
    }
}

static void on_told(void *arg, unsigned place, uint64_t serial, enum run_word word,
                    const char *text)
{
    struct bench *b = arg;

    assert_int_equal(serial, b->serial[place]);
    assert_int_equal(word, RUN_PROGRESS);
    assert_int_equal(atoi(text), b->current[place]);
    pool_control(b->pool, place, serial, EXEC_CONTROL_STOP);
}

static void test_pool_runs_jobs(void **state)
{
    struct bench b = {0};
    const struct pool_events events = {on_ended, on_told, on_rest, &b};
    struct err err = ERR_INIT;
    int probe = pidfd_open(getpid(), 0);

    (void)state;
    /* An emulated kernel (valgrind before 3.22, say) may not know pidfds. */
    if (probe < 0 && errno == ENOSYS)
        skip();
    (void)close(probe);
    the_bench = &b;
    b.pool = pool_new(loop, PLACES, &events, &err);
    assert_non_null(b.pool);
    for (unsigned place = 0; place < PLACES; place++)
        start_job(&b, place);
    loop_run(loop);
    assert_int_equal(b.done, JOBS);
    pool_free(b.pool);
    assert_int_equal(b.freed, JOBS);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no zombie */
}

static void nap(struct pool_task *task)
{
    (void)task;
    (void)poll(NULL, 0, 20);
}

/* An order takes the only place. Tasks run beside it, on the thread for tasks. */
struct crowd {
    struct pool *pool;
    uint64_t serial;
    unsigned tried;
};

static struct crowd *the_crowd;

static void on_tried(struct pool_task *task)
{
    (void)task;
    if (++the_crowd->tried == 2)
        pool_control(the_crowd->pool, 0, the_crowd->serial, EXEC_CONTROL_KILL);
}

static void on_killed(void *arg, unsigned place, const struct run_report *r)
{
    const struct crowd *c = arg;

    assert_int_equal(place, 0);
    assert_int_equal(r->end, RUN_STOPPED);
    assert_int_equal(c->tried, 2);
    loop_stop(loop);
}

static void test_pool_does_tasks_beside_orders(void **state)
{
    char *argv[] = {(char *)"/bin/sleep", (char *)"600", NULL};
    char *env[] = {NULL};
    const struct exec_order sleeper = {.argv = argv, .envp = env, .timeout_ms = INT64_MAX};
    struct pool_task task[2] = {{.run = nap, .done = on_tried}, {.run = nap, .done = on_tried}};
    struct crowd c = {.tried = 0};
    const struct pool_events events = {on_killed, NULL, NULL, &c};

    (void)state;
    the_crowd = &c;
    c.pool = pool_new(loop, 1, &events, NULL);
    assert_non_null(c.pool);
    c.serial = pool_start(c.pool, 0, &(struct pool_order){.exec = &sleeper});
    pool_do(c.pool, &task[0]);
    pool_do(c.pool, &task[1]);
    loop_run(loop);
    pool_free(c.pool);
}

/* Each task waits for all others, so they end only if each has a thread: the threads of all places,
 * and one for tasks. */
#define TASKS 17

struct meeting {
    struct pool_task task[TASKS];
    pthread_barrier_t barrier;
    int done;
};

static struct meeting *the_meeting;

static void meet(struct pool_task *task)
{
    (void)task;
    (void)pthread_barrier_wait(&the_meeting->barrier);
}

static void on_met(struct pool_task *task)
{
    (void)task;
    if (++the_meeting->done == TASKS)
        loop_stop(loop);
}

static void test_pool_has_a_thread_for_each(void **state)
{
    struct meeting m = {.done = 0};
    const struct pool_events events = {on_ended, NULL, NULL, NULL};
    struct pool *pool = pool_new(loop, TASKS - 1, &events, NULL);

    (void)state;
    the_meeting = &m;
    (void)pthread_barrier_init(&m.barrier, NULL, TASKS);
    for (int round = 1; round <= 3; round++) {
        m.done = 0;
        for (int i = 0; i < TASKS; i++) {
            m.task[i] = (struct pool_task){.run = meet, .done = on_met};
            pool_do(pool, &m.task[i]);
        }
        loop_run(loop);
        assert_int_equal(m.done, TASKS);
    }
    pool_free(pool);
    (void)pthread_barrier_destroy(&m.barrier);
}

/* pool_free waits for the tasks that are left, on whatever thread they run, and calls their done.
 * The second one gets a thread of its own, which the idle one makes when pool_free has begun. */
static void long_nap(struct pool_task *task)
{
    nap(task);
    nap(task);
    nap(task);
}

static void on_napped(struct pool_task *task)
{
    (void)task;
    the_meeting->done++;
}

static void test_pool_waits_for_its_tasks(void **state)
{
    const struct pool_events events = {on_ended, NULL, NULL, NULL};

    (void)state;
    for (int round = 0; round < 5; round++) {
        struct meeting m = {.done = 0};
        struct pool *pool = pool_new(loop, 1, &events, NULL);

        the_meeting = &m;
        (void)poll(NULL, 0, 5); /* the thread becomes idle in microseconds */
        for (int i = 0; i < 2; i++) {
            m.task[i] = (struct pool_task){.run = i == 0 ? nap : long_nap, .done = on_napped};
            pool_do(pool, &m.task[i]);
        }
        pool_free(pool);
        assert_int_equal(m.done, 2);
    }
}

static void test_pool_of_idle_threads(void **state)
{
    struct bench b = {0};
    const struct pool_events events = {on_ended, NULL, NULL, &b};
    struct err err = ERR_INIT;
    struct pool *pool = pool_new(loop, 16, &events, &err);

    (void)state;
    assert_non_null(pool);
    pool_free(pool);
    pool_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stop_before_run_holds),
        cmocka_unit_test(test_alarm_is_exact),
        cmocka_unit_test(test_alarm_can_be_moved_and_switched_off),
        cmocka_unit_test(test_timer_counts_from_now),
        cmocka_unit_test(test_watchers_are_freed_in_callbacks),
        cmocka_unit_test(test_mailbox_from_many_threads),
        cmocka_unit_test(test_pool_runs_jobs),
        cmocka_unit_test(test_pool_does_tasks_beside_orders),
        cmocka_unit_test(test_pool_has_a_thread_for_each),
        cmocka_unit_test(test_pool_waits_for_its_tasks),
        cmocka_unit_test(test_pool_of_idle_threads),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
