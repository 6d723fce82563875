/* `later stats --since` and `later top`: what they print and refuse. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../support/env.h"
#include "base/cleanup.h"
#include "base/mem.h"
#include "command.h"
#include "job/series.h"

/* Count n in a column of a queue, so many minutes ago. */
static void count_in(const char *queue, int minutes_ago, enum series_column column, int n)
{
    int64_t minute = test_now_ms() / 60000 - minutes_ago;
    CLEANUP_FREE char *key = mem_printf(ROOT ":m:%s:%lld", queue, (long long)minute / 60);
    CLEANUP_FREE char *day = mem_printf(ROOT ":h:%s:%lld", queue, (long long)minute / 1440);
    CLEANUP_FREE char *at =
        mem_printf("#%lld", (long long)(minute % 60 * SERIES_COLUMNS) + (long long)column);
    CLEANUP_FREE char *in_day =
        mem_printf("#%lld", (long long)(minute / 60 % 24 * SERIES_COLUMNS) + (long long)column);
    CLEANUP_FREE char *number = mem_printf("%d", n);

    do_redis("HSET", ROOT ":series", queue, "1");
    do_redis("BITFIELD", key, "INCRBY", "u32", at, number);
    do_redis("BITFIELD", day, "INCRBY", "u32", in_day, number);
}

/* What is shown ends with this minute: it has to be this one for a while. */
static void count_some(void)
{
    int64_t of_minute_ms = test_now_ms() % 60000;

    if (of_minute_ms > 40000)
        test_pause(60000 - of_minute_ms);
    count_in("mail", 0, SERIES_ADDED, 7);
    count_in("mail", 0, SERIES_DONE, 4);
    count_in("mail", 20, SERIES_DONE, 2);
    count_in("mail", 20, SERIES_FAILED, 3);
    count_in("mail", 20, SERIES_LATE + 2, 100);
    count_in("mail", 20, SERIES_LATE + SERIES_LATE_CLASSES - 1, 1);
    count_in("mail", 200, SERIES_DEAD, 1);
    count_in("sms", 5, SERIES_CANCELLED, 1);
}

static void test_all_queues(void **state)
{
    CLEANUP_FREE char *keys =
        mem_printf(ROOT ":keys:mail:%lld", (long long)test_now_ms() / 86400000);

    (void)state;
    assert_int_equal(run("stats", "--since", "1h"), 0);
    assert_out("nothing was counted in this time\n");
    count_some();
    do_redis("PFADD", keys, "a", "b", "c");
    (void)setenv("LC_ALL", "C", 1);
    assert_int_equal(run("stats", "--since", "1h", "--by", "10m"), 0);
    assert_says(&out,
                "QUEUE  ADDED  DONE  FAILED  DEAD  CANCELLED  LATE P50  LATE P99  BUSY  KEYS\n");
    assert_says(&out,
                "mail       7     6       3     0          0     <=5ms     <=5ms   0ms     3\n");
    assert_says(&out,
                "sms        0     0       0     0          1         -         -   0ms     0\n");
    assert_says(&out, "done in each 10m, and the most:\nmail");
    assert_says(&out, "# 4\n");
    assert_int_equal(run("stats", "--since", "6h", "--json"), 0);
    assert_says(&out, "{\"queue\":\"mail\",\"from_ms\":");
    assert_says(&out, "\"sum\":{\"added\":7,\"done\":6,\"failed\":3,\"dead\":1,\"cancelled\":0,"
                      "\"busy_ms\":0,\"late_p50_us\":3515,\"late_p99_us\":4999,\"keys\":3}");
    assert_int_equal(run("stats", "--since", "3d", "--json"), 0);
    assert_says(&out, "\"by_ms\":10800000,\"sum\":{\"added\":7,");
    (void)setenv("LC_ALL", "C.UTF-8", 1);
    assert_int_equal(run("stats", "--since", "1h"), 0);
    assert_says(&out, "\u2588 4\n");
    assert_null(memchr(out.data, '\033', out.len));
}

