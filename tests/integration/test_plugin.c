/*
 * Plug-in mode, with the real programs: tests/handlers/obedient.c in a real laterd, and the
 * plug-ins that are installed.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "../support/notes.h"
#include "stream_fixture.h"

static char object[128]; /* the plug-in of queue `s` */

static void install_object(const char *name, const char *to)
{
    CLEANUP_FREE char *from = mem_printf("%s/%s", test_build_dir(), name);
    CLEANUP_FREE char *next = mem_printf("%s.next", to);

    /* Rename it: a file that is written while it is mapped kills the program that runs it. */
    install(from, next);
    if (rename(next, to) != 0)
        test_die(to);
}

static int setup(void **state)
{
    (void)stream_open(state);
    (void)snprintf(object, sizeof(object), "%s/s.so", dir);
    install_object("tests/handlers/obedient.so", object);
    return 0;
}

/* settings: more settings of the queue, args: more arguments of the plug-in, each with a comma in
 * front. */
static void plugin_conf(struct test_laterd *d, const char *name, const char *top,
                        const char *settings, const char *args)
{
    CLEANUP_FREE char *yaml =
        mem_printf("%s\nqueues:\n  s: { mode: plugin, keep: 1m, handler: [%s, %s, %s%s]%s }\n"
                   "  other: { handler: [/bin/sh, -c, \"echo other >> %s\"] }\n",
                   top, object, journal, latch, args, settings, out);

    test_laterd_conf(d, dir, name, redis.url, yaml);
}

static void begin(const char *top, const char *settings, const char *args)
{
    plugin_conf(&a, "a", top, settings, args);
    test_laterd_start(&a);
}

static void reload_plugin(const char *settings, const char *args)
{
    struct test_laterd edited;
    int before = test_lines(a.log, "event=reload result=done");

    plugin_conf(&edited, "a", "", settings, args);
    test_laterd_kill(&a, SIGHUP);
    assert_true(test_until_lines(a.log, "event=reload result=done", before + 1, LONG_MS));
}

static void check(const char *payload, const char *state, const char *code, enum result_field field,
                  const char *text)
{
    CLEANUP_FREE char *id = ask(payload);

    assert_true(until_state(id, state));
    assert_true(result_has(id, RESULT_CODE, code));
    assert_true(result_has(id, field, text));
}

/* ---- the watchdog */

/* A job that is past its time limit without a sign of life holds a thread for good: systemd should
 * restart the daemon. Within its time limit it may say nothing. */
static void test_a_mute_one_starves_the_watchdog(void **state)
{
    (void)state;
    notes_open(dir);
    begin("", ", timeout: 6s", "");
    notes_for_no_others();
    free(ask("stone"));
    assert_true(test_until_lines(journal, "stone", 1, LONG_MS));
    notes_drop();
    test_pause(5000);
    notes_drop();
    assert_true(notes_told("WATCHDOG=1", 3000)); /* 6 s, and 10 s more, are not over */
    assert_true(test_laterd_says(&a, "event=pool-wedged reason=\"job j", LONG_MS));
    notes_drop();
    assert_false(notes_told("WATCHDOG=1", 5000));
    assert_true(notes_told("STATUS=ready, POOL WEDGED", 3000));
    open_latch();
    assert_true(notes_told("WATCHDOG=1", LONG_MS)); /* it came back after all */
    assert_true(test_laterd_says(&a, "event=pool-well", LONG_MS));
    assert_int_equal(test_lines(a.log, "event=pool-wedged"), 1);
    notes_close();
}

/* ---- what a plug-in returns and reports */

