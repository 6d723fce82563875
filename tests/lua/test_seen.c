/* later_seen: who is new, who was seen, what is forgotten when, and what it may cost. */
#include "fixture.h"

#include <time.h>

#define HOUR_MS 3600000

/* Whether this filter says that it has seen the key. options: "" or " for 1h". */
static bool seen_with(const char *name, const char *key, const char *options)
{
    const char *got = fcall("later_seen %s %s%s", name, key, options);

    if (strcmp(got, "[0]") != 0 && strcmp(got, "[1]") != 0)
        fail_msg("later_seen %s %s%s: %s", name, key, options, got);
    return got[1] == '1';
}

static bool seen(const char *name, const char *key)
{
    return seen_with(name, key, "");
}

/* An entry of R:seen. */
struct entry {
    long long for_ms, capacity, bits, hashes, since, before, early;
    char error[24];
};

static struct entry entry_of(const char *name)
{
    struct entry e = {0};
    const char *got = redis("HGET R:seen %s", name);

    assert_int_equal(sscanf(got, "%lld %23s %lld %lld %lld %lld %lld %lld", &e.for_ms, e.error,
                            &e.capacity, &e.bits, &e.hashes, &e.since, &e.before, &e.early),
                     8);
    return e;
}

/* The strings of a filter keep their TTL. */
static void move_generation(const char *name, long long since, long long to)
{
    if (since != 0 && strcmp(redis("EXISTS R:seen:%s:%lld", name, since), "1") == 0)
        assert_string_equal(
            redis("RENAME R:seen:%s:%lld " ROOT ":seen:%s:%lld", name, since, name, to), "OK");
}

/* Let the filter be older by so many ms. */
static void age(const char *name, long long ms)
{
    struct entry e = entry_of(name);
    long long us = ms * 1000, before = e.before == 0 ? 0 : e.before - us;
    const char *argv[] = {"HSET", ROOT ":seen", name, NULL};

    move_generation(name, e.before, before);
    move_generation(name, e.since, e.since - us);
    argv[3] = text("%lld %s %lld %lld %lld %lld %lld %lld", e.for_ms, e.error, e.capacity, e.bits,
                   e.hashes, e.since - us, before, e.early);
    assert_string_equal(send_args(4, argv, NULL), "0");
}

/* How many strings there are. */
static int generations(void)
{
    (void)redis("KEYS R:seen:*");
    return len_at(-1);
}

static void test_bad_arguments(void **state)
{
    static const char *const errors[] = {"0",      "1",     "0.2",  "-1",    "nan", "inf",   "-inf",
                                         "1e-300", "1e-10", "0x10", "1e300", "''",  "0.1.1", "."};
    static const char *const capacities[] = {"0",   "-1",  "1.5", "nan", "1000000000000",
                                             "1e6", "inf", "''",  "0x10"};

    (void)state;
    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
        assert_refused("ELATER_OPTION", "later_seen n k error %s", errors[i]);
    for (size_t i = 0; i < sizeof(capacities) / sizeof(capacities[0]); i++)
        assert_refused("ELATER_OPTION", "later_seen n k capacity %s", capacities[i]);
    assert_refused("ELATER_TIME", "later_seen n k for 0s");
    assert_refused("ELATER_TIME", "later_seen n k for 5");
    assert_refused("ELATER_TIME", "later_seen n k for 1000000000d");
    assert_refused("ELATER_OPTION", "later_seen n k keep 1d");
    assert_refused("ELATER_OPTION", "later_seen n k for 1d FOR 1d");
    assert_refused("ELATER_SEEN", "later_seen");
    assert_refused("ELATER_ARGS", "later_seen n");
    assert_refused("ELATER_ARGS", "later_seen n k for");
    assert_refused("ELATER_ARGS", "later_seen_del");
    assert_refused("ELATER_ARGS", "later_seen_del a b");
    assert_refused("ELATER_SEEN", "later_seen '' k");
    assert_refused("ELATER_SEEN", "later_seen -a k");
    assert_refused("ELATER_SEEN", "later_seen a/b k");
    assert_refused("ELATER_SEEN", "later_seen %s k", text("%0129d", 1));
    assert_refused("ELATER_SEEN", "later_seen_del *");
    assert_refused("ELATER_KEY", "later_seen n ''");
    assert_refused("ELATER_KEY", "later_seen n %s", text("%01025d", 1));
    assert_string_equal(redis("KEYS *"), "[]");
    /* What is too much memory is told with what would fit. */
    assert_string_equal(fcall("later_seen n k capacity 100000000"),
                        "!ELATER_OPTION capacity 100000000 is too large at error 0.0001: at most "
                        "13022748 keys fit into the 64 MiB of a filter");
    assert_string_equal(redis("KEYS *"), "[]");
}

