/*
 * Trouble with the real programs: kills, frozen servers, lost data, foreign keys. The comment
 * behind a test names its lines in the fault catalogue (tests/fault/catalogue.txt).
 */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "../support/env.h"
#include "../support/shell.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/mem.h"
#include "fixture.h"
#include "lua/lua_lib.h"

#define LONG_MS 60000
#define SILENT_MS 18000 /* a worker that was not seen to die is given up later than this */

static void add_many(const char *queue, int n)
{
    for (int i = 0; i < n; i++) {
        char payload[24];
        struct reply *r;

        (void)snprintf(payload, sizeof(payload), "job %d", i);
        r = test_fcall(&redis, "later_add", queue, payload, NULL);
        assert_non_null(r);
        reply_free(r);
    }
}

/* Bytes of the lines of `out` that occur twice: an attempt of a job was started twice. */
static int twice(void)
{
    CLEANUP_FREE char *cmd = mem_printf("sort %s | uniq -d", out);
    CLEANUP_BUF struct buf text = BUF_INIT;
    char *argv[] = {(char *)(uintptr_t) "sh", (char *)(uintptr_t) "-c", cmd, NULL};

    assert_int_equal(proc_run(argv, NULL, 0, &text, NULL), 0);
    return (int)text.len;
}

static bool one_subscriber(void *arg)
{
    struct reply *r = test_redis_call(&redis, "PUBSUB", "NUMSUB", ROOT ":wake", NULL);
    bool one = reply_int(reply_at(r, 1)) == 1;

    (void)arg;
    reply_free(r);
    return one;
}

/* ---- workers that died */

static void test_a_killed_daemon_takes_its_jobs_back_at_once(void **state) /* L1 L3 */
{
    struct mono begin;

    (void)state;
    test_handler(dir, "slow",
                 "echo \"$LATER_ID $LATER_ATTEMPT\" >> %s; "
                 "setsid sh -c \"sleep 2; echo escaped$LATER_ATTEMPT >> %s\" & "
                 "sleep 2; echo end$LATER_ATTEMPT >> %s",
                 out, out, out);
    start(&a, "a", "concurrency: 16");
    add_many("slow", 16);
    assert_true(test_until_lines(out, " 1", 16, LONG_MS));
    test_laterd_kill(&a, SIGKILL);
    (void)test_laterd_wait(&a, LONG_MS);
    begin = mono_now();
    test_laterd_start(&a);
    assert_true(test_until_lines(out, " 2", 16, LONG_MS));
    assert_in_range(test_ms_since(begin), 0, SILENT_MS);
    assert_true(test_until_lines(out, "end2", 16, LONG_MS));
    /* Processes of the dead daemon were killed, even those that had left its process group. */
    assert_true(test_until_lines(out, "escaped2", 16, LONG_MS));
    assert_int_equal(test_lines(out, "end1") + test_lines(out, "escaped1"), 0);
    assert_true(test_until(no_job_is_left, NULL, LONG_MS));
}

/* A daemon is killed while it starts handlers, some of which are not yet their programs: the next
 * daemon finds them all. */
static void test_a_kill_in_a_burst_of_starts_leaves_nothing_behind(void **state) /* L2 */
{
    (void)state;
    test_handler(dir, "work",
                 "exec 9> %s/lock.$LATER_ID; flock -n 9 || echo overlap >> %s; "
                 "echo begin >> %s; sleep 0.4; echo end >> %s",
                 dir, out, out, out);
    test_laterd_conf(&a, dir, "a", redis.url, "concurrency: 16\ndefaults: { crashes: 1000 }");
    test_laterd_start(&a);
    for (int round = 1; round <= 5; round++) {
        int begun = test_lines(out, "begin");

        add_many("work", 16);
        assert_true(test_until_lines(out, "begin", begun + 1 + round, LONG_MS));
        test_laterd_kill(&a, SIGKILL);
        (void)test_laterd_wait(&a, LONG_MS);
        test_laterd_start(&a);
        assert_true(test_until(no_job_is_left, NULL, LONG_MS));
    }
    assert_int_equal(test_lines(out, "overlap"), 0);
    /* All jobs, and again those that ended between the daemon's death and the search. */
    assert_in_range(test_lines(out, "end"), 5 * 16, 2 * 5 * 16);
}

