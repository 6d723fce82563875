/* Topics: who gets a copy, all or none, what cannot take its copy, and which file holds. */
#include "fixture.h"

static int jobs(const char *queue)
{
    (void)redis("ZCARD R:q:%s:5", queue);
    return (int)int_at(-1);
}

/* How many rows later_topics has. */
static int subscriptions(void)
{
    (void)fcall("later_topics");
    return (int)reply_count(fx.last) - 1;
}

static void test_names(void **state)
{
    static const char *const topics[] = {"''", "-a", ".a",     "a/b",
                                         "a*", "*",  "user.*", "a.b.c.d.e.f.g.h.i.j"};
    static const char *const names[] = {
        "''", "*.a", "a*", "**", ".*", "a.*.b", "a.b.c.d.e.f.g.h.i.*"};

    (void)state;
    for (size_t i = 0; i < sizeof(topics) / sizeof(topics[0]); i++)
        assert_refused("ELATER_TOPIC", "later_publish %s x", topics[i]);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        assert_refused("ELATER_TOPIC", "later_subscribe %s mail", names[i]);
    assert_refused("ELATER_QUEUE", "later_subscribe a a.b");
    assert_refused("ELATER_ARGS", "later_publish a");
    assert_refused("ELATER_ARGS", "later_publish a key k");
    assert_refused("ELATER_OPTION", "later_publish a lock l x");
    assert_refused("ELATER_OPTION", "later_publish a unique u x");
    assert_string_equal(redis("KEYS *"), "[]");
    assert_string_equal(fcall("later_publish %s x", text("%0128d", 1)), "[0]");
    assert_refused("ELATER_TOPIC", "later_publish %s x", text("%0129d", 1));
}

static void test_who_gets_a_copy(void **state)
{
    const char *id;

    (void)state;
    assert_string_equal(fcall("later_subscribe user.new mail"), "[user.new mail subscribed]");
    assert_string_equal(fcall("later_subscribe user.new mail"), "[user.new mail repeated]");
    (void)fcall("later_subscribe user.* mail");
    (void)fcall("later_subscribe user.* audit");
    (void)fcall("later_subscribe * log");
    (void)fcall("later_subscribe user.new.again other");
    (void)fcall("later_publish user.new key k priority 3 trace " TRACE " attempts 2 hello");
    assert_int_equal(int_at(0, -1), 3);
    assert_string_equal(at(1, 0, -1), "audit");
    assert_string_equal(at(2, 0, -1), "log");
    assert_string_equal(at(3, 0, -1), "mail"); /* once, though two subscriptions fit */
    assert_string_equal(at(3, 2, -1), "added");
    id = at(3, 1, -1);
    assert_string_equal(redis("HGET R:jobs %s", id),
                        "-mail 3 a=2 K=k T=" TRACE " P=user.new\\nhello");
    (void)fcall("later_show %s", id);
    assert_string_equal(named("topic"), "user.new");
    assert_int_equal(jobs("other"), 0);
    (void)fcall("later_publish user.new.again x"); /* below user. as well */
    assert_int_equal(int_at(0, -1), 4);
    (void)fcall("later_publish user x");
    assert_int_equal(int_at(0, -1), 1); /* only the log: user.* is what begins with `user.` */
    (void)fcall("later_unsubscribe * log");
    assert_string_equal(fcall("later_publish user x"), "[0]");
    assert_string_equal(fcall("later_unsubscribe * log"), "[* log repeated]");
    assert_int_equal(subscriptions(), 4);
}

static void test_repeated(void **state)
{
    const char *id;

    (void)state;
    (void)fcall("later_subscribe a one");
    (void)fcall("later_publish a token t x");
    id = at(1, 1, -1);
    (void)fcall("later_subscribe a two");
    (void)fcall("later_publish a token t x");
    assert_string_equal(at(1, 1, -1), id);
    assert_string_equal(at(1, 2, -1), "repeated");
    assert_string_equal(at(2, 2, -1), "added"); /* it has subscribed meanwhile */
    assert_int_equal(jobs("one"), 1);
    assert_refused("ELATER_TOKEN", "later_publish a token t y");
    assert_non_null(strstr(fcall("later_publish a token t y"), "token 't' was used"));
    assert_int_equal(jobs("two"), 1);
    /* Another topic is another event; an add with such a token is no copy. */
    (void)fcall("later_subscribe b one");
    assert_refused("ELATER_TOKEN", "later_publish b token t x");
    (void)fcall("later_add one token u@one x");
    (void)fcall("later_publish b token u x");
    assert_string_equal(at(1, 2, -1), "added");
}

