/*
 * Jobs in stream mode, with the real programs: what workers answer, what they leave out, and what
 * that means for the job and for the other jobs of the process. The processes are tested in
 * test_stream_life.c.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../handlers/examples.h"
#include "stream_fixture.h"

#define CANCEL ", \"greet=later-stream 1 inflight=4 cancel\""

/* ---- the example workers */

static void check_case(const struct stream_case *c, const char *id)
{
    static const struct {
        const char *verb, *state, *code;
        enum result_field field;
    } means[] = {{"ok ", "done", "0", RESULT_OUTPUT},
                 {"retry 1s ", "failed", "75", RESULT_TEXT},
                 {"fail ", "failed", "1", RESULT_TEXT},
                 {"dead ", "dead", "65", RESULT_TEXT}};
    size_t i = 0;

    while (strncmp(c->answer, means[i].verb, strlen(means[i].verb)) != 0)
        i++;
    assert_true(until_state(id, means[i].state));
    assert_true(result_has(id, RESULT_CODE, means[i].code));
    assert_true(result_has(id, means[i].field, c->answer + strlen(means[i].verb)));
}

static void run_cases(void)
{
    size_t n;
    struct stream_case *cases = stream_cases_new(&n);
    CLEANUP_FREE char **ids = mem_new(n * sizeof(*ids));

    for (size_t i = 0; i < n; i++)
        ids[i] = ask_bytes("words", cases[i].payload, cases[i].len);
    for (size_t i = 0; i < n; i++) {
        check_case(&cases[i], ids[i]);
        free(ids[i]);
    }
    stream_cases_free(cases, n);
}

/* `later show` prints this text. */
static void show(const char *id, const char *text)
{
    CLEANUP_FREE char *program = mem_printf("%s/later", test_build_dir());
    CLEANUP_BUF struct buf said = BUF_INIT;
    char *argv[] = {program,
                    (char *)(uintptr_t) "--config",
                    a.conf,
                    (char *)(uintptr_t) "show",
                    (char *)(uintptr_t)id,
                    NULL};

    assert_int_equal(proc_run(argv, NULL, 0, &said, NULL), 0);
    assert_non_null(strstr(buf_str(&said), text));
}

static void test_examples_serve(void **state)
{
    const struct stream_example *e = *state;
    CLEANUP_FREE char *path = stream_example_path(e);
    CLEANUP_FREE char *copy = NULL, *yaml = NULL, *id = NULL, *large = stream_words(900 * 1024, 1);
    CLEANUP_FREE char *answer = stream_answer(large, 900 * 1024);

    if (!stream_example_can_run(e)) {
        print_message("%s: %s is not installed\n", e->name, e->interpreter);
        skip();
    }
    (void)stream_open(state);
    copy = mem_printf("%s/words", dir);
    install(path, copy);
    /* Retries come only after the test, unless the worker gives the delay. */
    yaml = mem_printf("concurrency: 64\ndefaults: { backoff: { first: 1h }, max_payload: 2MiB }\n"
                      "queues: { words: { mode: stream, processes: 2, keep: 1m, handler: [%s] } }",
                      copy);
    start_a(yaml);
    run_cases();
    id = ask_bytes("words", large, 900 * 1024);
    assert_true(until_state(id, "done"));
    show(id, answer + strlen("ok "));
}

/* ---- answers */

static void test_each_word_is_an_outcome(void **state)
{
    CLEANUP_FREE char *ok = NULL, *again = NULL, *fail = NULL, *dead = NULL, *soon = NULL;

    (void)state;
    stream_start_a("", ", backoff: { first: 1h }", "");
    ok = ask("ok forty-two");
    again = ask("retry");
    soon = ask("retry 10m later");
    fail = ask("fail no luck");
    dead = ask("dead never");
    assert_true(until_state(ok, "done"));
    assert_true(result_has(ok, RESULT_OUTPUT, "forty-two"));
    assert_true(until_state(again, "failed"));
    assert_true(result_has(again, RESULT_TEXT, "it asked for another try"));
    assert_true(until_state(soon, "failed"));
    assert_true(result_has(soon, RESULT_TEXT, "later"));
    assert_true(until_state(fail, "failed"));
    assert_true(result_has(fail, RESULT_TEXT, "no luck"));
    assert_true(until_state(dead, "dead"));
    assert_true(result_has(dead, RESULT_TEXT, "never"));
    assert_int_equal(test_lines(a.log, "again_in_ms=600000"), 1);
    assert_int_equal(shown(fail, "attempt"), 1);
}