static void test_each_outcome(void **state)
{
    (void)state;
    begin("", ", backoff: { first: 1h }", "");
    check("ok forty-two", "done", "0", RESULT_OUTPUT, "forty-two");
    check("ok forty-two", "done", "0", RESULT_TEXT, "ok");
    check("retry 600000", "failed", "75", RESULT_TEXT, "it asked for another try");
    check("fail no luck", "failed", "1", RESULT_TEXT, "no luck");
    check("fail", "failed", "1", RESULT_TEXT, "it failed");
    check("dead never", "dead", "65", RESULT_TEXT, "never");
    check("number 4", "failed", "1", RESULT_TEXT, "its plug-in returned 4, which says nothing");
    check("number -1", "failed", "1", RESULT_TEXT, "returned -1");
    check("deep", "done", "0", RESULT_OUTPUT, "deep");
    assert_int_equal(test_lines(a.log, "again_in_ms=600000"), 1);
    assert_int_equal(noted("init "), 1);
}

static void test_it_adds_jobs(void **state)
{
    CLEANUP_BUF struct buf got = BUF_INIT;
    struct reply *jobs;

    (void)state;
    begin("", "", "");
    check("add nobody", "done", "0", RESULT_TEXT, "ok");
    jobs = test_redis_call(&redis, "ZRANGE", ROOT ":q:nobody:5", "0", "-1", NULL);
    assert_int_equal(reply_count(jobs), 2);
    for (size_t i = 0; i < reply_count(jobs); i++) {
        struct reply *r =
            test_redis_call(&redis, "HGET", ROOT ":jobs", reply_str(reply_at(jobs, i)), NULL);

        buf_add(&got, reply_str(r), reply_len(r));
        reply_free(r);
    }
    reply_free(jobs);
    assert_true(got.len > 0 && memmem(got.data, got.len, "\na\0b-nobody K=k p=j", 19) != NULL);
    check("add -", "failed", "65", RESULT_TEXT, "child 1: ELATER_QUEUE");
}

static void test_payloads_arrive_byte_exact(void **state)
{
    static const size_t sizes[] = {0, 1, 4096, 16384, 20000};
    CLEANUP_FREE char *bytes = mem_new(20000);

    (void)state;
    begin("", "", "");
    for (size_t i = 0; i < 20000; i++)
        bytes[i] = (char)(i * 7 + i / 256);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        CLEANUP_FREE char *id = ask_bytes("s", bytes, sizes[i]);
        size_t kept = sizes[i] < 16384 ? sizes[i] : 16384;
        struct reply *r;

        assert_true(until_state(id, "done"));
        r = test_fcall(&redis, "later_result", id, NULL);
        assert_int_equal(reply_len(reply_at(r, RESULT_OUTPUT)), kept);
        assert_memory_equal(reply_str(reply_at(r, RESULT_OUTPUT)), bytes, kept);
        reply_free(r);
    }
    assert_true(test_until_lines(a.log, "event=result-cut", 1, LONG_MS));
}

static void test_it_is_told_the_facts(void **state)
{
    CLEANUP_FREE char *id = NULL, *want = NULL;

    (void)state;
    begin("", ", attempts: 7, timeout: 9s", "");
    id = ask_with("key", "user:42", "facts");
    assert_true(until_state(id, "done"));
    want = mem_printf("%s s user:42 default len=5 nul=1 attempt=1/7 start=1 priority=5 "
                      "timeout=9000 late=1 fence=1 size=1 1",
                      id);
    assert_true(result_has(id, RESULT_OUTPUT, want));
}

static void test_its_log_does_no_harm(void **state)
{
    CLEANUP_FREE char *id = NULL, *want = NULL;

    (void)state;
    begin("log_level: debug", "", "");
    id = ask("log");
    assert_true(until_state(id, "done"));
    want =
        mem_printf("error job=%s queue=s stream=plugin "
                   "msg=\"line\\x0aevent=forged job=x \\x1b[31m \\x22quoted\\x22 \\ \\x80\\xff\"",
                   id);
    assert_int_equal(test_lines(a.log, want), 1);
    assert_int_equal(test_lines(a.log, "www\" cut=1"), 1);
    assert_int_equal(test_lines(a.log, "msg=\"unheard of\""), 1);
    assert_int_equal(test_lines(a.log, "msg=\"flood\""), 1000 - 4);
    assert_int_equal(test_lines(a.log, "left_out_lines=204"), 1);
}

