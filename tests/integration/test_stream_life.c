/*
 * The processes of stream mode, with the real programs: how they begin, are replaced, and end.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include <cmocka.h>

#include "run/process/pidstat.h"
#include "stream_fixture.h"

#define STOP_MS 18000 /* before stop_timeout is over */
#define CANCEL ", \"greet=later-stream 1 inflight=4 cancel\""

/* ---- processes that fail to start */

/* No process comes up: no job of the queue is claimed, the other queue is served, and new tries
 * come less and less often. After the cure new processes serve the queue. */
static void check_refused(const char *settings, const char *args, const char *reason)
{
    CLEANUP_FREE char *id = NULL;
    struct mono begin = mono_now();

    stream_start_a("", settings, args);
    assert_true(test_laterd_says(&a, reason, LONG_MS));
    id = ask("ok");
    assert_true(other_runs());
    assert_true(test_until_lines(a.log, "event=stream-end", 3, LONG_MS));
    assert_true(test_ms_since(begin) >= 300); /* 100, 200 */
    assert_true(test_state_is(&redis, id, "waiting"));
    assert_int_equal(shown(id, "starts"), 0);
    assert_int_equal(test_lines(a.log, "event=start job"), 0);
    reload_with("", "");
    assert_true(until_state(id, "done"));
    assert_int_equal(test_lines(a.log, "event=stream-ready"), 1);
}

static void test_one_that_ends_at_once(void **state)
{
    (void)state;
    check_refused("", ", code=3", "served=0 reason=\"exit status 3\"");
}

static void test_one_that_does_not_greet(void **state)
{
    (void)state;
    check_refused(", start_timeout: 50ms", ", mute=1",
                  "reason=\"it did not greet within start_timeout: is its output buffered?");
}

static void test_one_that_says_something_else(void **state)
{
    (void)state;
    check_refused("", ", \"greet=hello, world\"",
                  "reason=\"its first line is not the greeting, later-stream 1");
}

static void test_one_of_another_version(void **state)
{
    (void)state;
    check_refused("", ", \"greet=later-stream 2 inflight=4\"",
                  "reason=\"it speaks another version of the protocol than 1");
}

static void test_one_whose_file_comes_later(void **state)
{
    CLEANUP_FREE char *path = mem_printf("%s/handlers/words", dir);
    FILE *f;

    (void)state;
    start_a("queues: { words: { mode: stream } }");
    f = fopen(path, "w");
    assert_non_null(f);
    (void)fputs("#!/bin/sh\necho later-stream 1\nexec cat >/dev/null\n", f);
    (void)fclose(f);
    assert_int_equal(chmod(path, 0755), 0);
    assert_true(test_laterd_says(&a, "event=stream-ready queue=words", LONG_MS));
}

/* ---- processes that end unexpectedly */

static void check_shut(const char *payload, const char *reason)
{
    CLEANUP_FREE char *id = NULL, *held = NULL, *first = NULL, *next = NULL;

    stream_start_a("", ", backoff: { first: 1h }, kill_grace: 200ms", ", inflight=4");
    first = ask("ok");
    assert_true(until_state(first, "done"));
    held = ask("hold");
    assert_true(until_noted(" hold", 1));
    id = ask(payload);
    /* A closed standard input is noticed only when a job is written to it. */
    assert_true(until_noted(" shut", 1));
    next = ask("ok");
    assert_true(test_laterd_says(&a, reason, LONG_MS));
    assert_true(until_state(id, "failed"));
    assert_true(until_state(held, "failed"));
    assert_true(result_has(id, RESULT_TEXT, reason));
    assert_int_equal(shown(id, "attempt"), 1);
    assert_int_equal(shown(held, "attempt"), 1);
    free(next);
    next = ask("ok");
    assert_true(until_state(next, "done"));
    assert_int_equal(test_lines(a.log, "event=stream-ready"), 2);
}

static void test_one_that_closes_its_output(void **state)
{
    (void)state;
    check_shut("shut out", "it closed its standard output");
}

static void test_one_that_closes_its_input(void **state)
{
    (void)state;
    check_shut("shut in", "it closed its standard input");
}