/* The answer of the worker is the FNV-1a hash of the payload. */
static void check_bytes(const char *bytes, size_t n)
{
    CLEANUP_FREE char *id = ask_bytes("s", bytes, n);
    CLEANUP_FREE char *want = NULL;
    uint32_t h = 2166136261U;

    for (size_t i = 0; i < n; i++)
        h = (h ^ (unsigned char)bytes[i]) * 16777619U;
    want = mem_printf("%zu %08x", n, h);
    assert_true(until_state(id, "done"));
    assert_true(result_has(id, RESULT_OUTPUT, want));
}

static void test_payloads_arrive_byte_exact(void **state)
{
    size_t n = 1024 * 1024;
    CLEANUP_FREE char *bytes = mem_new(n);
    uint32_t seed = 1;

    (void)state;
    stream_start_a("", "", "");
    check_bytes("", 0);
    check_bytes("\n", 1);
    check_bytes("\n\n\0\0\n", 5);
    check_bytes("job id=j1 len=3\nabc\ncancel j1\n", 30);
    check_bytes(bytes, 4096); /* NULs */
    for (size_t i = 0; i < n; i++)
        bytes[i] = (char)((seed = seed * 1664525U + 1013904223U) >> 24);
    check_bytes(bytes, 16384);
    check_bytes(bytes, 65536);
    check_bytes(bytes, (size_t)900 * 1024);
    check_bytes(bytes, n);
}

/* As with one process a job: 16 KiB, and the log tells of what is cut. */
static void test_a_long_result(void **state)
{
    static const size_t sizes[] = {10000, 16384, 20000};

    (void)state;
    stream_start_a("", "", "");
    for (size_t i = 0; i < 3; i++) {
        CLEANUP_FREE char *payload = mem_new(sizes[i] + 4), *id = NULL;

        memcpy(payload, "ok ", 3);
        memset(payload + 3, 'x', sizes[i]);
        id = ask(payload);
        assert_true(until_state(id, "done"));
        payload[3 + (sizes[i] < 16384 ? sizes[i] : 16384)] = '\0';
        assert_true(result_has(id, RESULT_OUTPUT, payload + 3));
    }
    assert_true(test_until_lines(a.log, "event=result-cut", 1, LONG_MS));
}

static void test_many_in_flight_and_out_of_order(void **state)
{
    char *held[63];

    (void)state;
    stream_start_a("concurrency: 64", "", ", \"greet=later-stream 1 inflight=64\"");
    for (int i = 0; i < 63; i++)
        held[i] = ask("hold");
    assert_true(until_noted(" hold", 63));
    for (int i = 0; i < 20; i++) {
        CLEANUP_FREE char *id = ask("ok overtaking");

        assert_true(until_state(id, "done"));
    }
    assert_int_equal(noted("start "), 1);
    open_latch();
    for (int i = 0; i < 63; i++) {
        assert_true(until_state(held[i], "done"));
        free(held[i]);
    }
    assert_int_equal(test_lines(a.log, "event=stream-end"), 0);
}

/* No process has more jobs at once than its greeting allows, and the processes share the jobs. */
static void test_no_more_than_inflight(void **state)
{
    char *held[8], first[24];

    (void)state;
    stream_start_a("", ", processes: 2", ", \"greet=later-stream 1 inflight=3 cancel=no\"");
    assert_true(test_until_lines(a.log, "event=stream-ready", 2, LONG_MS));
    for (int i = 0; i < 8; i++)
        held[i] = ask("hold");
    assert_true(until_noted(" hold", 6));
    assert_true(other_runs());
    assert_int_equal(noted(" hold"), 6);
    (void)snprintf(first, sizeof(first), "job %d ", (int)noted_pid("start ", 1));
    assert_int_equal(noted(first), 3);
    open_latch();
    for (int i = 0; i < 8; i++) {
        assert_true(until_state(held[i], "done"));
        free(held[i]);
    }
}