static bool shows_progress(void *id)
{
    struct reply *r = test_fcall(&redis, "later_show", id, NULL);
    bool seen = reply_is(reply_named(r, "progress"), "half of it");

    reply_free(r);
    return seen;
}

static void test_the_last_progress_is_shown(void **state)
{
    CLEANUP_FREE char *id = NULL;

    (void)state;
    begin("", "", "");
    id = ask("progress half of it");
    assert_true(test_until(shows_progress, id, LONG_MS));
    open_latch();
    assert_true(until_state(id, "done"));
}

/* ---- ends on request */

static void test_a_timeout_is_seen(void **state)
{
    CLEANUP_FREE char *late = NULL, *spite = NULL;

    (void)state;
    begin("", ", backoff: { first: 1h }, timeout: 300ms", "");
    late = ask("hold");
    assert_true(until_state(late, "failed"));
    assert_true(result_has(late, RESULT_CODE, "124"));
    assert_true(result_has(late, RESULT_TEXT, "timed out after 300ms: gave up"));
    assert_int_equal(shown(late, "attempt"), 1);
    /* A job that finished its work is done, even past its time. */
    spite = ask("spite");
    assert_true(until_state(spite, "done"));
}

static void test_a_cancel_is_seen(void **state)
{
    CLEANUP_FREE char *id = NULL;

    (void)state;
    begin("", "", "");
    id = ask_with("keep", "1m", "hold");
    assert_true(until_noted(" hold", 1));
    reply_free(test_fcall(&redis, "later_cancel", id, NULL));
    assert_true(until_state(id, "cancelled"));
    assert_int_equal(noted(" hold"), 1);
}

static void test_a_stop_is_seen(void **state)
{
    CLEANUP_FREE char *id = NULL;

    (void)state;
    begin("stop_timeout: 200ms", "", "");
    id = ask("hold");
    assert_true(until_noted(" hold", 1));
    assert_int_equal(test_laterd_stop(&a), 0);
    assert_true(test_state_is(&redis, id, "waiting"));
    assert_int_equal(shown(id, "attempt"), 0);
    assert_int_equal(noted("done s"), 1);
}

static void test_a_stop_waits_for_jobs(void **state)
{
    CLEANUP_FREE char *id = NULL;

    (void)state;
    begin("", "", "");
    id = ask("hold");
    assert_true(until_noted(" hold", 1));
    test_laterd_kill(&a, SIGTERM);
    assert_true(test_laterd_says(&a, "event=stopping", LONG_MS));
    open_latch();
    assert_int_equal(test_laterd_wait(&a, LONG_MS), 0);
    assert_true(test_state_is(&redis, id, "done"));
}

static void test_one_that_never_returns_is_left(void **state)
{
    CLEANUP_FREE char *id = NULL;
    struct mono begin_at;

    (void)state;
    begin("stop_timeout: 100ms", "", "");
    id = ask("stone");
    assert_true(until_noted(" stone", 1));
    begin_at = mono_now();
    test_laterd_kill(&a, SIGTERM);
    assert_int_equal(test_laterd_wait(&a, 60000), 70);
    print_message("left after %lld ms\n", (long long)test_ms_since(begin_at));
    assert_in_range(test_ms_since(begin_at), 10000, 60000);
    assert_int_equal(test_lines(a.log, "a plug-in did not return: leaving it"), 1);
    /* The next daemon runs the job again. */
    open_latch();
    test_laterd_start(&a);
    assert_true(until_state(id, "done"));
}

/* ---- loading */

