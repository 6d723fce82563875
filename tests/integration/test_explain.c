/*
 * later explain with real daemons: what keeps a job from running, by the names of hosts and jobs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "fixture.h"
#include "../support/env.h"
#include "base/cleanup.h"
#include "base/mem.h"

#define LONG_MS 60000

static char later[4096], host[256];

static int setup(void **state)
{
    (void)snprintf(later, sizeof(later), "%s/later", test_build_dir());
    assert_int_equal(gethostname(host, sizeof(host) - 1), 0);
    return fx_open(state);
}

/* The output of later --redis … explain ID [--json]; the caller frees it. */
static char *explain(const char *id, bool json)
{
    CLEANUP_BUF struct buf said = BUF_INIT;
    const char *argv[] = {later, "--redis", redis.url, "explain", id, json ? "--json" : NULL, NULL};

    assert_int_equal(proc_run((char *const *)(uintptr_t)argv, NULL, 0, &said, NULL), 0);
    return mem_strdup(buf_str(&said));
}

struct wanted {
    const char *id, *text;
    char *got;
};

static bool is_told(void *arg)
{
    struct wanted *w = arg;

    free(w->got);
    w->got = explain(w->id, false);
    return strstr(w->got, w->text) != NULL;
}

/* Wait until it says this: what daemons tell of themselves comes with their beats. */
static void explains(const char *id, const char *text)
{
    struct wanted w = {id, text, NULL};

    if (!test_until(is_told, &w, LONG_MS))
        fail_msg("'%s' is not in: %s", text, w.got);
    free(w.got);
}

/* A job of queue mail, whose handler runs until the end of the test. The caller frees the id. */
static char *add(const char *name, const char *value)
{
    char *id = test_add(&redis, "mail", name, value, "x");

    assert_non_null(id);
    return id;
}

static char *add_running(const char *name, const char *value)
{
    char *id = add(name, value);

    assert_true(test_until_state(&redis, id, "running", LONG_MS));
    return id;
}

static char *add_parked(const char *name, const char *value)
{
    char *id = add(name, value);

    assert_true(test_until_state(&redis, id, "parked", LONG_MS));
    return id;
}

static void start_mail(const char *yaml)
{
    test_handler(dir, "mail", "exec sleep 600\n");
    start_a(yaml);
}

/* Has the limit been declared? It is declared a moment after the worker registers. */
static bool is_limit(void *name)
{
    struct reply *r = test_redis_call(&redis, "HEXISTS", ROOT ":limits", (const char *)name, NULL);
    bool is_there = reply_int(r) == 1;

    reply_free(r);
    return is_there;
}

static void start_limited(const char *yaml, const char *limit)
{
    start_mail(yaml);
    assert_true(test_until(is_limit, (void *)(uintptr_t)limit, LONG_MS));
}

/* "lock door is held by job ID of queue mail on HOST (pid PID of the daemon)", for the caller. */
static char *held_by(const char *gate, const char *id)
{
    return mem_printf("%s%s of queue mail on %s (pid %d)", gate, id, host, (int)a.proc.pid);
}

static void test_paused(void **state)
{
    CLEANUP_FREE char *id = NULL;

    (void)state;
    start_mail("stop_timeout: 1s\n");
    reply_free(test_fcall(&redis, "later_pause", "mail", "by", "ann", "reason", "broken", NULL));
    id = add("priority", "3");
    explains(id, "(mail, waiting): its queue mail is paused by ann for ");
    explains(id, ", until later resume (broken)\n");
}

static void test_a_lock_held_by_a_job(void **state)
{
    CLEANUP_FREE char *holder = NULL, *id = NULL, *want = NULL, *line = NULL, *runs = NULL;
    json_t *j, *one;

    (void)state;
    start_mail("stop_timeout: 1s\n");
    holder = add_running("lock", "door");
    id = add_parked("lock", "door");
    want = held_by("(mail, parked): lock door is held by job ", holder);
    explains(id, want);
    explains(id, "; nobody waits before it\n");
    runs = mem_printf("(mail, running): it runs on %s (pid %d) for ", host, (int)a.proc.pid);
    explains(holder, runs);
    line = explain(id, true);
    j = json_loads(line, 0, NULL);
    assert_non_null(j);
    assert_string_equal(json_string_value(json_object_get(j, "waits_for")), "lock");
    assert_string_equal(json_string_value(json_object_get(j, "gate")), "lock:door");
    assert_int_equal(json_integer_value(json_object_get(j, "ahead")), 0);
    assert_true(json_is_integer(json_object_get(j, "held_since_ms")));
    one = json_array_get(json_object_get(j, "holders"), 0);
    assert_string_equal(json_string_value(json_object_get(one, "job")), holder);
    assert_string_equal(json_string_value(json_object_get(one, "queue")), "mail");
    assert_string_equal(json_string_value(json_object_get(one, "host")), host);
    json_decref(j);
}

static bool door_is_held(void *arg)
{
    (void)arg;
    return test_int(&redis, "EXISTS", ROOT ":lock:door") == 1;
}

