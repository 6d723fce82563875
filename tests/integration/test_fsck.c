/*
 * The built `later fsck` on a real namespace: while daemons work, damaged, and after evictions;
 * what it prints and how it exits. Each kind of damage is tested in tests/lua/test_audit.c.
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
#include <jansson.h>

#include "../support/env.h"
#include "../support/fsck.h"
#include "base/cleanup.h"
#include "base/mem.h"
#include "fixture.h"

#define ARGS_MAX 16
#define LONG_MS 60000
#define JOBS 200
#define BIG_BYTES 20000

static struct buf said, err; /* of the last run */

static int setup(void **state)
{
    (void)fx_open(state);
    test_redis_load(&redis);
    return 0;
}

static int teardown(void **state)
{
    buf_done(&said);
    buf_done(&err);
    return fx_close(state);
}

/* ---- helpers */

/* Run later --redis URL ARGS…; the strings end with NULL. -> its exit status */
static int run_at(const char *url, const char *first, ...)
{
    CLEANUP_FREE char *program = mem_printf("%s/later", test_build_dir());
    const char *argv[ARGS_MAX] = {program, "--redis", url, first};
    va_list ap;

    va_start(ap, first);
    for (int i = 4; i < ARGS_MAX; i++)
        if ((argv[i] = va_arg(ap, const char *)) == NULL)
            break;
    va_end(ap);
    buf_clear(&said);
    buf_clear(&err);
    return proc_run((char *const *)(uintptr_t)argv, NULL, 0, &said, &err);
}

#define run(...) run_at(redis.url, __VA_ARGS__)

static bool says(const char *text)
{
    return said.len > 0 && memmem(said.data, said.len, text, strlen(text)) != NULL;
}

static void assert_says(const char *text)
{
    if (!says(text))
        fail_msg("'%s' is not in: %s", text, buf_str(&said));
}

static void redis_does(const char *first, ...)
{
    const char *argv[ARGS_MAX] = {first};
    va_list ap;

    va_start(ap, first);
    for (int i = 1; i < ARGS_MAX; i++)
        if ((argv[i] = va_arg(ap, const char *)) == NULL)
            break;
    va_end(ap);
    /* A NULL ends the list; what is after it is not read. */
    reply_free(test_redis_call(&redis, argv[0], argv[1], argv[2], argv[3], argv[4], argv[5],
                               argv[6], argv[7], NULL));
}

/* Add n jobs. Their ids go to ids, unless it is NULL. */
static void add_many(int n, const char *queue, const char *payload, const char *option,
                     const char *value, char (*ids)[13])
{
    for (int i = 0; i < n; i++) {
        struct reply *r = test_fcall(&redis, "later_add", queue, option, value, payload, NULL);

        assert_non_null(r);
        if (ids != NULL)
            (void)snprintf(ids[i], sizeof(ids[i]), "%s", reply_str(reply_at(r, 0)));
        reply_free(r);
    }
}

static char *big_payload(void)
{
    char *payload = mem_new(BIG_BYTES + 1);

    memset(payload, 'b', BIG_BYTES);
    return payload;
}

/* The output of the last run is JSON Lines, the sum last. -> the findings of the sum */
static json_int_t assert_json_lines(void)
{
    json_int_t findings = 0, told = -1;
    char *save = NULL;

    for (char *l = strtok_r(said.data, "\n", &save); l != NULL; l = strtok_r(NULL, "\n", &save)) {
        json_error_t e;
        json_t *line = json_loads(l, 0, &e);

        if (line == NULL)
            fail_msg("not JSON (%s): %s", e.text, l);
        assert_int_equal(told, -1); /* the sum is the last line */
        if (json_object_get(line, "jobs") != NULL) {
            assert_true(json_is_integer(json_object_get(line, "repaired")));
            assert_true(json_is_integer(json_object_get(line, "queues")));
            told = json_integer_value(json_object_get(line, "findings"));
        } else {
            findings++;
            assert_true(json_is_string(json_object_get(line, "kind")));
            assert_true(json_is_string(json_object_get(line, "name")));
            assert_true(json_is_string(json_object_get(line, "text")));
            assert_true(json_is_boolean(json_object_get(line, "repaired")));
        }
        json_decref(line);
    }
    assert_int_equal(told, findings);
    return findings;
}

