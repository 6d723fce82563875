/* Foreign queues: when a member becomes a job, what becomes of one that cannot, and who suffers. */
#include "fixture.h"

#include "../support/laterd.h"

/* Collect from the set `z` with the hash `h` into mail, with what the last reply said of it. */
FX_FMT static void collect(const char *fmt, ...)
{
    FX_FORMAT(line);
    assert_starts(call_line(text("later_v1_collect %s", line)), "[");
}

/* The row of the first queue in the reply: passed, added, buried, why. */
static const char *row(void)
{
    return text("%s %s %s %s", at(1, 2, -1), at(1, 3, -1), at(1, 4, -1), at(1, 5, -1));
}

static int jobs(const char *queue)
{
    (void)redis("ZCARD R:q:%s:5", queue);
    return (int)int_at(-1);
}

/* The reason of the youngest dead job of mail; it becomes the last reply. */
static const char *last_reason(void)
{
    (void)redis("ZRANGE R:dead:mail -1 -1");
    (void)fcall("later_show %s", at(0, -1));
    return named("outcome");
}

/* What the producer of seeds/001 writes: a score in ms, and a body beside it. */
static void test_with_bodies(void **state)
{
    const char *w = worker(), *id;
    int64_t now = now_ms();

    (void)state;
    (void)redis("ZADD z %lld order:1 %lld order:2", (long long)now - 5, (long long)now + 60000);
    (void)redis("HSET h order:1 one order:2 two");
    collect("%s 1 mail z h ms - 0", w);
    assert_string_equal(row(), "- 1 0 ");
    assert_string_equal(at(1, 0, -1), text("%lld", (long long)now + 60000));
    assert_string_equal(redis("ZRANGE z 0 -1"), "[order:2]");
    assert_string_equal(redis("HKEYS h"), "[order:2]");
    id = claim(w, "mail", 9);
    assert_string_equal(redis("HGET R:jobs %s", id), "-mail K=order:1\\none");
    assert_string_equal(redis("HGET R:stats adopted:mail"), "1");
    /* Moved, it is due then; removed, never. */
    (void)redis("ZADD z %lld order:2", (long long)now + 90000);
    collect("%s 1 mail z h ms %lld 0", w, (long long)now + 60000);
    assert_string_equal(row(), "- 0 0 ");
    (void)redis("ZADD z 1 order:2");
    (void)redis("ZREM z order:2");
    collect("%s 1 mail z h ms - 0", w);
    assert_string_equal(at(1, 0, -1), "-");
    assert_string_equal(row(), "- 0 0 ");
}

/* That of seeds/003: a score in seconds, and the member is the payload. */
static void test_members_alone(void **state)
{
    const char *w = worker(), *due;
    int64_t now = now_ms();

    (void)state;
    (void)redis("ZADD z %lld.5 a %lld b 12 old", (long long)now / 1000 - 2,
                (long long)now / 1000 + 100);
    collect("%s 1 mail z '' s - 0", w);
    assert_string_equal(row(), "- 2 0 ");
    assert_string_equal(at(1, 0, -1), text("%lld", ((long long)now / 1000 + 100) * 1000));
    assert_string_equal(redis("ZRANGE z 0 -1"), "[b]");
    (void)redis("ZRANGE R:q:mail:5 0 0 WITHSCORES");
    due = at(1, -1);
    assert_string_equal(due, text("%lld", ((long long)now / 1000 - 2) * 1000 + 500));
    assert_string_equal(redis("ZSCORE R:heads mail"), due);
}