static void test_one_that_is_killed_while_it_is_idle(void **state)
{
    CLEANUP_FREE char *id = NULL, *next = NULL;
    pid_t pid;

    (void)state;
    stream_start_a("", "", "");
    id = ask("ok");
    assert_true(until_state(id, "done"));
    pid = noted_pid("start ", 1);
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_true(test_laterd_says(&a, "served=1 reason=\"killed by signal 9", LONG_MS));
    next = ask("ok");
    assert_true(until_state(next, "done"));
    assert_int_equal(noted_starts(next, 1), 1);
}

/* A job that kills its process does not keep the queue busy: new processes come less often. */
static void test_deaths_without_an_answer_slow_down(void **state)
{
    CLEANUP_FREE char *id = NULL;
    struct mono begin = mono_now();

    (void)state;
    stream_start_a("", ", attempts: 5, backoff: { first: 0s }", "");
    id = ask("exit 1");
    assert_true(until_state(id, "dead"));
    assert_int_equal(noted(" exit"), 5);
    assert_true(test_ms_since(begin) >= 1500); /* 100, 200, 400, 800 */
}

/* ---- recycling */

static void serve_for(int n)
{
    char *ids[64];

    assert_true(n <= 64);
    for (int i = 0; i < n; i++)
        ids[i] = ask("ok");
    for (int i = 0; i < n; i++) {
        assert_true(until_state(ids[i], "done"));
        assert_int_equal(noted_starts(ids[i], 1), 1);
        free(ids[i]);
    }
}

/* The old process takes jobs until the new one has greeted. One of its jobs runs on after that. */
static void test_replaced_by_jobs_without_a_gap(void **state)
{
    CLEANUP_FREE char *held = NULL;

    (void)state;
    stream_start_a("", ", recycle: { jobs: 10 }", ", late=700");
    held = ask("hold");
    assert_true(until_noted(" hold", 1));
    serve_for(10);
    assert_true(until_noted("start ", 2));
    serve_for(5); /* while the second one sets itself up */
    assert_int_equal(test_lines(a.log, "event=stream-ready"), 1);
    assert_true(test_laterd_says(&a, "event=stream-recycle queue=s served=", LONG_MS));
    serve_for(5);
    assert_int_equal(noted("eof "), 0);
    open_latch();
    assert_true(until_state(held, "done"));
    assert_true(until_noted("eof ", 1));
    assert_int_equal(noted_pid("eof ", 1), noted_pid("start ", 1));
    assert_int_equal(test_lines(a.log, "outcome=retry"), 0);
}

static void test_replaced_by_age(void **state)
{
    (void)state;
    stream_start_a("", ", recycle: { age: 1s }", "");
    while (noted("start ") < 3)
        serve_for(4);
    assert_true(until_noted("eof ", 2));
    assert_int_equal(test_lines(a.log, "outcome=re"), 0);
}

static void test_replaced_by_memory(void **state)
{
    CLEANUP_FREE char *id = NULL;

    (void)state;
    stream_start_a("", ", recycle: { memory: 64MiB }", "");
    serve_for(4);
    assert_int_equal(noted("start "), 1);
    id = ask("grow 100");
    assert_true(until_state(id, "done"));
    while (noted("start ") < 2)
        serve_for(4);
    assert_true(until_noted("eof ", 1));
    assert_int_equal(noted_pid("eof ", 1), noted_pid("start ", 1));
}

/* ---- reload */

static void test_a_reload_brings_new_processes(void **state)
{
    CLEANUP_FREE char *held = NULL, *next = NULL;
    pid_t old;

    (void)state;
    stream_start_a("", "", "");
    held = ask("hold");
    assert_true(until_noted(" hold", 1));
    old = noted_pid("start ", 1);
    reload_with("", ""); /* nothing is new */
    assert_int_equal(noted("start "), 1);
    reload_with("", ", any=new");
    next = ask("ok");
    assert_true(until_state(next, "done"));
    assert_int_equal(noted("start "), 2);
    assert_int_equal(noted_pid("job ", 2), noted_pid("start ", 2));
    assert_int_equal(noted("eof "), 0);
    open_latch();
    assert_true(until_state(held, "done"));
    assert_true(until_noted("eof ", 1));
    assert_int_equal(noted_pid("eof ", 1), old);
    assert_int_equal(test_lines(a.log, "outcome=re"), 0);
}

