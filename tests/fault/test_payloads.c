/*
 * What producers may write: entries P of the fault catalogue that need the real daemon. The others
 * are tested in the function library, which decides them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../support/env.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/mem.h"
#include "redis/client.h"
#include "usage.h"
#include "watched.h"

#define MIB (1 << 20)

/* Call a command whose last argument is n bytes. error: the server's error text, "" if there is
 * none. */
static void call_bytes(char error[256], const char *const *argv, int argc, const char *last,
                       size_t n)
{
    const char *all[16];
    size_t len[16];
    struct err err = ERR_INIT;
    struct client *c;
    struct reply *r;
    struct url url;

    for (int i = 0; i < argc; i++) {
        all[i] = argv[i];
        len[i] = strlen(argv[i]);
    }
    all[argc] = last;
    len[argc] = n;
    assert_int_equal(url_parse(watched.redis.url, &url, &err), 0);
    c = client_open(&url, 60000, &err);
    assert_non_null(c);
    r = client_call(c, argc + 1, all, len, &err);
    (void)snprintf(error, 256, "%s", r == NULL ? err.text : "");
    reply_free(r);
    client_close(c);
}

static void must_call(const char *const *argv, int argc, const char *last, size_t n)
{
    char error[256];

    call_bytes(error, argv, argc, last, n);
    assert_string_equal(error, "");
}

static void zadd(const char *key, const char *member, size_t n)
{
    const char *argv[] = {"ZADD", key, "1"};

    must_call(argv, 3, member, n);
}

/* Write a job by hand, as a user with the right to write keys could. */
static void forge(const char *id, const char *queue, const char *record, size_t n)
{
    const char *argv[] = {"HSET", ROOT ":jobs", id};
    CLEANUP_FREE char *key = mem_printf("%s:q:%s:5", ROOT, queue);

    must_call(argv, 3, record, n);
    zadd(key, id, strlen(id));
    reply_free(test_redis_call(&watched.redis, "ZADD", ROOT ":heads", "1", queue, NULL));
    reply_free(test_redis_call(&watched.redis, "PUBLISH", ROOT ":wake", queue, NULL));
}

static bool until_count(const char *command, const char *key, int64_t n)
{
    return test_until_int(&watched.redis, command, key, n, LONG_MS);
}

/* ---- size */

static void P1_over_the_limit_and_half_a_gigabyte(void **state)
{
    size_t huge = test_is_long() ? (512UL << 20) - 64 : 32UL << 20;
    CLEANUP_FREE char *bytes = mem_new(huge);
    const char *add[] = {"FCALL", "later_add", "1", ROOT, "work"};
    char error[256];

    (void)state;
    memset(bytes, 'x', huge);
    test_handler(watched.dir, "work", "wc -c >> %s", watched.out);
    watched_canary_start(20);
    watched_start("defaults: { max_payload: 1MiB }");
    must_call(add, 5, bytes, MIB);
    assert_true(test_until_lines(watched.out, "1048576", 1, LONG_MS));
    watched_remember(); /* memory that the largest allowed payload takes */
    call_bytes(error, add, 5, bytes, MIB + 1);
    assert_non_null(strstr(error, "ELATER_SIZE"));
    call_bytes(error, add, 5, bytes, huge);
    assert_non_null(strstr(error, "ELATER_SIZE"));
    zadd(ROOT ":due:work", bytes, MIB + 1);
    zadd(ROOT ":due:work", bytes, huge);
    assert_true(until_count("ZCARD", ROOT ":dead:work", 2));
    assert_int_equal(test_lines(watched.out, NULL), 1);
    assert_in_range(watched_grown_kib(), 0, 4096);
    (void)watched_canary_check(2000);
    watched_assert_clean();
    printf("figure P1: raw member of %zu MB: buried, daemon +%lld KiB\n", huge >> 20,
           (long long)watched_grown_kib());
}

