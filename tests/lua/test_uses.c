/*
 * The names of queues are 10,000 at most. What names a queue to use it later (a subscription, a
 * schedule, a batch, a chain) reserves its name or is refused; the name stays, and what comes later
 * is never refused for it. The members of a batch are bounded likewise.
 */
#include "fixture.h"

#define FULL 10000
#define MOST_MEMBERS 1000000

static int64_t number_of_names(void)
{
    (void)redis("SCARD R:names");
    return int_at(-1);
}

static void fill_names(int n)
{
    (void)redis("EVAL local\ti=0;while\tredis.call('SCARD',KEYS[1])<%d\tdo\ti=i+1;"
                "redis.call('SADD',KEYS[1],'n'..i)\tend 1 R:names",
                n);
    assert_int_equal(number_of_names(), n);
}

static void assert_names(int all, const char *const *queues)
{
    for (size_t k = 0; queues[k] != NULL; k++) {
        for (int i = 0; i < all; i++) {
            const char *name = text("%s%d", queues[k], i);

            if (strcmp(redis("SISMEMBER R:names %s", name), "1") != 0)
                fail_msg("%s is gone", name);
        }
    }
}

/* How many uses the index tells of. */
static int64_t uses(void)
{
    (void)redis("ZLEXCOUNT R:index [use: (use;");
    return int_at(-1);
}

static void tidy(const char *w)
{
    (void)redis("HDEL R:index:state ms"); /* as if enough time had passed */
    assert_starts(fcall("later_v1_tidy %s 0", w), "[[");
}

/* Tidy until idle names are no more than too many. */
static void tidy_names(const char *w)
{
    for (int i = 0; number_of_names() > 1000; i++) {
        assert_true(i < 20000);
        assert_starts(fcall("later_v1_tidy %s 0", w), "[[");
    }
}

/* later_v1_import of a dead job with two more options, "then a on_dead b". */
static const char *import_dead(const char *options)
{
    const char *argv[FX_ARGS_MAX] = {"FCALL", "later_v1_import",  "1", ROOT, "mail", "3",
                                     "dead",  "dead 0 1000 0 x\n"};
    char *rest = mem_strdup(options);
    int argc = 8;

    (void)keep(rest);
    while (argc < FX_ARGS_MAX - 1 && (argv[argc] = strsep(&rest, " ")) != NULL)
        argc++;
    argv[argc++] = "x";
    return send_args(argc, argv, NULL);
}

/* Each way of adding a chain reserves the names of its queues, and says what uses them. */
static void test_each_add_reserves(void **state)
{
    static const char *const ways[] = {
        "later_add mail in 1h then a0 on_dead b0 x",
        "later_add mail in 1h priority 3 then a1 on_dead b1 x",
        "later_add mail in 1h unique u then a2 on_dead b2 x",
        "later_add_many mail in 1h then a3 on_dead b3 x y",
        "later_v1_import mail 2 then a4 on_dead b4 x",
        "later_v1_import mail 3 unique v then a5 on_dead b5 x",
    };
    static const char *const queues[] = {"a", "b", NULL};
    int n = (int)(sizeof(ways) / sizeof(ways[0]));

    (void)state;
    for (int i = 0; i < n; i++)
        assert_starts(call_line(ways[i]), "[");
    assert_string_equal(import_dead("then a6 on_dead b6"), "[1 added]");
    assert_names(n + 1, queues);
    assert_int_equal(uses(), 2 * (n + 1));
}

/* Nobody serves these queues, and they have no jobs. */
static void test_names_stay(void **state)
{
    static const char *const queues[] = {"topic", "planned", "next", "told",
                                         "done",  "first",   "died", NULL};
    const char *w = worker();

    (void)state;
    for (int i = 0; i < 60; i++) {
        (void)fcall("later_subscribe t topic%d", i);
        assert_starts(
            fcall("later_schedule_set s%d every 1h queue planned%d then next%d x", i, i, i), "[");
        assert_starts(fcall("later_batch b%d then told%d finally done%d x", i, i, i), "[");
        (void)add("mail in 1h then first%d on_dead died%d x", i, i);
    }
    assert_int_equal(number_of_names(), 1 + 7 * 60);
    assert_int_equal(uses(), 7 * 60);
    fill_names(1500);
    tidy_names(w);
    assert_names(60, queues);
}

