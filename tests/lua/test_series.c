/* What is counted: series by the minute, different keys of jobs, and the boards of later_top. */
#include "fixture.h"
#include "job/series.h"

#define DAY_MS 86400000

static int64_t hour(void)
{
    return now_ms() / 3600000;
}

static int64_t day(void)
{
    return now_ms() / DAY_MS;
}

/* A worker's tidy, which writes the series; words: its fields and their values. */
static void tidy(const char *w, const char *words)
{
    assert_starts(fcall("later_v1_tidy %s 0%s%s", w, words[0] != '\0' ? " " : "", words), "[[");
}

static uint64_t total(const char *queue, enum series_column column)
{
    uint64_t all[SERIES_TOTALS];

    assert_starts(fcall("later_v1_series %s total 0 1", queue), "[");
    series_read_totals(all, reply_str(node(1, -1)), reply_len(node(1, -1)));
    return all[column];
}

/* The sum of a column in this hour, the one before and the next (kind m), or in the same days (h).
 */
static uint64_t sum(const char *queue, const char *kind, enum series_column column)
{
    uint64_t all[SERIES_COLUMNS] = {0};

    assert_starts(fcall("later_v1_series %s %s %lld 3", queue, kind,
                        (long long)(kind[0] == 'm' ? hour() : day()) - 1),
                  "[");
    for (size_t i = 1; i <= 3; i++)
        for (size_t row = 0; row < 60; row++)
            series_add_row(all, reply_str(node((int)i, -1)), reply_len(node((int)i, -1)), row);
    return all[column];
}

static void assert_counted(const char *queue, const uint64_t want[5])
{
    for (enum series_column c = SERIES_ADDED; c <= SERIES_CANCELLED; c++) {
        if (total(queue, c) != want[c] || sum(queue, "m", c) != want[c] ||
            sum(queue, "h", c) != want[c])
            fail_msg("column %d of %s: %llu %llu %llu, want %llu", c, queue,
                     (unsigned long long)total(queue, c), (unsigned long long)sum(queue, "m", c),
                     (unsigned long long)sum(queue, "h", c), (unsigned long long)want[c]);
    }
}

/* ---- series */

/* What the library has counted in its memory for an earlier test. */
static const char *fresh_worker(void)
{
    const char *w = worker();

    tidy(w, "");
    (void)redis("FLUSHDB");
    return worker();
}

static void test_jobs_are_counted(void **state)
{
    const char *w = fresh_worker(), *one, *two, *three;

    (void)state;
    one = add("mail a");
    two = add("mail priority 3 b");
    (void)fcall("later_add_many mail c d");
    three = add("mail token t x");
    (void)add("mail token t x"); /* repeated */
    (void)redis("ZADD R:due:mail 1 raw");
    assert_string_equal(redis("EXISTS R:series"), "0");
    (void)claim(w, "mail", 10);
    assert_string_equal(settle(w, one, 1, "done", 0), "ok");
    assert_string_equal(settle(w, one, 1, "done", 0), "settled");
    assert_string_equal(settle(w, two, 1, "retry", 0), "ok");
    assert_string_equal(settle(w, three, 1, "dead", 100), "ok");
    (void)fcall("later_cancel %s", two);
    tidy(w, "");
    assert_counted("mail", (uint64_t[]){6, 1, 2, 1, 1});
    tidy(w, "");
    assert_counted("mail", (uint64_t[]){6, 1, 2, 1, 1});
    assert_string_equal(fcall("later_v1_series"), "[mail]");
    assert_time(strtoll(redis("PEXPIRETIME R:m:mail:%lld", (long long)hour()), NULL, 10),
                6 * 3600000 - 1000, 7 * 3600000);
    assert_time(strtoll(redis("PEXPIRETIME R:h:mail:%lld", (long long)day()), NULL, 10),
                15LL * DAY_MS - 1000, 16LL * DAY_MS);
    /* It has its full length at once, so Redis does not keep room for twice of it. */
    assert_string_equal(redis("STRLEN R:m:mail:%lld", (long long)hour()), "8640");
    assert_string_equal(redis("STRLEN R:h:mail:%lld", (long long)day()), "3456");
}