static void test_one_queue(void **state)
{
    (void)state;
    count_some();
    (void)setenv("LC_ALL", "C", 1);
    assert_int_equal(run("stats", "mail", "--since", "30m", "--by", "10m"), 0);
    assert_says(&out, "FROM  ");
    assert_says(&out, "\nall                   7     6       3     0          0     <=5ms");
    assert_says(&out, "\ndifferent keys: 0\n");
    assert_says(&out, "\ndone ");
    assert_int_equal(run("stats", "mail", "--since", "30m", "--by", "10m", "--json"), 0);
    assert_says(&out,
                "{\"added\":7,\"done\":4,\"failed\":0,\"dead\":0,\"cancelled\":0,\"busy_ms\":0}]}");
    count_in("~rest", 1, SERIES_ADDED, 5);
    assert_int_equal(run("stats", "~rest", "--since", "10m"), 0);
    assert_int_equal(run("stats", "nobody", "--since", "10m"), 66);
}

/* Whatever the length of the rows, all that --since asks for is in them. */
static void test_rows_reach_back(void **state)
{
    static const char *const by[] = {"1m", "7m", "30m", "1h"};

    (void)state;
    count_in("mail", 58, SERIES_DONE, 5);
    for (size_t i = 0; i < sizeof(by) / sizeof(by[0]); i++) {
        assert_int_equal(run("stats", "mail", "--since", "1h", "--by", by[i], "--json"), 0);
        assert_says(&out, "\"sum\":{\"added\":0,\"done\":5,");
    }
}

/* Redis counts PFCOUNT as a write: a user who only reads sees all but the different keys. */
static void test_user_who_reads(void **state)
{
    (void)state;
    count_in("mail", 1, SERIES_DONE, 5);
    do_redis("ACL", "SETUSER", "default", "-pfcount");
    assert_int_equal(run("stats", "--since", "1h"), 0);
    assert_says(&out, "   -\n");
    assert_int_equal(run("stats", "mail", "--since", "1h", "--json"), 0);
    assert_null(strstr(buf_str(&out), "keys"));
    do_redis("ACL", "SETUSER", "default", "+pfcount");
}

/* A Redis that does not answer is no missing right. */
static void test_no_answer(void **state)
{
    (void)state;
    test_redis_kill(&redis, SIGSTOP);
    assert_int_equal(run("stats", "--since", "1h"), 69);
    assert_says(&err, "no answer in time");
    assert_int_equal(run("add", "mail", "--at", "18:00", "x"), 69);
    assert_says(&err, "no answer in time");
    test_redis_kill(&redis, SIGCONT);
}

static void test_refused_options(void **state)
{
    (void)state;
    assert_int_equal(run("stats", "--since", "16d"), 64);
    assert_says(&err, "--since takes 1m to 15d");
    assert_int_equal(run("stats", "--since", "30s"), 64);
    assert_int_equal(run("stats", "--since", "soon"), 64);
    assert_int_equal(run("stats", "--since", "1h", "--by", "90s"), 64);
    assert_says(&err, "--by takes whole minutes");
    assert_int_equal(run("stats", "--since", "7h", "--by", "30m"), 64);
    assert_says(&err, "minutes are kept for 6 hours only");
    assert_int_equal(run("stats", "--since", "1h", "--by", "100000d"), 64);
    assert_says(&err, "--by is longer than --since");
    assert_int_equal(run("stats", "--since", "1h", "--prometheus"), 64);
    assert_int_equal(run("stats", "--since", "6h", "--by", "1m"), 0);
    assert_int_equal(run("stats", "--since", "15d", "--by", "1h"), 0);
    assert_int_equal(run("stats", "~all", "--since", "1h"), 65);
}

static void test_garbage_rows(void **state)
{
    CLEANUP_FREE char *key = mem_printf(ROOT ":m:mail:%lld", (long long)test_now_ms() / 3600000);

    (void)state;
    do_redis("HSET", ROOT ":series", "mail", "x", "\033[2J", "1");
    do_redis("SETRANGE", key, "3000000", "x");
    assert_int_equal(run("stats", "--since", "1h"), 0);
    do_redis("SET", key, "x");
    assert_int_equal(run("stats", "--since", "1h"), 0);
    do_redis("DEL", key);
    do_redis("RPUSH", key, "x");
    count_in("sms", 1, SERIES_DONE, 1);
    assert_int_equal(run("stats", "--since", "1h"), 0);
    assert_says(&out, "sms ");
}

