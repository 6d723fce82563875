/* Stream mode: how many processes are kept, which one gets a job, and when the next is started. The
 * processes and the timer are fakes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "run/stream/stream.h"
#include "run/stream/stream_proc.h"

/* ---- fake processes */

struct stream_proc {
    const struct stream_proc_events *events;
    bool is_ready, is_ended, is_retired, is_worn, is_killed, has_failed;
    unsigned inflight, running;
    int64_t served;
};

#define PROCS_MAX 64

static struct stream_proc *procs[PROCS_MAX]; /* in the order they were made; NULL: gone */
static unsigned nprocs, killed, told_places[8], ntold, rests, closed;
static int capacity;     /* as told last; -1: not told */
static int64_t timer_ms; /* -1: not set */
static void (*on_timer)(void *arg);
static void *timer_arg;
static struct stream *stream;

struct stream_proc *stream_proc_new(struct loop *loop, struct pool *pool,
                                    const struct stream_conf *conf,
                                    const struct stream_proc_events *events)
{
    struct stream_proc *p = mem_new(sizeof(*p));

    (void)loop;
    (void)pool;
    (void)conf;
    p->events = events;
    assert_true(nprocs < PROCS_MAX);
    procs[nprocs++] = p;
    return p;
}

unsigned stream_proc_free_places(const struct stream_proc *p)
{
    return stream_proc_is_ready(p) ? p->inflight - p->running : 0;
}

unsigned stream_proc_inflight(const struct stream_proc *p)
{
    return p->inflight;
}

unsigned stream_proc_running(const struct stream_proc *p)
{
    return p->running;
}

int64_t stream_proc_served(const struct stream_proc *p)
{
    return p->served;
}

bool stream_proc_is_ready(const struct stream_proc *p)
{
    return p->is_ready && !p->is_ended && !p->is_retired;
}

bool stream_proc_is_kept(const struct stream_proc *p)
{
    return !p->is_ended && !p->is_retired;
}

bool stream_proc_is_retired(const struct stream_proc *p)
{
    return p->is_retired;
}

bool stream_proc_has_failed(const struct stream_proc *p)
{
    return p->has_failed;
}

pid_t stream_proc_pid(const struct stream_proc *p)
{
    (void)p;
    return 1;
}

int64_t stream_proc_number(const struct stream_proc *p)
{
    for (unsigned i = 0; i < nprocs; i++) {
        if (procs[i] == p)
            return i + 1;
    }
    return -1;
}

bool stream_proc_is_worn(struct stream_proc *p)
{
    return p->is_worn;
}

void stream_proc_start(struct stream_proc *p, const struct stream_job *job)
{
    (void)job;
    p->running++;
}

void stream_proc_flush(struct stream_proc *p)
{
    (void)p;
}

bool stream_proc_control(struct stream_proc *p, unsigned place, enum exec_control what)
{
    (void)p;
    (void)place;
    (void)what;
    return false;
}

void stream_proc_retire(struct stream_proc *p)
{
    p->is_retired = true;
}

void stream_proc_kill(struct stream_proc *p)
{
    (void)p;
    killed++;
}

/* ---- the fake timer */

struct loop_timer *loop_timer_new(struct loop *loop, loop_timer_f *cb, void *arg)
{
    (void)loop;
    on_timer = cb;
    timer_arg = arg;
    timer_ms = -1;
    return (struct loop_timer *)&timer_ms;
}

void loop_timer_set(struct loop_timer *t, int64_t ms)
{
    (void)t;
    timer_ms = ms;
}

void loop_timer_stop(struct loop_timer *t)
{
    (void)t;
    timer_ms = -1;
}

bool loop_timer_is_set(const struct loop_timer *t)
{
    (void)t;
    return timer_ms >= 0;
}

void loop_timer_free(struct loop_timer *t)
{
    (void)t;
}

static int64_t ring(void)
{
    int64_t ms = timer_ms;

    assert_true(ms >= 0);
    timer_ms = -1;
    on_timer(timer_arg);
    return ms;
}

/* ---- events of the stream */

static void on_ended(void *arg, unsigned place, const struct run_report *report)
{
    (void)arg;
    assert_int_equal(report->end, RUN_STOPPED);
    assert_true(ntold < 8);
    told_places[ntold++] = place;
}

static void on_told(void *arg, unsigned place, enum run_word word, const char *text)
{
    (void)arg;
    (void)place;
    (void)word;
    (void)text;
}

static void on_rest(void *arg)
{
    (void)arg;
    rests++;
}

static void on_capacity(void *arg)
{
    (void)arg;
    capacity = (int)stream_capacity(stream);
}

static void on_closed(void *arg)
{
    (void)arg;
    closed++;
}

/* ---- what the processes do */

static void ready(unsigned i, unsigned inflight)
{
    procs[i]->is_ready = true;
    procs[i]->inflight = inflight;
    procs[i]->events->ready(procs[i]->events->arg, procs[i]);
}

static void go(unsigned i)
{
    struct stream_proc *p = procs[i];

    if (stream_proc_is_kept(p)) {
        p->is_ended = true;
        p->events->ending(p->events->arg, p);
    }
    procs[i] = NULL;
    p->events->gone(p->events->arg, p, "a test");
    free(p);
}

static void break_off(unsigned i)
{
    procs[i]->has_failed = true;
    go(i);
}

static void answer(unsigned i)
{
    procs[i]->served++;
    procs[i]->running -= procs[i]->running > 0;
    procs[i]->events->rest(procs[i]->events->arg, procs[i]);
}

