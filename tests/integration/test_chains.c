/*
 * Chains and children, with the real programs: what handlers of each mode are told and hand on,
 * what they add, and daemons that are killed meanwhile.
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

#include "base/cleanup.h"
#include "base/mem.h"
#include "../support/env.h"
#include "fixture.h"

#define LONG_MS 60000
#define LINKS 8

/* later_add with these words, NULL-ended. -> the id; valid until the next add */
#define add(...) keep_id(test_fcall(&redis, "later_add", __VA_ARGS__, NULL))

static const char *keep_id(struct reply *r)
{
    static char id[16];

    assert_non_null(r);
    (void)snprintf(id, sizeof(id), "%s", reply_str(reply_at(r, 0)));
    reply_free(r);
    return id;
}

/* What the handlers wrote is this text. */
static void assert_written(const char *want)
{
    CLEANUP_BUF struct buf got = BUF_INIT;

    test_read(out, &got);
    assert_string_equal(buf_str(&got), want);
}

/* ---- what handlers are told and hand on */

/* An executable, a stream process, an executable: each gets the result of the one before. */
static void test_results_are_handed_on(void **state)
{
    CLEANUP_FREE char *second = NULL;
    CLEANUP_FREE char *third = NULL;
    char first[16];

    (void)state;
    test_handler(dir, "first", "echo output\necho result one >&3\necho \"result $(cat)\" >&3\n");
    test_handler(dir, "second",
                 "echo later-stream 1\n"
                 "while read -r h; do\n"
                 "    p=$(head -c \"${h##*len=}\")\n"
                 "    read -r _\n"
                 "    echo \"$h $p\" >> %s\n"
                 "    set -- $h\n"
                 "    echo \"ok ${2#id=} two\"\n"
                 "done\n",
                 out);
    test_handler(dir, "third", "echo \"third $LATER_PARENT:$LATER_REASON:$(cat)\" >> %s\n", out);
    start_a("queues: { second: { mode: stream } }\n");
    (void)snprintf(first, sizeof(first), "%s",
                   add("first", "then", "second", "then", "third", "x y"));
    assert_true(test_until_lines(out, "third j", 1, LONG_MS));
    second = mem_printf(" parent=%s len=7 one", first);
    assert_int_equal(test_lines(out, second), 1);
    assert_int_equal(test_lines(out, "x y"), 1);
    assert_int_equal(test_lines(out, "::two"), 1);
    assert_true(test_until(no_job_is_left, NULL, LONG_MS));
}

static void test_reasons_are_told(void **state)
{
    CLEANUP_FREE char *want = NULL;
    const char *id;

    (void)state;
    test_handler(dir, "fails", "echo 'reason no way: 100%%' >&3\nexit 1\n");
    test_handler(dir, "alert", "echo \"$LATER_PARENT:$LATER_REASON:$LATER_KEY:$(cat)\" >> %s\n",
                 out);
    start_a("defaults: { attempts: 1 }\n");
    id = add("fails", "on_dead", "alert", "then", "alert", "key", "k", "payload");
    assert_true(test_until_lines(out, "payload", 1, LONG_MS));
    want = mem_printf("%s:no way: 100%%; no attempt of 1 left:k:payload\n", id);
    assert_written(want);
    assert_int_equal(test_int(&redis, "ZCARD", ROOT ":dead:fails"), 1);
}

/* A sync takes about 1 MiB of the payloads that deaths copy; the daemon tells the rest at once. */
static void test_large_deaths_are_told(void **state)
{
    enum { JOBS = 8, BYTES = 1000000 };
    CLEANUP_FREE char *big = mem_new(BYTES + 1);

    (void)state;
    memset(big, 'x', BYTES);
    test_handler(dir, "fails", "exit 1\n");
    test_handler(dir, "alert", "wc -c >> %s\n", out);
    for (int i = 0; i < JOBS; i++)
        (void)add("fails", "on_dead", "alert", big);
    start_a("concurrency: 8\ndefaults: { attempts: 1 }\n");
    assert_true(test_until_lines(out, "1000000", JOBS, LONG_MS));
    assert_int_equal(test_int(&redis, "ZCARD", ROOT ":dead:fails"), JOBS);
    assert_false(test_laterd_says(&a, "event=result-refused", 0));
}