static void check_refused(const char *from, const char *args, const char *why)
{
    CLEANUP_FREE char *id = NULL;

    if (from != NULL)
        install_object(from, object);
    begin("", "", args);
    assert_true(test_laterd_says(&a, "event=handler-refused what=s reason=", LONG_MS));
    assert_true(test_laterd_says(&a, why, LONG_MS));
    id = ask("ok");
    assert_true(other_runs());
    assert_true(test_state_is(&redis, id, "waiting"));
    assert_int_equal(shown(id, "starts"), 0);
    install_object("tests/handlers/obedient.so", object);
    reload_plugin("", "");
    assert_true(until_state(id, "done"));
}

static void test_init_refuses(void **state)
{
    (void)state;
    check_refused(NULL, ", refuse", "s.so: init refused: no licence for s\"");
    assert_int_equal(noted("done "), 0);
}

static void test_init_refuses_without_a_word(void **state)
{
    (void)state;
    check_refused(NULL, ", refuse, wordless", "init refused: it did not say why\"");
}

static void test_another_abi(void **state)
{
    (void)state;
    check_refused("tests/handlers/other-abi.so", "",
                  "was built for plug-in ABI 7, this laterd has 1: build it anew");
    assert_int_equal(noted("init "), 1);
}

static void test_no_symbol(void **state)
{
    (void)state;
    check_refused("tests/handlers/nameless.so", "", "is no plug-in: it has no later_plugin");
}

static void test_no_object(void **state)
{
    FILE *f = fopen(object, "w");

    (void)state;
    (void)fputs("#!/bin/sh\nexit 0\n", f);
    (void)fclose(f);
    check_refused(NULL, "", "cannot load: ");
}

static void test_no_file(void **state)
{
    (void)state;
    assert_int_equal(unlink(object), 0);
    check_refused(NULL, "", "No such file");
}

/* Jobs that were claimed when their plug-in goes are put back. */
static void test_a_reload_that_fails_loses_nothing(void **state)
{
    char *ids[200];

    (void)state;
    begin("concurrency: 4", "", "");
    for (int i = 0; i < 200; i++) {
        ids[i] = ask("ok");
        if (i % 50 == 20) {
            install_object("tests/handlers/nameless.so", object);
            reload_plugin("", "");
        }
        if (i % 50 == 40) {
            install_object("tests/handlers/obedient.so", object);
            reload_plugin("", "");
        }
    }
    for (int i = 0; i < 200; i++) {
        assert_true(until_state(ids[i], "done"));
        assert_int_equal(noted_starts(ids[i], 1), 1);
        free(ids[i]);
    }
}

/* ---- reload */

static void test_new_args_are_a_new_state(void **state)
{
    CLEANUP_FREE char *held = NULL, *next = NULL;

    (void)state;
    begin("", "", ", first");
    held = ask("hold");
    assert_true(until_noted(" hold", 1));
    reload_plugin("", ", first");
    assert_int_equal(noted("init "), 1);
    reload_plugin("", ", second");
    next = ask("ok");
    assert_true(until_state(next, "done"));
    assert_int_equal(noted("init s second"), 1);
    assert_int_equal(noted("done "), 0);
    open_latch();
    assert_true(until_state(held, "done"));
    assert_true(until_noted("done s first", 1));
    assert_int_equal(test_laterd_stop(&a), 0);
    assert_int_equal(noted("done s second"), 1);
}

static void test_a_file_that_is_replaced_is_loaded(void **state)
{
    CLEANUP_FREE char *held = NULL, *next = NULL;

    (void)state;
    begin("", "", "");
    held = ask("hold");
    assert_true(until_noted(" hold 1", 1));
    install_object("tests/handlers/obedient-2.so", object);
    reload_plugin("", "");
    next = ask("ok");
    assert_true(until_state(next, "done"));
    /* The old plug-in is still in memory, since its job runs. */
    assert_int_equal(noted(" ok 2"), 1);
    install_object("tests/handlers/obedient.so", object);
    reload_plugin("", "");
    free(next);
    next = ask("ok");
    assert_true(until_state(next, "done"));
    assert_int_equal(noted(" ok 1"), 1);
    open_latch();
    assert_true(until_state(held, "done"));
    assert_true(until_noted("done s - 1", 1));
    assert_int_equal(test_laterd_stop(&a), 0);
    assert_int_equal(noted("init "), 3);
    assert_int_equal(noted("done "), 3);
}

