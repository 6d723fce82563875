/* Broadcasts: who gets a job, who may claim it, and what becomes of it when its worker goes. */
#include <unistd.h>

#include "fixture.h"

/* A worker of mail on this host. */
static const char *on(const char *host)
{
    const char *w = serving("mail", 9);

    (void)redis("HSET R:worker:%s host %s", w, host);
    return w;
}

static void tidy(const char *w)
{
    assert_starts(fcall("later_v1_tidy %s 1 mail 100000", w), "[");
}

/* What `later show` says of the end of a job that is kept. */
static const char *outcome_of(const char *id)
{
    (void)fcall("later_show %s", id);
    return named("outcome");
}

static void test_refused(void **state)
{
    (void)state;
    assert_refused("ELATER_QUEUE", "later_broadcast");
    assert_refused("ELATER_ARGS", "later_broadcast mail");
    assert_refused("ELATER_ARGS", "later_broadcast mail key k");
    assert_refused("ELATER_ARGS", "later_broadcast mail per worker");
    assert_refused("ELATER_QUEUE", "later_broadcast a.b x");
    assert_refused("ELATER_OPTION", "later_broadcast mail per rack x");
    assert_refused("ELATER_OPTION", "later_broadcast mail lock l x");
    assert_refused("ELATER_OPTION", "later_broadcast mail unique u x");
    assert_refused("ELATER_TIME", "later_broadcast mail in 5 x");
    (void)redis("HSET R:config max_payload:mail 2000");
    assert_refused("ELATER_SIZE", "later_broadcast mail %s", text("%02001d", 1));
    assert_string_equal(fcall("later_broadcast mail x"), "[0]");
    assert_string_equal(redis("KEYS R:jobs"), "[]");
}

static void test_each_worker_has_its_own(void **state)
{
    const char *a = on("one"), *b = on("one"), *c = on("two"), *id[3];

    (void)state;
    (void)serving("web", 9);
    (void)fcall("later_broadcast mail key k priority 3 keep 1h payload");
    assert_int_equal(int_at(0, -1), 3);
    for (int i = 0; i < 3; i++)
        id[i] = at(i + 1, 1, -1);
    assert_string_equal(at(1, 0, -1), a);
    assert_string_equal(at(3, 0, -1), c);
    assert_string_equal(redis("HGET R:jobs %s", id[0]),
                        text("-mail 3 x=3600000 k=3600000 K=k W=w%s\\npayload", a));
    assert_string_equal(redis("ZCARD R:heads"), "0"); /* no other worker could do something */
    (void)fcall("later_show %s", id[1]);
    assert_string_equal(named("state"), "waiting");
    assert_string_equal(named("pinned"), text("w%s", b));
    (void)fcall("later_explain %s", id[1]);
    assert_string_equal(named("waits_for"), "room");
    assert_non_null(strstr(named("text"), "it was broadcast to one"));
    assert_string_equal(claim(b, "mail", 9), id[1]);
    assert_int_equal(len_at(3, -1), 1);
    assert_int_equal(len_at(3, 0, -1), 9); /* one job */
    assert_string_equal(claim(b, "mail", 9), "nil");
    assert_string_equal(claim(c, "mail", 9), id[2]);
    assert_string_equal(claim(a, "mail", 9), id[0]);
    assert_string_equal(redis("EXISTS R:pins:mail R:pin:mail:w%s R:prio", a), "0");
    assert_string_equal(settle(a, id[0], 1, "done", 0), "ok");
    assert_string_equal(state_of(id[0]), "gone");
}