/* A killed process frees its memory before its files. A process with much memory keeps its locks
 * for a while after nothing tells any more whose it is; so does a child of the handler. */
static void test_a_handler_that_dies_slowly_is_waited_for(void **state) /* L3 */
{
    (void)state;
    test_handler(dir, "work",
                 "exec 9> %s/lock; flock -n 9 || echo overlap >> %s; echo begin >> %s; "
                 "[ $LATER_ATTEMPT = 1 ] || exit 0; perl -e "
                 "'$n = 300000000; $x = \"x\" x $n; open(F, \">>\", \"%s\"); print F \"large\\n\"; "
                 "close(F); sleep 60' & wait",
                 dir, out, out, out);
    start(&a, "a", "concurrency: 2");
    add_many("work", 1);
    assert_true(test_until_lines(out, "large", 1, LONG_MS));
    test_laterd_kill(&a, SIGKILL);
    (void)test_laterd_wait(&a, LONG_MS);
    test_laterd_start(&a);
    assert_true(test_until_lines(out, "begin", 2, LONG_MS));
    assert_true(test_until(no_job_is_left, NULL, LONG_MS));
    assert_int_equal(test_lines(out, "overlap"), 0);
}

static void test_another_daemon_of_the_host_takes_over(void **state) /* L1 */
{
    struct mono begin;

    (void)state;
    test_handler(dir, "slow", "echo \"$LATER_ID $LATER_ATTEMPT\" >> %s; sleep 1", out);
    start(&a, "a", "concurrency: 4");
    add_many("slow", 4);
    assert_true(test_until_lines(out, " 1", 4, LONG_MS));
    start(&b, "b", "concurrency: 4");
    test_laterd_kill(&a, SIGKILL);
    (void)test_laterd_wait(&a, LONG_MS);
    begin = mono_now();
    /* With its next beat, every 5 s, b sees that the process of a is gone. */
    assert_true(test_until_lines(out, " 2", 4, 31000));
    assert_in_range(test_ms_since(begin), 0, SILENT_MS);
    assert_int_equal(twice(), 0);
    assert_true(test_until(no_job_is_left, NULL, LONG_MS));
}

static void test_a_worker_given_up_drops_its_jobs(void **state) /* L7 T4 */
{
    struct reply *r;
    char epoch[32];

    (void)state;
    test_handler(dir, "slow",
                 "echo \"$LATER_ID $LATER_ATTEMPT\" >> %s; sleep 3; echo end$LATER_ATTEMPT >> %s",
                 out, out);
    start(&a, "a", "concurrency: 2");
    add_many("slow", 2);
    assert_true(test_until_lines(out, " 1", 2, LONG_MS));
    r = test_redis_call(&redis, "HKEYS", ROOT ":workers", NULL);
    (void)snprintf(epoch, sizeof(epoch), "%s", reply_str(reply_at(r, 0)));
    reply_free(r);
    reply_free(test_redis_call(&redis, "HSET", ROOT ":workers", epoch, "dead", NULL));
    assert_true(test_laterd_says(&a, "event=given-up", LONG_MS));
    /* It registers anew, finds that it was taken for dead, and runs the jobs again. */
    assert_true(test_until_lines(out, " 2", 2, LONG_MS));
    assert_true(test_until(no_job_is_left, NULL, LONG_MS));
    assert_int_equal(test_lines(out, "end1"), 0);
    assert_int_equal(test_lines(out, "end2"), 2);
}