static void test_new_and_seen(void **state)
{
    char bytes[1024];

    (void)state;
    assert_false(seen("n", "a"));
    assert_true(seen("n", "a"));
    assert_false(seen("n", "b"));
    assert_false(seen("other", "a")); /* each name has keys of its own */
    assert_true(seen("n", "a"));
    assert_false(seen("n.x:1", "a"));
    /* Keys are any bytes, and differ in any of them. */
    memset(bytes, '\0', sizeof(bytes));
    assert_string_equal(fcall_bytes("later_seen n", bytes, 1), "[0]");
    assert_string_equal(fcall_bytes("later_seen n", bytes, 2), "[0]");
    assert_string_equal(fcall_bytes("later_seen n", bytes, 1024), "[0]");
    bytes[1023] = '\xff';
    assert_string_equal(fcall_bytes("later_seen n", bytes, 1024), "[0]");
    assert_string_equal(fcall_bytes("later_seen n", bytes, 1024), "[1]");
    assert_string_equal(fcall_bytes("later_seen n", "\n", 1), "[0]");
}

static void test_options(void **state)
{
    (void)state;
    assert_false(seen_with("n", "a", " for 2h error 0.001 capacity 5000"));
    assert_true(seen_with("n", "a", ""));
    assert_true(seen_with("n", "a", " FOR 120m error 1e-3 capacity 5000"));
    assert_true(seen_with("n", "a", " capacity 05000"));
    assert_refused("ELATER_SEEN", "later_seen n b for 1d");
    assert_non_null(strstr(fcall("later_seen n b for 1d"), "'n' has for 2h, not 1d"));
    assert_non_null(strstr(fcall("later_seen n b error 1e-5"), "has error 0.001, not 1e-05"));
    assert_non_null(strstr(fcall("later_seen n b capacity 7"), "has capacity 5000, not 7"));
    assert_false(seen("n", "b"));
    (void)seen_with("m", "a", " capacity 1000");
    assert_non_null(strstr(fcall("later_seen m a capacity 1000007"), "1000, not 1000007:"));
    assert_non_null(strstr(fcall("later_seen m a capacity 20030"), "1000, not 20030:"));
    /* The defaults, and a name that has forgotten all. */
    assert_false(seen("d", "a"));
    assert_true(seen_with("d", "a", " for 1d error 0.0001 capacity 1000000"));
    age("n", 5LL * HOUR_MS);
    assert_false(seen_with("n", "a", " for 1h"));
    assert_true(seen_with("n", "a", " for 1h capacity 1000000"));
}

static void test_forgets(void **state)
{
    (void)state;
    assert_false(seen_with("n", "old", " for 1h capacity 1000"));
    assert_false(seen("n", "again"));
    age("n", HOUR_MS - 1000);
    assert_true(seen("n", "again"));
    age("n", 2000);
    assert_true(seen("n", "again")); /* a turn: it is put into the new generation */
    assert_int_equal(generations(), 2);
    age("n", HOUR_MS - 60000);
    assert_true(seen("n", "again"));
    assert_true(seen("n", "old"));
    age("n", 60000 - 1000); /* the second turn: what was told last before the first is gone */
    assert_true(seen("n", "again"));
    assert_true(seen("n", "old")); /* it was asked for a minute ago */
    age("n", HOUR_MS);
    assert_false(seen("n", "late"));
    age("n", HOUR_MS);
    assert_false(seen("n", "old"));
    assert_true(seen("n", "late"));
    /* Nothing for 2 D: all is gone. */
    age("n", 2LL * HOUR_MS);
    assert_false(seen("n", "late"));
    assert_int_equal(entry_of("n").before, 0);
    assert_int_equal(entry_of("n").early, 0);
}

