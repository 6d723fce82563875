/*
 * later lock, later sem and the bare lock functions: a holder that is frozen, a clock of Redis that
 * steps, an unlock that comes too late.
 *
 * The guard kills the command of a frozen holder, and the next one comes in after the silence of
 * its worker. So that test is slow and runs with the fault suite. In the long form the holder
 * stands still for a minute.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../support/clock.h"
#include "../support/env.h"
#include "../support/fsck.h"
#include "../support/laterd.h"
#include "../support/shell.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/mem.h"

#define ROOT "later:{default}"
#define LONG_MS 60000
#define FROZEN_MS 60000
#define SILENCE_MS 35000 /* a worker that died is reaped within this time */
#define HOUR_US INT64_C(3600000000)
#define PROCS 12

/* How long `-w 2` may take. Without a timer it would end only at the next beat, after 5 s. */
#define WAITED_MS 2000
#define WAITED_MAX_MS 4500

static struct test_redis redis;
static struct test_clock *wall; /* clock of Redis */
static char dir[64];
static struct proc procs[PROCS];

static struct proc *start(int i, const char *line)
{
    test_sh_start(&procs[i], line);
    return &procs[i];
}

static int lines_of(const char *name, const char *text)
{
    CLEANUP_FREE char *path = mem_printf("%s/%s", dir, name);

    return test_lines(path, text);
}

static void until_lines(const char *name, const char *text, int n)
{
    CLEANUP_FREE char *path = mem_printf("%s/%s", dir, name);

    if (!test_until_lines(path, text, n, LONG_MS))
        fail_msg("%s never has %d lines with '%s'", name, n, text != NULL ? text : "");
}

static void expect_nothing_said(void)
{
    CLEANUP_FREE char *path = mem_printf("%s/said", dir);
    CLEANUP_BUF struct buf said = BUF_INIT;

    test_read(path, &said);
    assert_string_equal(buf_str(&said), "");
}

static void until_waiting(const char *gate, int64_t n)
{
    CLEANUP_FREE char *key = mem_printf(ROOT ":wait:%s", gate);

    assert_true(test_until_int(&redis, "ZCARD", key, n, LONG_MS));
}

static void expect_empty(void)
{
    static const char *const keys[] = {":lock:x", ":sem:two", ":wait:lock:x", ":wait:sem:two"};

    assert_true(test_until_int(&redis, "HLEN", ROOT ":workers", 0, LONG_MS));
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        CLEANUP_FREE char *key = mem_printf(ROOT "%s", keys[i]);

        assert_int_equal(test_int(&redis, "EXISTS", key), 0);
    }
    assert_int_equal(test_fsck(&redis), 0);
}

/* All that is in Redis, except the beats; the caller's to free. */
static char *snapshot(void)
{
    CLEANUP_BUF struct buf out = BUF_INIT;

    assert_int_equal(test_sh_out("redis-cli -s $SOCK --eval $DIR/snapshot.lua", &out), 0);
    assert_non_null(strstr(buf_str(&out), ROOT));
    return mem_strdup(buf_str(&out));
}

/* ---- setup */

/* Copy the scripts that the commands run (tests/fault/locks/README). */
static void copy_scripts(void)
{
    (void)setenv("SCRIPTS", test_source_dir(), 1);
    assert_int_equal(
        test_sh("cp $SCRIPTS/tests/fault/locks/* $DIR && mkdir $DIR/in.lock $DIR/in.sem"), 0);
}

static int setup(void **state)
{
    CLEANUP_FREE char *preload = test_clock_preload(), *path = NULL, *later = NULL;

    (void)state;
    test_folder_make(dir);
    path = mem_printf("%s/clock", dir);
    later = mem_printf("%s/later", test_build_dir());
    wall = test_clock_make(path);
    (void)setenv("LD_PRELOAD", strchr(preload, '=') + 1, 1);
    (void)setenv("LATER_TEST_CLOCK", path, 1);
    test_redis_start(&redis, NULL);
    test_redis_load(&redis);
    (void)unsetenv("LD_PRELOAD");
    (void)unsetenv("LATER_TEST_CLOCK");
    (void)setenv("LATER_REDIS_URL", redis.url, 1);
    (void)setenv("SOCK", redis.sock, 1);
    (void)setenv("LATER", later, 1);
    (void)setenv("DIR", dir, 1);
    memset(procs, 0, sizeof(procs));
    copy_scripts();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    for (size_t i = 0; i < PROCS; i++) {
        if (procs[i].pid > 0)
            proc_done(&procs[i]);
    }
    test_redis_stop(&redis);
    test_clock_free(wall);
    test_folder_remove(dir);
    return 0;
}