static void assert_no_controls(const struct buf *text)
{
    for (size_t i = 0; i < text->len; i++) {
        unsigned char c = (unsigned char)text->data[i];

        if ((c < 0x20 && c != '\n') || c == 0x7f)
            fail_msg("control byte 0x%02x at %zu: %s", c, i, text->data);
    }
}

/* ---- while daemons work */

static void feed(const char *big)
{
    add_many(15, "work", "x", "priority", "5", NULL);
    add_many(5, "work", "x", "priority", "1", NULL);
    add_many(5, "work", "x", "keep", "1s", NULL);
    add_many(3, "work", big, "in", "300ms", NULL);
    add_many(2, "other", big, "keep", "1s", NULL);
    redis_does("ZADD", ROOT ":due:other", "5", "raw", "6", big, NULL);
}

/* Jobs take every way there is, with two workers, one of which is killed now and then, cancels, and
 * retries by hand: there is no finding, and the work goes on. */
static void test_nothing_is_found_while_laterd_works(void **state)
{
    static const char yaml[] = "concurrency: 8\n"
                               "defaults: { attempts: 3, crashes: 100, dead_max: 20, keep: 0s,\n"
                               "            backoff: { first: 50ms, factor: 1, jitter: 0% } }";
    int rounds = test_is_long() ? 200 : 14;
    CLEANUP_FREE char *big = big_payload();

    (void)state;
    test_handler(dir, "work",
                 "cat > /dev/null; echo 'progress half' >&3; sleep 0.0$((LATER_FENCE %% 10)); "
                 "echo end >> %s; case $((LATER_FENCE %% 7)) in 0) exit 1;; 1) exit 75;; "
                 "2) exit 65;; esac",
                 out);
    test_handler(dir, "other", "cat > /dev/null; sleep 0.05; echo end >> %s", out);
    start_a(yaml);
    start(&b, "b", yaml);
    for (int i = 0; i < rounds; i++) {
        struct reply *running;

        feed(big);
        assert_int_equal(test_fsck(&redis), 0);
        running = test_redis_call(&redis, "ZRANGE", ROOT ":running", "0", "0", NULL);
        if (reply_count(running) > 0)
            (void)run("cancel", reply_str(reply_at(running, 0)), NULL);
        reply_free(running);
        assert_int_equal(run("retry", "--all", "work", NULL), 0);
        assert_int_equal(test_fsck(&redis), 0);
        if (i % 8 == 5) {
            test_laterd_kill(&b, SIGKILL);
            (void)test_laterd_wait(&b, LONG_MS);
            assert_int_equal(test_fsck(&redis), 0);
            test_laterd_start(&b);
        }
    }
    assert_true(test_until_lines(out, NULL, rounds * 20, LONG_MS));
    assert_int_equal(test_fsck(&redis), 0);
    printf("%d ends while fsck looked %d times\n", test_lines(out, NULL), 2 * rounds);
}

/* ---- damaged namespaces */

static void damage(char ids[3][13])
{
    add_many(3, "mail", "x", "priority", "5", ids);
    redis_does("HDEL", ROOT ":jobs", ids[0], NULL);
    redis_does("ZREM", ROOT ":q:mail:5", ids[1], NULL);
    redis_does("ZADD", ROOT ":dead:mail", "5", ids[2], NULL);
}

static void test_damage_is_told_repaired_and_gone(void **state)
{
    char ids[3][13];

    (void)state;
    assert_int_equal(run("fsck", NULL), 0);
    assert_string_equal(buf_str(&said), "checked 0 jobs in 0 queues: clean\n");
    damage(ids);
    assert_int_equal(run("fsck", NULL), 1);
    for (int i = 0; i < 3; i++)
        assert_says(ids[i]);
    assert_says("checked 2 jobs in 1 queue: 3 findings (0 repaired)\n");
    assert_int_equal(run("fsck", "--json", NULL), 1);
    assert_int_equal(assert_json_lines(), 3);
    assert_int_equal(test_fsck(&redis), 3);
    assert_int_equal(run("fsck", "--repair", NULL), 0);
    assert_says(", repaired\n");
    assert_says("3 findings (3 repaired)\n");
    assert_int_equal(run("fsck", NULL), 0);
    assert_string_equal(buf_str(&said), "checked 3 jobs in 1 queue: clean\n");
    assert_int_equal(run("ls", "mail", "--state", "dead", NULL), 0);
    assert_says("fsck: it is in no set");
    assert_says("fsck: its record is missing");
    assert_says("fsck: it is in q:mail:5 and dead:mail");
}