static void test_one_of_a_host(void **state)
{
    const char *a = on("one"), *b = on("one"), *c = on("two"), *id, *d;

    (void)state;
    (void)on("bad/host");
    (void)redis("HSET R:worker:%s quiet 1", on("three"));
    (void)fcall("later_broadcast mail per host x");
    assert_int_equal(int_at(0, -1), 2);
    assert_string_equal(at(1, 0, -1), "one");
    assert_string_equal(at(2, 0, -1), "two");
    id = at(1, 1, -1);
    assert_string_equal(claim(b, "mail", 9), id);
    assert_string_equal(claim(a, "mail", 9), "nil");
    /* It dies while it runs: the next worker of the host takes it. */
    (void)redis("HSET R:workers %s dead", b);
    (void)fcall("later_v1_reap %s %s - 3 1000", a, b);
    d = on("one");
    assert_string_equal(claim(c, "mail", 1) != NULL ? state_of(id) : "", "waiting");
    assert_string_equal(claim(d, "mail", 9), id);
    assert_string_equal(settle(d, id, 2, "done", 0), "ok");
}

static void test_its_worker_goes(void **state)
{
    const char *a = on("one"), *b = on("two"), *waiting, *running;

    (void)state;
    (void)fcall("later_broadcast mail keep 1h x");
    running = at(2, 1, -1);
    assert_string_equal(claim(b, "mail", 1), running);
    (void)fcall("later_broadcast mail keep 1h y");
    waiting = at(2, 1, -1);
    tidy(a);
    assert_string_equal(state_of(waiting), "waiting");
    (void)redis("HSET R:workers %s dead", b);
    (void)fcall("later_v1_reap %s %s - 3 1000", a, b);
    tidy(a);
    assert_starts(outcome_of(waiting), "cancelled 0 ");
    assert_non_null(strstr(outcome_of(waiting), "its worker is gone"));
    assert_non_null(strstr(outcome_of(running), "its worker is gone"));
    (void)redis("SMEMBERS R:pins:mail");
    assert_string_equal(at(-1), text("[w%s]", a));
    assert_string_equal(redis("HGET R:stats cancelled:mail"), "2");
}

/* It waits for its retry where it was pinned, and an operator may cancel, move or retry it. */
static void test_life(void **state)
{
    const char *a = on("one"), *id;

    (void)state;
    (void)fcall("later_broadcast mail in 1h x");
    id = at(1, 1, -1);
    assert_string_equal(claim(a, "mail", 9), "nil");
    assert_time(int_at(5, 0, -1), 3500000, 3600000); /* the head for this worker */
    assert_starts(fcall("later_run_now %s", id), "[j");
    assert_string_equal(claim(a, "mail", 9), id);
    assert_string_equal(settle(a, id, 1, "retry", 50000), "ok");
    assert_string_equal(state_of(id), "waiting");
    assert_string_equal(redis("ZCARD R:pin:mail:w%s", a), "1");
    assert_string_equal(redis("ZCARD R:q:mail:5"), "0");
    assert_starts(fcall("later_reschedule %s 0", id), "[j");
    assert_string_equal(claim(a, "mail", 9), id);
    assert_string_equal(settle(a, id, 2, "dead", 100), "ok");
    assert_string_equal(state_of(id), "dead");
    assert_starts(fcall("later_retry %s", id), "[j");
    (void)fcall("later_v1_list mail due '' 9");
    assert_string_equal(at(1, 0, -1), id);
    (void)fcall("later_stats mail");
    assert_string_equal(at(5, 1, -1), "1");
    assert_string_equal(fcall("later_cancel %s", id), "cancelled");
    tidy(a);
    assert_string_equal(redis("EXISTS R:pins:mail"), "0");
    assert_string_equal(claim(a, "mail", 9), "nil");
    assert_string_equal(redis("EXISTS R:prio"), "0");
}

static void test_passes_no_gates(void **state)
{
    const char *a = on("one"), *id;

    (void)state;
    (void)redis("HSET R:queues mail lock=user:{key}");
    (void)fcall("later_broadcast mail x");
    id = at(1, 1, -1);
    assert_string_equal(claim(a, "mail", 9), id);
    assert_string_equal(redis("EXISTS R:holds"), "0");
}