static void test_a_reload_changes_how_many(void **state)
{
    (void)state;
    stream_start_a("", "", "");
    assert_true(test_laterd_says(&a, "event=stream-ready", LONG_MS));
    reload_with(", processes: 3", "");
    assert_true(test_until_lines(a.log, "event=stream-ready", 4, LONG_MS));
    assert_true(until_noted("eof ", 1));
    serve_for(20);
    assert_int_equal(noted("start "), 4);
}

/* Under load, reload after reload: no job runs twice, and none is lost. */
static void test_reloads_under_load(void **state)
{
    char *ids[400], args[24];

    (void)state;
    stream_start_a("", ", processes: 2", "");
    for (int i = 0; i < 400; i++) {
        ids[i] = ask(i % 4 == 0 ? "late 20" : "ok");
        if (i % 40 == 39) {
            (void)snprintf(args, sizeof(args), ", any=%d", i);
            reload_with(", processes: 2", args);
        }
    }
    for (int i = 0; i < 400; i++) {
        assert_true(until_state(ids[i], "done"));
        assert_int_equal(noted_starts(ids[i], 1), 1);
        free(ids[i]);
    }
    /* Jobs that were claimed for processes that went are put back. */
    assert_int_equal(test_lines(a.log, "outcome=re"),
                     test_lines(a.log, "outcome=released run_ms=0 code=0 reason=\"not started"));
}

static void words_handler(const char *answer)
{
    /* The line feed after the body ends `read`, too: payloads here have none. */
    test_handler(dir, "words",
                 "echo 'later-stream 1'\n"
                 "while read -r _ id _; do read -r _; echo \"ok ${id#id=} %s\"; done",
                 answer);
}

static bool says_new(void *arg)
{
    CLEANUP_FREE char *id = test_add(&redis, "words", "keep", "1m", "x");
    struct reply *r;
    bool is_new;

    (void)arg;
    assert_true(until_state(id, "done"));
    r = test_fcall(&redis, "later_result", id, NULL);
    is_new = reply_is(reply_at(r, RESULT_OUTPUT), "new");
    reply_free(r);
    return is_new;
}

static void test_a_file_that_is_replaced_is_served(void **state)
{
    (void)state;
    words_handler("old");
    start_a("queues: { words: { mode: stream } }");
    assert_false(says_new(NULL));
    words_handler("new");
    assert_true(test_until(says_new, NULL, LONG_MS));
    /* A job that met the change goes back without an attempt spent. */
    assert_int_equal(test_lines(a.log, "outcome=retry"), 0);
}

static void test_a_queue_that_is_removed(void **state)
{
    CLEANUP_FREE char *held = NULL, *left = NULL;
    struct test_laterd edited;

    (void)state;
    stream_start_a("", "", "");
    held = ask("hold");
    assert_true(until_noted(" hold", 1));
    test_laterd_conf(&edited, dir, "a", redis.url, "queues: { x: { handler: [/bin/true] } }");
    test_laterd_kill(&a, SIGHUP);
    assert_true(test_laterd_says(&a, "event=reload result=done", LONG_MS));
    left = ask("ok");
    open_latch();
    assert_true(until_noted("eof ", 1));
    assert_true(test_laterd_says(&a, "event=stream-end", LONG_MS));
    assert_true(test_state_is(&redis, left, "waiting"));
    assert_int_equal(test_lines(a.log, "outcome=done"), 0); /* logged at debug */
    assert_int_equal(test_int(&redis, "ZCARD", ROOT ":running"), 0);
    assert_int_equal(noted("start "), 1);
}

static void test_from_exec_to_stream_and_back(void **state)
{
    struct test_laterd edited;
    CLEANUP_FREE char *first = NULL, *second = NULL;

    (void)state;
    stream_start_a("", "", "");
    first = ask("ok");
    assert_true(until_state(first, "done"));
    test_laterd_conf(&edited, dir, "a", redis.url,
                     "queues: { s: { handler: [/bin/echo, x], keep: 1m } }");
    test_laterd_kill(&a, SIGHUP);
    assert_true(test_laterd_says(&a, "event=reload result=done", LONG_MS));
    second = ask("ok");
    assert_true(until_state(second, "done"));
    assert_true(until_noted("eof ", 1));
    reload_with("", "");
    free(first);
    first = ask("ok");
    assert_true(until_state(first, "done"));
    assert_int_equal(noted(" ok"), 2);
}