/* All or none: no subscriber has a copy. */
static void test_full(void **state)
{
    const char *got, *before;

    (void)state;
    (void)fcall("later_subscribe a one");
    (void)fcall("later_subscribe a.* two");
    before = snapshot();
    (void)redis("CONFIG SET maxmemory 1");
    got = fcall("later_publish a x");
    (void)redis("CONFIG SET maxmemory 0");
    assert_starts(got, "!OOM ");
    assert_string_equal(snapshot(), before);
}

/* A queue that cannot take its copy has it among its dead. */
static void test_buried(void **state)
{
    const char *id;

    (void)state;
    (void)redis("HSET R:config max_payload:small 2000");
    (void)redis("HSET R:queues keyed lock=user:{key}");
    (void)fcall("later_subscribe a fine");
    (void)fcall("later_subscribe a keyed");
    (void)fcall("later_subscribe a small");
    (void)fcall("later_publish a %s", text("%02001d", 1));
    assert_string_equal(at(1, 2, -1), "added");
    assert_string_equal(at(2, 2, -1), "buried");
    assert_string_equal(at(3, 2, -1), "buried");
    (void)fcall("later_show %s", at(3, 1, -1));
    assert_string_equal(named("state"), "dead");
    assert_non_null(strstr(named("outcome"), "2001 bytes"));
    assert_string_equal(named("payload_bytes"), "2001");
    assert_int_equal(jobs("small"), 0);
    (void)fcall("later_publish a key k x");
    assert_string_equal(at(2, 2, -1), "added");
    assert_string_equal(at(3, 2, -1), "added");
    /* A key that is no name of a gate; repeated, it is not buried again. */
    (void)redis("HSET R:queues keyed lock={key}");
    (void)fcall("later_publish a key ~k token t x");
    id = at(2, 1, -1);
    assert_string_equal(at(2, 2, -1), "buried");
    (void)fcall("later_publish a key ~k token t x");
    assert_string_equal(at(2, 1, -1), id);
    assert_string_equal(at(2, 2, -1), "repeated");
    assert_string_equal(redis("ZCARD R:dead:keyed"), "2");
}

/* What was written by hand is no queue. */
static void test_by_hand(void **state)
{
    (void)state;
    (void)redis("HSET R:topics a b@d");
    assert_string_equal(fcall("later_publish a x"), "[0]");
    assert_starts(fcall("later_v1_repair topics '' 100"), "[ 1 [broken-topic a");
    assert_string_equal(redis("EXISTS R:topics"), "0");
    (void)redis("HSET R:topic:file mail 9007199254740991");
    assert_string_equal(fcall("later_v1_declare_topics %s 5 last 1 2 mail a", worker()),
                        "[[mail declared]]");
}

static void test_limits(void **state)
{
    (void)state;
    for (int i = 0; i < 100; i++)
        (void)fcall("later_subscribe a.%s q%d", i < 50 ? "*" : "b", i);
    (void)fcall("later_publish a.b x");
    assert_int_equal(int_at(0, -1), 100);
    (void)fcall("later_subscribe * more");
    assert_refused("ELATER_FULL", "later_publish a.b x");
    assert_int_equal(jobs("q99"), 1);
    assert_int_equal(jobs("more"), 0);
    for (int i = 0; i < 50; i++)
        (void)fcall("later_subscribe a.* r%d", i);
    assert_refused("ELATER_FULL", "later_subscribe a.* r50");
    (void)fcall("later_unsubscribe * more");
    (void)fcall("later_unsubscribe a.* r0");
    assert_refused("ELATER_FULL", "later_publish a.b x");                        /* 149 */
    assert_refused("ELATER_SIZE", "later_publish a.x %s", text("%0200000d", 1)); /* 99 copies */
    (void)redis("EVAL for\ti=1,10000\tdo\tredis.call('HSET',KEYS[1],'t'..i,'q')\tend 1 R:topics");
    assert_refused("ELATER_FULL", "later_subscribe new q");
    assert_string_equal(fcall("later_subscribe t1 other"), "[t1 other subscribed]");
}