/* A payload that is replaced by a larger one after its add, and a forged record that is too
 * large. */
static void P1_made_large_behind_the_add(void **state)
{
    size_t huge = test_is_long() ? 500UL << 20 : 32UL << 20;
    CLEANUP_FREE char *bytes = mem_new(huge);
    CLEANUP_FREE char *id = NULL;
    CLEANUP_FREE char *key = NULL;
    CLEANUP_FREE char *why = NULL;

    (void)state;
    memset(bytes, 'x', huge);
    memcpy(bytes, "-work 5\n", 8);
    test_handler(watched.dir, "work", "wc -c >> %s", watched.out);
    watched_start("defaults: { max_payload: 1MiB }");
    reply_free(test_fcall(&watched.redis, "later_pause", "work", NULL));
    id = watched_add_bytes("work", bytes, 100000);
    key = mem_printf("%s:big:%s", ROOT, id);
    must_call((const char *const[]){"SET", key}, 2, bytes, huge);
    forge("j0000000000x", "work", bytes, huge);
    watched_canary_start(10);
    reply_free(test_fcall(&watched.redis, "later_resume", "work", NULL));
    assert_true(until_count("ZCARD", ROOT ":dead:work", 2));
    assert_int_equal(test_lines(watched.out, NULL), 0);
    why = watched_result(id, 4);
    assert_non_null(strstr(why, " bytes, queue work takes 1048576"));
    assert_in_range(watched_grown_kib(), 0, 4096);
    (void)watched_canary_check(2000);
    watched_assert_clean();
}

/* ---- bytes */

static void round_trip(const char *bytes, size_t n, bool raw)
{
    CLEANUP_FREE char *got = mem_printf("%s/got", watched.dir);
    CLEANUP_BUF struct buf all = BUF_INIT;

    assert_int_equal(watched_sh(NULL, "rm -f %s %s", got, watched.out), 0);
    if (raw)
        zadd(ROOT ":due:bytes", bytes, n);
    else
        free(watched_add_bytes("bytes", bytes, n));
    assert_true(test_until_lines(watched.out, "done", 1, LONG_MS));
    test_read(got, &all);
    assert_int_equal(all.len, n);
    assert_memory_equal(all.data, bytes, n);
}

static void P3_text_that_is_none(void **state)
{
    static const char *const corpus[] = {
        "\xff\xfe\xfd",             /* invalid UTF-8 */
        "\xc3",                     /* cut UTF-8 */
        "\xed\xa0\x80\xed\xb0\x80", /* surrogates */
        "\xef\xbb\xbf{}",           /* byte order mark */
        "\xe2\x80\xae"
        "gpj.exe",                          /* right-to-left override */
        "\xf4\x90\x80\x80",                 /* beyond Unicode */
        "\xc0\xaf",                         /* overlong */
        "\xe2\x80\xa8\xe2\x80\xa9\xc2\x85", /* other line ends */
        "\033]0;t\007\033[2J\r\n\b\177",    /* terminal control sequences */
    };

    (void)state;
    test_handler(watched.dir, "bytes",
                 "cat > %s/got.part && mv %s/got.part %s/got && echo done >> %s", watched.dir,
                 watched.dir, watched.dir, watched.out);
    watched_start("");
    for (size_t i = 0; i < sizeof(corpus) / sizeof(corpus[0]); i++) {
        round_trip(corpus[i], strlen(corpus[i]), false);
        round_trip(corpus[i], strlen(corpus[i]), true);
    }
    watched_assert_clean();
}

/* ---- names */