static void test_top(void **state)
{
    CLEANUP_FREE char *key =
        mem_printf(ROOT ":top:failed:keys:%lld", (long long)test_now_ms() / 86400000);
    CLEANUP_FREE char *busy =
        mem_printf(ROOT ":top:busy:queues:%lld", (long long)test_now_ms() / 86400000);

    (void)state;
    assert_int_equal(run("top"), 0);
    assert_out("nothing was counted in this time\n");
    /* 7 × 2^23 + 131071; 9 × 2^23 + 2^22 + 131071: that may be less */
    do_redis("ZADD", key, "58851327", "user:1", "79822847", "user:\033[2J");
    do_redis("ZADD", busy, "318898175", "mail"); /* 38 tenths of a second */
    assert_int_equal(run("top", "keys"), 0);
    assert_says(&out, "1  user:\\x1b[2J    <= 9");
    assert_says(&out, "2  user:1             7");
    assert_int_equal(run("top", "keys", "-n", "1", "--json"), 0);
    assert_says(&out, "\"failed\":9,");
    assert_says(&out, "\"at_most\":true}\n");
    assert_int_equal(run("top", "--by", "busy", "--days", "8"), 0);
    assert_says(&out, "mail     3s");
    assert_int_equal(run("top", "jobs"), 64);
    assert_says(&err, "give queues, keys or tenants");
    assert_int_equal(run("top", "keys", "--by", "best"), 64);
    assert_int_equal(run("top", "keys", "--days", "9"), 65);
    assert_says(&err, "days '9' is not a whole number from 1 to 8");
}

static void test_top_tenants(void **state)
{
    CLEANUP_FREE char *used =
        mem_printf(ROOT ":fair-used:render:%lld", (long long)test_now_ms() / 60000);

    (void)state;
    assert_int_equal(run("top", "tenants"), 64);
    assert_says(&err, "later top tenants QUEUE");
    assert_int_equal(run("top", "tenants", "render"), 1);
    assert_says(&err, "queue render is not fair");
    do_redis("HSET", ROOT ":queues", "render", "fair=1");
    do_redis("HSET", ROOT ":fair", "render", "0 0");
    do_redis("HSET", used, " ", "4000", "acme", "3000", "b\033[2J", "1000");
    do_redis("FCALL", "later_add", "1", ROOT, "render", "key", "acme", "x");
    do_redis("FCALL", "later_add", "1", ROOT, "render", "key", "acme", "priority", "3", "x");
    do_redis("FCALL", "later_add", "1", ROOT, "render", "x");
    do_redis("FCALL", "later_add", "1", ROOT, "render", "key", "c", "in", "1h", "x");
    assert_int_equal(run("top", "tenants", "render"), 0);
    assert_says(&out, "acme       3s   75 %    2");
    assert_says(&out, "b\\x1b[2J");
    assert_says(&out, "(no key)  0ms    0 %    1");
    assert_says(&out, "2 tenants have due jobs\n");
    assert_int_equal(run("top", "tenants", "render", "-n", "1", "--json"), 0);
    assert_says(&out, "\"tenant\":\"acme\",\"ran_ms\":3000,\"due\":2,");
    assert_int_equal(run("top", "tenants", "render", "--days", "2"), 64);
    assert_int_equal(run("top", "keys", "render"), 64);
    assert_int_equal(run("stats", "--prometheus"), 0);
    assert_says(&out, "laterd_due_tenants{namespace=\"default\",queue=\"render\"} 2\n");
}

static void test_idle_queues_come_last(void **state)
{
    const char *busy, *paused, *idle;

    (void)state;
    do_redis("SADD", ROOT ":names", "a-idle", "b-paused", "c-busy");
    do_redis("FCALL", "later_pause", "1", ROOT, "b-paused");
    do_redis("FCALL", "later_add", "1", ROOT, "c-busy", "x");
    assert_int_equal(run("stats"), 0);
    idle = strstr(buf_str(&out), "a-idle");
    paused = strstr(buf_str(&out), "b-paused");
    busy = strstr(buf_str(&out), "c-busy");
    assert_non_null(idle);
    assert_non_null(paused);
    assert_true(paused < busy && busy < idle);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_all_queues, flush_all),
        cmocka_unit_test_setup(test_one_queue, flush_all),
        cmocka_unit_test_setup(test_rows_reach_back, flush_all),
        cmocka_unit_test_setup(test_user_who_reads, flush_all),
        cmocka_unit_test_setup(test_refused_options, flush_all),
        cmocka_unit_test_setup(test_no_answer, flush_all),
        cmocka_unit_test_setup(test_garbage_rows, flush_all),
        cmocka_unit_test_setup(test_top, flush_all),
        cmocka_unit_test_setup(test_top_tenants, flush_all),
        cmocka_unit_test_setup(test_idle_queues_come_last, flush_all),
    };

    return cmocka_run_group_tests(tests, start_all, stop_all);
}