static void test_two_queues_share_an_object(void **state)
{
    CLEANUP_FREE char *yaml =
        mem_printf("queues:\n  s: { mode: plugin, keep: 1m, handler: [%s, %s, %s, one] }\n"
                   "  t: { mode: plugin, handler: [%s, %s, %s, two] }\n",
                   object, journal, latch, object, journal, latch);
    CLEANUP_FREE char *id = NULL;
    struct test_laterd edited;

    (void)state;
    start_a(yaml);
    free(test_add(&redis, "t", NULL, NULL, "ok"));
    id = ask("ok");
    assert_true(until_state(id, "done"));
    assert_true(until_noted(" ok", 2));
    assert_int_equal(noted("init s one") + noted("init t two"), 2);
    test_laterd_conf(&edited, dir, "a", redis.url, "queues: { x: { handler: [/bin/true] } }");
    test_laterd_kill(&a, SIGHUP);
    assert_true(test_laterd_says(&a, "event=reload result=done", LONG_MS));
    assert_true(until_noted("done s one", 1));
    assert_true(until_noted("done t two", 1));
}

/* ---- threads and crashes */

static void test_jobs_run_at_once(void **state)
{
    char *ids[32];

    (void)state;
    begin("concurrency: 32", "", "");
    for (int i = 0; i < 32; i++)
        ids[i] = ask("together 32");
    for (int i = 0; i < 32; i++) {
        assert_true(until_state(ids[i], "done"));
        free(ids[i]);
    }
}

static void test_no_more_than_its_concurrency(void **state)
{
    char *ids[8];

    (void)state;
    begin("", ", concurrency: 3", "");
    for (int i = 0; i < 8; i++)
        ids[i] = ask("hold");
    assert_true(until_noted(" hold", 3));
    assert_true(other_runs());
    assert_int_equal(noted(" hold"), 3);
    open_latch();
    for (int i = 0; i < 8; i++) {
        assert_true(until_state(ids[i], "done"));
        free(ids[i]);
    }
}

static void test_a_crash_is_one_of_the_worker(void **state)
{
    CLEANUP_FREE char *id = NULL, *neighbour = NULL;
    int status;

    (void)state;
    begin("", "", "");
    neighbour = ask("hold");
    assert_true(until_noted(" hold", 1));
    id = ask("crash");
    assert_true(until_noted(" crash", 1));
    status = proc_wait(&a.proc, LONG_MS);
    assert_int_not_equal(status, 0);
    assert_int_not_equal(status, -1);
    proc_done(&a.proc);
    a.runs = false;
    open_latch();
    plugin_conf(&b, "b", "", "", "");
    test_laterd_start(&b);
    assert_true(test_until_state(&redis, id, "done", 60000));
    assert_true(test_until_state(&redis, neighbour, "done", 60000));
    assert_int_equal(shown(id, "crashes"), 1);
    assert_int_equal(shown(neighbour, "crashes"), 1);
}

/* No smaller part than the worker can be killed. */
static void test_the_guard_kills_the_worker_for_a_lock(void **state)
{
    CLEANUP_FREE char *id = NULL;
    struct mono begin_at;

    (void)state;
    begin("", "", "");
    id = ask_with("lock", "door", "hold");
    assert_true(until_noted(" hold", 1));
    begin_at = mono_now();
    test_laterd_kill(&a, SIGSTOP);
    assert_int_equal(test_laterd_wait(&a, 20000), 128 + SIGKILL);
    assert_in_range(test_ms_since(begin_at), 9000, 19000); /* at 20 s others may get it */
    assert_true(test_until_lines(a.log, "event=guard-kill", 1, LONG_MS));
    open_latch();
    test_laterd_start(&a);
    assert_true(until_state(id, "done"));
}