static void P8_a_queue_that_nobody_serves(void **state)
{
    CLEANUP_FREE char *id = NULL;

    (void)state;
    watched_canary_start(20);
    watched_start("");
    id = watched_add("nosuch", "x");
    /* The job waits. The queue is noted, and after a minute shown as one that needs attention. */
    assert_true(until_count("HLEN", ROOT ":unserved", 1));
    assert_true(watched_state_is(id, "waiting"));
    if (test_is_long()) {
        assert_true(test_laterd_says(&watched.d, "event=unserved-queue", 90000));
        assert_int_equal(watched_sh(NULL, "sleep 3"), 0);
    }
    (void)watched_canary_check(2000);
    test_handler(watched.dir, "nosuch", "echo served >> %s", watched.out);
    assert_true(test_until_lines(watched.out, "served", 1, LONG_MS));
    watched_assert_clean();
}

/* These names as queues, keys, on the wake channel, in records and as files: none may become a
 * program. */
static void P9_handler_names(void **state)
{
    CLEANUP_FREE char *longest = mem_new(4097);
    CLEANUP_FREE char *above = mem_printf("%s/x", watched.dir);
    const struct {
        const char *name;
        size_t n;
    } corpus[] = {{"../x", 4},    {"../../bin/sh", 12},
                  {"/bin/sh", 7}, {"a/../../x", 9},
                  {"", 0},        {".", 1},
                  {"..", 2},      {longest, 4096},
                  {"a\nb", 3},    {"a\0b", 3},
                  {"-rf", 3},     {"$(id)", 5},
                  {"`id`", 4},    {"a;b", 3},
                  {"a b", 3},     {above, strlen(above)}};

    (void)state;
    watched.unsound = "names that are no queue's make stray keys";
    memset(longest, 'a', 4096);
    assert_int_equal(
        watched_sh(NULL,
                   "cd %s && printf '#!/bin/sh\\necho pwned >> %s\\n' > x && chmod 755 x "
                   "&& cp x handlers/-rf && cp x 'handlers/a b' && cp x 'handlers/a;b' && "
                   "cp x 'handlers/$(id)' && cp x 'handlers/.x'",
                   watched.dir, watched.out),
        0);
    test_handler(watched.dir, "fine", "echo fine >> %s", watched.out);
    watched_canary_start(10);
    watched_start("defaults: { attempts: 1 }");
    for (size_t i = 0; i < sizeof(corpus) / sizeof(corpus[0]); i++) {
        CLEANUP_BUF struct buf b = BUF_INIT;
        char error[256], id[16];
        const char *add[] = {"FCALL", "later_add", "1", ROOT, "placeholder", "x"};
        size_t len[] = {5, 9, 1, strlen(ROOT), corpus[i].n, 1};
        struct err err = ERR_INIT;
        struct client *c;
        struct url url;

        add[4] = corpus[i].name;
        assert_int_equal(url_parse(watched.redis.url, &url, &err), 0);
        c = client_open(&url, 60000, &err);
        assert_null(client_call(c, 6, add, len, &err));
        assert_non_null(strstr(err.text, "ELATER_QUEUE"));
        client_close(c);
        call_bytes(error, (const char *const[]){"PUBLISH", ROOT ":wake"}, 2, corpus[i].name,
                   corpus[i].n);
        must_call((const char *const[]){"SADD", ROOT ":names"}, 2, corpus[i].name, corpus[i].n);
        must_call((const char *const[]){"ZADD", ROOT ":heads", "1"}, 3, corpus[i].name,
                  corpus[i].n);
        /* In the record of a job that waits in a valid queue. */
        (void)snprintf(id, sizeof(id), "j0000000%04zu", i);
        buf_puts(&b, "-");
        buf_add(&b, corpus[i].name, corpus[i].n);
        buf_puts(&b, " 5\npayload");
        forge(id, "fine", b.data, b.len);
        /* And in a key of its own. */
        buf_clear(&b);
        buf_puts(&b, ROOT ":due:");
        buf_add(&b, corpus[i].name, corpus[i].n);
        if (memchr(b.data, 0, b.len) == NULL)
            zadd(buf_str(&b), "payload", 7);
    }
    assert_true(until_count("ZCARD", ROOT ":dead:fine", sizeof(corpus) / sizeof(corpus[0])));
    watched_add_many("fine", 1);
    assert_true(test_until_lines(watched.out, "fine", 1, LONG_MS));
    assert_int_equal(test_lines(watched.out, NULL), 1);
    assert_int_equal(test_lines(watched.d.log, "event=handler-refused"), 4);
    (void)watched_canary_check(2000);
    watched_assert_clean();
    watched_assert_idle();
}

