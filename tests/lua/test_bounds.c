/*
 * What one call costs when there is much of something, or when a key was written by hand: no call
 * takes long, and no queue stops another. The bound is what 200,000 HSETs take, on this machine at
 * this moment: ten times what calls take. The mistakes that it guards against took hundreds of
 * that.
 */
#include "fixture.h"

#define MANY 10000
#define UNITS 10

/* Run this line of Lua n times in Redis, with i from 1 to n. It has no spaces. */
static void fill(const char *line, int n)
{
    assert_starts(
        redis("EVAL %s 0 %d", text("for\ti=1,tonumber(ARGV[1])\tdo\t%s\tend\treturn\t1", line), n),
        "1");
}

/* The slowest call of the library since it was asked last, in ms. */
static int64_t slowest_ms(void)
{
    int64_t us = 0;

    (void)redis("SLOWLOG GET 1000");
    for (int i = 0; i < len_at(-1); i++) {
        if (strcmp(at(i, 3, 0, -1), "FCALL") == 0 && int_at(i, 2, -1) > us)
            us = int_at(i, 2, -1);
    }
    (void)redis("SLOWLOG RESET");
    (void)redis("CONFIG SET slowlog-max-len 1000 slowlog-log-slower-than 1000");
    return us / 1000;
}

/* What 20,000 HSETs take in one call: the middle one of three. */
static int64_t unit_us(void)
{
    int64_t least = INT64_MAX, most = 0, sum = 0;

    for (int i = 0; i < 3; i++) {
        struct mono begin = mono_now();
        int64_t us;

        fill("redis.call('HSET','unit',i,i)", 20000);
        us = mono_until_us(begin, mono_now());
        least = us < least ? us : least;
        most = us > most ? us : most;
        sum += us;
        (void)redis("DEL unit");
    }
    return sum - least - most;
}

static void assert_short(const char *what)
{
    int64_t ms = slowest_ms(), most_ms = UNITS * unit_us() / 1000;

    (void)redis("SLOWLOG RESET"); /* of the units */
    print_message("figure %s: %lld ms; at most %lld\n", what, (long long)ms, (long long)most_ms);
    if (ms > most_ms)
        fail_msg("%s: a call took %lld ms", what, (long long)ms);
}

static const char *sync_queues(const char *w, const char *queues)
{
    return fcall_sync("%s 1 0 192 0 %s", w, queues);
}

/* ---- much of something */

static void test_many_waits_that_end_together(void **state)
{
    const char *w = worker();

    (void)state;
    (void)slowest_ms();
    (void)fcall("later_lock door ann ttl 1h");
    for (int i = 0; i < MANY / 5; i++)
        (void)fcall("later_lock door w%d wait 10s", i);
    assert_string_equal(redis("ZCARD R:wait:lock:door"), "2000");
    (void)redis("DEBUG SLEEP 10");
    assert_string_equal(fcall("later_unlock door ann"), "released");
    for (int i = 0; i < 100; i++)
        assert_starts(sync_queues(w, "0"), "[");
    assert_string_equal(redis("EXISTS R:wait:lock:door R:parked"), "0");
    assert_short("ended waits");
}

static void test_many_are_let_in(void **state)
{
    (void)state;
    (void)slowest_ms();
    (void)fcall("later_limit_set smtp semaphore 0");
    for (int i = 0; i < MANY / 5; i++)
        (void)fcall("later_sem_acquire smtp w%d wait 1h", i);
    assert_string_equal(fcall("later_limit_set smtp semaphore 100000"), "set");
    assert_short("let in");
}

static void test_many_leases_that_are_over(void **state)
{
    (void)state;
    (void)slowest_ms();
    (void)fcall("later_limit_set smtp semaphore 100000");
    fill("redis.call('ZADD','" ROOT ":sem:smtp',i,'=o'..i)", MANY);
    assert_starts(fcall("later_sem_acquire smtp ann"), "[1 ");
    assert_starts(fcall("later_sem_acquire smtp bob"), "[1 ");
    assert_short("leases that are over");
}