static void test_other_ways_in(void **state)
{
    const char *w = fresh_worker(), *id;

    (void)state;
    (void)fcall("later_subscribe news a");
    (void)fcall("later_subscribe news b");
    (void)fcall("later_publish news x");
    (void)fcall("later_v1_import c 0 x 0 y");
    id = add("d then e x");
    (void)claim(w, "d", 1);
    assert_string_equal(settle(w, id, 1, "done", 0), "ok");
    (void)add("f expire 1ms x");
    (void)redis("ZADD R:q:f:5 1000 %s", at(0, -1));
    (void)fcall("later_broadcast d w x"); /* no target: refused */
    (void)claim(w, "f", 1);
    tidy(w, "");
    assert_counted("a", (uint64_t[]){1, 0, 0, 0, 0});
    assert_counted("b", (uint64_t[]){1, 0, 0, 0, 0});
    assert_counted("c", (uint64_t[]){2, 0, 0, 0, 0});
    assert_counted("d", (uint64_t[]){1, 1, 0, 0, 0});
    assert_counted("e", (uint64_t[]){1, 0, 0, 0, 0});
    assert_counted("f", (uint64_t[]){1, 0, 0, 1, 0});
}

static void test_attempts_of_the_dead_worker(void **state)
{
    const char *w = fresh_worker(), *gone = worker();

    (void)state;
    (void)add("mail x");
    (void)claim(gone, "mail", 1);
    (void)redis("HSET R:workers %s dead", gone);
    (void)fcall("later_v1_reap %s %s ? 5 100", w, gone);
    tidy(w, "");
    assert_counted("mail", (uint64_t[]){1, 0, 1, 0, 0});
}

/* What a worker tells is added once; what is no count of its is ignored. */
static void test_told_by_a_worker(void **state)
{
    const char *w = fresh_worker();

    (void)state;
    tidy(w, "1 series:mail 1:9");
    assert_string_equal(fcall("later_v1_series"), "[]");
    assert_starts(fcall("later_v1_tidy %s 0 3 series:mail 6:20 series:a:b 6:1 series: 6:1", w),
                  "[");
    (void)fcall("later_v1_tidy %s 0 1 series:mail %s", w,
                "7:1,30:2;37:1500,38:99,39:1,0:1,x:y,8:-1");
    assert_string_equal(fcall("later_v1_series"), "[mail]");
    assert_int_equal(total("mail", SERIES_BUSY_MS), 20);
    assert_int_equal(sum("mail", "m", SERIES_BUSY_MS), 20);
    assert_int_equal(sum("mail", "m", SERIES_LATE), 1);
    assert_int_equal(sum("mail", "h", SERIES_RUN + 5), 2);
    assert_int_equal(total("mail", SERIES_LATE_US), 1500);
    assert_int_equal(total("mail", SERIES_RUN_US), 99);
    /* A worker that is gone tells nothing. */
    (void)redis("HSET R:workers %s dead", w);
    (void)fcall("later_v1_tidy %s 0 1 series:mail 6:20", w);
    assert_int_equal(total("mail", SERIES_BUSY_MS), 20);
}

static void test_counts_stop_at_the_top(void **state)
{
    const char *w = fresh_worker();
    int64_t minute = now_ms() / 60000;

    (void)state;
    for (int i = 0; i < 3; i++)
        (void)redis("BITFIELD R:m:mail:%lld SET u32 #%lld 4294967290", (long long)(minute + i) / 60,
                    (long long)((minute + i) % 60 * SERIES_COLUMNS));
    (void)fcall("later_add_many mail a b c d e f g h i j");
    tidy(w, "");
    assert_int_equal(sum("mail", "m", SERIES_ADDED), 3 * 4294967290 + 5);
    assert_int_equal(sum("mail", "h", SERIES_ADDED), 10);
}

/* A key of a foreign type loses what was counted, and nothing else. */
static void test_foreign_series(void **state)
{
    static const char *const names[] = {
        "m:mail:", "h:mail:", "keys:mail:", "top:failed:queues:", "total:mail", "series"};

    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *w = fresh_worker(), *id, *key = names[i];

        if (key[strlen(key) - 1] == ':')
            key = text("%s%lld", key, (long long)(i == 0 ? hour() : day()));
        (void)redis("RPUSH R:%s x", key);
        id = add("mail key k x");
        assert_string_equal(claim(w, "mail", 1), id);
        assert_string_equal(settle(w, id, 1, "retry", 0), "ok");
        tidy(w, "");
        assert_string_equal(redis("LRANGE R:%s 0 -1", key), "[x]");
        assert_string_equal(redis("PTTL R:%s", key), "-1");
        if (i == 0) {
            assert_int_equal(sum("mail", "h", SERIES_ADDED), 1);
            assert_int_equal(sum("mail", "m", SERIES_ADDED), 0);
        }
    }
}