/* Keys expire by themselves, at the time that the entry says. */
static void test_expiry(void **state)
{
    struct timespec pause = {0, 2000000};
    long long until;

    (void)state;
    assert_false(seen_with("n", "a", " for 150ms capacity 1000"));
    (void)fcall("later_seen_list");
    until = int_at(0, 6, -1);
    assert_time(until, 100, 302);
    (void)redis("PTTL R:seen");
    assert_true(int_at(-1) > 0 && int_at(-1) <= 302);
    (void)redis("PTTL R:seen:n:%lld", entry_of("n").since);
    assert_true(int_at(-1) > 0 && int_at(-1) <= 302);
    for (int i = 0; i < 5000 && strcmp(redis("KEYS *"), "[]") != 0; i++)
        (void)nanosleep(&pause, NULL);
    assert_string_equal(redis("KEYS *"), "[]");
    assert_true(now_ms() >= until - 1);
    /* A filter that lasts longer keeps the hash of all, one that lasts less does not shorten it. */
    (void)seen_with("long", "a", " for 10h capacity 1000");
    (void)seen_with("short", "a", " for 1h capacity 1000");
    (void)redis("PTTL R:seen");
    assert_true(int_at(-1) > 19LL * HOUR_MS);
    (void)seen_with("longer", "a", " for 20h capacity 1000");
    (void)redis("PTTL R:seen");
    assert_true(int_at(-1) > 39LL * HOUR_MS);
}

/* A full generation ends early: the filter forgets more, and does not err more. */
static void test_capacity(void **state)
{
    (void)state;
    for (int i = 0; i < 10; i++)
        assert_false(seen_with("n", text("a%d", i), " capacity 10"));
    assert_true(seen("n", "a0"));
    assert_int_equal(generations(), 1);
    for (int i = 0; i < 10; i++)
        assert_false(seen("n", text("b%d", i)));
    assert_int_equal(generations(), 2);
    assert_int_equal(entry_of("n").early, 1);
    assert_true(seen("n", "b0"));
    assert_false(seen("n", "c")); /* the a are forgotten, the b are not */
    assert_int_equal(generations(), 2);
    for (int i = 0; i < 10; i++)
        assert_true(seen("n", text("b%d", i)));
    assert_false(seen("n", "a0"));
    assert_int_equal(entry_of("n").early, 3); /* the b were told again */
    (void)fcall("later_seen_list");
    assert_int_equal(int_at(0, 7, -1), 3);
    /* Even one key a generation. */
    assert_false(seen_with("one", "a", " capacity 1"));
    assert_false(seen("one", "b"));
    assert_true(seen("one", "a"));
    assert_true(seen("one", "b"));
    assert_false(seen("one", "c"));
    assert_int_equal(generations(), 4);
}

/* The memory is taken at once, and no more later. */
static void test_memory(void **state)
{
    struct entry e;

    (void)state;
    (void)seen_with("n", "a", " capacity 100000 error 0.001");
    e = entry_of("n");
    assert_int_equal(e.bits, 1582029); /* capacity * ln(2 / error) / ln(2)^2 */
    assert_int_equal(e.hashes, 11);
    (void)redis("STRLEN R:seen:n:%lld", e.since);
    assert_int_equal(int_at(-1), (32 + e.bits + 7) / 8);
    for (int i = 0; i < 500; i++)
        (void)seen("n", text("%d", i));
    (void)redis("STRLEN R:seen:n:%lld", e.since);
    assert_int_equal(int_at(-1), (32 + e.bits + 7) / 8);
    (void)fcall("later_seen_list");
    assert_int_equal(int_at(0, 1, -1), 501);
    assert_int_equal(int_at(0, 2, -1), (32 + e.bits + 7) / 8);
    /* The largest one. */
    assert_false(seen_with("huge", "a", " capacity 13022748"));
    (void)redis("STRLEN R:seen:huge:%lld", entry_of("huge").since);
    assert_true(int_at(-1) <= 32 * 1024 * 1024 + 4);
    assert_true(seen("huge", "a"));
}