static void test_many_die_where_many_are_dead(void **state)
{
    struct buf line = BUF_INIT;
    const char *w = worker();

    (void)state;
    (void)slowest_ms();
    fill("redis.call('ZADD','" ROOT ":dead:mail',i,'j0000000'..(10000+i))", 2 * MANY);
    for (int i = 0; i < 192; i++)
        (void)add("mail x");
    assert_starts(sync_queues(w, "1 mail 192 1048576"), "[");
    buf_printf(&line, "later_v1_sync %s 1 0 0 %d", w, count_claimed());
    for (int i = 0; i < count_claimed(); i++)
        buf_printf(&line, " %s 1 dead mail 100 1 T O", claimed(i, CLAIM_ID));
    buf_puts(&line, " 0 0");
    assert_starts(call_line(keep(buf_take(&line))), "[");
    assert_string_equal(at(2, 0, -1), "ok");
    assert_short("dead");
}

static void test_large_raw_members_of_many_queues(void **state)
{
    const char *w = worker(), *queues = "32";

    (void)state;
    (void)slowest_ms();
    fill("redis.call('ZADD','" ROOT ":due:q'..i,4102444800000,string.rep('x',1048576))", 32);
    for (int i = 1; i <= 32; i++)
        queues = text("%s q%d 4 1048576", queues, i);
    for (int i = 0; i < 3; i++)
        assert_starts(sync_queues(w, queues), "[");
    assert_short("raw members");
}

/* A queue whose jobs are all parked does not keep the others waiting. */
static void test_parked_beside_others(void **state)
{
    const char *w = worker(), *id;

    (void)state;
    (void)fcall("later_lock door ann ttl 1h");
    for (int i = 0; i < 600; i++)
        (void)add("mail lock door x");
    id = add("web priority 3 x");
    assert_starts(sync_queues(w, "2 mail 192 1048576 web 192 1048576"), "[");
    assert_string_equal(claimed(0, CLAIM_ID), id);
    assert_time(int_at(8, -1), -1000, 0); /* a sync is needed again at once */
    for (int i = 0; i < 5; i++)
        assert_starts(sync_queues(w, "2 mail 192 1048576 web 192 1048576"), "[");
    assert_string_equal(redis("ZCARD R:parked:mail"), "600");
}

/* Starts that are over are removed, however many a call adds. */
static void test_sliding_log_is_short(void **state)
{
    (void)state;
    (void)fcall("later_limit_set api rate 500/1ms algorithm sliding");
    for (int i = 0; i < 20; i++) {
        assert_starts(fcall("later_throttle api quota 500"), "[0 ");
        (void)redis("DEBUG SLEEP 0.002");
    }
    (void)redis("ZCARD R:rate:sliding:api");
    assert_in_range(int_at(-1), 1, 1000);
}

/* ---- keys written by hand */

static void test_foreign_key_where_a_queue_stands_aside(void **state)
{
    const char *w = serving("mail", 4);

    (void)state;
    (void)fcall("later_lock one ann ttl 1h");
    (void)fcall("later_lock two ann ttl 1h");
    (void)add("mail lock one x");
    (void)add("mail lock two x");
    (void)claim(w, "mail", 4);
    (void)redis("SADD R:aside:mail lock:one lock:two");
    (void)redis("HSET R:prio mail a");
    (void)redis("DEL R:wait:lock:one R:wait:lock:two R:line:mail:lock:one");
    (void)redis("SET R:line:mail:lock:one x");
    (void)fcall("later_unlock two ann");
    assert_starts(fcall_sync("%s 1 0 10 0 1 mail 4 1048576", w), "[");
    assert_string_equal(at(6, 0, -1), "mail");
    assert_non_null(strstr(at(6, 1, -1), "line:mail:lock:one"));
    assert_string_equal(redis("SMEMBERS R:aside:mail"), "[lock:one]");
    assert_string_equal(redis("HGET R:lock:two depth"), "1");
}

static void test_foreign_waiters_of_a_dead_holder(void **state)
{
    const char *w = worker(), *v = worker();

    (void)state;
    assert_starts(fcall("later_v1_enter %s lock:door", w), "[1 ");
    (void)redis("RPUSH R:wait:lock:door x");
    assert_starts(fcall("later_v1_reap %s %s 1 3 10", v, w), "[clear ");
    assert_string_equal(redis("EXISTS R:lock:door"), "0");
}