/* ---- very many */

static bool two_is_done(void *arg)
{
    (void)arg;
    return test_lines(watched.out, "two") >= 30;
}

static void P12_all_due_at_the_same_ms(void **state)
{
    int n = test_is_long() ? 1000000 : 20000;
    char at[24];
    CLEANUP_BUF struct buf calls = BUF_INIT;
    struct reply *slow;

    (void)state;
    test_handler(watched.dir, "one", "echo one >> %s/one", watched.dir);
    test_handler(watched.dir, "two", "echo two >> %s", watched.out);
    /* Add while the queue is paused: all jobs become due at the moment it is resumed. */
    reply_free(test_fcall(&watched.redis, "later_pause", "one", NULL));
    watched_add_many("one", n);
    (void)snprintf(at, sizeof(at), "%lld", (long long)test_now_ms());
    /* Give all the same score, as a raw producer may. */
    reply_free(test_redis_call(&watched.redis, "EVAL",
                               "for _, id in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do "
                               "redis.call('ZADD', KEYS[1], ARGV[1], id) end return 1",
                               "1", ROOT ":q:one:5", at, NULL));
    reply_free(test_redis_call(&watched.redis, "CONFIG", "SET", "slowlog-log-slower-than",
                               "1000000", NULL));
    reply_free(test_redis_call(&watched.redis, "CONFIG", "RESETSTAT", NULL));
    reply_free(test_redis_call(&watched.redis, "SLOWLOG", "RESET", NULL));
    watched_canary_start(60);
    watched_start("concurrency: 8\nlog_level: warn");
    reply_free(test_fcall(&watched.redis, "later_resume", "one", NULL));
    watched_add_many("two", 30);
    assert_true(test_until(two_is_done, NULL, LONG_MS));
    {
        CLEANUP_FREE char *one = mem_printf("%s/one", watched.dir);

        /* The queues take turns: `two` did not have to wait behind all of `one`. */
        assert_in_range(test_lines(one, NULL), 0, 300);
        assert_true(test_until_lines(one, NULL, 1500, LONG_MS));
    }
    slow = test_redis_call(&watched.redis, "SLOWLOG", "LEN", NULL);
    assert_int_equal(reply_int(slow), 0);
    reply_free(slow);
    assert_in_range(watched_grown_kib(), 0, 8192);
    assert_int_equal(watched_sh(&calls,
                                "redis-cli -s %s info commandstats | grep cmdstat_fcall: | "
                                "sed 's/.*usec_per_call=//; s/,.*//'",
                                watched.redis.sock),
                     0);
    printf("figure P12: %d jobs due at once: a call takes %.0f µs on average, canary %d ms late at "
           "most, daemon +%lld KiB\n",
           n, strtod(buf_str(&calls), NULL), watched_canary_check(2000),
           (long long)watched_grown_kib());
}

