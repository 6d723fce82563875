/*
 * Bursts of adds: what the first one found out the others do not ask again, and whatever changes it
 * is seen. EXEC runs its commands without a pause, so most of what is tried here happens within one
 * millisecond; each is tried often.
 */
#include "fixture.h"

#define TRIES 50

/* Commands that run behind one another without a pause. Their last replies are at(i, …). */
static void begin(void)
{
    assert_string_equal(redis("MULTI"), "OK");
}

static void end(void)
{
    assert_starts(redis("EXEC"), "[");
}

static int calls_of(const char *command)
{
    const char *stats = redis("INFO commandstats");
    const char *line = strstr(stats, text("cmdstat_%s:calls=", command));

    return line == NULL ? 0 : atoi(strchr(line, '=') + 1);
}

static int commands_of_burst(const char *queue, int adds)
{
    (void)redis("CONFIG RESETSTAT");
    begin();
    for (int i = 0; i < adds; i++)
        (void)fcall("later_add %s x", queue);
    end();
    return calls_of("zadd") + calls_of("hget");
}

/* In the time of its first add a burst needs neither the head of its queue nor its gates again. The
 * machine may pause: one of many has to be fast. */
static void test_asks_once(void **state)
{
    int least = 1000;

    (void)state;
    (void)add("mail x");
    for (int i = 0; i < 200 && least > 30; i++) {
        int n = commands_of_burst("mail", 20);

        least = n < least ? n : least;
    }
    assert_in_range(least, 20 + 2, 30);
    assert_string_equal(redis("ZCARD R:heads"), "1");
}

/* Any other function of ours may have changed it: a queue that was emptied has no head. */
static void test_claims_end_it(void **state)
{
    const char *w = serving("mail", 100);

    (void)state;
    for (int i = 0; i < TRIES; i++) {
        begin();
        (void)fcall("later_add mail x");
        (void)fcall("later_v1_step %s 1 0 10 0 1 mail 10 1048576", w);
        (void)redis("ZCARD R:heads");
        (void)fcall("later_add mail x");
        end();
        assert_int_equal(int_at(2, -1), 0);
        assert_string_equal(redis("ZRANGE R:heads 0 -1"), "[mail]");
        assert_string_not_equal(claim(w, "mail", 10), "nil");
        assert_string_equal(redis("ZCARD R:heads"), "0");
    }
}

static void test_gates_end_it(void **state)
{
    const char *w = serving("mail", 100);

    (void)state;
    for (int i = 0; i < TRIES; i++) {
        begin();
        (void)fcall("later_add mail x");
        (void)fcall("later_v1_declare %s 0 1 mail lock={key}", w);
        (void)fcall("later_add mail x");
        (void)fcall("later_v1_declare %s 0 1 mail ''", w);
        (void)fcall("later_add mail x");
        end();
        assert_starts(at(0, -1), "[j");
        assert_starts(at(2, -1), "!ELATER_KEY");
        assert_starts(at(4, -1), "[j");
    }
}

/* An earlier job lowers the head, whatever the burst knows. */
static void test_lowers_the_head(void **state)
{
    (void)state;
    for (int i = 0; i < TRIES; i++) {
        begin();
        (void)fcall("later_add mail in 2h x");
        (void)fcall("later_add mail in 1h x");
        (void)fcall("later_add mail in 2h x");
        (void)fcall("later_add mail in 30m x");
        (void)redis("ZSCORE R:heads mail");
        (void)redis("DEL R:clock R:jobs R:heads R:q:mail:5");
        end();
        assert_int_equal(int_at(4, -1), int_at(3, 2, -1));
    }
}

/* Each queue has a head and gates of its own. */
static void test_queues_in_turn(void **state)
{
    (void)state;
    for (int i = 0; i < TRIES; i++) {
        (void)redis("HSET R:queues gated lock={key}");
        begin();
        (void)fcall("later_add mail in 2h x");
        (void)fcall("later_add sms in 1h x");
        (void)fcall("later_add gated x");
        (void)fcall("later_add mail in 1h x");
        (void)fcall("later_add sms in 2h x");
        (void)redis("ZSCORE R:heads mail");
        (void)redis("ZSCORE R:heads sms");
        (void)redis("ZCARD R:heads");
        (void)redis("FLUSHALL");
        end();
        assert_starts(at(2, -1), "!ELATER_KEY");
        assert_int_equal(int_at(5, -1), int_at(3, 2, -1));
        assert_int_equal(int_at(6, -1), int_at(1, 2, -1));
        assert_int_equal(int_at(7, -1), 2);
    }
}