static void step_to(int64_t offset_us)
{
    __atomic_store_n(&wall->offset_us, offset_us, __ATOMIC_SEQ_CST);
}

/* ---- Q1: a frozen holder */

/* The ledger has no line of the first command and its children after the first line of the second
 * command. */
static void check_ledger(void)
{
    assert_int_equal(lines_of("two", NULL), 0);
    assert_in_range(lines_of("ledger", "first "), 100, 100000);
    assert_in_range(lines_of("ledger", "first.near "), 100, 100000);
    assert_in_range(lines_of("ledger", "first.far "), 100, 100000);
    test_says("sed '1,/^second /d' $DIR/ledger | grep -c '^first'", 1, "0\n");
    test_says(
        "awk '/^first/ && $2 > last { last = $2 } /^second/ { exit !($2 > last) }' $DIR/ledger", 0,
        "");
}

/* Calls that the frozen holder may still send are refused and change nothing. */
static void check_late_words(void)
{
    CLEANUP_FREE char *before = snapshot();
    CLEANUP_FREE char *after = NULL;

    test_says("$DIR/f later_v1_exit $(cat $DIR/epoch)", 0, "not-held");
    test_says("$DIR/f later_v1_leave $(cat $DIR/epoch)", 0, "unknown");
    test_says("$DIR/f later_v1_beat $(cat $DIR/epoch)", 0, "unknown");
    test_says("$DIR/f later_v1_enter $(cat $DIR/epoch) lock:x", 0, "unknown");
    test_says("$DIR/f later_v1_enter $(cat $DIR/epoch) lock:x wait", 0, "unknown");
    test_says("$DIR/f later_fence_check x $(head -n 1 $DIR/fences)", 0, "0\n");
    test_says("$DIR/f later_fenced x $(head -n 1 $DIR/fences) SET written 1", 0, "ELATER_STALE");
    after = snapshot();
    assert_string_equal(before, after);
}

static void Q1_a_frozen_holder(void **state)
{
    CLEANUP_FREE char *before = NULL;
    CLEANUP_FREE char *after = NULL;
    CLEANUP_BUF struct buf sum = BUF_INIT;
    struct mono frozen;

    (void)state;
    start(0, "$LATER lock x sh $DIR/first");
    until_lines("ledger", "first.far ", 1);
    start(1, "$LATER lock x sh $DIR/next second stays");
    until_waiting("lock:x", 1);
    start(2, "$LATER lock x sh $DIR/next third");
    until_waiting("lock:x", 2);
    proc_signal(&procs[0], SIGSTOP);
    frozen = mono_now();
    until_lines("ledger", "second ", 1);
    print_message("the next one came in %lld ms after the stop\n",
                  (long long)test_ms_since(frozen));
    check_ledger();
    check_late_words();
    if (test_is_long() && test_ms_since(frozen) < FROZEN_MS)
        test_pause(FROZEN_MS - test_ms_since(frozen));
    before = snapshot();
    proc_signal(&procs[0], SIGCONT);
    assert_int_equal(proc_wait(&procs[0], LONG_MS), 75);
    until_lines("said", "later: lock:x: the permit was lost", 1);
    after = snapshot();
    assert_string_equal(before, after);
    /* The third command still waits, behind the second one, which holds the lock now. */
    assert_int_equal(lines_of("ledger", "third "), 0);
    proc_signal(&procs[1], SIGTERM);
    assert_int_equal(proc_wait(&procs[1], LONG_MS), 143);
    assert_int_equal(proc_wait(&procs[2], LONG_MS), 0);
    check_ledger();
    assert_int_equal(test_sh("sort -n -u -c $DIR/fences && test $(wc -l <$DIR/fences) = 3"), 0);
    expect_empty();
    assert_int_equal(
        test_sh_out("awk '/^first/ { last = $2 } /^second/ { print int(($2 - last) * 1000) "
                    "}' $DIR/ledger",
                    &sum),
        0);
    print_message("figure Q1: the command was dead %d ms before the next one began; the late "
                  "unlock changed nothing\n",
                  atoi(buf_str(&sum)));
}