static void P13_very_many_names(void **state)
{
    int n = test_is_long() ? 1000000 : 50000;
    struct reply *r;
    int64_t cpu;

    (void)state;
    watched.unsound = "more queues than a namespace takes names of";
    watched_canary_start(40);
    watched_start("");
    for (int from = 0; from < n; from += 5000) {
        char first[16], last[16];

        (void)snprintf(first, sizeof(first), "%d", from + 1);
        (void)snprintf(last, sizeof(last), "%d", from + 5000);
        /* Raw keys, stray keys, and wakes for unknown queues. */
        reply_free(test_redis_call(&watched.redis, "EVAL",
                                   "for i = ARGV[1], ARGV[2] do "
                                   "redis.call('ZADD', KEYS[1] .. ':due:q' .. i, 1, 'x') "
                                   "redis.call('SET', 'later:default:q' .. i, 'x') "
                                   "if i % 10 == 0 then "
                                   "redis.call('PUBLISH', KEYS[1] .. ':wake', 'q' .. i) end end "
                                   "return 1",
                                   "1", ROOT, first, last, NULL));
    }
    /* And as many queues as a namespace may have. */
    reply_free(test_redis_call(&watched.redis, "EVAL",
                               "for i = 1, 10000 do redis.call('SADD', KEYS[1] .. ':names', 'n' .. "
                               "i) end return 1",
                               "1", ROOT, NULL));
    {
        char error[256];

        call_bytes(error, (const char *const[]){"FCALL", "later_add", "1", ROOT, "onemore"}, 5, "x",
                   1);
        assert_non_null(strstr(error, "ELATER_FULL"));
    }
    cpu = usage_cpu_ms(watched.pid);
    assert_true(test_until_lines(watched.d.log, "event=stray-key", 1, LONG_MS));
    assert_int_equal(watched_sh(NULL, "sleep 12"), 0); /* a scan for stray keys, a tidy */
    assert_in_range(usage_cpu_ms(watched.pid) - cpu, 0, 3000);
    assert_in_range(test_lines(watched.d.log, "event=stray-key"), 1, 64);
    assert_in_range(test_int(&watched.redis, "HLEN", ROOT ":notes"), 1, 100);
    r = test_fcall(&watched.redis, "later_stats", NULL);
    assert_in_range(reply_count(reply_at(r, 5)), 10, 500 * 10);
    reply_free(r);
    assert_int_equal(watched_later(NULL, "stats"), 0);
    assert_in_range(watched_grown_kib(), 0, 4096);
    printf("figure P13: %d raw queue names and as many stray keys: daemon +%lld KiB, %d lines, "
           "canary %d ms late at most\n",
           n, (long long)watched_grown_kib(), test_lines(watched.d.log, "event=stray-key"),
           watched_canary_check(2000));
}

/* ---- environment and arguments */

static void P16_nothing_of_a_job_names_a_variable(void **state)
{
    static const char *const allowed =
        "^(PATH|HOME|USER|LANG|TZ|LATER_(ID|STEP|QUEUE|KEY|PRIORITY|ATTEMPT|ATTEMPTS_MAX|DUE_MS|"
        "LATE_MS|"
        "TIMEOUT_MS|FENCE|WORKER|NAMESPACE|CONTROL_FD)|TRACEPARENT)=";
    static const char *const values[] = {
        "LD_PRELOAD=/tmp/evil.so", "PATH=.", "-o", "--help", "$(id)", "`id`"};
    static const struct {
        const char *record;
        size_t n;
    } forged[] = {
#define R(s) {s, sizeof(s) - 1}
        R("-env 5 LD_PRELOAD=/tmp/evil.so\nx"),
        R("-env 5 K=a\0LD_PRELOAD=/tmp/evil.so\nx"),
        R("-env 5 K=a\rLD_PRELOAD=/tmp/evil.so T=b\tIFS=x\nx"),
        R("-env 5 PATH=/tmp K=\nLD_PRELOAD=/tmp/evil.so"),
        R("-env 5 a=0x7 t=-1 u=0 uid=0 cwd=/ E=LD_PRELOAD=/x\nx"),
#undef R
    };
    CLEANUP_FREE char *yaml = NULL;
    int n = 0;

    (void)state;
    yaml = mem_printf("defaults: { attempts: 1 }\n"
                      "queues: { env: { handler: [/bin/sh, -c, 'tr \"\\0\" \"\\n\" < "
                      "/proc/$$/environ >> $0; echo \"$0|$1|$2|$#\" >> $0.argv; "
                      "echo ran >> $0.ran', %s, --, last] } }",
                      watched.out);
    watched_start(yaml);
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++, n += 2) {
        free(watched_add_with("env", "key", values[i], values[i]));
        {
            CLEANUP_FREE char *trace =
                mem_printf("01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-%s", values[i]);

            free(watched_add_with("env", "trace", trace, values[i]));
        }
    }
    for (size_t i = 0; i < sizeof(forged) / sizeof(forged[0]); i++) {
        char id[16];

        (void)snprintf(id, sizeof(id), "j0000000%04zu", i);
        forge(id, "env", forged[i].record, forged[i].n);
    }
    {
        CLEANUP_FREE char *ran = mem_printf("%s.ran", watched.out);
        CLEANUP_BUF struct buf odd = BUF_INIT;
        CLEANUP_BUF struct buf argv = BUF_INIT;

        assert_true(test_until_lines(ran, NULL, n, LONG_MS));
        assert_true(watched_until_empty(LONG_MS));
        (void)watched_sh(&odd, "grep -avE '%s' %s", allowed, watched.out);
        assert_string_equal(buf_str(&odd), "");
        /* The arguments are those of the configuration, each time. */
        assert_int_equal(watched_sh(&argv, "sort -u %s.argv", watched.out), 0);
        assert_int_equal(test_lines(watched.out, "LATER_KEY=LD_PRELOAD=/tmp/evil.so"), 1);
        {
            CLEANUP_FREE char *want = mem_printf("%s|--|last|2\n", watched.out);

            assert_string_equal(buf_str(&argv), want);
        }
    }
    watched_assert_clean();
}