/* ---- installed plug-ins */

static void test_noop_does_nothing(void **state)
{
    CLEANUP_FREE char *id = NULL;

    (void)state;
    install_object("handlers/plugins/noop.so", object);
    begin("", "", "");
    id = ask("x");
    assert_true(until_state(id, "done"));
}

static void test_append_writes_lines(void **state)
{
    CLEANUP_FREE char *file = mem_printf("%s/lines", dir), *yaml = NULL, *moved = NULL,
                      *want = NULL;
    char *ids[100];

    (void)state;
    install_object("handlers/plugins/append.so", object);
    yaml = mem_printf("concurrency: 16\n"
                      "queues: { s: { mode: plugin, keep: 1m, handler: [%s, %s, fsync] } }",
                      object, file);
    start_a(yaml);
    for (int i = 0; i < 100; i++)
        ids[i] = ask(i == 50 ? "two\nlines\r and \\" : "one line");
    for (int i = 0; i < 100; i++)
        assert_true(until_state(ids[i], "done"));
    assert_int_equal(test_lines(file, NULL), 100);
    for (int i = 0; i < 100; i++) {
        want = mem_printf("Z %s %s", ids[i], i == 50 ? "two\\nlines\\r and \\\\" : "one line");
        assert_int_equal(test_lines(file, want), 1);
        free(TAKE_PTR(want));
        free(ids[i]);
    }
    moved = mem_printf("%s.1", file);
    assert_int_equal(rename(file, moved), 0);
    ids[0] = ask("");
    assert_true(until_state(ids[0], "done"));
    assert_int_equal(test_lines(file, NULL), 1);
    free(ids[0]);
}

static void check_append(const char *args, const char *why)
{
    CLEANUP_FREE char *yaml =
        mem_printf("queues: { s: { mode: plugin, handler: [%s%s] }, t: { handler: [/bin/true] } }",
                   object, args);

    start_a(yaml);
    assert_true(test_laterd_says(&a, why, LONG_MS));
    assert_int_equal(test_laterd_stop(&a), 0);
}

static void test_append_checks_its_arguments(void **state)
{
    (void)state;
    install_object("handlers/plugins/append.so", object);
    check_append("", "name the file by its absolute path");
    check_append(", relative", "name the file by its absolute path");
    check_append(", /tmp/x, sync", "sync: behind the file there may be `fsync`, nothing else");
    check_append(", /nonexistent/x", "/nonexistent/x: No such file or directory");
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, fx_close)
    const struct CMUnitTest tests[] = {
        T(test_each_outcome),
        T(test_a_mute_one_starves_the_watchdog),
        T(test_it_adds_jobs),
        T(test_payloads_arrive_byte_exact),
        T(test_it_is_told_the_facts),
        T(test_its_log_does_no_harm),
        T(test_the_last_progress_is_shown),
        T(test_a_timeout_is_seen),
        T(test_a_cancel_is_seen),
        T(test_a_stop_is_seen),
        T(test_a_stop_waits_for_jobs),
        T(test_one_that_never_returns_is_left),
        T(test_init_refuses),
        T(test_init_refuses_without_a_word),
        T(test_another_abi),
        T(test_no_symbol),
        T(test_no_object),
        T(test_no_file),
        T(test_a_reload_that_fails_loses_nothing),
        T(test_new_args_are_a_new_state),
        T(test_a_file_that_is_replaced_is_loaded),
        T(test_two_queues_share_an_object),
        T(test_jobs_run_at_once),
        T(test_no_more_than_its_concurrency),
        T(test_a_crash_is_one_of_the_worker),
        T(test_the_guard_kills_the_worker_for_a_lock),
        T(test_noop_does_nothing),
        T(test_append_writes_lines),
        T(test_append_checks_its_arguments),
    };

    cmocka_set_test_filter(getenv("LATER_ONLY")); /* a name, with * and ? */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