static void test_enlarged_string(void **state)
{
    const char *w = fresh_worker();

    (void)state;
    (void)redis("SETRANGE R:m:mail:%lld 1000000 x", (long long)hour());
    (void)redis("SET R:h:mail:%lld x", (long long)day());
    (void)add("mail x");
    tidy(w, "");
    assert_int_equal(sum("mail", "m", SERIES_ADDED), 1);
    assert_starts(fcall("later_v1_series mail m %lld 1", (long long)hour()), "[");
    assert_int_equal(reply_len(node(1, -1)), 8640);
}

static void test_bad_questions(void **state)
{
    (void)state;
    assert_refused("ELATER_ARGS", "later_v1_series mail");
    assert_refused("ELATER_ARGS", "later_v1_series mail x 1 1");
    assert_refused("ELATER_ARGS", "later_v1_series mail m 1 25");
    assert_refused("ELATER_ARGS", "later_v1_series mail m -1 1");
    assert_refused("ELATER_QUEUE", "later_v1_series ~all m 1 1");
    assert_refused("ELATER_ARGS", "later_v1_distinct mail 1 9");
    assert_refused("ELATER_ARGS", "later_v1_distinct mail");
    (void)redis("SET R:keys:mail:1 x");
    assert_starts(fcall("later_v1_distinct mail 1 1"), "!ELATER_TYPE");
    (void)redis("DEL R:keys:mail:1");
    (void)redis("SADD R:keys:mail:1 x");
    assert_refused("ELATER_TYPE", "later_v1_distinct mail 1 1");
}

/* 256 queues have rows of their own. All others are one. */
static void test_rest(void **state)
{
    const char *w = fresh_worker();

    (void)state;
    for (int i = 0; i < 256; i++)
        (void)add("q%03d x", i);
    for (int i = 0; i < 3; i++) /* a call writes 100 rows or so */
        tidy(w, "");
    for (int i = 256; i < 300; i++)
        (void)add("q%03d x", i);
    tidy(w, "");
    (void)add("q299 key k x");
    (void)add("q000 x");
    (void)claim(w, "q299", 2);
    tidy(w, "");
    assert_starts(fcall("later_v1_series"), "[q000 ");
    assert_int_equal(reply_count(fx.last), 257);
    assert_string_equal(at(256, -1), "~rest");
    assert_int_equal(total("~rest", SERIES_ADDED), 45);
    assert_int_equal(total("q000", SERIES_ADDED), 2);
    assert_string_equal(fcall("later_v1_distinct ~rest %lld 1", (long long)day()), "[1]");
    /* Silent queues leave a full list after a day, others after 15. */
    (void)redis("HSET R:series q000 %lld q001 %lld", (long long)hour() - 30, (long long)hour() - 5);
    (void)add("q290 x");
    tidy(w, "");
    assert_string_equal(redis("HMGET R:series q000 q001"),
                        text("[nil %lld]", (long long)hour() - 5));
    assert_string_equal(redis("HEXISTS R:series q290"), "1");
    (void)redis("DEL R:series");
    (void)redis("HSET R:series a %lld b %lld c garbage d %lld", (long long)hour() - 300,
                (long long)hour() - 400, (long long)hour() + 400);
    (void)add("mail x");
    tidy(w, "");
    assert_string_equal(fcall("later_v1_series"), "[a mail]");
}

/* Without a worker an hour of counts stays in memory. */
static void test_series_of_a_full_redis(void **state)
{
    const char *w = fresh_worker(), *id = add("mail key k x");

    (void)state;
    (void)redis("CONFIG SET maxmemory 1");
    assert_string_equal(claim(w, "mail", 1), id);
    assert_string_equal(settle(w, id, 1, "done", 0), "ok");
    tidy(w, "");
    (void)redis("CONFIG SET maxmemory 0");
    assert_int_equal(total("mail", SERIES_DONE), 1);
}