static int64_t start_job(unsigned place)
{
    return stream_start(stream, &(struct stream_job){.id = "j", .place = place});
}

static struct stream *make(unsigned processes)
{
    static char *argv[] = {(char *)(uintptr_t) "/bin/x", NULL}, *envp[] = {NULL};
    struct stream_conf conf = {.queue = "q", .argv = argv, .envp = envp, .processes = processes};
    struct stream_events events = {on_ended, on_told, on_rest, on_capacity, on_closed, NULL};

    nprocs = killed = ntold = rests = closed = 0;
    capacity = -1;
    stream = stream_new(NULL, NULL, &conf, &events);
    return stream;
}

static void end(void)
{
    stream_close(stream);
    for (unsigned i = 0; i < nprocs; i++) {
        if (procs[i] != NULL)
            go(i);
    }
    assert_int_equal(closed, 1);
}

/* ---- tests */

static void test_failures_come_later_and_later(void **state)
{
    static const int64_t waits[] = {100,  200,   400,   800,   1600, 3200,
                                    6400, 12800, 25600, 30000, 30000};

    (void)state;
    (void)make(1);
    for (unsigned i = 0; i < sizeof(waits) / sizeof(waits[0]); i++) {
        assert_int_equal(nprocs, i + 1);
        break_off(i);
        assert_int_equal(nprocs, i + 1);
        assert_int_equal(ring(), waits[i]);
    }
    /* A process that has answered a job resets the delay. */
    ready(nprocs - 1, 1);
    answer(nprocs - 1);
    go(nprocs - 1);
    assert_int_equal(timer_ms, -1);
    break_off(nprocs - 1);
    assert_int_equal(ring(), 100);
    end();
}

static void test_two_failures_are_one_wait(void **state)
{
    (void)state;
    (void)make(2);
    break_off(0);
    break_off(1);
    assert_int_equal(ring(), 100);
    assert_int_equal(nprocs, 4);
    end();
}

static void test_the_idlest_gets_it(void **state)
{
    (void)state;
    (void)make(3);
    ready(0, 2);
    ready(1, 4);
    assert_int_equal(start_job(0), 1);
    assert_int_equal(start_job(1), 2);
    assert_int_equal(start_job(2), 1);
    assert_int_equal(start_job(3), 2);
    assert_int_equal(start_job(4), 2);
    ready(2, 1);
    assert_int_equal(start_job(5), 3);
    assert_int_equal(start_job(6), 2);
    assert_int_equal(ntold, 0);
    /* The flush ends a job that no process can take. */
    assert_int_equal(start_job(7), 0);
    assert_int_equal(ntold, 0);
    stream_flush(stream);
    assert_int_equal(ntold, 1);
    assert_int_equal(told_places[0], 7);
    assert_int_equal(rests, 1);
    end();
}

static void test_the_capacity_is_told_once(void **state)
{
    (void)state;
    (void)make(2);
    assert_int_equal(capacity, -1);
    stream_flush(stream);
    assert_int_equal(capacity, 0);
    ready(0, 4);
    ready(1, 3);
    stream_flush(stream);
    assert_int_equal(capacity, 7);
    capacity = -1;
    assert_true(start_job(0) > 0);
    stream_flush(stream);
    assert_int_equal(capacity, -1);
    go(0);
    stream_flush(stream);
    assert_int_equal(capacity, 3);
    end();
}

static void test_worn_ones_go_one_after_the_other(void **state)
{
    (void)state;
    (void)make(2);
    ready(0, 1);
    ready(1, 1);
    procs[0]->is_worn = procs[1]->is_worn = true;
    answer(0);
    answer(1);
    assert_int_equal(nprocs, 3);
    assert_false(procs[0]->is_retired);
    /* The successor fails to start: the worn process goes on. */
    break_off(2);
    assert_int_equal(stream_capacity(stream), 2);
    assert_int_equal(ring(), 100);
    ready(3, 1);
    assert_true(procs[0]->is_retired);
    assert_false(procs[1]->is_retired);
    assert_int_equal(nprocs, 4);
    answer(1);
    assert_int_equal(nprocs, 5);
    ready(4, 1);
    assert_true(procs[1]->is_retired);
    end();
}

static void test_a_worn_one_that_dies_is_replaced_by_its_successor(void **state)
{
    (void)state;
    (void)make(1);
    ready(0, 1);
    procs[0]->is_worn = true;
    answer(0);
    assert_int_equal(nprocs, 2);
    go(0);
    assert_int_equal(nprocs, 2);
    ready(1, 1);
    assert_false(procs[1]->is_retired);
    end();
}

static void test_none_is_started_at_the_end(void **state)
{
    (void)state;
    (void)make(2);
    ready(0, 1);
    answer(0);
    stream_start_no_more(stream);
    go(0);
    assert_int_equal(nprocs, 2);
    stream_close(stream);
    assert_true(procs[1]->is_retired);
    assert_int_equal(closed, 0);
    stream_kill(stream);
    assert_int_equal(killed, 1);
    go(1);
    assert_int_equal(closed, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_failures_come_later_and_later),
        cmocka_unit_test(test_two_failures_are_one_wait),
        cmocka_unit_test(test_the_idlest_gets_it),
        cmocka_unit_test(test_the_capacity_is_told_once),
        cmocka_unit_test(test_worn_ones_go_one_after_the_other),
        cmocka_unit_test(test_a_worn_one_that_dies_is_replaced_by_its_successor),
        cmocka_unit_test(test_none_is_started_at_the_end),
    };

    log_init(LOG_LEVEL_ERR);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
