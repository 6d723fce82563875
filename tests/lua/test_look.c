/* later_v2_look: which queues a sync has to name. */
#include "fixture.h"

/* The names that later_v2_look tells of these, in their order. */
static const char *told(const char *soon, const char *names)
{
    const char *out = "";

    (void)fcall("later_v2_look %s %s", soon, names);
    for (int i = 2; i < len_at(-1); i++)
        out = text("%s%s ", out, at(i, -1));
    return out;
}

/* A look tells the queues that have a head due soon, a mark, a pause, a raw member, or jobs whose
 * head was lost. */
static void test_what_is_told(void **state)
{
    const char *all = "q0 q1 q2 q3 q4 q5 q6 q7 q8 nothing", *before;

    (void)state;
    assert_string_equal(told("2000", all), "");
    (void)add("q0 in 1h later");
    (void)add("q1 in 2s soon");
    (void)add("q2 now");
    (void)redis("ZADD R:due:q3 4000000000000 raw");
    (void)add("q4 in 1h later");
    (void)fcall("later_pause q4");
    (void)add("q5 in 1h priority 2 marked");
    (void)add("q6 in 1h lost");
    (void)redis("ZREM R:heads q6");
    (void)add("q7 in 1h later");
    (void)redis("ZADD R:due:q7 4000000000000 raw");
    (void)redis("HSET R:prio q8 s");
    before = snapshot();
    assert_string_equal(told("2000", all), "q1 q2 q3 q4 q5 q6 q7 q8 ");
    assert_string_equal(told("1", all), "q2 q3 q4 q5 q6 q7 q8 ");
    assert_string_equal(told("3700000", all), "q0 q1 q2 q3 q4 q5 q6 q7 q8 ");
    assert_string_equal(told("2000", "q6 nothing q4 q0 q1"), "q6 q4 q1 ");
    assert_string_equal(told("2000", "q0"), "");
    assert_string_equal(snapshot(), before);
    (void)redis("SET R:paused foreign");
    assert_refused("ELATER_TYPE", "later_v2_look 2000 q0");
    (void)redis("DEL R:paused R:heads");
    (void)redis("SET R:heads foreign");
    assert_refused("ELATER_TYPE", "later_v2_look 2000 q0");
}

static void test_time_and_timer(void **state)
{
    const char *seconds = text("%.*s", 9, (redis("TIME"), at(0, -1)));

    (void)state;
    assert_starts(fcall("later_v2_look 1 q0"), text("[%s", seconds));
    assert_int_equal(strlen(at(0, -1)), strlen("1767225600000000"));
    assert_string_equal(at(1, -1), "-1");
    (void)redis("ZADD R:timers 4000000000000 gate:lock:x");
    (void)fcall("later_v2_look 1 q0");
    assert_string_equal(at(1, -1), "4000000000000");
}

/* A sync that names the told queues learns what is in them, and a look tells them no more. */
static void test_a_sync_that_names_them(void **state)
{
    const char *w = worker();

    (void)state;
    (void)add("lost x");
    (void)redis("DEL R:heads");
    (void)redis("ZADD R:due:raw 1 y");
    assert_string_equal(told("1", "idle lost raw"), "lost raw ");
    (void)fcall_sync("%s 1 0 2 0 2 lost 1 9 raw 1 9", w);
    assert_int_equal(count_claimed(), 2);
    assert_string_equal(told("1", "idle lost raw"), "");
}

/* A fair queue keeps its flag. Without due jobs a look tells it only while it becomes fair, or is
 * so no more. */
static void test_a_fair_queue(void **state)
{
    const char *w = worker();

    (void)state;
    (void)add("fair key a in 1h later");
    (void)fcall("later_v1_declare %s 0 1 fair fair=1", w);
    assert_string_equal(told("1", "fair idle"), "fair ");
    for (int i = 0; i < 2; i++)
        (void)fcall_sync("%s 1 0 2 0 1 fair 1 9", w);
    assert_string_equal(redis("HGET R:prio fair"), "f");
    assert_string_equal(told("1", "fair idle"), "");
    assert_string_equal(told("3700000", "fair idle"), "fair ");
    (void)fcall_bytes(text("later_v1_declare %s 0 1 fair", w), "", 0);
    assert_string_equal(told("1", "fair idle"), "fair ");
    (void)fcall_sync("%s 1 0 2 0 1 fair 1 9", w);
    assert_string_equal(told("1", "fair idle"), "");
}

/* A look takes 1,000 names, and tells those of them that have something. */
static void test_many(void **state)
{
    const char *names = "q0";

    (void)state;
    for (int i = 1; i < 1000; i++)
        names = text("%s q%d", names, i);
    assert_string_equal(told("1", names), "");
    for (int i = 0; i < 1000; i += 333)
        (void)redis("ZADD R:due:q%d 1 raw", i);
    assert_string_equal(told("1", names), "q0 q333 q666 q999 ");
    for (int i = 0; i < 1000; i++)
        (void)redis("ZADD R:due:q%d 1 raw", i);
    assert_string_equal(told("1", names), text("%s ", names));
    assert_refused("ELATER_ARGS", "later_v2_look 1 %s more", names);
    assert_refused("ELATER_ARGS", "later_v2_look");
    assert_refused("ELATER_ARGS", "later_v2_look 1");
    assert_refused("ELATER_ARGS", "later_v2_look q1 q2");
}

int main(void)
{
    const struct CMUnitTest tests[] = {FX_TEST(test_what_is_told),
                                       FX_TEST(test_a_sync_that_names_them), FX_TEST(test_many),
                                       FX_TEST(test_a_fair_queue), FX_TEST(test_time_and_timer)};

    return cmocka_run_group_tests(tests, fx_open, fx_close);
}