/* Frozen at the worst moment: everything is checked, and the command is about to be started. */
static void Q1_frozen_as_its_command_starts(void **state)
{
    CLEANUP_FREE char *line = mem_printf(
        "env LD_PRELOAD=%s/tests/support/preload/point.so LATER_TEST_POINT=stop $LATER lock x "
        "sh $DIR/first",
        test_build_dir());
    CLEANUP_FREE char *before = NULL;
    CLEANUP_FREE char *after = NULL;

    (void)state;
    assert_int_equal(test_sh(": >$DIR/pids"), 0);
    start(0, line);
    assert_true(test_until_int(&redis, "EXISTS", ROOT ":lock:x", 1, LONG_MS));
    start(1, "$LATER lock x sh $DIR/next second stays");
    until_lines("ledger", "second ", 1);
    before = snapshot();
    proc_signal(&procs[0], SIGCONT);
    assert_int_equal(proc_wait(&procs[0], LONG_MS), 75);
    after = snapshot();
    assert_string_equal(before, after);
    assert_int_equal(lines_of("ledger", "first"), 0);
    proc_signal(&procs[1], SIGTERM);
    assert_int_equal(proc_wait(&procs[1], LONG_MS), 143);
    expect_empty();
}

/* The same for laterd. Its handler is killed before it runs, not only when the guard checks
 * again. */
static void Q1_frozen_as_its_handler_starts(void **state)
{
    CLEANUP_FREE char *preload = mem_printf("%s/tests/support/preload/point.so", test_build_dir());
    struct test_laterd a = {0}, b = {0};
    char *id;

    (void)state;
    test_handler(dir, "work", "sleep 0.02; echo $LATER_ATTEMPT >>%s/ledger\n", dir);
    test_laterd_conf(&a, dir, "a", redis.url, "log_level: debug\n");
    test_laterd_conf(&b, dir, "b", redis.url, "log_level: debug\n");
    (void)setenv("LD_PRELOAD", preload, 1);
    (void)setenv("LATER_TEST_POINT", "freeze", 1);
    test_laterd_start(&a);
    (void)unsetenv("LD_PRELOAD");
    (void)unsetenv("LATER_TEST_POINT");
    id = test_add(&redis, "work", "lock", "x", "");
    assert_non_null(id);
    assert_true(test_until_state(&redis, id, "running", LONG_MS));
    test_laterd_start(&b);
    until_lines("ledger", "2", 1);
    proc_signal(&a.proc, SIGCONT);
    assert_true(test_laterd_says(&a, "event=forgotten", LONG_MS));
    test_pause(500);
    assert_int_equal(lines_of("ledger", "1"), 0);
    assert_int_equal(test_laterd_stop(&a), 0);
    assert_int_equal(test_laterd_stop(&b), 0);
    free(id);
}

/* ---- Q2, Q3: the clock of Redis steps */

#define LOCK_STAYS 0
#define SEM_STAYS 1 /* two holders: SEM_STAYS and the next */
#define LOCK_WAITS 3
#define SEM_WAITS 6
#define LOCK_PASSES 9
#define SEM_PASSES 10

/* One holder of the lock, two of the semaphore, three commands that wait at each. */
static void fill(void)
{
    assert_int_equal(test_sh("$LATER limits set two semaphore 2 --on-lost kill"), 0);
    start(LOCK_STAYS, "$LATER lock x sh $DIR/stay 0 lock");
    start(SEM_STAYS, "$LATER sem two sh $DIR/stay 0 sem");
    start(SEM_STAYS + 1, "$LATER sem two sh $DIR/stay 00 sem");
    until_lines("held", NULL, 3);
    for (int i = 0; i < 3; i++) {
        CLEANUP_FREE char *lock = mem_printf("$LATER lock x sh $DIR/turn %d lock 1", i + 1);
        CLEANUP_FREE char *sem = mem_printf("$LATER sem two sh $DIR/turn %d sem 2", i + 1);

        start(LOCK_WAITS + i, lock);
        start(SEM_WAITS + i, sem);
        until_waiting("lock:x", i + 1);
        until_waiting("sem:two", i + 1);
    }
}