/* ---- different keys */

static void test_distinct_keys(void **state)
{
    const char *w = fresh_worker();
    int64_t today = day(), n;

    (void)state;
    for (int i = 0; i < 3000; i++)
        (void)add("mail key user:%d x", i % 1500);
    for (int i = 0; i < 30; i++)
        (void)claim(w, "mail", 100);
    (void)add("mail nokey");
    (void)claim(w, "mail", 1);
    tidy(w, "");
    n = (fcall("later_v1_distinct mail %lld 1", (long long)today), int_at(0, -1));
    if (n == 0 && day() > today)
        skip(); /* midnight */
    assert_in_range(n, 1470, 1530);
    (void)redis("PFADD R:keys:mail:%lld user:1 user:2 other", (long long)today - 6);
    assert_in_range((fcall("later_v1_distinct mail %lld 8", (long long)today - 7), int_at(0, -1)),
                    n, n + 30);
    assert_string_equal(fcall("later_v1_distinct mail %lld 1", (long long)today - 6), "[3]");
    assert_string_equal(fcall("later_v1_distinct mail 0 8"), "[0]");
}

/* A key counts where a job starts for the first time. */
static void test_keys_of_retries(void **state)
{
    const char *w = fresh_worker(), *id = add("mail key k x");

    (void)state;
    (void)claim(w, "mail", 1);
    assert_string_equal(settle(w, id, 1, "retry", 0), "ok");
    tidy(w, "");
    (void)redis("DEL R:keys:mail:%lld", (long long)day());
    (void)claim(w, "mail", 1);
    tidy(w, "");
    assert_string_equal(fcall("later_v1_distinct mail %lld 1", (long long)day()), "[0]");
}

/* ---- boards */

static void tell_keys(const char *w, const char *lines, size_t n)
{
    assert_starts(fcall_bytes(text("later_v1_tidy %s 0 1 keys", w), lines, n), "[[");
}

#define TELL(w, lines) tell_keys(w, lines, strlen(lines))

static const char *top(const char *args)
{
    struct buf b = BUF_INIT;

    assert_starts(fcall("later_top %s", args), "[");
    for (size_t i = 1; i < reply_count(fx.last); i++)
        buf_printf(&b, "%s%s:%s%s", i > 1 ? " " : "", at((int)i, 0, -1), at((int)i, 1, -1),
                   strcmp(at((int)i, 3, -1), "1") == 0 ? "?" : "");
    buf_add(&b, NULL, 0);
    return keep(buf_take(&b));
}

static void test_top_keys(void **state)
{
    const char *w = fresh_worker();

    (void)state;
    assert_string_equal(top("failed keys"), "");
    TELL(w, "3 2 1000 50 b\n5 2 0 0 a\n1 7 200 0 c\n9 0 0 9000 d\nnonsense\n1 1 1 1 two words\n");
    assert_string_equal(top("failed keys"), "c:7 a:2 b:2");
    assert_string_equal(top("BUSY keys"), "b:1000 c:200");
    assert_string_equal(top("late keys"), "d:9000 b:100");
    TELL(w, "0 6 0 0 b\n");
    assert_string_equal(top("failed keys"), "b:8 c:7 a:2");
    assert_string_equal(top("failed keys count 1"), "b:8");
    assert_starts(at(1, 2, -1), "1");
    assert_time(int_at(1, 2, -1), -10000, 0);
    assert_refused("ELATER_ARGS", "later_top failed");
    assert_refused("ELATER_ARGS", "later_top best keys");
    assert_refused("ELATER_ARGS", "later_top failed jobs");
    assert_refused("ELATER_ARGS", "later_top failed keys days 9");
    assert_refused("ELATER_ARGS", "later_top failed keys days 0");
    assert_refused("ELATER_ARGS", "later_top failed keys weeks 1");
    assert_refused("ELATER_ARGS", "later_top failed keys days");
}