static void test_repair_in_json(void **state)
{
    char ids[3][13];

    (void)state;
    damage(ids);
    assert_int_equal(run("fsck", "--json", "--repair", NULL), 0);
    assert_int_equal(assert_json_lines(), 3);
    damage(ids);
    assert_int_equal(test_fsck_repair(&redis), 0);
}

/* Damage that only a person can decide about is left alone, and the exit status says so. */
static void test_foreign_and_stray_keys_are_left(void **state)
{
    (void)state;
    redis_does("SET", ROOT ":prio", "x", NULL);
    redis_does("SET", ROOT ":q:mail", "x", NULL);
    redis_does("SET", "later:default:due:mail", "x", NULL);
    redis_does("SET", "later:{other}:whatever", "x", NULL);
    redis_does("SET", "elsewhere", "x", NULL);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(run("fsck", "--repair", NULL), 1);
        assert_says("wrong-type prio: ");
        assert_says("stray-key later:{default}:q:mail: ");
        assert_says("stray-key later:default:due:mail: ");
        assert_says(": 3 findings (0 repaired)\n");
    }
    assert_int_equal(test_fsck_repair(&redis), 3);
}

static void test_hostile_names_are_escaped(void **state)
{
    static const char evil[] = "\033]0;x\007\033[2J\"\xff\xc2\x9b";
    CLEANUP_FREE char *key = mem_printf(ROOT ":%s", evil);
    CLEANUP_FREE char *record = mem_printf("-mail 5 K=%s\n", evil);

    (void)state;
    redis_does("HSET", ROOT ":jobs", evil, record, NULL);
    redis_does("HSET", ROOT ":tries", evil, evil, NULL);
    redis_does("HSET", ROOT ":progress", evil, evil, NULL);
    redis_does("HSET", ROOT ":workers", evil, evil, NULL);
    redis_does("ZADD", ROOT ":running", "1.5", "\033[2Jx", "5", "\033[2Jy", NULL);
    redis_does("ZADD", ROOT ":q:mail:5", "5", "\033[2Jz", NULL);
    redis_does("SET", key, "x", NULL);
    key[strlen(key) - 1] = '\0';
    assert_int_equal(run("fsck", NULL), 1);
    assert_no_controls(&said);
    assert_says("\\x1b");
    assert_int_equal(run("fsck", "--json", NULL), 1);
    assert_no_controls(&said);
    assert_true(assert_json_lines() >= 7);
    assert_int_equal(run("fsck", "--repair", NULL), 1);
    assert_no_controls(&said);
    redis_does("ZREM", ROOT ":running", "\033[2Jy", NULL);
    assert_int_equal(run("fsck", "--repair", NULL), 1);
    assert_says(": 1 finding (0 repaired)\n"); /* the stray key */
}

static void test_no_redis_is_said(void **state)
{
    (void)state;
    assert_int_equal(run_at("unix:/nonexistent/redis.sock", "fsck", NULL), 69);
    assert_int_equal(run("fsck", "mail", NULL), 64);
}

/* An audit works for a user that may only read. */
static void test_reading_is_enough_for_an_audit(void **state)
{
    char ids[3][13];

    (void)state;
    damage(ids);
    redis_does("ACL", "SETUSER", "default", "-@all", "+@connection", "+@read", "+fcall", "+time",
               NULL);
    assert_int_equal(run("fsck", NULL), 1);
    assert_says(": 3 findings (0 repaired)\n");
    assert_int_equal(run("stats", NULL), 0);
    assert_int_equal(run("ls", "mail", NULL), 0);
    assert_int_equal(run("show", ids[2], NULL), 0);
    assert_int_not_equal(run("fsck", "--repair", NULL), 0);
    assert_int_equal(run("fsck", NULL), 1);
    assert_says(": 3 findings (0 repaired)\n");
}