static void test_expired(void **state)
{
    const char *a = on("one"), *id, *other;

    (void)state;
    (void)fcall("later_broadcast mail per host expire 1ms x");
    id = at(1, 1, -1);
    (void)redis("ZADD R:pin:mail:hone %lld %s", (long long)now_ms() - 10, id);
    tidy(a); /* a worker of that host may still come */
    assert_string_equal(state_of(id), "waiting");
    (void)redis("HDEL R:worker:%s host", a);
    tidy(a);
    assert_string_equal(state_of(id), "dead");
    assert_non_null(strstr(outcome_of(id), "expired: not started within 1 ms"));
    (void)redis("HSET R:worker:%s host one", a);
    (void)fcall("later_broadcast mail per host expire 1ms x");
    other = at(1, 1, -1);
    (void)redis("ZADD R:pin:mail:hone %lld %s", (long long)now_ms() - 10, other);
    assert_string_equal(claim(a, "mail", 9), "nil"); /* a claim sees it, too */
    assert_string_equal(state_of(other), "dead");
}

/* Nobody serves the queue any more: whoever tidies ends what was pinned. */
static void test_nobody_serves_it(void **state)
{
    const char *a = on("one"), *b = on("two"), *c = on("three"), *other = serving("web", 9);
    const char *stopped, *reloaded, *started;

    (void)state;
    (void)fcall("later_broadcast mail keep 1h x");
    stopped = at(1, 1, -1);
    reloaded = at(2, 1, -1);
    (void)fcall("later_broadcast mail per host keep 1h expire 2s y");
    started = at(2, 1, -1); /* of three */
    (void)claim(c, "mail", 9);
    assert_string_equal(state_of(started), "running");
    (void)redis("DEL R:worker:%s", a);
    (void)redis("HDEL R:workers %s", a);
    (void)redis("HSET R:worker:%s queues other", b); /* its file has changed */
    (void)redis("HSET R:workers %s dead", c);
    (void)fcall("later_v1_reap %s %s - 3 1000", other, c);
    (void)fcall("later_explain %s", reloaded);
    assert_non_null(strstr(named("text"), "is gone or serves queue mail no more"));
    (void)redis("ZADD R:pin:mail:hthree %lld %s", (long long)now_ms() - 2010, started);
    assert_starts(fcall("later_v1_tidy %s 1 web 100000", other), "[");
    assert_non_null(strstr(outcome_of(stopped), "its worker is gone"));
    assert_non_null(strstr(outcome_of(reloaded), "its worker is gone"));
    assert_non_null(strstr(outcome_of(started), "its host is gone"));
    (void)usleep(2010000); /* those of the other hosts have expired */
    assert_starts(fcall("later_v1_tidy %s 1 web 100000", other), "[");
    assert_string_equal(redis("EXISTS R:pins:mail R:pinned R:prio"), "0");
}

/* Pages go on behind a target that has gone meanwhile. */
static void test_pages(void **state)
{
    const char *a = on("one"), *b = on("two"), *id[3], *name;

    (void)state;
    (void)on("three");
    (void)fcall("later_broadcast mail in 1h x");
    for (int i = 0; i < 3; i++)
        id[i] = at(i + 1, 1, -1);
    (void)fcall("later_v1_list mail due '' 1");
    assert_string_equal(at(1, 0, -1), id[0]);
    assert_string_equal(at(0, -1), text("w%s:0", b));
    (void)fcall("later_v1_export mail due 1 '' '' 1");
    name = at(0, -1);
    assert_string_equal(name, text("w%s", a));
    (void)fcall("later_cancel %s", id[0]);
    (void)fcall("later_cancel %s", id[1]);
    tidy(a);
    (void)fcall("later_v1_list mail due w%s:5 1", b);
    assert_string_equal(at(1, 0, -1), id[2]);
    (void)fcall("later_v1_export mail due %s 5 %s 9", name, id[0]);
    assert_string_equal(at(4, 0, -1), id[2]);
    (void)fcall("later_v1_export mail due w9 '' '' 9");
    assert_string_equal(at(0, -1), "");
    assert_int_equal(len_at(-1), 4);
    (void)fcall("later_v1_purge mail due 9");
    assert_string_equal(redis("EXISTS R:pins:mail R:pinned R:prio"), "0");
}