/* ---- times */

static void test_a_timeout_ends_the_process(void **state)
{
    CLEANUP_FREE char *late = NULL, *n1 = NULL, *n2 = NULL;

    (void)state;
    stream_start_a("", ", backoff: { first: 1h }", "");
    n1 = ask("hold");
    n2 = ask("hold");
    assert_true(until_noted(" hold", 2));
    late = ask_with("timeout", "300ms", "hold");
    assert_true(until_state(late, "failed"));
    assert_true(result_has(late, RESULT_CODE, "124"));
    assert_true(result_has(late, RESULT_TEXT, "timed out after 300ms: "));
    assert_int_equal(shown(late, "attempt"), 1);
    /* The other jobs of the process run again, without an attempt spent. */
    assert_true(until_noted(" hold", 5));
    assert_int_equal(noted_starts(n1, 1), 2);
    assert_int_equal(noted_starts(n2, 1), 2);
    open_latch();
    assert_true(until_state(n1, "done"));
    assert_true(until_state(n2, "done"));
}

static void test_a_timeout_by_cancel_ends_the_job(void **state)
{
    CLEANUP_FREE char *late = NULL, *neighbour = NULL;

    (void)state;
    stream_start_a("", ", backoff: { first: 1h }", CANCEL);
    neighbour = ask("hold");
    late = ask_with("timeout", "300ms", "hold");
    assert_true(until_state(late, "failed"));
    assert_true(result_has(late, RESULT_CODE, "124"));
    assert_true(result_has(late, RESULT_TEXT, "timed out after 300ms: cancelled"));
    assert_int_equal(noted("cancel "), 1);
    open_latch();
    assert_true(until_state(neighbour, "done"));
    assert_int_equal(noted("start "), 1);
}

static void test_a_cancel_that_is_not_answered_ends_the_process(void **state)
{
    CLEANUP_FREE char *late = NULL, *neighbour = NULL;

    (void)state;
    stream_start_a("", ", backoff: { first: 1h }, kill_grace: 200ms",
                   CANCEL ", \"deaf=cancel,term,eof\"");
    neighbour = ask("hold");
    late = ask_with("timeout", "300ms", "hold");
    assert_true(until_state(late, "failed"));
    assert_true(result_has(late, RESULT_TEXT, "timed out after 300ms: "));
    assert_true(test_laterd_says(&a, "it did not answer a cancel: killed by signal 9", LONG_MS));
    assert_true(until_noted(" hold", 3));
    assert_int_equal(noted_starts(neighbour, 1), 2);
    open_latch();
    assert_true(until_state(neighbour, "done"));
}

static void test_a_missed_heartbeat_is_a_timeout_where_heartbeat_is_set(void **state)
{
    CLEANUP_FREE char *beats = NULL, *mute = NULL;

    (void)state;
    stream_start_a("", ", backoff: { first: 1h }, heartbeat: 400ms", CANCEL);
    beats = ask("beat 1500");
    assert_true(until_state(beats, "done"));
    mute = ask("late 30000");
    assert_true(until_state(mute, "failed"));
    assert_true(result_has(mute, RESULT_TEXT, "said nothing for 400ms: "));
    assert_true(result_has(mute, RESULT_CODE, "124"));
    assert_int_equal(noted("start "), 1);
}

static void cancel_running(const char *id)
{
    CLEANUP_FREE char *program = mem_printf("%s/later", test_build_dir());
    char *argv[] = {program,
                    (char *)(uintptr_t) "--config",
                    a.conf,
                    (char *)(uintptr_t) "cancel",
                    (char *)(uintptr_t) "--running",
                    (char *)(uintptr_t)id,
                    NULL};

    assert_int_equal(proc_run(argv, NULL, 0, NULL, NULL), 0);
}

static void test_cancelled_by_the_word(void **state)
{
    CLEANUP_FREE char *id = NULL, *neighbour = NULL;

    (void)state;
    stream_start_a("", "", CANCEL);
    neighbour = ask("hold");
    id = ask_with("keep", "1m", "hold");
    assert_true(until_noted(" hold", 2));
    cancel_running(id);
    assert_true(until_state(id, "cancelled"));
    open_latch();
    assert_true(until_state(neighbour, "done"));
    assert_int_equal(noted("start "), 1);
}