/* Copy an example to the folder of handlers. */
static void install_example(const char *name)
{
    CLEANUP_FREE char *command =
        mem_printf("install -m 755 '%s/handlers/examples/chain/%s' %s/handlers/", test_source_dir(),
                   name, dir);

    assert_int_equal(system(command), 0);
}

static void test_examples(void **state)
{
    static const char *const names[] = {"alert.sh", "count.py", "fetch.sh", "report.sh"};
    CLEANUP_FREE char *text = mem_printf("%s/text", dir);
    FILE *f = fopen(text, "w");

    (void)state;
    assert_non_null(f);
    (void)fputs("one two\nthree\n", f);
    (void)fclose(f);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        install_example(names[i]);
    start_a("");
    (void)add("fetch", "then", "count", "then", "report", "on_dead", "alert", text);
    assert_true(test_laterd_says(&a, "msg=\"3 words, as job j", LONG_MS));
    (void)add("fetch", "then", "count", "then", "report", "on_dead", "alert", "nosuch");
    assert_true(test_laterd_says(&a, "died (there is no file nosuch). Its payload:", LONG_MS));
}

/* ---- children */

/* The payload is a piece of shell: what the handler does. */
static void start_with_sh(const char *yaml)
{
    test_handler(dir, "sh", "eval \"$(cat)\"\n");
    start_a(yaml);
}

static int64_t children(void)
{
    return test_int(&redis, "ZCARD", ROOT ":q:child:5");
}

/* The record of the n-th child is these bytes. */
static void assert_child(int n, const char *want, size_t len)
{
    struct reply *ids = test_redis_call(&redis, "ZRANGE", ROOT ":q:child:5", "0", "-1", NULL);
    struct reply *r =
        test_redis_call(&redis, "HGET", ROOT ":jobs", reply_str(reply_at(ids, (size_t)n)), NULL);

    assert_int_equal(reply_len(r), len);
    assert_memory_equal(reply_str(r), want, len);
    reply_free(ids);
    reply_free(r);
}

static void test_children_of_a_process(void **state)
{
    const char *id;
    char want[64];
    int n;

    (void)state;
    start_with_sh("");
    id = add("sh",
             "echo 'add child -- one' >&3; printf 'add child key k len 4\\n\\n\\0a\\n\\n' >&3");
    assert_true(test_until_int(&redis, "ZCARD", ROOT ":q:child:5", 2, LONG_MS));
    n = snprintf(want, sizeof(want), "-child p=%s\none", id);
    assert_child(0, want, (size_t)n);
    n = snprintf(want, sizeof(want), "-child K=k p=%s\n\n%ca\n", id, '\0');
    assert_child(1, want, (size_t)n);
}

/* Bytes that stand between answers do not look like answers. */
static void test_children_of_a_stream(void **state)
{
    (void)state;
    test_handler(dir, "s",
                 "echo later-stream 1\n"
                 "while read -r h; do\n"
                 "    p=$(head -c \"${h##*len=}\")\n"
                 "    read -r _\n"
                 "    set -- $h\n"
                 "    id=${2#id=}\n"
                 "    printf \"$p\\n\" | sed \"s/ID/$id/\"\n"
                 "    echo \"ok $id\"\n"
                 "done\n");
    start_a("defaults: { attempts: 1 }\nqueues: { s: { mode: stream } }\n");
    (void)add("s", "add ID child -- one\\nadd ID child len 40\\ndead ID a\\nok ID abcd");
    (void)add("s", "add ID child len 3\\r\\nabc\\r");
    (void)add("s", "add ID child priority 77 -- x");
    (void)add("s", "add j00000000000 child len 40\\ndead ID a\\nok ID abcd");
    assert_true(test_until_int(&redis, "ZCARD", ROOT ":dead:s", 1, LONG_MS));
    assert_true(test_laterd_says(&a, "child 1: ELATER_OPTION priority", LONG_MS));
    assert_true(test_laterd_says(&a, "add-without-job", LONG_MS));
    assert_true(test_until_int(&redis, "ZCARD", ROOT ":running", 0, LONG_MS));
    assert_int_equal(children(), 3);
    assert_int_equal(test_int(&redis, "ZCARD", ROOT ":dead:s"), 1);
    /* What follows this one cannot be told from answers: the process is ended. */
    (void)add("s", "add ID child len");
    assert_true(test_laterd_says(&a, "reason=\"it wrote an add that is none", LONG_MS));
    assert_true(test_until_int(&redis, "ZCARD", ROOT ":dead:s", 2, LONG_MS));
    assert_int_equal(children(), 3);
}

