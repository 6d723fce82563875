/*
 * Gates in the configuration of real daemons: what they declare to all workers, and what they log
 * when another definition is in force.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../support/laterd.h"
#include "base/mem.h"

#define ROOT "later:{default}"
#define LONG_MS 60000

static struct test_redis redis;
static char dir[64];
static struct test_laterd a, b;

static int setup(void **state)
{
    (void)state;
    test_redis_start(&redis, NULL);
    test_folder_make(dir);
    memset(&a, 0, sizeof(a));
    memset(&b, 0, sizeof(b));
    return 0;
}

static int teardown(void **state)
{
    int status;

    (void)state;
    status = test_laterd_stop(&a) + test_laterd_stop(&b);
    test_redis_stop(&redis);
    test_folder_remove(dir);
    return status;
}

static void start(struct test_laterd *d, const char *name, const char *yaml)
{
    test_laterd_conf(d, dir, name, redis.url, yaml);
    test_laterd_start(d);
}

struct wanted {
    const char *key, *field, *value; /* value NULL: no such field */
};

static bool holds(void *arg)
{
    const struct wanted *w = arg;
    struct reply *r = test_redis_call(&redis, "HGET", w->key, w->field, NULL);
    bool is_so = w->value != NULL ? reply_is(r, w->value) : r != NULL && reply_kind(r) == REPLY_NIL;

    reply_free(r);
    return is_so;
}

static void until(const char *key, const char *field, const char *value)
{
    struct wanted w = {key, field, value};

    if (!test_until(holds, &w, LONG_MS))
        fail_msg("%s of %s is not %s", field, key, value != NULL ? value : "gone");
}

#define LIMITS ROOT ":limits"
#define QUEUES ROOT ":queues"
#define NOTES ROOT ":notes"

static const char gates[] = "limits:\n"
                            "  smtp: { semaphore: 20, on_lost: kill }\n"
                            "  gateway: { rate: 100/1m, burst: 20 }\n"
                            "queues:\n"
                            "  mail: { lock: 'user:{key}', semaphore: smtp, rate: gateway }\n"
                            "  web: {}\n";

static void test_a_file_is_declared(void **state)
{
    (void)state;
    start(&a, "a", gates);
    until(LIMITS, "smtp", "semaphore 20 kill");
    until(LIMITS, "gateway", "rate gcra 100 60000 20");
    until(QUEUES, "mail", "lock=user:{key} sem=smtp rate=gateway");
    until(QUEUES, "web", NULL);
    /* All data is gone: the daemon registers anew and declares its gates anew. */
    reply_free(test_redis_call(&redis, "FLUSHALL", NULL));
    until(LIMITS, "smtp", "semaphore 20 kill");
    until(QUEUES, "mail", "lock=user:{key} sem=smtp rate=gateway");
    assert_int_equal(test_lines(a.log, "event=limit"), 0);
}

static void test_two_that_differ_warn(void **state)
{
    (void)state;
    start(&a, "a", gates);
    until(LIMITS, "smtp", "semaphore 20 kill");
    start(&b, "b",
          "limits: { smtp: { semaphore: 5 }, gateway: { rate: 100/1m, burst: 20 }, "
          "\"it's:{key}\": { rate: 7/1s, algorithm: fixed } }\n"
          "queues: { mail: { semaphore: smtp } }\n");
    assert_true(test_laterd_says(&b,
                                 "event=limit-differs limit=smtp here=\"semaphore 5 keep\" "
                                 "fleet=\"semaphore 20 kill\"",
                                 LONG_MS));
    assert_true(
        test_laterd_says(&b, "cure=\"later limits set smtp semaphore 5, or change", LONG_MS));
    until(LIMITS, "smtp", "semaphore 20 kill");
    until(QUEUES, "mail", "sem=smtp");
    assert_int_equal(test_lines(b.log, "event=limit-differs"), 1);
    /* An operator changes another limit; after its next registration a logs that. */
    reply_free(test_fcall(&redis, "later_limit_set", "gateway", "semaphore", "1", NULL));
    assert_int_equal(test_laterd_stop(&a), 0);
    test_laterd_start(&a);
    assert_true(test_laterd_says(&a, "later limits set gateway rate 100/1m --burst 20, or change",
                                 LONG_MS));
    until(QUEUES, "mail", "lock=user:{key} sem=smtp rate=gateway");
    reply_free(test_fcall(&redis, "later_limit_set", "it's:{key}", "semaphore", "1", NULL));
    test_laterd_reload(&b, redis.url,
                       "limits: { \"it's:{key}\": { rate: 7/1s, algorithm: fixed } }\n");
    assert_true(test_laterd_says(
        &b, "later limits set 'it'\\''s:{key}' rate 7/1s --algorithm fixed, or", LONG_MS));
}

static void test_a_reload_declares_what_changed(void **state)
{
    (void)state;
    start(&a, "a", gates);
    until(QUEUES, "mail", "lock=user:{key} sem=smtp rate=gateway");
    test_laterd_reload(&a, redis.url,
                       "limits: { more: { semaphore: 1 } }\n"
                       "queues: { mail: {}, web: { lock: one } }\n");
    until(LIMITS, "more", "semaphore 1 keep");
    until(LIMITS, "smtp", "semaphore 20 kill");
    until(QUEUES, "mail", NULL);
    until(QUEUES, "web", "lock=one");
    until(NOTES, "queue-gates:mail", NULL); /* it replaced what it wrote itself */
}

/* Declarations that Redis could not take are sent again. */
static void test_a_refusal_is_not_the_end(void **state)
{
    (void)state;
    start(&a, "a", gates);
    until(LIMITS, "smtp", "semaphore 20 kill");
    reply_free(test_redis_call(&redis, "DEL", LIMITS, NULL));
    reply_free(test_redis_call(&redis, "SET", LIMITS, "x", NULL));
    test_laterd_reload(&a, redis.url, "limits: { more: { semaphore: 1 } }\n");
    assert_true(test_laterd_says(&a, "event=gates-refused reason=\"ELATER_TYPE", LONG_MS));
    reply_free(test_redis_call(&redis, "DEL", LIMITS, NULL));
    until(LIMITS, "more", "semaphore 1 keep");
    assert_int_equal(test_lines(a.log, "event=gates-refused"), 1);
}

/* More declarations than go into one call. */
static void test_many_are_declared_in_pieces(void **state)
{
    CLEANUP_BUF struct buf yaml = BUF_INIT;

    (void)state;
    buf_puts(&yaml, "queues:\n");
    for (int i = 0; i < 450; i++)
        buf_printf(&yaml, "  q%d: { lock: l%d }\n", i, i);
    buf_puts(&yaml, "limits:\n");
    for (int i = 0; i < 201; i++)
        buf_printf(&yaml, "  s%d: { semaphore: %d }\n", i, i);
    start(&a, "a", buf_str(&yaml));
    until(QUEUES, "q0", "lock=l0");
    until(QUEUES, "q449", "lock=l449");
    until(LIMITS, "s200", "semaphore 200 keep");
    assert_int_equal(test_int(&redis, "HLEN", QUEUES), 450);
    assert_int_equal(test_int(&redis, "HLEN", LIMITS), 201);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(test_a_file_is_declared),
        T(test_two_that_differ_warn),
        T(test_a_reload_declares_what_changed),
        T(test_a_refusal_is_not_the_end),
        T(test_many_are_declared_in_pieces),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