static void test_cancelled_by_the_end_of_the_process(void **state)
{
    CLEANUP_FREE char *id = NULL, *neighbour = NULL;

    (void)state;
    stream_start_a("", "", "");
    neighbour = ask("hold");
    id = ask_with("keep", "1m", "hold");
    assert_true(until_noted(" hold", 2));
    cancel_running(id);
    assert_true(until_state(id, "cancelled"));
    assert_true(until_noted(" hold", 3));
    assert_int_equal(noted_starts(neighbour, 1), 2);
    open_latch();
    assert_true(until_state(neighbour, "done"));
}

/* ---- deaths */

static void test_a_death_spends_an_attempt(void **state)
{
    static const struct {
        const char *payload, *code, *text;
    } deaths[] = {{"exit 3", "1", "its process ended without an answer: exit status 3"},
                  {"exit 0", "1", "its process ended without an answer: exit status 0"},
                  {"signal 9", "137", "its process died: killed by signal 9"},
                  {"signal 11", "139", "its process died: killed by signal 11"},
                  {"half", "1", "its process ended without an answer: exit status 0"}};

    (void)state;
    stream_start_a("", ", backoff: { first: 1h }", "");
    for (size_t i = 0; i < sizeof(deaths) / sizeof(deaths[0]); i++) {
        CLEANUP_FREE char *held = ask("hold"), *id = NULL, *next = NULL;

        assert_true(until_noted(" hold", (int)i + 1));
        id = ask(deaths[i].payload);
        assert_true(until_state(id, "failed"));
        assert_true(until_state(held, "failed"));
        assert_true(result_has(id, RESULT_CODE, deaths[i].code));
        assert_true(result_has(id, RESULT_TEXT, deaths[i].text));
        assert_true(result_has(held, RESULT_TEXT, deaths[i].text));
        assert_int_equal(shown(held, "attempt"), 1);
        assert_int_equal(shown(held, "crashes"), 0);
        next = ask("ok");
        assert_true(until_state(next, "done"));
    }
    assert_int_equal(test_lines(a.log, "stream=half-line"), 1);
}

/* A process answers and ends at once: no job is started in a process that is dead already. */
static void test_ends_behind_an_answer_lose_nothing(void **state)
{
    char *ids[100];

    (void)state;
    stream_start_a("concurrency: 4", "", ", \"greet=later-stream 1 inflight=1\"");
    for (int i = 0; i < 100; i++)
        ids[i] = ask(i % 5 < 4 ? "bye 0" : "ok");
    for (int i = 0; i < 100; i++) {
        assert_true(until_state(ids[i], "done"));
        assert_int_equal(noted_starts(ids[i], 1), 1);
        free(ids[i]);
    }
    assert_int_equal(test_lines(a.log, "outcome=retry"), 0);
}

/* ---- lines that are no answers */

static void test_garbage_is_output(void **state)
{
    CLEANUP_FREE char *say = NULL, *wide = NULL, *twice = NULL, *unknown = NULL, *held = NULL;

    (void)state;
    stream_start_a("", "", "");
    say = ask("say hello there\nok\n\n\x01\x02\nretry j1k0peb8vg8x\n");
    assert_true(until_state(say, "done"));
    wide = ask("wide 1048576");
    assert_true(until_state(wide, "done"));
    twice = ask("twice");
    assert_true(until_state(twice, "done"));
    assert_true(result_has(twice, RESULT_OUTPUT, "first"));
    unknown = ask("say ok j00000000000 nobody's\nprogress j00000000000 x\n");
    assert_true(until_state(unknown, "done"));
    held = ask("ok still here");
    assert_true(until_state(held, "done"));
    assert_int_equal(noted("start "), 1);
    assert_int_equal(test_lines(a.log, "stream=stdout msg=\"hello there\""), 1);
    assert_int_equal(test_lines(a.log, "cut=1"), 1);
    assert_int_equal(test_lines(a.log, "stream=answer-without-job"), 4);
    assert_int_equal(test_lines(a.log, " warn job="), 4);
}