static void test_a_poison_pill_is_buried(void **state) /* L16 P15 */
{
    (void)state;
    /* The handler kills its parent, the daemon. */
    test_handler(dir, "pill", "echo $LATER_ATTEMPT >> %s; kill -9 $PPID; sleep 5", out);
    test_laterd_conf(&a, dir, "a", redis.url, "concurrency: 2");
    add_many("pill", 1);
    for (int i = 1; i <= 3; i++) {
        test_laterd_launch(&a);
        assert_true(test_until_lines(out, NULL, i, LONG_MS));
        assert_int_equal(test_laterd_wait(&a, LONG_MS), 128 + SIGKILL);
    }
    test_laterd_start(&a);
    assert_true(test_until_lines(a.log, "event=reaped", 1, LONG_MS));
    assert_int_equal(test_int(&redis, "ZCARD", ROOT ":dead:pill"), 1);
    assert_int_equal(test_lines(out, NULL), 3);
}

/* ---- Redis away, frozen, emptied */

static void test_redis_may_come_later(void **state) /* R1 L17 */
{
    (void)state;
    test_handler(dir, "work", "echo x >> %s", out);
    test_redis_kill(&redis, SIGKILL);
    test_laterd_conf(&a, dir, "a", redis.url, "");
    test_laterd_launch(&a);
    assert_true(test_laterd_says(&a, "event=link state=down", LONG_MS));
    test_redis_restart(&redis);
    assert_true(test_laterd_says(&a, "event=registered", LONG_MS));
    add_many("work", 1);
    assert_true(test_until_lines(out, NULL, 1, LONG_MS));
    assert_in_range(test_lines(a.log, "event=link state=down"), 1, 2);
}

static void test_a_restart_of_redis_loses_nothing(void **state) /* R2 R3 R4 */
{
    int before;

    (void)state;
    test_handler(dir, "work", "echo \"$LATER_ID $LATER_ATTEMPT\" >> %s; sleep 0.02", out);
    add_many("work", 600); /* before anybody runs them: each waits for the disk */
    start(&a, "a", "concurrency: 4");
    start(&b, "b", "concurrency: 4");
    assert_true(test_until_lines(out, NULL, 50, LONG_MS));
    test_redis_kill(&redis, SIGKILL);
    assert_true(test_laterd_says(&a, "state=down", LONG_MS));
    before = test_lines(out, NULL);
    test_redis_restart(&redis);
    assert_true(test_until_lines(out, NULL, before + 1, LONG_MS));
    assert_true(test_until(no_job_is_left, NULL, 2 * LONG_MS));
    assert_int_equal(twice(), 0);
    assert_true(test_lines(out, NULL) >= 600);
}

static void test_a_frozen_redis_makes_nobody_a_reaper(void **state) /* R8 N1 */
{
    (void)state;
    test_handler(dir, "slow", "echo \"$LATER_ID $LATER_ATTEMPT\" >> %s; sleep 1", out);
    start(&a, "a", "redis_timeout: 1s\nconcurrency: 2");
    start(&b, "b", "redis_timeout: 1s\nconcurrency: 2");
    add_many("slow", 4);
    assert_true(test_until_lines(out, " 1", 4, LONG_MS));
    test_redis_kill(&redis, SIGSTOP);
    assert_true(test_laterd_says(&a, "state=down", LONG_MS));
    assert_true(test_until_lines(a.log, "event=end", 2, LONG_MS));
    test_redis_kill(&redis, SIGCONT);
    assert_true(test_until(no_job_is_left, NULL, LONG_MS));
    assert_int_equal(test_lines(out, NULL), 4);
    assert_int_equal(test_lines(a.log, "event=reaped") + test_lines(b.log, "event=reaped"), 0);
}

static void test_killed_connections_are_made_anew(void **state) /* R22 */
{
    (void)state;
    test_handler(dir, "work", "echo \"$LATER_ID $LATER_ATTEMPT\" >> %s; sleep 0.05", out);
    start(&a, "a", "concurrency: 4");
    add_many("work", 100);
    for (int i = 1; i <= 5; i++) {
        assert_true(test_until_lines(out, NULL, i * 10, LONG_MS));
        reply_free(test_redis_call(&redis, "CLIENT", "KILL", "TYPE", "normal", NULL));
        reply_free(test_redis_call(&redis, "CLIENT", "KILL", "TYPE", "pubsub", NULL));
    }
    assert_true(test_until(no_job_is_left, NULL, LONG_MS));
    assert_int_equal(test_lines(out, NULL), 100);
    assert_int_equal(twice(), 0);
}