/* ---- the daemon's stop and end */

static void test_a_stop_with_idle_processes(void **state)
{
    (void)state;
    stream_start_a("", ", processes: 3", "");
    assert_true(test_until_lines(a.log, "event=stream-ready", 3, LONG_MS));
    assert_int_equal(test_laterd_stop(&a), 0);
    assert_int_equal(noted("eof "), 3);
}

static void test_a_stop_waits_for_jobs(void **state)
{
    CLEANUP_FREE char *id = NULL, *left = NULL;

    (void)state;
    stream_start_a("", "", ", \"greet=later-stream 1\"");
    id = ask("late 1000");
    assert_true(until_noted(" late", 1));
    test_laterd_kill(&a, SIGTERM);
    assert_true(test_laterd_says(&a, "event=stopping", LONG_MS));
    left = ask("ok");
    assert_int_equal(test_laterd_wait(&a, LONG_MS), 0);
    assert_true(test_state_is(&redis, id, "done"));
    assert_true(test_state_is(&redis, left, "waiting"));
    assert_int_equal(noted("eof "), 1);
}

/* A stop ends processes without `cancel` by TERM and KILL, and those with it by a cancel line. The
 * jobs are put back. */
static void check_stop(const char *args, int cancels, int eofs)
{
    CLEANUP_FREE char *one = NULL, *two = NULL;
    struct mono begin;

    stream_start_a("stop_timeout: 300ms", ", kill_grace: 300ms", args);
    one = ask("hold");
    two = ask("hold");
    assert_true(until_noted(" hold", 2));
    begin = mono_now();
    assert_int_equal(test_laterd_stop(&a), 0);
    assert_true(test_ms_since(begin) < STOP_MS);
    assert_true(test_state_is(&redis, one, "waiting"));
    assert_true(test_state_is(&redis, two, "waiting"));
    assert_int_equal(shown(one, "attempt"), 0);
    assert_int_equal(shown(one, "starts"), 1);
    assert_int_equal(noted("cancel "), cancels);
    if (eofs >= 0)
        assert_int_equal(noted("eof "), eofs);
    assert_int_equal(noted("start "), 1); /* no process for the jobs that do not run */
}

static void test_a_stop_that_takes_too_long(void **state)
{
    (void)state;
    check_stop("", 0, -1); /* end of file may be faster than TERM */
}

static void test_a_stop_that_takes_too_long_for_deaf_ones(void **state)
{
    (void)state;
    check_stop(", \"deaf=term,eof\"", 0, 1);
}

static void test_a_stop_that_cancels(void **state)
{
    (void)state;
    check_stop(CANCEL, 2, 1);
}

static void test_a_stop_that_cancels_deaf_ones(void **state)
{
    (void)state;
    check_stop(CANCEL ", \"deaf=cancel,term,eof\"", 2, 1);
}

static void test_a_stop_of_one_that_does_not_end(void **state)
{
    struct mono begin;

    (void)state;
    stream_start_a("", "", ", \"deaf=eof,term\"");
    assert_true(test_laterd_says(&a, "event=stream-ready", LONG_MS));
    begin = mono_now();
    assert_int_equal(test_laterd_stop(&a), 0);
    assert_in_range(test_ms_since(begin), 1900, STOP_MS);
}

static void test_a_stop_while_one_is_starting(void **state)
{
    struct mono begin;

    (void)state;
    stream_start_a("", "", ", late=30000");
    assert_true(until_noted("start ", 1));
    begin = mono_now();
    assert_int_equal(test_laterd_stop(&a), 0);
    assert_true(test_ms_since(begin) < STOP_MS);
}

static void test_a_stop_between_two_tries(void **state)
{
    struct mono begin;

    (void)state;
    stream_start_a("", "", ", code=3");
    assert_true(test_until_lines(a.log, "event=stream-end", 3, LONG_MS));
    begin = mono_now();
    assert_int_equal(test_laterd_stop(&a), 0);
    assert_true(test_ms_since(begin) < STOP_MS);
}