static void test_foreign_types(void **state)
{
    struct entry e;

    (void)state;
    (void)redis("RPUSH R:seen x");
    assert_refused("ELATER_TYPE", "later_seen n k");
    assert_refused("ELATER_TYPE", "later_seen_del n");
    assert_refused("ELATER_TYPE", "later_seen_list");
    (void)redis("DEL R:seen");
    (void)seen_with("n", "a", " for 1h capacity 1000");
    e = entry_of("n");
    (void)redis("DEL R:seen:n:%lld", e.since);
    (void)redis("HSET R:seen:n:%lld x y", e.since);
    assert_refused("ELATER_TYPE", "later_seen n a");
    /* The one before, too. */
    age("n", HOUR_MS + 1000);
    assert_refused("ELATER_TYPE", "later_seen n a");
    assert_refused("ELATER_TYPE", "later_seen n new");
    assert_refused("ELATER_TYPE", "later_seen_del n");
    /* And one that is to be dropped. */
    (void)redis("DEL R:seen:n:%lld", entry_of("n").since);
    assert_false(seen("n", "new"));
    e = entry_of("n");
    (void)redis("DEL R:seen:n:%lld", e.before);
    (void)redis("HSET R:seen:n:%lld x y", e.before);
    age("n", HOUR_MS + 1000);
    assert_refused("ELATER_TYPE", "later_seen n new");
}

static void test_full_redis(void **state)
{
    const char *got, *again, *removed, *before;

    (void)state;
    (void)seen_with("n", "a", " capacity 1000");
    before = snapshot();
    (void)redis("CONFIG SET maxmemory 1");
    got = fcall("later_seen n b");
    again = fcall("later_seen new a");
    (void)redis("CONFIG SET maxmemory 0");
    assert_starts(got, "!OOM ");
    assert_starts(again, "!OOM ");
    assert_string_equal(snapshot(), before);
    assert_false(seen("n", "b"));
    (void)redis("CONFIG SET maxmemory 1");
    removed = fcall("later_seen_del n"); /* what frees memory works */
    (void)redis("CONFIG SET maxmemory 0");
    assert_string_equal(removed, "1");
}

/* Strings and entries that somebody has changed do no harm: at worst keys are forgotten. */
static void test_changed_by_hand(void **state)
{
    struct entry e;

    (void)state;
    (void)seen_with("n", "a", " capacity 1000");
    e = entry_of("n");
    (void)redis("SETRANGE R:seen:n:%lld 100000 x", e.since);
    assert_true(seen("n", "a"));
    assert_false(seen("n", "b"));
    (void)redis("SET R:seen:n:%lld short", e.since); /* a count without sense: it is full */
    assert_false(seen("n", "a"));
    assert_true(seen("n", "a"));
    e = entry_of("n");
    (void)redis("DEL R:seen:n:%lld", e.since);
    assert_false(seen("n", "a"));
    assert_true(seen("n", "a"));
    (void)redis("STRLEN R:seen:n:%lld", e.since);
    assert_int_equal(int_at(-1), (32 + e.bits + 7) / 8);
    (void)redis("PTTL R:seen:n:%lld", e.since);
    assert_true(int_at(-1) > 0);
    (void)redis("SET R:seen:n:%lld %s", e.since, "\xff\xff\xff\xff\xff\xff\xff\xff");
    (void)seen("n", "c");
    assert_true(seen("n", "c"));
    (void)redis("HSET R:seen n garbage");
    assert_string_equal(fcall("later_seen_list"), "[]");
    assert_false(seen_with("n", "a", " for 1h"));
    assert_true(seen("n", "a"));
    /* A clock that was set back by a year: keys are still forgotten in time. */
    (void)seen_with("back", "a", " for 1h capacity 1000");
    age("back", -365LL * 24 * HOUR_MS);
    assert_true(seen("back", "a"));
    assert_true(seen("back", "a"));
    age("back", HOUR_MS + 1000);
    assert_false(seen("back", "x"));
    age("back", HOUR_MS);
    assert_false(seen("back", "a"));
}

static void test_names_are_bounded(void **state)
{
    (void)state;
    (void)seen_with("first", "a", " capacity 1000");
    (void)redis("EVAL local\tt=redis.call('HGET',KEYS[1],'first')\n"
                "for\ti=2,1000\tdo\tredis.call('HSET',KEYS[1],'x'..i,t)\tend 1 R:seen");
    assert_refused("ELATER_FULL", "later_seen new k");
    assert_true(seen("first", "a"));
    (void)fcall("later_seen_list");
    assert_int_equal(len_at(-1), 1000);
    age("x2", 49LL * HOUR_MS);
    age("x3", 49LL * HOUR_MS);
    assert_false(seen_with("new", "a", " capacity 1000"));
    assert_string_equal(redis("HLEN R:seen"), "999");
    assert_string_equal(redis("HEXISTS R:seen x2"), "0");
}