static void test_waits_for_its_field(void **state)
{
    const char *w = worker();
    int64_t now = now_ms();

    (void)state;
    (void)redis("ZADD z %lld new %lld young %lld here", (long long)now, (long long)now - 3000,
                (long long)now - 1);
    (void)redis("HSET h here x");
    collect("%s 1 mail z h ms - 0", w);
    assert_string_equal(row(), "- 1 0 ");
    assert_string_equal(at(1, 0, -1), "-");
    assert_time(int_at(1, 1, -1), -1000, 15); /* they are looked at again in 10 ms */
    (void)redis("HSET h young y");
    /* Ten seconds after its time, but it was seen just now. */
    (void)redis("ZADD z 5 new");
    collect("%s 1 mail z h ms - 0", w);
    assert_string_equal(row(), "- 1 0 ");
    assert_string_equal(redis("ZRANGE R:bodyless:mail 0 -1"), "[new]");
    (void)redis("ZADD R:bodyless:mail %lld new %lld gone", (long long)now - 10001,
                (long long)now - 60001);
    collect("%s 1 mail z h ms - 0", w);
    assert_string_equal(row(), "- 0 1 ");
    assert_string_equal(at(1, 1, -1), "-");
    assert_non_null(strstr(last_reason(), "it has no field in 'h' after 10 s"));
    assert_string_equal(named("key"), "new");
    assert_string_equal(redis("EXISTS z h R:bodyless:mail"), "0");
    /* One that its producer has removed is forgotten, also while no other member leaves. */
    (void)redis("ZADD z %lld next", (long long)now_ms() - 1);
    (void)redis("ZADD R:bodyless:mail %lld gone", (long long)now_ms() - 60001);
    collect("%s 1 mail z h ms - 0", w);
    assert_string_equal(row(), "- 0 0 ");
    assert_string_equal(redis("ZRANGE R:bodyless:mail 0 -1"), "[next]");
}

/* A wrong unit is told, and costs nothing: members whose time would come stay. */
static void test_wrong_unit(void **state)
{
    const char *w = worker();
    int64_t now = now_ms();

    (void)state;
    (void)redis("ZADD z %lld past %lld future", (long long)now / 1000 - 5,
                (long long)now / 1000 + 900);
    collect("%s 1 mail z '' ms - 0", w);
    assert_starts(row(), "- 0 1 its score ");
    assert_non_null(strstr(row(), "looks like seconds, and the unit is ms"));
    assert_string_equal(redis("ZRANGE z 0 -1"), "[future]");
    (void)redis("HKEYS R:notes");
    assert_starts(at(0, -1), "bad-adoption:mail its score ");
    (void)redis("ZADD y %lld past %lld future", (long long)now - 5000, (long long)now + 900000);
    collect("%s 1 mail y '' s - 0", w);
    assert_starts(row(), "- 0 1 its score ");
    assert_non_null(strstr(row(), "is it in ms?"));
    assert_string_equal(redis("ZRANGE y 0 -1"), "[future]");
    collect("%s 1 mail z '' s - 0", w); /* put right */
    assert_string_equal(row(), "- 0 0 ");
}

/* There is no room for more dead jobs: none is forgotten for them. */
static void test_many_dead(void **state)
{
    const char *w = worker();

    (void)state;
    for (int i = 0; i < 9999; i++)
        (void)redis("ZADD R:dead:mail 1 %d", i);
    (void)redis("ZADD z 1 ~a 2 ~b 3 fine");
    (void)redis("HSET h ~a x ~b x fine x");
    (void)redis("HSET R:queues mail lock={key}");
    collect("%s 1 mail z h ms - 0", w);
    assert_starts(row(), "- 1 1 queue mail has no room for more dead jobs, and ");
    assert_string_equal(redis("ZRANGE z 0 -1"), "[~b]");
    assert_string_equal(redis("ZCARD R:dead:mail"), "10000");
}

/* Each is put among the dead, with what to do, and no other one suffers. */
static void test_no_jobs(void **state)
{
    static const struct {
        const char *unit, *score, *member, *why;
    } rows[] = {
        {"ms", "inf", "m", "its score inf is not finite"},
        {"s", "-inf", "m", "its score -inf is not finite"},
        {"ms", "1767225600", "m", "its score 1767225600 looks like seconds, and the unit is ms"},
        {"s", "1767225600000", "m", "its score 1767225600000 is after the year 5000: is it in ms?"},
        {"ms", "2e14", "m", "is after the year 5000"},
        {"s", "2e14", "m", "is after the year 5000: is it in ms?"},
        {"ms", "1", "~a~b", "its member is no key"},
        {"ms", "1", "", "its member is no key"},
    };
    const char *w = worker();

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *member = strcmp(rows[i].member, "~a~b") == 0 ? "a\tb" : rows[i].member;

        (void)redis("ZADD z %s %s 5 fine", rows[i].score, member[0] == '\0' ? "''" : member);
        (void)redis("HSET h %s body fine x", member[0] == '\0' ? "''" : member);
        collect("%s 1 mail z h %s - 0", w, rows[i].unit);
        assert_string_equal(row(), "- 1 1 ");
        assert_non_null(strstr(last_reason(), rows[i].why));
        assert_string_equal(named("payload"), "body");
        assert_string_equal(redis("EXISTS z h"), "0");
    }
}