/* Where the index could not be written, or has too much, tidying mends it. */
static void test_uses_are_mended(void **state)
{
    const char *w = worker();

    (void)state;
    (void)fcall("later_subscribe t a");
    (void)fcall("later_subscribe t b");
    (void)fcall("later_schedule_set s every 1h queue c then d x");
    (void)fcall("later_batch b then e finally f on_dead e x");
    (void)add("mail in 1h then g then g on_dead h x");
    assert_int_equal(uses(), 8);
    (void)redis("EVAL for\t_,m\tin\tipairs(redis.call('ZRANGE',KEYS[1],0,-1))\tdo\t"
                "if\tnot\tm:find('chain')\tthen\tredis.call('ZREM',KEYS[1],m)\tend\tend 1 R:index");
    assert_int_equal(uses(), 2);
    tidy(w);
    assert_int_equal(uses(), 8);
    /* What names another queue uses the first one no more. */
    (void)fcall("later_unsubscribe t a");
    (void)fcall("later_schedule_set s every 1h queue c x");
    (void)fcall("later_batch_seal b");
    assert_int_equal(uses(), 4);
    (void)fcall("later_unsubscribe t b");
    (void)fcall("later_schedule_del s");
    assert_int_equal(uses(), 2);
    /* Chains that were added weeks ago, and members of which nothing is true. */
    (void)redis(
        "EVAL for\t_,m\tin\tipairs{'chain:5','schedule:s','batch:b','topic:t','x','x:'}\tdo\t"
        "redis.call('ZADD',KEYS[1],0,'use:q'..string.char(32)..m)\tend 1 R:index");
    assert_int_equal(uses(), 8);
    tidy(w);
    assert_int_equal(uses(), 2);
    (void)redis("DEL R:index");
    (void)redis("SET R:index x");
    fill_names(1100);
    assert_starts(fcall("later_v1_tidy %s 0", w), "[[");
    assert_int_equal(number_of_names(), 1100); /* nobody knows which are used */
}

/* The first that is too many is refused where it is named, with all that comes with it. */
static void test_names_are_reserved(void **state)
{
    static const char *const too_many[] = {
        "later_add n1 in 1h then a on_dead b x",
        "later_add new in 1h then a x",
        "later_add n1 in 1h unique u then a on_dead b x",
        "later_add n1 in 1h token t then a then b x",
        "later_add_many n1 in 1h then a then b x y",
        "later_v1_import n1 2 then a,b due 1795719163000 x",
        "later_v1_import n1 1 then a x 1 then b x",
        "later_batch many then a finally b",
        "later_schedule_set s every 1h queue a then b x",
        "later_schedule_set s every 1h queue n1 then a on_dead b x",
    };

    (void)state;
    fill_names(FULL - 1);
    for (size_t i = 0; i < sizeof(too_many) / sizeof(too_many[0]); i++) {
        assert_refused("ELATER_FULL", "%s", too_many[i]);
        assert_int_equal(number_of_names(), FULL - 1);
    }
    (void)add("n1 in 1h then a on_dead a x");
    assert_int_equal(number_of_names(), FULL);
    (void)add("n1 in 1h then a then n5 on_dead a x");
    assert_refused("ELATER_FULL", "later_add n1 then b x");
    assert_refused("ELATER_FULL", "later_v1_import new 1 pinned hthere x");
    assert_refused("ELATER_FULL", "later_batch many finally b");
    assert_starts(fcall("later_batch few then a finally n7"), "[few opened]");
    assert_int_equal(number_of_names(), FULL);
}

/* Names were reserved, and somebody has removed them by hand: what was accepted comes all the same.
 */