static void test_list_and_delete(void **state)
{
    (void)state;
    assert_string_equal(fcall("later_seen_list"), "[]");
    assert_string_equal(fcall("later_seen_del n"), "0");
    (void)seen_with("n", "a", " for 1h error 0.01 capacity 1000");
    age("n", HOUR_MS + 1000);
    (void)seen("n", "b");
    (void)fcall("later_seen_list");
    assert_string_equal(at(0, 0, -1), "n");
    assert_int_equal(int_at(0, 1, -1), 2);
    assert_int_equal(int_at(0, 3, -1), HOUR_MS);
    assert_string_equal(at(0, 4, -1), "0.01");
    assert_int_equal(int_at(0, 5, -1), 1000);
    assert_time(int_at(0, 6, -1), 2LL * HOUR_MS - 2000, 2LL * HOUR_MS);
    assert_int_equal(int_at(0, 7, -1), 0);
    assert_string_equal(fcall("later_seen_del n"), "1");
    assert_string_equal(redis("KEYS *"), "[]");
    assert_false(seen("n", "a"));
}

static void test_audit(void **state)
{
    struct entry e;

    (void)state;
    (void)seen_with("n", "a", " capacity 1000");
    e = entry_of("n");
    assert_string_equal(fcall("later_v1_audit seen '' 100"), "[ 1]");
    assert_string_equal(fcall("later_v1_audit keys '' 100 seen:n:%lld string seen hash", e.since),
                        "[ 2]");
    (void)redis("SET R:seen:gone:5 x");
    assert_starts(fcall("later_v1_repair keys '' 100 seen:gone:5 string"),
                  "[ 1 [leftover seen:gone:5 ");
    assert_string_equal(redis("EXISTS R:seen:gone:5"), "0");
    (void)redis("HSET R:seen n garbage");
    assert_starts(fcall("later_v1_audit seen '' 100"), "[ 1 [broken-seen n ");
    assert_starts(fcall("later_v1_repair seen '' 100"), "[ 1 [broken-seen n ");
    assert_string_equal(redis("EXISTS R:seen"), "0");
    (void)redis("SET R:seen x");
    assert_string_equal(fcall("later_v1_audit seen '' 100"), "[ 0]");
}

/* ---- a random sequence beside a set */

static uint64_t rnd = 7;

static uint32_t next_random(uint32_t n)
{
    rnd = rnd * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(rnd >> 33) % n;
}

/*
 * Whatever comes in whatever order: a key that was told within D is seen, and one that was not told
 * within 2 D is new, unless the filter errs. `age` moves all that is there, so the times of the
 * model are of its own clock.
 */
static void test_random_sequence(void **state)
{
    enum { KEYS = 400, CALLS = 6000, D = 100000 };
    static long long told[KEYS];
    long long clock = 10LL * D;
    int wrong = 0;

    (void)state;
    for (int i = 0; i < KEYS; i++)
        told[i] = -10LL * D;
    for (int i = 0; i < CALLS; i++) {
        uint32_t key = next_random(KEYS), leap = next_random(100);
        long long unseen = clock - told[key];
        bool is_seen = seen_with("n", text("k%u", key), " for 100s capacity 2000");

        if (unseen < D - 5000 && !is_seen)
            fail_msg("call %d: k%u was told %lld ms ago and is new", i, key, unseen);
        wrong += unseen > 2LL * D + 5000 && is_seen;
        told[key] = clock;
        if (leap < 4) {
            long long ms = next_random(leap == 0 ? 3 * D : D / 2);

            age("n", ms);
            clock += ms;
        }
        if (i % 1000 == 999) {
            reply_free(fx.last);
            fx.last = NULL;
        }
    }
    assert_true(wrong <= 2);
    assert_int_equal(entry_of("n").early, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FX_TEST(test_bad_arguments),
        FX_TEST(test_new_and_seen),
        FX_TEST(test_options),
        FX_TEST(test_forgets),
        FX_TEST(test_expiry),
        FX_TEST(test_capacity),
        FX_TEST(test_memory),
        FX_TEST(test_foreign_types),
        FX_TEST(test_full_redis),
        FX_TEST(test_changed_by_hand),
        FX_TEST(test_names_are_bounded),
        FX_TEST(test_list_and_delete),
        FX_TEST(test_audit),
        FX_TEST(test_random_sequence),
    };

    return cmocka_run_group_tests(tests, fx_open, fx_close);
}