/* Days add up; of equal sums the one that came first on any of the days is first. */
static void test_days_add_up(void **state)
{
    int64_t today = day();

    (void)state;
    (void)fresh_worker();
#define SCORE(units, second) ((long long)(units)*8388608 + 131071 - (second))
    (void)redis("ZADD R:top:failed:keys:%lld %lld a %lld b %lld c", (long long)today,
                SCORE(4, 80000), SCORE(1, 10), SCORE(2, 5));
    (void)redis("ZADD R:top:failed:keys:%lld %lld b %lld c %lld d", (long long)today - 1,
                SCORE(3, 100), SCORE(2, 99), SCORE(9, 1));
    (void)redis("ZADD R:top:failed:keys:%lld %lld old", (long long)today - 8, SCORE(99, 1));
    assert_string_equal(top("failed keys"), "a:4 c:2 b:1");
    assert_string_equal(top("failed keys days 8"), "d:9 c:4 b:4 a:4");
    assert_int_equal(int_at(2, 2, -1), (today - 1) * DAY_MS + 99000);
    /* The highest score is exact. */
    (void)redis("ZADD R:top:failed:keys:%lld %lld top", (long long)today, SCORE(1073741823, 0));
    assert_starts(top("failed keys"), "top:1073741823 ");
    assert_int_equal(int_at(1, 2, -1), today * DAY_MS);
    /* Scores that cannot be ours are not shown, and leave the board with the next write. */
    (void)redis("ZADD R:top:failed:keys:%lld inf x -1 y 0.5 z", (long long)today);
    assert_starts(top("failed keys"), "top:1073741823 a:4 ");
    TELL(worker(), "1 1 0 0 top\n");
    assert_starts(top("failed keys"), "top:1073741823 a:4 ");
    assert_string_equal(redis("ZMSCORE R:top:failed:keys:%lld x y z", (long long)today),
                        "[nil nil nil]");
    (void)redis("DEL R:top:failed:keys:%lld", (long long)today);
    (void)redis("SET R:top:failed:keys:%lld x", (long long)today);
    assert_refused("ELATER_TYPE", "later_top failed keys");
}

/* Of 20,000 keys the ones that fail most are there, though only 512 are kept. */
static void test_many_keys(void **state)
{
    const char *w = fresh_worker();
    int64_t today = day();
    unsigned x = 1;

    (void)state;
    for (int call = 0; call < 20; call++) {
        struct buf lines = BUF_INIT;

        for (int i = 0; i < 1000; i++)
            buf_printf(&lines, "0 1 0 0 once%d\n", call * 1000 + i);
        for (int i = 0; i < 20; i++) {
            x = x * 1103515245 + 12345;
            buf_printf(&lines, "1 %d 0 0 often%02d\n", 10 + i, i);
        }
        tell_keys(w, buf_str(&lines), lines.len);
        buf_done(&lines);
    }
    if (day() > today)
        skip(); /* midnight */
    assert_string_equal(redis("ZCARD R:top:failed:keys:%lld", (long long)today), "512");
    assert_starts(top("failed keys"), "often19:580 often18:560 often17:540 ");
    assert_string_equal(at(20, 0, -1), "often00");
    assert_string_equal(at(20, 3, -1), "0");
    assert_starts(top("failed keys count 500"), "often19:580 ");
    assert_string_equal(at(500, 3, -1), "1");
}

static void test_top_queues(void **state)
{
    const char *w = fresh_worker(), *id = add("mail x");

    (void)state;
    (void)claim(w, "mail", 1);
    assert_string_equal(settle(w, id, 1, "retry", 0), "ok");
    (void)fcall("later_v1_tidy %s 0 2 series:mail 6:200 series:sms 6:3000", w);
    assert_string_equal(top("failed queues"), "mail:1");
    assert_string_equal(top("busy queues"), "sms:3000 mail:200");
    assert_string_equal(top("late queues"), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FX_TEST(test_jobs_are_counted),
        FX_TEST(test_other_ways_in),
        FX_TEST(test_attempts_of_the_dead_worker),
        FX_TEST(test_told_by_a_worker),
        FX_TEST(test_counts_stop_at_the_top),
        FX_TEST(test_foreign_series),
        FX_TEST(test_enlarged_string),
        FX_TEST(test_bad_questions),
        FX_TEST(test_rest),
        FX_TEST(test_series_of_a_full_redis),
        FX_TEST(test_distinct_keys),
        FX_TEST(test_keys_of_retries),
        FX_TEST(test_top_keys),
        FX_TEST(test_days_add_up),
        FX_TEST(test_many_keys),
        FX_TEST(test_top_queues),
    };

    return cmocka_run_group_tests(tests, fx_open, fx_close);
}