static void test_what_was_named_comes(void **state)
{
    const char *w = worker(), *id;
    int64_t at_ms = now_ms() - 500;

    (void)state;
    (void)fcall("later_subscribe t topic");
    (void)fcall("later_schedule_set s every 1s queue planned then next x");
    (void)fcall("later_batch b finally called x");
    (void)add("mail then after x");
    id = text("%s", claim(w, "mail", 1));
    (void)redis("SREM R:names topic planned next called after");
    fill_names(FULL);
    assert_starts(fcall("later_publish t x"), "[1 [topic ");
    assert_string_equal(at(1, 2, -1), "added");
    assert_string_equal(redis("ZCARD R:q:topic:5"), "1");
    (void)fcall("later_schedules s");
    (void)fcall("later_v1_fire %s 1 s %s - %lld 2025b 0 0 0", w, named("revision"),
                (long long)at_ms);
    assert_string_equal(at(1, 0, -1), "fired");
    (void)fcall("later_schedules s");
    (void)fcall("later_v1_fire %s 1 s %s %lld %lld 2025b 0 0 1 %lld 2026330", w, named("revision"),
                (long long)at_ms, (long long)at_ms + 1000, (long long)at_ms);
    assert_string_equal(at(1, 0, -1), "fired");
    assert_string_equal(redis("ZCARD R:q:planned:5"), "1");
    (void)fcall("later_batch_seal b");
    assert_string_equal(redis("ZCARD R:q:called:5"), "1");
    assert_string_equal(settle(w, id, 1, "done", 0), "ok");
    assert_string_equal(redis("ZCARD R:q:after:5"), "1");
}

/* Let a batch have this many members, a thousand a command. */
static void fill_batch(const char *name, int n)
{
    (void)redis("EVAL local\tn=%d-redis.call('ZCARD',KEYS[1]);for\tfrom=1,n,1000\tdo\tlocal\ta={};"
                "for\ti=from,math.min(from+999,n)\tdo\ta[#a+1]=1;a[#a+1]='m'..i..'of'..n\tend;"
                "redis.call('ZADD',KEYS[1],unpack(a))\tend 1 R:members:%s",
                n, name);
}

/* A chain joins as a whole, or not at all; chains that were added before it may fill the batch. */
static void test_members(void **state)
{
    static const char *const too_many[] = {
        "later_add mail batch b then x then y p",
        "later_add mail batch b priority 3 then x then y p",
        "later_add_many mail batch b then x p q",
        "later_v1_import mail 2 batch b then x,y p",
        "later_v1_import mail 1 batch b p 1 batch b q 1 batch b r",
        "later_v1_import mail 2 batch b then x p 2 batch b then x q",
    };
    const char *w = worker(), *id;

    (void)state;
    (void)fcall("later_batch b");
    (void)add("mail batch b then x p");
    id = text("%s", claim(w, "mail", 1));
    fill_batch("b", MOST_MEMBERS - 2);
    for (size_t i = 0; i < sizeof(too_many) / sizeof(too_many[0]); i++)
        assert_starts(call_line(too_many[i]), "!ELATER_FULL"); /* a digest of the server is slow */
    assert_starts(import_dead("batch b then x,y"), "!ELATER_FULL");
    (void)fcall("later_v1_sync %s 1 0 50 1 %s 1 done mail 0 0 ok '' 1 none 50 1048576 0 0 1 1 1 8 "
                "q batch b then x then y p",
                w, id);
    assert_non_null(strstr(at(2, -1), "refused child 1: ELATER_FULL"));
    assert_string_equal(redis("ZCARD R:members:b"), text("%d", MOST_MEMBERS - 2));
    (void)add("mail batch b then x p");
    fill_batch("b", MOST_MEMBERS);
    assert_starts(settle(w, id, 1, "done", 0), "refused batch 'b' has 1000000 members");
    assert_string_equal(state_of(id), "running");
    assert_string_equal(redis("EXISTS R:q:x:5"), "0");
    assert_string_equal(settle(w, id, 1, "dead", 10), "ok");
    assert_string_equal(redis("ZCARD R:members:b"), text("%d", MOST_MEMBERS));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FX_TEST(test_each_add_reserves),    FX_TEST(test_names_stay),
        FX_TEST(test_uses_are_mended),      FX_TEST(test_names_are_reserved),
        FX_TEST(test_what_was_named_comes), FX_TEST(test_members),
    };

    return cmocka_run_group_tests(tests, fx_open, fx_close);
}