/* Two commands wait with -w 2, and the clock steps meanwhile. */
static void step_under_waiters(int64_t offset_us)
{
    struct mono begin = mono_now();

    start(LOCK_PASSES, "$LATER lock -w 2 x true");
    start(SEM_PASSES, "$LATER sem -w 2 two true");
    until_waiting("lock:x", 4);
    until_waiting("sem:two", 4);
    step_to(offset_us);
    assert_int_equal(proc_wait(&procs[LOCK_PASSES], LONG_MS), 1);
    assert_in_range(test_ms_since(begin), WAITED_MS, WAITED_MAX_MS);
    assert_int_equal(proc_wait(&procs[SEM_PASSES], LONG_MS), 1);
    assert_in_range(test_ms_since(begin), WAITED_MS, WAITED_MAX_MS);
}

/* Has every worker beaten since the step? */
static bool all_have_beaten(void *arg)
{
    (void)arg;
    return test_sh("now=$(redis-cli -s $SOCK TIME | head -n 1)\n"
                   "for e in $(redis-cli -s $SOCK HKEYS 'later:{default}:workers'); do\n"
                   "  ms=$(redis-cli -s $SOCK HGET \"later:{default}:worker:$e\" beat_ms)\n"
                   "  test $((ms / 1000 - now)) -lt 10 && test $((now - ms / 1000)) -lt 10 || exit "
                   "1\n"
                   "done") == 0;
}

static void check_held(void)
{
    assert_int_equal(lines_of("turns.lock", NULL), 0);
    assert_int_equal(lines_of("turns.sem", NULL), 0);
    expect_nothing_said();
    for (int i = 0; i < LOCK_PASSES; i++)
        assert_int_equal(proc_wait(&procs[i], 0), -1);
    assert_int_equal(test_int(&redis, "HLEN", ROOT ":workers"), 9);
    assert_int_equal(test_int(&redis, "ZCARD", ROOT ":wait:lock:x"), 3);
    assert_int_equal(test_int(&redis, "ZCARD", ROOT ":wait:sem:two"), 3);
}

/* -n gives up at once, as without a step. */
static void check_not_waiting(void)
{
    struct mono begin = mono_now();

    assert_int_equal(test_sh("$LATER lock -n x true"), 1);
    assert_int_equal(test_sh("$LATER sem -n two true"), 1);
    assert_in_range(test_ms_since(begin), 0, WAITED_MAX_MS);
}

static void check_turns(void)
{
    for (int i = 0; i < LOCK_WAITS; i++) {
        proc_signal(&procs[i], SIGTERM);
        assert_int_equal(proc_wait(&procs[i], LONG_MS), 0);
        /* Free one place of the semaphore after the other, so that there is an order. */
        if (i == SEM_STAYS)
            until_lines("turns.sem", "3", 1);
    }
    for (int i = LOCK_WAITS; i < LOCK_PASSES; i++)
        assert_int_equal(proc_wait(&procs[i], LONG_MS), 0);
    test_says("tr '\\n' ' ' <$DIR/turns.lock", 0, "1 2 3 ");
    test_says("tr '\\n' ' ' <$DIR/turns.sem", 0, "1 2 3 ");
    assert_int_equal(lines_of("two", NULL), 0);
    expect_nothing_said();
    expect_empty();
}

static void the_clock_steps(int64_t offset_us)
{
    fill();
    step_under_waiters(offset_us);
    assert_true(test_until(all_have_beaten, NULL, LONG_MS));
    if (test_is_long())
        test_pause(SILENCE_MS);
    check_held();
    check_not_waiting();
    check_turns();
}

static void Q2_the_clock_an_hour_ahead(void **state)
{
    (void)state;
    the_clock_steps(HOUR_US);
    print_message("figure Q2: 3 held and 6 waited, 0 lost their place, 0 came in beside them, "
                  "-w 2 waited 2 s\n");
}

static void Q3_the_clock_an_hour_back(void **state)
{
    (void)state;
    the_clock_steps(-HOUR_US);
    print_message("figure Q3: 3 held and 6 waited, 0 lost their place, 0 came in beside them, "
                  "-w 2 waited 2 s\n");
}