/* No other end than done adds children, and a refused one fails the attempt with its text. */
static void test_ends_without_children(void **state)
{
    static const struct {
        const char *queue, *does, *says;
    } rows[] = {
        {"sh", "exit 1", "exit status 1"},
        {"sh", "exit 75", "exit status 75"},
        {"late", "sleep 60", "timed out after"},
        {"sh", "kill -9 $$", "killed by signal 9"},
        {"sh", "echo 'add child priority 77 -- x' >&3", "child 2: ELATER_OPTION priority"},
        {"sh", "printf 'add child -- x' >&3", "cut off by the end of its handler"},
        {"sh", "printf 'add child len 9\\nabc' >&3", "cut off by the end of its handler"},
        {"sh", "i=0; while [ $i -lt 1000 ]; do echo \"add child -- $i\"; i=$((i+1)); done >&3",
         "it adds more than 1,000 jobs"},
    };

    (void)state;
    /* Only one of them is too slow, on any machine. */
    start_with_sh("defaults: { attempts: 1 }\nqueues: { late: { timeout: 1s, "
                  "handler: [/bin/sh, -c, 'eval \"$(cat)\"'] } }\n");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        CLEANUP_FREE char *does = mem_printf("echo 'add child -- x' >&3; %s", rows[i].does);
        CLEANUP_FREE char *id = mem_strdup(add(rows[i].queue, does));
        CLEANUP_FREE char *outcome = NULL;

        assert_true(test_until_state(&redis, id, "dead", LONG_MS));
        outcome = test_shown(&redis, id, "outcome");
        if (strstr(outcome, rows[i].says) == NULL)
            fail_msg("%s: %s", rows[i].does, outcome);
        assert_int_equal(children(), 0);
    }
}

static void test_a_cancelled_job_has_no_children(void **state)
{
    CLEANUP_FREE char *id = NULL;

    (void)state;
    start_with_sh("");
    id = mem_strdup(add("sh", "echo 'add child -- x' >&3; echo 'progress on' >&3; sleep 60"));
    assert_true(test_until_int(&redis, "HLEN", ROOT ":progress", 1, LONG_MS));
    reply_free(test_fcall(&redis, "later_cancel", id, NULL));
    assert_true(test_until(no_job_is_left, NULL, LONG_MS));
    assert_int_equal(children(), 0);
}

/* The handler has ended, and the worker dies before it can tell: the second attempt has children,
 * once. */
static void test_a_kill_before_the_end_is_told(void **state)
{
    CLEANUP_FREE char *does = mem_printf(
        "echo \"add child -- $LATER_ATTEMPT\" >&3; while [ ! -e %s.go ]; do sleep 0.01; done", out);
    CLEANUP_FREE char *go = mem_printf("touch %s.go", out);
    struct reply *r;

    (void)state;
    start_with_sh("");
    (void)add("sh", does);
    assert_true(test_until_int(&redis, "ZCARD", ROOT ":running", 1, LONG_MS));
    reply_free(test_redis_call(&redis, "CLIENT", "PAUSE", "600000", "WRITE", NULL));
    assert_int_equal(system(go), 0);
    assert_true(test_laterd_says(&a, "event=end", LONG_MS));
    test_laterd_kill(&a, SIGKILL);
    (void)test_laterd_wait(&a, LONG_MS);
    reply_free(test_redis_call(&redis, "CLIENT", "UNPAUSE", NULL));
    assert_int_equal(children(), 0);
    start_a("");
    assert_true(test_until_int(&redis, "ZCARD", ROOT ":q:child:5", 1, LONG_MS));
    assert_int_equal(test_int(&redis, "HLEN", ROOT ":jobs"), 1);
    r = test_redis_call(&redis, "HVALS", ROOT ":jobs", NULL);
    assert_non_null(strstr(reply_str(reply_at(r, 0)), "\n2"));
    reply_free(r);
}