/* A refused add has taken back what it wrote; what was known before it may be gone with it. */
static void test_a_refusal_ends_it(void **state)
{
    (void)state;
    for (int i = 0; i < TRIES; i++) {
        (void)redis("FLUSHALL");
        begin();
        (void)fcall("later_add mail x");
        (void)redis("RENAME R:q:mail:5 aside");
        (void)redis("RPUSH R:q:mail:5 x");
        (void)fcall("later_add mail x");
        (void)redis("DEL R:q:mail:5 aside R:heads");
        (void)fcall("later_add mail x");
        end();
        assert_starts(at(3, -1), "!ELATER_TYPE");
        assert_string_equal(redis("ZRANGE R:heads 0 -1"), "[mail]");
        assert_string_equal(redis("ZCARD R:q:mail:5"), "1");
    }
}

/* The clock tells of a database that was emptied, or is another one. */
static void test_an_emptied_database(void **state)
{
    (void)state;
    for (int i = 0; i < TRIES; i++) {
        begin();
        (void)fcall("later_add mail x");
        (void)redis("FLUSHALL");
        (void)fcall("later_add mail x");
        end();
        assert_string_equal(redis("ZRANGE R:heads 0 -1"), "[mail]");
        assert_string_equal(redis("SMEMBERS R:names"), "[mail]");
        assert_string_equal(redis("HLEN R:jobs"), "1");
    }
}

/* It is forgotten of all queues, whichever meets it. */
static void test_emptied_for_all(void **state)
{
    (void)state;
    for (int i = 0; i < TRIES; i++) {
        begin();
        (void)fcall("later_add mail x");
        (void)redis("FLUSHALL");
        (void)fcall("later_add sms x");
        (void)fcall("later_add mail x");
        end();
        assert_string_equal(redis("ZCARD R:heads"), "2");
    }
}

static void test_another_database(void **state)
{
    (void)state;
    for (int i = 0; i < TRIES; i++) {
        (void)redis("FLUSHALL");
        begin();
        (void)fcall("later_add mail x");
        (void)redis("SELECT 1");
        (void)redis("HSET R:queues sms lock={key}");
        (void)fcall("later_add mail x");
        (void)redis("ZRANGE R:heads 0 -1");
        (void)redis("SELECT 0");
        (void)fcall("later_add sms x");
        (void)redis("SELECT 1");
        (void)fcall("later_add sms x");
        (void)redis("EXISTS R:clock");
        (void)redis("SELECT 0");
        end();
        assert_string_equal(at(4, -1), "[mail]");
        assert_starts(at(6, -1), "[j");
        assert_starts(at(8, -1), "!ELATER_KEY");
        assert_int_equal(int_at(9, -1), 1);
    }
}

/* Ahead of the time the clock is counted on by one, which proves nothing: no burst is tried then.
 */
static void test_a_clock_that_is_ahead(void **state)
{
    (void)state;
    (void)redis("SET R:clock %lld", (long long)(now_ms() + 3600000) * 1000);
    (void)commands_of_burst("mail", 20);
    assert_int_equal(calls_of("set"), 2 * 20);
    assert_string_equal(redis("HLEN R:jobs"), "20");
}

/* Two namespaces in turn. */
static void test_another_root(void **state)
{
    (void)state;
    for (int i = 0; i < TRIES; i++) {
        (void)redis("FLUSHALL");
        begin();
        (void)fcall("later_add mail x");
        (void)redis("FCALL later_add 1 later:{other} mail x");
        (void)fcall("later_add mail x");
        (void)redis("FCALL later_add 1 later:{other} mail x");
        end();
        assert_string_equal(redis("ZRANGE R:heads 0 -1"), "[mail]");
        assert_string_equal(redis("ZRANGE later:{other}:heads 0 -1"), "[mail]");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {FX_TEST(test_asks_once),
                                       FX_TEST(test_claims_end_it),
                                       FX_TEST(test_gates_end_it),
                                       FX_TEST(test_lowers_the_head),
                                       FX_TEST(test_queues_in_turn),
                                       FX_TEST(test_a_refusal_ends_it),
                                       FX_TEST(test_an_emptied_database),
                                       FX_TEST(test_emptied_for_all),
                                       FX_TEST(test_another_database),
                                       FX_TEST(test_another_root),
                                       FX_TEST(test_a_clock_that_is_ahead)};

    return cmocka_run_group_tests(tests, fx_open, fx_close);
}