/* ---- retention */

static void P17_kept_outcomes_go(void **state)
{
    int n = test_is_long() ? 120000 : 8000;
    int64_t most = 0, left;

    (void)state;
    watched_start("log_level: warn\n"
                  "queues: { storm: { handler: [/bin/true], keep: 1s }, "
                  "wrong: { handler: [/bin/false], attempts: 1, dead_max: 50 } }");
    watched_add_many("storm", 100);
    assert_true(watched_until_empty(LONG_MS));
    watched_add_many("storm", n);
    watched_add_many("wrong", 500);
    do {
        int64_t kept = test_int(&watched.redis, "HLEN", ROOT ":results");

        most = kept > most ? kept : most;
        left = test_int(&watched.redis, "ZCARD", ROOT ":q:storm:5");
    } while (left > 0);
    /* About the outcomes of one second, however many jobs there were. */
    assert_in_range(most, 1, test_is_long() ? 12000 : 5000);
    assert_int_equal(test_int(&watched.redis, "ZCARD", ROOT ":dead:wrong"), 50);
    assert_true(until_count("HLEN", ROOT ":results", 0));
    assert_int_equal(test_int(&watched.redis, "ZCARD", ROOT ":done:storm"), 0);
    assert_int_equal(test_int(&watched.redis, "HLEN", ROOT ":jobs"), 50);
    assert_int_equal(test_int(&watched.redis, "HLEN", ROOT ":tries"), 50);
    assert_int_equal(test_int(&watched.redis, "HLEN", ROOT ":errors"), 50);
    printf("figure P17: %d jobs done with keep 1s: at most %lld outcomes held, 0 at the end\n", n,
           (long long)most);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, watched_setup, watched_teardown)
    const struct CMUnitTest tests[] = {
        T(P1_over_the_limit_and_half_a_gigabyte),
        T(P1_made_large_behind_the_add),
        T(P3_text_that_is_none),
        T(P8_a_queue_that_nobody_serves),
        T(P9_handler_names),
        T(P12_all_due_at_the_same_ms),
        T(P13_very_many_names),
        T(P16_nothing_of_a_job_names_a_variable),
        T(P17_kept_outcomes_go),
    };

    cmocka_set_test_filter(getenv("LATER_ONLY")); /* a name, with * and ? */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