/* ---- kills */

static int chains(void)
{
    const char *n = getenv("LATER_TEST_CHAINS");

    return n != NULL ? atoi(n) : 60;
}

static void make_handlers(void)
{
    for (int i = 1; i <= LINKS; i++) {
        char name[8];

        (void)snprintf(name, sizeof(name), "q%d", i);
        test_handler(dir, name,
                     "p=$(cat)\n"
                     "sleep 0.0$(($$ %% 3))\n"
                     "echo \"result $p>$LATER_QUEUE\" >&3\n"
                     "echo \"$LATER_QUEUE $p\" >> %s\n",
                     out);
    }
}

/* Kill one daemon after the other, and start it again. -> how often */
static int kill_them(int n, const char *yaml)
{
    for (int i = 0; i < n; i++) {
        struct test_laterd *d = i % 2 == 0 ? &a : &b;

        (void)usleep(200000 + (useconds_t)random() % 200000);
        test_laterd_kill(d, SIGKILL);
        (void)test_laterd_wait(d, LONG_MS);
        start(d, i % 2 == 0 ? "a" : "b", yaml);
    }
    return n;
}

/* Each link ended well once. */
static void assert_done(int n)
{
    for (int i = 1; i <= LINKS; i++) {
        char field[24];
        struct reply *r;

        (void)snprintf(field, sizeof(field), "done:q%d", i);
        r = test_redis_call(&redis, "HGET", ROOT ":stats", field, NULL);
        assert_int_equal(atoi(reply_str(r)), n);
        reply_free(r);
    }
}

static void test_chains_of_killed_daemons(void **state)
{
    static const char yaml[] = "concurrency: 8\ndefaults: { attempts: 1000, crashes: 1000 }\n";
    int n = chains(), kills;

    (void)state;
    make_handlers();
    start_a(yaml);
    start(&b, "b", yaml);
    for (int i = 0; i < n; i++) {
        CLEANUP_FREE char *payload = mem_printf("<%d\xc3\xa4", i);

        (void)add("q1", "then", "q2", "then", "q3", "then", "q4", "then", "q5", "then", "q6",
                  "then", "q7", "then", "q8", payload);
    }
    kills = kill_them(n / 8, yaml);
    assert_true(test_until(no_job_is_left, NULL, 10 * LONG_MS));
    assert_done(n);
    for (int i = 0; i < n; i++) {
        CLEANUP_FREE char *want = mem_printf("q8 <%d\xc3\xa4>q1>q2>q3>q4>q5>q6>q7", i);

        assert_true(test_lines(out, want) > 0);
    }
    printf("figure: %d chains of %d links, %d kills: %d runs\n", n, LINKS, kills,
           test_lines(out, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_results_are_handed_on, fx_open, fx_close),
        cmocka_unit_test_setup_teardown(test_reasons_are_told, fx_open, fx_close),
        cmocka_unit_test_setup_teardown(test_large_deaths_are_told, fx_open, fx_close),
        cmocka_unit_test_setup_teardown(test_examples, fx_open, fx_close),
        cmocka_unit_test_setup_teardown(test_children_of_a_process, fx_open, fx_close),
        cmocka_unit_test_setup_teardown(test_children_of_a_stream, fx_open, fx_close),
        cmocka_unit_test_setup_teardown(test_ends_without_children, fx_open, fx_close),
        cmocka_unit_test_setup_teardown(test_a_cancelled_job_has_no_children, fx_open, fx_close),
        cmocka_unit_test_setup_teardown(test_a_kill_before_the_end_is_told, fx_open, fx_close),
        cmocka_unit_test_setup_teardown(test_chains_of_killed_daemons, fx_open, fx_close)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
