/* What the library tells `later health`, and later_v1_rights, which only tests rights. */
#include "fixture.h"

#define GRACE 2000

/* A worker that tells its queues, its places, and how many of each queue at once. */
static const char *limited(const char *queues, int places, const char *limits)
{
    const char *w = worker();

    (void)redis("HSET R:worker:%s queues %s places %d room 1 limits %s", w, queues, places, limits);
    return w;
}

/* A job that has been due for a minute. */
static const char *late_job(const char *queue, const char *options)
{
    const char *id = add("%s %s x", queue, options);
    int64_t due = now_ms() - 60000;

    (void)redis("ZADD R:q:%s:5 %lld %s", queue, (long long)due, id);
    (void)redis("ZADD R:heads %lld %s", (long long)due, queue);
    return id;
}

static const char *late(void)
{
    assert_starts(fcall("later_v1_health %d", GRACE), "[");
    return at(2, -1);
}

static void test_late_queue(void **state)
{
    const char *w;

    (void)state;
    w = limited("mail", 2, "x=1");
    assert_string_equal(late(), "[]");
    (void)late_job("mail", "attempts 3");
    assert_starts(late(), "[[mail ");
    assert_string_equal(at(2, 0, 2, -1), w);
    /* No worker would start it now, and that is as it should be. */
    (void)fcall("later_pause mail");
    assert_string_equal(late(), "[]");
    (void)fcall("later_resume mail");
    assert_starts(late(), "[[mail ");
    (void)redis("HSET R:worker:%s quiet 1", w);
    assert_string_equal(late(), "[]");
    (void)redis("HSET R:worker:%s quiet 0 queues other", w);
    assert_string_equal(late(), "[]");
    (void)redis("HSET R:worker:%s queues other,mail room 0", w); /* it stops, or runs a suspect */
    assert_string_equal(late(), "[]");
    (void)redis("HSET R:worker:%s room 1", w);
    assert_starts(late(), "[[mail ");
    (void)redis("HSET R:workers %s dead", w);
    assert_string_equal(late(), "[]");
}

/* A worker that cannot run a queue says so; where another one can, that one is late. */
static void test_broken_queue(void **state)
{
    const char *w = limited("mail", 2, "x=1"), *other;

    (void)state;
    (void)late_job("mail", "attempts 3");
    (void)redis(
        "EVAL return\tredis.call('HSET',KEYS[1],'defects','sms\\32a\\nmail\\32no\\32x\\n') 1 "
        "R:worker:%s",
        w);
    assert_string_equal(late(), "[]");
    assert_string_equal(at(6, 0, 0, -1), "mail");
    assert_string_equal(at(6, 0, 2, -1), w);
    assert_string_equal(at(6, 0, 3, -1), "no x");
    (void)redis("HSET R:worker:%s queues other", w); /* its handler is refused */
    (void)late();
    assert_string_equal(at(6, 0, 3, -1), "no x");
    other = limited("mail", 2, "x=1");
    assert_starts(late(), "[[mail ");
    assert_string_equal(at(2, 0, 2, -1), other);
    assert_string_equal(at(6, -1), "[]");
    (void)redis("HSET R:worker:%s room 0", other);
    (void)late();
    assert_string_equal(at(6, 0, 3, -1), "no x");
    (void)fcall("later_pause mail");
    (void)late();
    assert_string_equal(at(6, -1), "[]");
}

/* Jobs wait for workers that were told to be quiet, and nobody else can run them. */
static void test_quiet_workers(void **state)
{
    const char *w = limited("mail", 2, "x=1"), *other = limited("mail", 2, "x=1");

    (void)state;
    (void)late_job("mail", "attempts 3");
    (void)fcall("later_v1_quiet %s on", w);
    assert_starts(late(), "[[mail ");
    assert_string_equal(at(6, -1), "[]");
    (void)fcall("later_v1_quiet %s on", other);
    assert_string_equal(late(), "[]");
    assert_string_equal(at(6, 0, 0, -1), "mail");
    assert_starts(at(6, 0, 3, -1), "it was told to be quiet (later quiet ");
    (void)fcall("later_v1_quiet %s off", other);
    (void)redis("HSET R:worker:%s room 0", other); /* it works */
    (void)late();
    assert_string_equal(at(6, -1), "[]");
}