static void test_a_lock_held_by_a_program(void **state)
{
    CLEANUP_FREE char *id = NULL, *want = NULL;
    const char *argv[] = {later, "--redis", redis.url, "lock", "door", "--", "sleep", "600", NULL};
    struct proc program;

    (void)state;
    start_mail("stop_timeout: 1s\n");
    proc_start(&program, (char *const *)(uintptr_t)argv, NULL, NULL);
    want =
        mem_printf("lock door is held by a program on %s (pid %d), for ", host, (int)program.pid);
    assert_true(test_until(door_is_held, NULL, LONG_MS));
    id = add_parked("lock", "door");
    explains(id, want);
    proc_done(&program);
}

static void test_a_full_semaphore(void **state)
{
    CLEANUP_FREE char *holder = NULL, *second = NULL, *id = NULL, *want = NULL;

    (void)state;
    start_limited("stop_timeout: 1s\nlimits: { smtp: { semaphore: 1 } }\n", "smtp");
    holder = add_running("sem", "smtp");
    second = add_parked("sem", "smtp");
    id = add_parked("sem", "smtp");
    want = held_by("semaphore smtp is full, 1 of 1 permit: job ", holder);
    explains(id, want);
    explains(id, "; 1 waits before it: 1 of queue mail\n");
    explains(second, "; nobody waits before it\n");
}

static void test_a_rate(void **state)
{
    CLEANUP_FREE char *first = NULL, *id = NULL;

    (void)state;
    start_limited("stop_timeout: 1s\nlimits: { api: { rate: 1/1h } }\n", "api");
    first = add_running("rate", "api");
    id = add_parked("rate", "api");
    explains(id, "rate api is used up, the next start passes in 59 m ");
    explains(id, "; nobody waits before it\n");
    explains(first, "(mail, running): it runs on ");
}

static void test_nobody_serves(void **state)
{
    CLEANUP_FREE char *id = NULL;

    (void)state;
    test_handler(dir, "other", "true\n");
    start_a("");
    id = add("priority", "3");
    explains(id, "no live worker serves queue mail (1 other worker in the namespace)\n");
    assert_int_equal(test_laterd_stop(&a), 0);
    explains(id, "no live worker serves queue mail: there is no live worker at all\n");
}

static void test_busy(void **state)
{
    CLEANUP_FREE char *first = NULL, *id = NULL, *want = NULL;
    const char *quiet = "was told to be quiet";

    (void)state;
    start_mail("stop_timeout: 1s\nconcurrency: 1\n");
    first = add_running("priority", "3");
    id = add("priority", "3");
    want = mem_printf("no worker that serves queue mail has room: %s (pid %d) is full: 1 of 1 "
                      "places are taken\n",
                      host, (int)a.proc.pid);
    explains(id, want);
    reply_free(test_fcall(&redis, "later_v1_quiet", "*", "on", NULL));
    explains(id, quiet);
}

/* A handler without its x bit is in the log once, and explain knows it. */
static void test_a_handler_that_is_not_executable(void **state)
{
    CLEANUP_FREE char *id = NULL, *path = mem_printf("%s/handlers/mail", dir);

    (void)state;
    test_handler(dir, "mail", "true");
    assert_int_equal(chmod(path, 0644), 0);
    start_a("");
    assert_true(test_laterd_says(&a, "event=handler what=mail reason=\"not served", LONG_MS));
    id = add("priority", "3");
    explains(id, ") says: not served, since it is not executable");
    explains(id, "chmod +x ");
    test_handler(dir, "other", "true");
    assert_true(test_laterd_says(&a, "names=\"other\"", LONG_MS));
    assert_int_equal(test_lines(a.log, "what=mail"), 1);
    assert_int_equal(chmod(path, 0755), 0);
    assert_true(test_until_state(&redis, id, "", LONG_MS));
}

/* A stream process that does not greet: its queue has no room, and says why. */
static void test_a_stream_that_does_not_greet(void **state)
{
    CLEANUP_FREE char *id = NULL, *json = NULL;

    (void)state;
    test_handler(dir, "mail", "sleep 600");
    start_a("defaults: { mode: stream, start_timeout: 500ms }\n");
    id = add("priority", "3");
    explains(id, ") cannot run them: its stream process ended: it did not greet within "
                 "start_timeout");
    json = explain(id, true);
    assert_non_null(strstr(json, "\"defect\":\"its stream process ended: "));
    assert_non_null(strstr(json, "\"why\":\"broken\""));
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, fx_close)
    const struct CMUnitTest tests[] = {
        T(test_paused),
        T(test_a_lock_held_by_a_job),
        T(test_a_lock_held_by_a_program),
        T(test_a_full_semaphore),
        T(test_a_rate),
        T(test_nobody_serves),
        T(test_busy),
        T(test_a_handler_that_is_not_executable),
        T(test_a_stream_that_does_not_greet),
    };

    cmocka_set_test_filter(getenv("LATER_ONLY"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