static void test_files(void **state)
{
    const char *w = worker();
    long long r = now_ms() - 1000;

    (void)state;
    assert_string_equal(
        fcall("later_v1_declare_topics %s %lld last 2 3 mail a b.* 2 sms bad/name", w, r),
        "[[mail declared] [sms ELATER_TOPIC 'bad/name' is no subscription: a topic, PREFIX.* or "
        "*]]");
    assert_string_equal(fcall("later_topics"), "[0 [a mail file 0] [b.* mail file 0]]");
    (void)fcall("later_subscribe c mail");
    assert_string_equal(fcall("later_v1_declare_topics %s %lld last 1 2 mail b.*", w, r + 5),
                        "[[mail declared]]");
    assert_string_equal(fcall("later_topics"), "[0 [b.* mail file 0] [c mail call 0]]");
    assert_string_equal(fcall("later_v1_declare_topics %s %lld last 1 2 mail a", w, r + 4),
                        "[[mail older]]");
    assert_int_equal(subscriptions(), 2);
    (void)fcall("later_subscribe b.* mail"); /* no file says it any more */
    assert_string_equal(fcall("later_v1_declare_topics %s %lld last 1 1 mail", w, r + 6),
                        "[[mail declared]]");
    assert_string_equal(fcall("later_topics"), "[0 [b.* mail call 0] [c mail call 0]]");
    /* The same reading again, after a reconnect, does not bring back what was unsubscribed. */
    (void)fcall("later_v1_declare_topics %s %lld last 1 2 mail f", w, r + 7);
    (void)fcall("later_unsubscribe f mail");
    (void)fcall("later_v1_declare_topics %s %lld last 1 2 mail f", w, r + 7);
    assert_int_equal(subscriptions(), 2);
    /* What a call has said before stays the call's. */
    (void)fcall("later_v1_declare_topics %s %lld last 1 2 mail c", w, r + 8);
    (void)fcall("later_v1_declare_topics %s %lld last 1 1 mail", w, r + 9);
    assert_int_equal(subscriptions(), 2);
    assert_refused("ELATER_WORKER", "later_v1_declare_topics 99 1 last 0");
    assert_refused("ELATER_ARGS", "later_v1_declare_topics %s 1 last 1 3 mail a", w);
}

/* A queue that is gone is subscribed to nothing that a file said. */
static void test_forgotten(void **state)
{
    long long r = now_ms() - 1000;

    (void)state;
    (void)fcall("later_v1_declare_topics %s %lld last 1 3 mail a b.*", worker(), r);
    (void)fcall("later_subscribe b.* sms");
    (void)fcall("later_subscribe c mail");
    assert_string_equal(fcall("later_v1_forget mail"), "forgotten");
    assert_string_equal(fcall("later_topics"), "[0 [b.* sms call 0] [c mail call 0]]");
    assert_string_equal(redis("EXISTS R:topic:file"), "0");
    assert_string_equal(fcall("later_publish a x"), "[0]");
}

/* How often something was published that a subscription fits, as long as it has a queue. */
static void test_published(void **state)
{
    (void)state;
    (void)fcall("later_publish a.b x");
    assert_string_equal(redis("HGETALL R:stats"), "[unheard 1]");
    (void)fcall("later_subscribe a.* mail");
    (void)fcall("later_subscribe a.* sms");
    (void)fcall("later_subscribe * sms");
    (void)fcall("later_publish a.b token t x");
    (void)fcall("later_publish a.b token t x"); /* repeated: not counted */
    (void)fcall("later_publish b x");
    assert_string_equal(fcall("later_topics"),
                        "[0 [a.* mail call 1] [a.* sms call 1] [* sms call 2]]");
    (void)fcall("later_unsubscribe a.* mail");
    assert_string_equal(redis("HGET R:stats published:a.*"), "1");
    (void)fcall("later_unsubscribe a.* sms");
    assert_string_equal(redis("HGET R:stats published:a.*"), "nil");
    (void)fcall("later_subscribe a.* sms");
    assert_string_equal(fcall("later_topics"), "[0 [* sms call 2] [a.* sms call 0]]");
    assert_string_equal(redis("HGET R:stats unheard"), "1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FX_TEST(test_names),   FX_TEST(test_who_gets_a_copy), FX_TEST(test_repeated),
        FX_TEST(test_full),    FX_TEST(test_buried),          FX_TEST(test_limits),
        FX_TEST(test_files),   FX_TEST(test_forgotten),       FX_TEST(test_published),
        FX_TEST(test_by_hand),
    };

    return cmocka_run_group_tests(tests, fx_open, fx_close);
}