/* ---- evictions */

/* Delete a key, as an eviction does. Each job that this broke is told and repaired, and after that
 * there is no finding. */
static void evict_and_repair(const char *key, int broken, char (*ids)[13], int n)
{
    int told = 0;

    redis_does("DEL", key, NULL);
    assert_int_equal(run("fsck", NULL), broken > 0 ? 1 : 0);
    for (int i = 0; i < n; i++)
        told += says(ids[i]);
    if (told != broken)
        fail_msg("%s: %d of %d broken jobs are told: %s", key, told, broken, buf_str(&said));
    if (test_fsck_repair(&redis) != 0 || test_fsck(&redis) != 0)
        fail_msg("%s: repaired, and yet not clean", key);
}

static void R12_an_evicted_key_is_found_and_repaired(void **state)
{
    CLEANUP_FREE char *big = big_payload();
    char ids[4][13], key[64];

    (void)state;
    /* The set of waiting jobs, the records, a payload; then derived keys, which break no job. */
    add_many(3, "mail", "x", "in", "1h", ids);
    add_many(1, "mail", big, "in", "1h", ids + 3);
    evict_and_repair(ROOT ":q:mail:5", 4, ids, 4);
    redis_does("FLUSHDB", NULL);
    add_many(3, "mail", "x", "in", "1h", ids);
    add_many(1, "mail", big, "in", "1h", ids + 3);
    evict_and_repair(ROOT ":jobs", 4, ids, 4);
    redis_does("FLUSHDB", NULL);
    add_many(1, "mail", big, "in", "1h", ids);
    (void)snprintf(key, sizeof(key), ROOT ":big:%s", ids[0]);
    evict_and_repair(key, 1, ids, 1);
    add_many(3, "mail", "x", "priority", "2", ids);
    for (int i = 0; i < 3; i++) {
        static const char *const derived[] = {ROOT ":heads", ROOT ":prio", ROOT ":names"};

        redis_does("DEL", derived[i], NULL);
        assert_int_equal(test_fsck(&redis), 1);
        assert_int_equal(test_fsck_repair(&redis), 0);
        assert_int_equal(test_fsck(&redis), 0);
    }
    assert_int_equal(test_int(&redis, "ZCARD", ROOT ":q:mail:2"), 3);
}

/* Keys are evicted under two living workers: what they hold goes on, and the audit ends clean. */
static void R12_evictions_under_working_daemons_end_clean(void **state)
{
    /* R:workers is the last, since it takes the 25 s until a worker is reaped. */
    static const char *const keys[] = {ROOT ":running", ROOT ":tries", ROOT ":jobs",
                                       ROOT ":workers"};
    size_t n = test_is_long() ? 4 : 3;

    (void)state;
    test_handler(dir, "work", "cat > /dev/null; sleep 0.3; echo end >> %s", out);
    start_a("concurrency: 4");
    for (size_t i = 0; i < n; i++) {
        add_many(20, "work", "x", "priority", "5", NULL);
        assert_true(test_until_lines(out, NULL, test_lines(out, NULL) + 1, LONG_MS));
        redis_does("DEL", keys[i], NULL);
        (void)test_fsck_repair(&redis);
    }
    /* The daemons do the rest by themselves: ends, reconciles, reaps. */
    for (int tries = 0; test_fsck_repair(&redis) > 0; tries++) {
        assert_true(tries < 60);
        (void)test_until_lines(out, NULL, 1000000, 1000);
    }
    assert_int_equal(test_fsck(&redis), 0);
}

static int64_t evicted(void)
{
    struct reply *r = test_redis_call(&redis, "INFO", "stats", NULL);
    const char *at = strstr(reply_str(r), "evicted_keys:");
    int64_t n = at != NULL ? strtoll(at + strlen("evicted_keys:"), NULL, 10) : -1;

    reply_free(r);
    return n;
}