/* ---- leases, which count by the clock of Redis */

static void Q2_a_lease_an_hour_ahead(void **state)
{
    CLEANUP_FREE char *before = NULL;
    CLEANUP_FREE char *after = NULL;

    (void)state;
    test_says("$DIR/f later_lock x ann ttl 1m", 0, "1\n");
    start(0, "$LATER lock x sh $DIR/stay 0 lock");
    until_waiting("lock:x", 1);
    step_to(HOUR_US);
    /* The lease is over, and the command that waits finds that. */
    until_lines("held", NULL, 1);
    before = snapshot();
    test_says("$DIR/f later_renew x ann ttl 1m", 0, "ELATER_LOST");
    test_says("$DIR/f later_unlock x ann token t", 0, "not-held");
    after = snapshot();
    assert_string_equal(before, after);
    proc_signal(&procs[0], SIGTERM);
    assert_int_equal(proc_wait(&procs[0], LONG_MS), 0);
    expect_empty();
}

static void Q3_a_lease_an_hour_back(void **state)
{
    (void)state;
    test_says("$DIR/f later_lock x ann ttl 1m", 0, "1\n");
    start(0, "$LATER lock x sh $DIR/stay 0 lock");
    until_waiting("lock:x", 1);
    step_to(-HOUR_US);
    test_says("$DIR/f later_lock x bob", 0, "0\n");
    test_says("$DIR/f later_renew x ann ttl 1m", 0, "");
    assert_true(test_until(all_have_beaten, NULL, LONG_MS));
    assert_int_equal(lines_of("held", NULL), 0);
    test_says("$DIR/f later_unlock x ann", 0, "released");
    until_lines("held", NULL, 1);
    proc_signal(&procs[0], SIGTERM);
    assert_int_equal(proc_wait(&procs[0], LONG_MS), 0);
    expect_empty();
}

/* ---- late calls of the bare functions */

static void test_a_late_unlock_changes_nothing(void **state)
{
    CLEANUP_FREE char *before = NULL;
    CLEANUP_FREE char *after = NULL;

    (void)state;
    test_says("$DIR/f later_lock x ann ttl 1m | sed -n 2p >$DIR/fence", 0, "");
    test_says("$DIR/f later_unlock x ann token t", 0, "released");
    start(0, "$LATER lock x sh $DIR/stay 0 lock");
    until_lines("held", NULL, 1);
    before = snapshot();
    test_says("$DIR/f later_unlock x ann token t", 0, "not-held");
    test_says("$DIR/f later_unlock x ann", 0, "not-held");
    test_says("$DIR/f later_renew x ann", 0, "ELATER_LOST");
    test_says("$DIR/f later_fence_check x $(cat $DIR/fence)", 0, "0\n");
    test_says("$DIR/f later_fenced x $(cat $DIR/fence) SET written 1", 0, "ELATER_STALE");
    /* A worker as holder (@EPOCH) is not accepted as the owner of the call. */
    test_says("$DIR/f later_unlock x $(redis-cli -s $SOCK HGET 'later:{default}:lock:x' holder)", 0,
              "not-held");
    after = snapshot();
    assert_string_equal(before, after);
    proc_signal(&procs[0], SIGTERM);
    assert_int_equal(proc_wait(&procs[0], LONG_MS), 0);
    expect_empty();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(Q1_a_frozen_holder, setup, teardown),
        cmocka_unit_test_setup_teardown(Q1_frozen_as_its_command_starts, setup, teardown),
        cmocka_unit_test_setup_teardown(Q1_frozen_as_its_handler_starts, setup, teardown),
        cmocka_unit_test_setup_teardown(Q2_the_clock_an_hour_ahead, setup, teardown),
        cmocka_unit_test_setup_teardown(Q3_the_clock_an_hour_back, setup, teardown),
        cmocka_unit_test_setup_teardown(Q2_a_lease_an_hour_ahead, setup, teardown),
        cmocka_unit_test_setup_teardown(Q3_a_lease_an_hour_back, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_late_unlock_changes_nothing, setup, teardown),
    };

    cmocka_set_test_filter(getenv("LATER_ONLY"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