static void test_a_flushed_library_is_loaded_again(void **state) /* R16 */
{
    (void)state;
    test_handler(dir, "work", "echo x >> %s", out);
    start(&a, "a", "");
    reply_free(test_redis_call(&redis, "FUNCTION", "FLUSH", NULL));
    assert_true(test_until_lines(a.log, "loaded=1", 2, LONG_MS));
    add_many("work", 1);
    assert_true(test_until_lines(out, NULL, 1, LONG_MS));
}

/* The pinned library lacks functions that this daemon calls. It is not replaced while it is pinned,
 * and the log says so. */
static void test_a_pinned_library_may_be_too_old(void **state)
{
    static const char old[] =
        "#!lua name=laterd\nredis.register_function{function_name='later_version', "
        "flags={'no-writes'}, callback=function() return {18, 'old', 1, 1} end}";
    CLEANUP_FREE char *force = NULL;

    (void)state;
    test_handler(dir, "work", "echo ran >> %s", out);
    reply_free(test_redis_call(&redis, "FUNCTION", "LOAD", "REPLACE", old, NULL));
    test_laterd_conf(&a, dir, "a", redis.url, "");
    test_laterd_launch(&a);
    assert_true(test_laterd_says(&a, "library 18 is pinned on the server", LONG_MS));
    force = mem_printf("$LATER --redis %s setup --force", redis.url);
    test_says(force, 0, "loaded");
    assert_true(test_laterd_says(&a, "state=up", LONG_MS));
    add_many("work", 1);
    assert_true(test_until_lines(out, "ran", 1, LONG_MS));
}

/* Two versions that load theirs at the same instant: the older one may come last. It has every
 * function that is called, so only its number tells. */
static void test_an_older_library_is_replaced_again(void **state)
{
    CLEANUP_FREE char *line = mem_printf(
        "$LATER setup --print | sed 's/and %ld or 0/and 1 or 0/; s/return {%ld,/return {1,/' | "
        "redis-cli -s %s -x FUNCTION LOAD REPLACE",
        lua_lib_number, lua_lib_number, redis.sock);
    CLEANUP_FREE char *setup = NULL;

    (void)state;
    test_handler(dir, "work", "echo ran >> %s", out);
    start_a("");
    assert_int_equal(test_sh(line), 0);
    assert_true(test_laterd_says(&a, "has replaced the function library", LONG_MS));
    assert_true(test_laterd_says(&a, "loaded=1", LONG_MS));
    add_many("work", 1);
    assert_true(test_until_lines(out, "ran", 1, LONG_MS));
    setup = mem_printf("$LATER --redis %s setup", redis.url);
    test_says(setup, 0, "was there already");
}

static void test_an_emptied_redis_is_survived(void **state) /* R18 */
{
    (void)state;
    test_handler(dir, "work", "echo begin >> %s; sleep 1; echo end >> %s", out, out);
    start(&a, "a", "");
    add_many("work", 2);
    assert_true(test_until_lines(out, "begin", 2, LONG_MS));
    reply_free(test_redis_call(&redis, "FLUSHALL", NULL));
    /* Running jobs may finish: data was lost, so nobody else has these jobs. */
    assert_true(test_until_lines(out, "end", 2, LONG_MS));
    assert_true(test_until_lines(a.log, "event=registered", 2, LONG_MS));
    assert_true(test_until_lines(a.log, "rewound=1", 1, LONG_MS));
    add_many("work", 1);
    assert_true(test_until_lines(out, "end", 3, LONG_MS));
}

static void test_a_full_redis_drains(void **state) /* R11 */
{
    (void)state;
    test_handler(dir, "work", "echo x >> %s", out);
    add_many("work", 50);
    reply_free(test_redis_call(&redis, "CONFIG", "SET", "maxmemory", "1", NULL));
    start(&a, "a", "");
    assert_true(test_until(no_job_is_left, NULL, LONG_MS));
    assert_int_equal(test_lines(out, NULL), 50);
    assert_null(test_fcall(&redis, "later_add", "work", "x", NULL)); /* Redis refuses it */
    reply_free(test_redis_call(&redis, "CONFIG", "SET", "maxmemory", "0", NULL));
}