static void test_raw_queue_that_nobody_serves(void **state)
{
    (void)state;
    (void)redis("ZADD R:due:mail 4102444800000 x");
    assert_string_equal(fcall("later_v1_note raw-queue mail"), "noted");
    assert_string_equal(redis("ZSCORE R:heads mail"), "4102444800000");
    (void)redis("ZADD R:due:mail 1767225600000 y");
    assert_string_equal(fcall("later_v1_note raw-queue mail"), "noted");
    assert_time(strtoll(redis("ZSCORE R:heads mail"), NULL, 10), -1000, 0);
}

/* A foreign key stops its own queue only: the results and the other queues of the sync go on. */
static void test_foreign_key_of_one_queue(void **state)
{
    static const char *const keys[] = {"parked:mail", "line:mail:lock:door", "wait:lock:door"};

    (void)state;
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        const char *w, *held, *id;

        (void)redis("FLUSHDB");
        w = worker();
        held = add("web x");
        assert_string_equal(claim(w, "web", 1), held);
        (void)fcall("later_lock door ann ttl 1h");
        (void)add("mail lock door x");
        id = add("web x");
        (void)redis("SET R:%s x", keys[i]);
        assert_starts(fcall_sync("%s 1 0 10 1 %s 1 done web 0 0 T O 2 mail 5 1048576 web 5 "
                                 "1048576",
                                 w, held),
                      "[");
        assert_string_equal(at(2, 0, -1), "ok");
        assert_string_equal(claimed(0, CLAIM_ID), id);
        assert_string_equal(at(6, 0, -1), "mail");
        assert_string_equal(redis("EXISTS R:granted:mail R:line:mail:lock:door"),
                            i == 1 ? "1" : "0");
    }
}

static void test_garbage_where_gates_are_named(void **state)
{
    const char *w = serving("mail", 4), *v = serving("mail", 4), *id = add("mail lock door x");

    (void)state;
    assert_string_equal(claim(w, "mail", 1), id);
    (void)redis("HSET R:holds %s garbage", id);
    (void)redis("HSET R:worker:%s gate rubbish", v);
    (void)redis("SADD R:aside:mail foo");
    (void)redis("HSET R:prio mail a");
    assert_starts(fcall_sync("%s 1 0 10 1 %s 1 done mail 0 0 T O 1 mail 5 1048576", w, id), "[");
    assert_string_equal(at(2, 0, -1), "ok");
    assert_string_equal(redis("EXISTS R:aside:mail"), "0");
    assert_starts(fcall("later_v1_reap %s %s 1 3 10", w, v), "[clear ");
}

/* ---- a job whose payload was replaced */

static void test_replaced_while_its_worker_was_away(void **state)
{
    const char *w = worker(), *v = worker(), *id = add("mail unique k old");

    (void)state;
    assert_string_equal(claim(w, "mail", 1), id);
    assert_starts(fcall("later_v1_reap %s %s 1 3 10", v, w), "[clear ");
    assert_starts(fcall("later_add mail unique k unique_mode replace new"), text("[%s repl", id));
    assert_starts(fcall("later_v1_register 0 back 1 %s 0 0 1 %s 1", w, id), "[");
    assert_string_equal(at(4, 0, -1), "taken");
    assert_string_equal(claim(v, "mail", 1), id);
    assert_non_null(strstr(claimed(0, CLAIM_RECORD), "new"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FX_TEST(test_many_waits_that_end_together),
        FX_TEST(test_many_are_let_in),
        FX_TEST(test_many_leases_that_are_over),
        FX_TEST(test_many_die_where_many_are_dead),
        FX_TEST(test_large_raw_members_of_many_queues),
        FX_TEST(test_parked_beside_others),
        FX_TEST(test_sliding_log_is_short),
        FX_TEST(test_foreign_key_where_a_queue_stands_aside),
        FX_TEST(test_foreign_waiters_of_a_dead_holder),
        FX_TEST(test_raw_queue_that_nobody_serves),
        FX_TEST(test_foreign_key_of_one_queue),
        FX_TEST(test_garbage_where_gates_are_named),
        FX_TEST(test_replaced_while_its_worker_was_away),
    };

    return cmocka_run_group_tests(tests, fx_open, fx_close);
}