static void hurried(int second)
{
    CLEANUP_FREE char *id = NULL;
    struct mono begin;

    stream_start_a("", "", "");
    id = ask("hold");
    assert_true(until_noted(" hold", 1));
    begin = mono_now();
    test_laterd_kill(&a, SIGTERM);
    assert_true(test_laterd_says(&a, "event=stopping", LONG_MS));
    test_laterd_kill(&a, second);
    assert_int_equal(test_laterd_wait(&a, LONG_MS), 0);
    assert_true(test_ms_since(begin) < STOP_MS);
    assert_true(test_state_is(&redis, id, "waiting"));
}

static void test_a_stop_that_is_hurried(void **state)
{
    (void)state;
    hurried(SIGTERM);
}

static void test_a_stop_that_quits(void **state)
{
    (void)state;
    hurried(SIGQUIT);
}

/* A reload during a stop comes too late to change anything. */
static void test_a_reload_while_it_stops(void **state)
{
    struct test_laterd edited;

    (void)state;
    stream_start_a("", "", ", \"deaf=eof,term\"");
    assert_true(test_laterd_says(&a, "event=stream-ready", LONG_MS));
    test_laterd_kill(&a, SIGTERM);
    assert_true(until_noted("eof ", 1));
    stream_conf(&edited, "", ", processes: 2", ", \"deaf=eof,term\", any=new");
    test_laterd_kill(&a, SIGHUP);
    assert_true(test_laterd_says(&a, "event=reload", LONG_MS));
    assert_int_equal(test_laterd_wait(&a, 10000), 0);
    assert_int_equal(noted("start "), 1);
}

/* `strict` refuses a server that may lose jobs: processes that were started already end, too. */
static void test_a_start_that_is_refused(void **state)
{
    (void)state;
    stream_conf(&a, "strict: true", ", processes: 2", "");
    test_laterd_launch(&a);
    assert_int_equal(test_laterd_wait(&a, LONG_MS), 78);
    assert_int_equal(test_lines(a.log, "event=stream-end"), 2);
    assert_true(proc_until_none(worker, LONG_MS));
}

static void test_killed_daemons_leave_no_process(void **state)
{
    CLEANUP_FREE char *id = NULL;

    (void)state;
    stream_start_a("", ", processes: 2", "");
    assert_true(test_until_lines(a.log, "event=stream-ready", 2, LONG_MS));
    id = ask("hold");
    assert_true(until_noted(" hold", 1));
    test_laterd_kill(&a, SIGKILL);
    (void)test_laterd_wait(&a, LONG_MS);
    assert_true(proc_until_none(worker, LONG_MS));
    assert_int_equal(noted("eof "), 2);
    test_laterd_start(&a);
    assert_true(until_noted(" hold", 2));
    open_latch();
    assert_true(until_state(id, "done"));
    assert_int_equal(shown(id, "crashes"), 1);
}

static void test_a_stuck_one_is_killed_by_the_successor(void **state)
{
    CLEANUP_FREE char *id = NULL;
    pid_t old;

    (void)state;
    stream_start_a("", "", ", \"deaf=eof,term\"");
    id = ask("hold");
    assert_true(until_noted(" hold", 1));
    old = noted_pid("start ", 1);
    test_laterd_kill(&a, SIGKILL);
    (void)test_laterd_wait(&a, LONG_MS);
    assert_true(until_noted("eof ", 1));
    assert_int_equal(kill(old, 0), 0);
    test_laterd_start(&a);
    assert_int_equal(test_lines(a.log, "handlers_killed=1"), 1);
    assert_true(until_noted(" hold", 2));
    open_latch();
    assert_true(until_state(id, "done"));
}

/* ---- locks */

static bool is_dead(void *pid)
{
    return kill(*(pid_t *)pid, 0) != 0 || pidstat_start(*(pid_t *)pid) < 0;
}

/* The worker is stopped for 15 s: its guard kills the process with a lock before others may get the
 * lock. */