static void test_full_worker_is_no_room(void **state)
{
    const char *w;

    (void)state;
    w = limited("mail", 1, "x=1");
    (void)add("mail attempts 3 x");
    (void)claim(w, "mail", 1);
    (void)late_job("mail", "attempts 3");
    assert_string_equal(late(), "[]");
    (void)redis("HSET R:worker:%s places 2", w);
    assert_starts(late(), "[[mail ");
    /* As many of the queue as may run at once in that worker. */
    (void)redis("HSET R:worker:%s limits sms=1,mail=1", w);
    assert_string_equal(late(), "[]");
    (void)redis("HSET R:worker:%s limits sms=1,mail=2", w);
    assert_starts(late(), "[[mail ");
}

/* A suspect waits until a worker runs nothing else: that is as it should be. */
static void test_suspect_may_wait(void **state)
{
    const char *id;

    (void)state;
    (void)limited("mail", 2, "x=1");
    id = late_job("mail", "attempts 3");
    (void)redis("ZREM R:q:mail:5 %s", id);
    (void)redis("ZADD R:solo:mail 1 %s", id);
    assert_string_equal(late(), "[]");
}

/* Of each queue the first suspect that is due: those whose worker died twice under them. */
static void test_suspects(void **state)
{
    const char *w = worker(), *id = add("mail x"), *other = add("mail attempts 3 x");

    (void)state;
    for (int i = 0; i < 2; i++) {
        const char *victim = worker();

        assert_string_equal(claim(victim, "mail", 1), id);
        assert_starts(fcall("later_v1_reap %s %s 1 5 100", w, victim), "[clear 1]");
    }
    (void)redis("ZADD R:solo:mail %lld %s", (long long)now_ms() + 60000, id);
    (void)fcall("later_v1_suspects");
    assert_string_equal(at(1, -1), "nil");
    (void)redis("ZADD R:solo:mail 1767225600000 %s", id);
    (void)redis("ZADD R:solo:mail 1767225600001 %s", other);
    (void)fcall("later_v1_suspects");
    assert_string_equal(at(1, -1), text("[%s mail 1767225600000 2 2]", id));
    (void)redis("DEL R:solo:mail");
    (void)redis("SET R:solo:mail x");
    (void)fcall("later_v1_suspects");
    assert_string_equal(at(1, -1), "nil");
}

static void test_worker_row(void **state)
{
    const char *w;
    int64_t beat_ms;

    (void)state;
    w = worker();
    assert_starts(fcall("later_v1_tidy %s 0 5 room 4 unsent 7 refused 1 skew_ms -12 link 99", w),
                  "[");
    assert_starts(fcall("later_v1_health %d", GRACE), "[");
    assert_string_equal(at(1, 0, 0, -1), w);
    assert_string_equal(text("%s %s %s", at(1, 0, 7, -1), at(1, 0, 8, -1), at(1, 0, 9, -1)),
                        "7 1 -12");
    beat_ms = int_at(1, 0, 5, -1);
    assert_string_equal(redis("HGET R:worker:%s room", w), "4");
    assert_time(beat_ms, -60000, 0);
    /* A worker cannot set its link number in this way. */
    assert_string_equal(redis("HGET R:worker:%s link", w), "1");
    assert_refused("ELATER_ARGS", "later_v1_health");
    assert_refused("ELATER_ARGS", "later_v1_health nan");
}

/* ---- metrics */

static void test_first_parked(void **state)
{
    const char *w = worker();

    (void)state;
    (void)add("mail lock L x");
    (void)add("mail lock L y");
    (void)claim(w, "mail", 2);
    assert_starts(fcall("later_v1_metrics 0"), "[");
    assert_string_equal(text("%s %s", at(6, 0, 1, -1), at(6, 0, 2, -1)), "0 0");
    assert_time(int_at(6, 0, 0, -1), -60000, 0);
    /* A foreign value hides nothing else. */
    (void)redis("SET R:parked:mail x");
    (void)fcall("later_v1_metrics 0");
    assert_string_equal(at(6, 0, -1), "[ 0 0 0 ]");
}