static void test_stderr_reaches_the_log_with_its_level(void **state)
{
    CLEANUP_FREE char *id = NULL;

    (void)state;
    stream_start_a("log_level: debug", "", "");
    id = ask("err <3>bad\n<4>hm\n<7>detail\n<0>worst\nplain\n<9>none\n");
    assert_true(until_state(id, "done"));
    assert_true(test_laterd_says(&a, "<9>none", LONG_MS));
    assert_int_equal(test_lines(a.log, "stream=stderr msg=\"bad\""), 1);
    {
        static const char *const want[][2] = {{"error", "bad\""},    {"warn", "hm\""},
                                              {"debug", "detail\""}, {"error", "worst\""},
                                              {"info", "plain\""},   {"info", "<9>none\""}};
        CLEANUP_BUF struct buf log = BUF_INIT;

        test_read(a.log, &log);
        for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
            char *at = strstr(log.data, want[i][1]), *line = at;

            assert_non_null(at);
            while (line > log.data && line[-1] != '\n')
                line--;
            *at = '\0';
            assert_non_null(strstr(line, want[i][0]));
            assert_non_null(strstr(line, "queue=s "));
            *at = want[i][1][0];
        }
    }
}

static bool shows_progress(void *id)
{
    struct reply *r = test_fcall(&redis, "later_show", id, NULL);
    bool seen = reply_is(reply_named(r, "progress"), "half of it");

    reply_free(r);
    return seen;
}

static void test_progress_is_shown(void **state)
{
    CLEANUP_FREE char *id = NULL, *said = NULL, *text = NULL;

    (void)state;
    stream_start_a("", "", "");
    id = ask("hold");
    assert_true(until_noted(" hold", 1));
    text = mem_printf("say progress %s none of it\nprogress %s half of it\n", id, id);
    said = ask(text);
    assert_true(until_state(said, "done"));
    assert_true(test_until(shows_progress, id, LONG_MS));
    open_latch();
    assert_true(until_state(id, "done"));
}

/* ---- back-pressure */

static void test_a_worker_that_does_not_read_loses_nothing(void **state)
{
    size_t n = 65536;
    CLEANUP_FREE char *bytes = mem_new(n), *nap = NULL;
    char *ids[100];

    (void)state;
    memset(bytes, 'b', n);
    stream_start_a("concurrency: 128", "", ", \"greet=later-stream 1 inflight=128\"");
    nap = ask("nap");
    assert_true(until_noted(" nap", 1));
    for (int i = 0; i < 100; i++)
        ids[i] = ask_bytes("s", bytes, n);
    assert_true(other_runs());
    assert_int_equal(noted("job "), 1);
    open_latch();
    for (int i = 0; i < 100; i++) {
        assert_true(until_state(ids[i], "done"));
        assert_true(result_has(ids[i], RESULT_OUTPUT, "65536 "));
        free(ids[i]);
    }
    assert_int_equal(noted("start "), 1);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, stream_open, stream_close_all)
#define E(i)                                                                                       \
    {                                                                                              \
        "test_examples_serve " #i, test_examples_serve, NULL, stream_close_all,                    \
            (void *)(uintptr_t)&stream_examples[i]                                                 \
    }
    const struct CMUnitTest tests[] = {
        E(0),
        E(1),
        E(2),
        E(3),
        E(4),
        T(test_each_word_is_an_outcome),
        T(test_payloads_arrive_byte_exact),
        T(test_a_long_result),
        T(test_many_in_flight_and_out_of_order),
        T(test_no_more_than_inflight),
        T(test_a_timeout_ends_the_process),
        T(test_a_timeout_by_cancel_ends_the_job),
        T(test_a_cancel_that_is_not_answered_ends_the_process),
        T(test_a_missed_heartbeat_is_a_timeout_where_heartbeat_is_set),
        T(test_cancelled_by_the_word),
        T(test_cancelled_by_the_end_of_the_process),
        T(test_a_death_spends_an_attempt),
        T(test_ends_behind_an_answer_lose_nothing),
        T(test_garbage_is_output),
        T(test_stderr_reaches_the_log_with_its_level),
        T(test_progress_is_shown),
        T(test_a_worker_that_does_not_read_loses_nothing),
    };

    cmocka_set_test_filter(getenv("LATER_ONLY")); /* a name, with * and ? */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