static void test_without_the_right_to_keyspace_events_wakes_still_come(void **state) /* R20 */
{
    (void)state;
    test_handler(dir, "work", "echo late $LATER_LATE_MS >> %s", out);
    reply_free(test_redis_call(&redis, "ACL", "SETUSER", "default", "resetchannels",
                               "&" ROOT ":wake", "&" ROOT ":ended:*", NULL));
    start(&a, "a", "");
    assert_true(test_laterd_says(&a, "event=wake-denied", LONG_MS));
    /* The daemon subscribed again without the pattern: a wake still starts a due job at once. */
    assert_true(test_until(one_subscriber, NULL, LONG_MS));
    add_many("work", 1);
    assert_true(test_until_lines(out, "late", 1, LONG_MS));
    assert_int_equal(test_lines(a.log, "event=wake-denied"), 1);
}

/* ---- handlers that misbehave */

static void test_a_wild_retry_in_harms_nobody(void **state)
{
    (void)state;
    test_handler(dir, "wild", "echo wild >> %s; echo 'retry-in 200000000d' >&3; exit 75", out);
    test_handler(dir, "fine", "echo fine >> %s", out);
    start(&a, "a", "");
    add_many("wild", 1);
    assert_true(test_until_lines(a.log, "outcome=retry", 1, LONG_MS));
    add_many("fine", 3);
    assert_true(test_until_lines(out, "fine", 3, LONG_MS));
    assert_int_equal(test_lines(a.log, "event=refused"), 0);
}

static void test_a_stuck_reader_of_the_log_stops_nothing(void **state) /* S1 L14 */
{
    CLEANUP_FREE char *fifo = mem_printf("%s/fifo", dir);
    CLEANUP_FREE char *cmd = NULL;
    char *argv[] = {(char *)(uintptr_t) "sh", (char *)(uintptr_t) "-c", NULL, NULL};
    struct proc p;
    int reader;

    (void)state;
    test_handler(dir, "loud", "yes loud | head -c 1000000; echo ended >> %s", out);
    test_laterd_conf(&a, dir, "a", redis.url, "");
    assert_int_equal(mkfifo(fifo, 0600), 0);
    reader = open(fifo, O_RDWR | O_CLOEXEC);
    assert_true(reader >= 0);
    cmd = mem_printf("exec %s/laterd --config %s 2> %s", test_build_dir(), a.conf, fifo);
    argv[2] = cmd;
    proc_start(&p, argv, NULL, NULL);
    add_many("loud", 4);
    assert_true(test_until_lines(out, "ended", 4, LONG_MS));
    assert_true(test_until(no_job_is_left, NULL, LONG_MS));
    proc_signal(&p, SIGTERM);
    assert_int_equal(proc_wait(&p, LONG_MS), 0);
    proc_done(&p);
    (void)close(reader);
}

/* ---- strangers' files and keys */

/* Files are written there all the time, but no served file changes: no reload is logged. */
static void test_a_folder_that_never_rests_is_quiet(void **state)
{
    (void)state;
    test_handler(dir, "work", "true");
    start(&a, "a", "");
    for (int i = 0; i < 40; i++) {
        test_handler(dir, ".lock", "round %d", i);
        test_pause(50);
    }
    assert_int_equal(test_lines(a.log, "event=serving"), 1);
    test_handler(dir, "zebra", "true");
    assert_true(test_laterd_says(&a, "names=\"work,zebra\"", LONG_MS));
}