/* ---- rights */

static void test_rights(void **state)
{
    static const char *const taken[] = {"zadd", "hset", "publish", "zmscore", "subscribe"};

    (void)state;
    assert_string_equal(fcall("later_v1_rights"), "[]");
    for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++) {
        char upper[16];

        for (size_t k = 0; k <= strlen(taken[i]); k++)
            upper[k] = (char)(taken[i][k] >= 'a' ? taken[i][k] - 32 : taken[i][k]);
        (void)redis("ACL SETUSER default reset on nopass ~* &* +@all -%s", taken[i]);
        assert_string_equal(fcall("later_v1_rights"), text("[%s]", upper));
    }
    /* With the keys of this namespace only; without these, too; then without its channels. */
    (void)redis("ACL SETUSER default reset on nopass ~later:{t}:* ~later:{t} &* +@all");
    assert_string_equal(fcall("later_v1_rights"), "[]");
    (void)redis("ACL SETUSER default reset on nopass ~later:{t} &* +@all");
    assert_starts(fcall("later_v1_rights"), "[BITFIELD DEL EXISTS ");
    (void)redis("ACL SETUSER default reset on nopass ~* resetchannels +@all");
    assert_string_equal(fcall("later_v1_rights"), "[PUBLISH SUBSCRIBE]");
    (void)redis("ACL SETUSER default reset on nopass ~* &* +@all");
}

static const char *notes(void)
{
    (void)fcall("later_v1_health %d", GRACE);
    return at(3, -1);
}

/* A note of a gate without a definition holds until the gate has one, or no job waits there. */
static void test_no_limit(void **state)
{
    const char *w = limited("mail,fax", 4, "");

    (void)state;
    (void)add("mail x");
    (void)add("fax x");
    (void)redis("HSET R:queues mail rate=gw fax sem=gw");
    assert_string_equal(claim(w, "mail", 1), "nil");
    assert_string_equal(claim(w, "fax", 1), "nil");
    assert_starts(notes(), "[no-limit:gw ");
    (void)fcall("later_limit_set gw semaphore 5"); /* fax is let in; mail waits for a rate */
    assert_starts(notes(), "[no-limit:gw ");
    (void)fcall("later_limit_set gw rate 100/1s");
    assert_string_equal(notes(), "[]");
    assert_string_equal(redis("HKEYS R:notes"), "[no-limit:gw]");
    (void)redis("HSET R:notes no-limit:%s %lld", LONG_TRACE, (long long)now_ms());
    assert_starts(notes(), "[no-limit:01-"); /* cut: nobody knows which gate it is */
}

/* The same when the jobs are cancelled, and by a template. */
static void test_no_limit_is_over(void **state)
{
    const char *w = limited("mail,fax", 4, ""), *id = add("mail x");

    (void)state;
    (void)add("fax key 7 x");
    (void)redis("HSET R:queues mail rate=gw fax sem=t:{key}");
    assert_string_equal(claim(w, "mail", 1), "nil");
    assert_string_equal(claim(w, "fax", 1), "nil");
    assert_string_equal(redis("HLEN R:notes"), "2");
    (void)fcall("later_cancel %s", id);
    assert_starts(notes(), "[no-limit:t:7 ");
    (void)fcall("later_limit_set t:{key} semaphore 5");
    assert_string_equal(notes(), "[]");
}

int main(void)
{
    const struct CMUnitTest tests[] = {FX_TEST(test_late_queue),
                                       FX_TEST(test_broken_queue),
                                       FX_TEST(test_quiet_workers),
                                       FX_TEST(test_full_worker_is_no_room),
                                       FX_TEST(test_suspect_may_wait),
                                       FX_TEST(test_suspects),
                                       FX_TEST(test_worker_row),
                                       FX_TEST(test_first_parked),
                                       FX_TEST(test_no_limit),
                                       FX_TEST(test_no_limit_is_over),
                                       FX_TEST(test_rights)};

    return cmocka_run_group_tests(tests, fx_open, fx_close);
}