/* A broadcast has one job for each target: a purge takes those of many targets. */
static void test_purge_of_many_targets(void **state)
{
    (void)state;
    for (int i = 0; i < 150; i++)
        (void)on(text("h%d", i));
    (void)fcall("later_broadcast mail x");
    assert_string_equal(fcall("later_v1_purge mail due 200"), "[100 50]");
    assert_string_equal(fcall("later_v1_purge mail due 20"), "[20 30]");
    assert_string_equal(fcall("later_v1_purge mail due 200"), "[30 0]");
    assert_string_equal(redis("EXISTS R:pins:mail R:pinned R:prio R:jobs"), "0");
    assert_string_equal(redis("HGET R:stats cancelled:mail"), "150");
}

static void test_token(void **state)
{
    const char *id, *b;

    (void)state;
    (void)on("one");
    (void)fcall("later_broadcast mail token t x");
    id = at(1, 1, -1);
    b = on("two");
    (void)fcall("later_broadcast mail token t x");
    assert_int_equal(int_at(0, -1), 2);
    assert_string_equal(at(1, 1, -1), id);
    assert_string_equal(at(2, 0, -1), b);
    assert_refused("ELATER_TOKEN", "later_broadcast mail token t y");
}

static void test_too_much(void **state)
{
    char big[1000000];

    (void)state;
    for (int i = 0; i < 17; i++)
        (void)on("one");
    memset(big, 'x', sizeof(big));
    assert_starts(fcall_bytes("later_broadcast mail", big, sizeof(big)),
                  "!ELATER_SIZE 17 payloads");
    (void)fcall_bytes("later_broadcast mail per host", big, sizeof(big));
    assert_int_equal(int_at(0, -1), 1);
}

/* The audit knows the sets; what is lost of them is put right. */
static void test_fsck(void **state)
{
    const char *a = on("one"), *id;

    (void)state;
    (void)fcall("later_broadcast mail x");
    id = at(1, 1, -1);
    assert_string_equal(fcall("later_v1_audit jobs '' 200"), "[ 1]");
    (void)redis("HDEL R:prio mail");
    (void)fcall("later_v1_repair queue '' 200 mail");
    assert_string_equal(at(2, 0, -1), "bad-flag");
    assert_string_equal(redis("HGET R:prio mail"), "p");
    (void)redis("DEL R:pins:mail");
    (void)fcall("later_v1_repair jobs '' 200");
    assert_string_equal(at(2, 0, -1), "bad-flag");
    assert_string_equal(redis("SMEMBERS R:pins:mail"), text("[w%s]", a));
    /* Another worker's job. */
    (void)redis("ZADD R:pin:mail:w7 5 %s", id);
    (void)fcall("later_v1_repair set '' 200 pin:mail:w7");
    assert_string_equal(at(2, 0, -1), "misplaced");
    assert_string_equal(redis("EXISTS R:pin:mail:w7"), "0");
    assert_string_equal(state_of(id), "waiting");
    /* In another set. */
    (void)redis("DEL R:pin:mail:w%s", a);
    (void)redis("ZADD R:q:mail:5 %lld %s", (long long)now_ms(), id);
    (void)fcall("later_v1_repair jobs '' 200");
    assert_string_equal(at(2, 0, -1), "wrong-set");
    assert_string_equal(claim(a, "mail", 9), id);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FX_TEST(test_refused),       FX_TEST(test_each_worker_has_its_own),
        FX_TEST(test_one_of_a_host), FX_TEST(test_its_worker_goes),
        FX_TEST(test_life),          FX_TEST(test_passes_no_gates),
        FX_TEST(test_expired),       FX_TEST(test_nobody_serves_it),
        FX_TEST(test_pages),         FX_TEST(test_purge_of_many_targets),
        FX_TEST(test_token),         FX_TEST(test_too_much),
        FX_TEST(test_fsck),
    };

    return cmocka_run_group_tests(tests, fx_open, fx_close);
}