static void test_the_guard_kills_one_with_a_lock(void **state)
{
    CLEANUP_FREE char *id = NULL, *neighbour = NULL;
    struct mono begin;
    pid_t pid;

    (void)state;
    stream_start_a("", "", "");
    neighbour = ask("hold");
    id = ask_with("lock", "door", "hold");
    assert_true(until_noted(" hold", 2));
    pid = noted_pid("start ", 1);
    test_laterd_kill(&a, SIGSTOP);
    begin = mono_now();
    assert_true(test_until(is_dead, &pid, 20000));
    assert_in_range(test_ms_since(begin), 9000, 19000); /* at 20 s others may get it */
    test_laterd_kill(&a, SIGCONT);
    assert_true(test_laterd_says(&a, "event=guard-kill", LONG_MS));
    open_latch();
    assert_true(until_state(id, "done"));
    assert_true(until_state(neighbour, "done"));
    assert_int_equal(noted_starts(id, 1), 2);
    assert_int_equal(noted_starts(neighbour, 1), 2);
}

/* ---- the mode comes later than the handler */

/* The example workers lie in the folder and no setting says what they are: no job counts as done
 * until the setting is there, and then none is lost. */
static void test_examples_without_their_mode(void **state)
{
    static const char *const names[] = {"sh", "py", "pl"};
    enum { JOBS = 5 };
    const char *const defaults =
        "defaults: { attempts: 1000, backoff: { first: 200ms, max: 200ms } }\n";
    CLEANUP_FREE char *yaml = mem_printf(
        "%squeues: { sh: { mode: stream }, py: { mode: stream }, pl: { mode: stream } }", defaults);

    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        CLEANUP_FREE char *from =
            mem_printf("%s/handlers/examples/stream.%s", test_source_dir(), names[i]);
        CLEANUP_FREE char *to = mem_printf("%s/handlers/%s", dir, names[i]);

        install(from, to);
    }
    start_a(defaults);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        for (int n = 0; n < JOBS; n++)
            free(test_add(&redis, names[i], NULL, NULL, "upper hello"));
    }
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        CLEANUP_FREE char *failed =
            mem_printf("queue=%s start=2 attempt=2 outcome=retry", names[i]);

        assert_true(test_until_lines(a.log, failed, JOBS, LONG_MS));
    }
    assert_true(test_lines(a.log, "set mode: stream for its queue") >= 3 * JOBS);
    assert_int_equal(test_lines(a.log, "outcome=done"), 0);
    assert_int_equal(test_int(&redis, "HLEN", ROOT ":jobs"), 3 * JOBS);

    {
        struct test_laterd edited;

        test_laterd_conf(&edited, dir, "a", redis.url, yaml);
    }
    test_laterd_kill(&a, SIGHUP);
    assert_true(test_until(no_job_is_left, NULL, LONG_MS));
    assert_int_equal(test_lines(a.log, "outcome=dead"), 0);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, stream_open, stream_close_all)
    const struct CMUnitTest tests[] = {
        T(test_one_that_ends_at_once),
        T(test_one_that_does_not_greet),
        T(test_one_that_says_something_else),
        T(test_one_of_another_version),
        T(test_one_whose_file_comes_later),
        T(test_one_that_closes_its_output),
        T(test_one_that_closes_its_input),
        T(test_one_that_is_killed_while_it_is_idle),
        T(test_deaths_without_an_answer_slow_down),
        T(test_replaced_by_jobs_without_a_gap),
        T(test_replaced_by_age),
        T(test_replaced_by_memory),
        T(test_a_reload_brings_new_processes),
        T(test_a_reload_changes_how_many),
        T(test_reloads_under_load),
        T(test_a_file_that_is_replaced_is_served),
        T(test_a_queue_that_is_removed),
        T(test_from_exec_to_stream_and_back),
        T(test_a_stop_with_idle_processes),
        T(test_a_stop_waits_for_jobs),
        T(test_a_stop_that_takes_too_long),
        T(test_a_stop_that_takes_too_long_for_deaf_ones),
        T(test_a_stop_that_cancels),
        T(test_a_stop_that_cancels_deaf_ones),
        T(test_a_stop_of_one_that_does_not_end),
        T(test_a_stop_while_one_is_starting),
        T(test_a_stop_between_two_tries),
        T(test_a_stop_that_is_hurried),
        T(test_a_stop_that_quits),
        T(test_a_reload_while_it_stops),
        T(test_a_start_that_is_refused),
        T(test_killed_daemons_leave_no_process),
        T(test_a_stuck_one_is_killed_by_the_successor),
        T(test_the_guard_kills_one_with_a_lock),
        T(test_examples_without_their_mode),
    };

    cmocka_set_test_filter(getenv("LATER_ONLY")); /* a name, with * and ? */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