static bool is_whole(const char *id)
{
    struct reply *r = test_fcall(&redis, "later_show", id, NULL);
    bool is = reply_is(reply_named(r, "state"), "waiting") &&
              reply_len(reply_named(r, "payload")) == BIG_BYTES;

    reply_free(r);
    return is;
}

/* Record, set member and payload are gone: nobody can know that the job ever was. */
static bool is_without_trace(const char *id)
{
    CLEANUP_FREE char *key = mem_printf(ROOT ":big:%s", id);
    struct reply *record = test_redis_call(&redis, "HEXISTS", ROOT ":jobs", id, NULL);
    struct reply *score = test_redis_call(&redis, "ZSCORE", ROOT ":q:mail:5", id, NULL);
    bool is = reply_int(record) == 0 && reply_kind(score) == REPLY_NIL &&
              test_int(&redis, "EXISTS", key) == 0;

    reply_free(record);
    reply_free(score);
    return is;
}

/* Redis counts idle time in whole seconds, so younger keys cannot be told apart. */
static bool is_idle(void *key)
{
    struct reply *r = test_redis_call(&redis, "OBJECT", "IDLETIME", (const char *)key, NULL);
    int64_t seconds = reply_int(r);

    reply_free(r);
    return seconds >= 2;
}

/* Lower maxmemory to what is used, and add jobs: the keys that were idle longest are evicted, one
 * payload after the other. */
static void press(const char *payload, char (*ids)[13])
{
    struct reply *r = test_redis_call(&redis, "INFO", "memory", NULL);
    CLEANUP_FREE char *limit =
        mem_printf("%lld", strtoll(strstr(reply_str(r), "used_memory:") + 12, NULL, 10));

    reply_free(r);
    redis_does("CONFIG", "SET", "maxmemory", limit, NULL);
    add_many(JOBS / 2, "mail", payload, "in", "1h", ids);
    redis_does("CONFIG", "SET", "maxmemory", "0", NULL);
    assert_true(evicted() > 0);
}

/* Redis itself evicts keys: each accepted job is whole, or fsck names it. */
static void R12_after_real_evictions_each_broken_job_is_told(void **state)
{
    CLEANUP_FREE char *big = big_payload(), *oldest = NULL;
    static char ids[JOBS][13];
    int whole = 0, told = 0, gone = 0;

    (void)state;
    redis_does("CONFIG", "SET", "maxmemory-policy", "allkeys-lru", NULL);
    add_many(JOBS / 2, "mail", big, "in", "1h", ids);
    oldest = mem_printf(ROOT ":big:%s", ids[JOBS / 2 - 1]);
    assert_true(test_until(is_idle, oldest, LONG_MS));
    press(big, ids + JOBS / 2);
    assert_int_equal(run("fsck", NULL), 1);
    for (int i = 0; i < JOBS; i++) {
        bool is = is_whole(ids[i]), is_gone = is_without_trace(ids[i]);

        whole += is;
        gone += is_gone;
        told += says(ids[i]);
        if (is + is_gone + says(ids[i]) != 1)
            fail_msg("%s is %s: %s", ids[i], is ? "whole and told" : "broken and not told",
                     buf_str(&said));
    }
    assert_true(told > 0);
    assert_int_equal(test_fsck_repair(&redis), 0);
    assert_int_equal(test_fsck(&redis), 0);
    assert_int_equal(test_int(&redis, "HLEN", ROOT ":jobs"), whole + told);
    printf("figure R12: %lld keys evicted: of %d jobs %d whole, %d told by fsck and buried, "
           "%d without a trace\n",
           (long long)evicted(), JOBS, whole, told, gone);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_nothing_is_found_while_laterd_works),
        TEST(test_damage_is_told_repaired_and_gone),
        TEST(test_repair_in_json),
        TEST(test_foreign_and_stray_keys_are_left),
        TEST(test_hostile_names_are_escaped),
        TEST(test_no_redis_is_said),
        TEST(test_reading_is_enough_for_an_audit),
        TEST(R12_an_evicted_key_is_found_and_repaired),
        TEST(R12_evictions_under_working_daemons_end_clean),
        TEST(R12_after_real_evictions_each_broken_job_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