static void test_not_fit_for_its_queue(void **state)
{
    const char *w = worker();

    (void)state;
    (void)redis("HSET R:config max_payload:mail 2000");
    (void)redis("ZADD z 1 %02001d 2 fine", 1);
    collect("%s 1 mail z '' ms - 0", w);
    assert_string_equal(row(), "- 1 1 ");
    assert_non_null(strstr(last_reason(), "the payload has 2001 bytes, queue mail takes 2000"));
    (void)redis("HSET R:queues mail lock=user:{key}");
    (void)redis("ZADD z 1 keyless");
    collect("%s 1 mail z '' ms - 0", w);
    assert_string_equal(row(), "- 0 1 ");
    assert_non_null(strstr(last_reason(), "give the job a key"));
    (void)redis("ZADD z 1 keyed");
    (void)redis("HSET h keyed x");
    collect("%s 1 mail z h ms - 0", w);
    assert_string_equal(row(), "- 1 0 ");
}

static void test_refused(void **state)
{
    const char *w = worker();

    (void)state;
    assert_refused("ELATER_ARGS", "later_v1_collect %s", w);
    assert_refused("ELATER_ARGS", "later_v1_collect %s 2 mail z h ms - 0", w);
    assert_refused("ELATER_ARGS", "later_v1_collect %s 1 mail '' h ms - 0", w);
    assert_refused("ELATER_ARGS", "later_v1_collect %s 1 mail z h h - 0", w);
    assert_refused("ELATER_ARGS", "later_v1_collect %s 1 mail z h ms x 0", w);
    assert_refused("ELATER_ARGS", "later_v1_collect %s 1 mail z h ms - x", w);
    assert_refused("ELATER_QUEUE", "later_v1_collect %s 1 a.b z h ms - 0", w);
    assert_refused("ELATER_WORKER", "later_v1_collect 7 1 mail z h ms - 0");
}

/* What is wrong with one queue is told, and the others are served. */
static void test_one_alone(void **state)
{
    static const char *const wrong[][2] = {
        {"list ''", "'list' is a list, no sorted set"},
        {"z list", "'list' is a list, no hash"},
        {"R:heads ''", "belongs to this namespace"},
    };
    const char *w = worker();

    (void)state;
    (void)redis("RPUSH list x");
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        (void)redis("ZADD z 1 a");
        (void)redis("ZADD y 1 b%zu", i);
        collect("%s 2 mail %s ms - 0 web y '' ms - 0", w, wrong[i][0]);
        assert_starts(row(), "- 0 0 ");
        assert_non_null(strstr(row(), wrong[i][1]));
        assert_string_equal(at(2, 3, -1), "1");
    }
    assert_string_equal(redis("ZRANGE z 0 -1"), "[a]");
    assert_int_equal(jobs("mail"), 0);
    assert_int_equal(jobs("web"), 3);
    (void)redis("HKEYS R:notes");
    assert_starts(at(0, -1), "bad-adoption:mail ");
}

/* A call is short, whatever is due: the next one goes on. */
static void test_pages(void **state)
{
    const char *w = worker(), *waits;
    int calls = 0;

    (void)state;
    waits = text("%lld", (long long)now_ms() - 5000);
    for (int i = 0; i < 200; i++)
        (void)redis("ZADD z %s waits%d", waits, i);
    for (int i = 0; i < 100; i++)
        (void)redis("ZADD z %s.5 works%d", waits, i);
    for (int i = 0; i < 100; i++)
        (void)redis("HSET h works%d x", i);
    collect("%s 2 mail z h ms - 0 web y '' ms - 0", w);
    assert_string_equal(row(), "128 0 0 ");
    assert_string_equal(at(2, 2, -1), "0"); /* nothing was looked at */
    for (; strcmp(at(1, 2, -1), "-") != 0; calls++)
        collect("%s 1 mail z h ms - %s", w, at(1, 2, -1));
    assert_int_equal(calls, 2);
    assert_int_equal(jobs("mail"), 100);
    assert_string_equal(redis("ZCARD z"), "200");
    /* A megabyte ends it, too. */
    (void)redis("DEL z h");
    for (int i = 0; i < 3; i++)
        (void)redis("ZADD z 1 %0600000d", i);
    collect("%s 1 mail z '' ms - 0", w);
    assert_string_equal(row(), "0 2 0 ");
    collect("%s 1 mail z '' ms - 0", w);
    assert_string_equal(row(), "- 1 0 ");
}