static void test_a_foreign_key_stops_one_queue_only(void **state) /* R15 I14 */
{
    (void)state;
    test_handler(dir, "broken", "echo broken >> %s", out);
    test_handler(dir, "fine", "echo fine >> %s", out);
    reply_free(test_redis_call(&redis, "SET", ROOT ":due:broken", "not a sorted set", NULL));
    start(&a, "a", "");
    add_many("broken", 1);
    add_many("fine", 3);
    assert_true(test_until_lines(out, "fine", 3, LONG_MS));
    assert_true(test_laterd_says(&a, "event=queue-broken queue=broken", LONG_MS));
    assert_int_equal(test_lines(out, "broken"), 0);
    reply_free(test_redis_call(&redis, "DEL", ROOT ":due:broken", NULL));
    assert_true(test_until_lines(out, "broken", 1, LONG_MS));
}

static bool five_are_dead(void *arg)
{
    (void)arg;
    return test_int(&redis, "ZCARD", ROOT ":dead:raw") == 5;
}

static void test_hostile_scores_are_buried_with_their_reason(void **state) /* P5 P6 */
{
    static const char *const bad[] = {"1767225600",       "-inf",  "inf",
                                      "9007199254740993", "1e308", NULL};
    static const char *const good[] = {"0", "-1", "1", NULL};

    (void)state;
    test_handler(dir, "raw", "echo \"ran $(cat)\" >> %s", out);
    for (int i = 0; bad[i] != NULL; i++)
        reply_free(test_redis_call(&redis, "ZADD", ROOT ":due:raw", bad[i], bad[i], NULL));
    for (int i = 0; good[i] != NULL; i++)
        reply_free(test_redis_call(&redis, "ZADD", ROOT ":due:raw", good[i], good[i], NULL));
    start(&a, "a", "");
    assert_true(test_until_lines(out, "ran", 3, LONG_MS));
    assert_true(test_until(five_are_dead, NULL, LONG_MS));
    assert_int_equal(test_lines(out, "ran"), 3);
}

static void test_stray_keys_are_reported(void **state)
{
    (void)state;
    start(&a, "a", "");
    reply_free(test_redis_call(&redis, "ZADD", "later:default:due:mail", "1", "x", NULL));
    assert_true(test_laterd_says(&a, "event=stray-key key=\"later:default:due:mail\"", LONG_MS));
    assert_true(test_until_lines(a.log, "event=stray-key", 1, LONG_MS));
    assert_int_equal(test_int(&redis, "HLEN", ROOT ":notes"), 1);
}

int main(void)
{
    CLEANUP_FREE char *later = mem_printf("%s/later", test_build_dir());
#define T(f) cmocka_unit_test_setup_teardown(f, fx_open, fx_close)
#define T_AOF(f) cmocka_unit_test_setup_teardown(f, fx_open_aof, fx_close)
    const struct CMUnitTest tests[] = {
        T(test_a_killed_daemon_takes_its_jobs_back_at_once),
        T(test_a_kill_in_a_burst_of_starts_leaves_nothing_behind),
        T(test_a_handler_that_dies_slowly_is_waited_for),
        T(test_another_daemon_of_the_host_takes_over),
        T(test_a_worker_given_up_drops_its_jobs),
        T(test_a_poison_pill_is_buried),
        T(test_redis_may_come_later),
        T_AOF(test_a_restart_of_redis_loses_nothing),
        T(test_a_frozen_redis_makes_nobody_a_reaper),
        T(test_killed_connections_are_made_anew),
        T(test_a_flushed_library_is_loaded_again),
        T(test_a_pinned_library_may_be_too_old),
        T(test_an_older_library_is_replaced_again),
        T(test_an_emptied_redis_is_survived),
        T(test_a_full_redis_drains),
        T(test_without_the_right_to_keyspace_events_wakes_still_come),
        T(test_a_wild_retry_in_harms_nobody),
        T(test_a_stuck_reader_of_the_log_stops_nothing),
        T(test_a_folder_that_never_rests_is_quiet),
        T(test_a_foreign_key_stops_one_queue_only),
        T(test_hostile_scores_are_buried_with_their_reason),
        T(test_stray_keys_are_reported),
    };

    (void)setenv("LATER", later, 1);
    cmocka_set_test_filter(getenv("LATER_ONLY")); /* a name, with * and ? */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