static void test_rights_and_memory(void **state)
{
    const char *w = worker(), *got;

    (void)state;
    (void)redis("ZADD z 1 a");
    (void)redis("CONFIG SET maxmemory 1");
    got = fcall("later_v1_collect %s 1 mail z '' ms - 0", w);
    (void)redis("CONFIG SET maxmemory 0");
    assert_starts(got, "!OOM ");
    (void)redis("ACL SETUSER default resetkeys ~later:* %%R~z");
    collect("%s 1 mail z '' ms - 0", w);
    assert_string_equal(row(), "- 0 0 NOPERM this user may not ZREM 'z'");
    (void)redis("ACL SETUSER default resetkeys ~later:*");
    collect("%s 1 mail z '' ms - 0", w);
    assert_starts(row(), "- 0 0 ");
    assert_non_null(strstr(row(), "has no right to its keys"));
    (void)redis("ACL SETUSER default ~*");
    assert_string_equal(redis("ZRANGE z 0 -1"), "[a]");
    assert_int_equal(jobs("mail"), 0);
    collect("%s 1 mail z '' ms - 0", w);
    assert_string_equal(row(), "- 1 0 ");
}

static bool is_cluster_ready(void *arg)
{
    struct reply *r = test_redis_call(arg, "CLUSTER", "INFO", NULL);
    bool is_ready = strstr(reply_str(r), "cluster_state:ok") != NULL;

    reply_free(r);
    return is_ready;
}

/* The answer of a cluster about a foreign set of one member. */
static const char *collect_there(struct test_redis *r, const char *epoch, const char *key)
{
    struct reply *got;
    const char *said;

    reply_free(test_redis_call(r, "ZADD", key, "1", "a", NULL));
    got = test_redis_call(r, "FCALL", "later_v1_collect", "1", ROOT, epoch, "1", "mail", key, "",
                          "ms", "-", "0", NULL);
    said = shown(reply_at(got, 1));
    reply_free(got);
    return said;
}

static void test_cluster(void **state)
{
    static const char *const args[] = {"--cluster-enabled", "yes", NULL};
    static const char *const adopt[] = {
        "FCALL", "later_v1_adopt", "1", ROOT, "mail", "z", "", "ms", "0", "", "", "2"};
    struct test_redis cluster;
    struct err err = ERR_INIT;
    struct client *c;
    struct reply *r;
    const char *epoch;

    (void)state;
    test_redis_start(&cluster, args);
    reply_free(test_redis_call(&cluster, "CLUSTER", "ADDSLOTSRANGE", "0", "16383", NULL));
    assert_true(test_until(is_cluster_ready, &cluster, 20000));
    test_redis_load(&cluster);
    r = test_redis_call(&cluster, "FCALL", "later_v1_register", "1", ROOT, "0", "i", "1", "0", "0",
                        "0", "0", NULL);
    epoch = shown(reply_at(r, 1));
    reply_free(r);
    assert_starts(collect_there(&cluster, epoch, "z"),
                  "[- - - 0 0 its keys are in another slot than this namespace");
    assert_string_equal(collect_there(&cluster, epoch, "{t}z"), "[- - - 1 0 ]");
    c = test_redis_client(&cluster, &err);
    assert_null(client_call(c, 12, adopt, NULL, &err));
    assert_starts(err.text, "ELATER_ARGS its keys are in another slot than this namespace");
    client_close(c);
    test_redis_stop(&cluster);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FX_TEST(test_with_bodies),
        FX_TEST(test_members_alone),
        FX_TEST(test_waits_for_its_field),
        FX_TEST(test_no_jobs),
        FX_TEST(test_wrong_unit),
        FX_TEST(test_many_dead),
        FX_TEST(test_not_fit_for_its_queue),
        FX_TEST(test_refused),
        FX_TEST(test_one_alone),
        FX_TEST(test_pages),
        FX_TEST(test_rights_and_memory),
        FX_TEST(test_cluster),
    };

    return cmocka_run_group_tests(tests, fx_open, fx_close);
}
