/* R:clock: ids rise whatever happens to it, although the library remembers what it wrote last. */
#include <unistd.h>

#include "fixture.h"

static int64_t clock_now(void)
{
    (void)redis("GET R:clock");
    return reply_int(fx.last);
}

/* The clock goes on from whatever is higher: its last number or the time. */
static void test_goes_on(void **state)
{
    static const char *const odd[] = {"junk", "0",   "7",   "-1",   "1junkjunkjunkjun",
                                      "1e3",  "inf", "nan", "0x1f", "99999999999999999999"};
    int64_t now_us = now_ms() * 1000;
    const char *a, *b;

    (void)state;
    (void)redis("SET R:clock %lld", (long long)now_us + 3600000000);
    a = add("mail x");
    b = add("mail x");
    assert_true(strcmp(a, b) < 0);
    assert_string_equal(redis("GET R:clock"), text("%lld", (long long)now_us + 3600000002));
    /* The library cannot have written any of these, however they compare with a time. */
    for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
        (void)redis("SET R:clock %s", odd[i]);
        (void)add("mail x");
        assert_true(clock_now() >= now_us && clock_now() < now_us + 60000000);
    }
}

/* Somebody else writes or removes the clock between two adds: the library goes on as if it had
 * never seen another value. */
static void test_somebody_else_wrote(void **state)
{
    static const char *const odd[] = {"",    "junk", "0",   "-5",  "9223372036854775807",
                                      "1.5", "1e15", "inf", "007", "99999999999999999999"};
    int64_t now_us = now_ms() * 1000, far = now_us + 7200000000;
    const char *a, *b;

    (void)state;
    for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
        a = add("mail x");
        (void)(odd[i][0] == '\0' ? redis("DEL R:clock") : redis("SET R:clock %s", odd[i]));
        b = add("mail x");
        assert_true(clock_now() >= now_us && clock_now() < now_us + 60000000);
        assert_true(strcmp(a, b) < 0);
    }
    a = add("mail x");
    (void)redis("SET R:clock %lld", (long long)far);
    b = add("mail x");
    assert_true(strcmp(a, b) < 0);
    assert_int_equal(clock_now(), far + 1);
    (void)fcall("later_add_many mail a b c");
    assert_int_equal(clock_now(), far + 4);
}

/* The numbers follow Redis' TIME, also into the next second. */
static void test_follows_the_time(void **state)
{
    (void)state;
    for (int i = 0; i < 24; i++) {
        int64_t before = now_ms();

        (void)add("mail x");
        assert_true(clock_now() >= before * 1000);
        assert_true(clock_now() <= now_ms() * 1000 + 999);
        (void)usleep(50000);
    }
}

/* Each namespace has a clock of its own. */
static void test_two_namespaces(void **state)
{
    int64_t far = now_ms() * 1000 + 3600000000;

    (void)state;
    (void)redis("SET R:clock %lld", (long long)far);
    for (int i = 1; i <= 3; i++) {
        (void)add("mail x");
        assert_int_equal(clock_now(), far + i);
        assert_starts(redis("FCALL later_add 1 later:{other} mail x"), "[j");
        (void)redis("GET later:{other}:clock");
        assert_true(reply_int(fx.last) < far);
    }
}

/* A refused add takes its number back, and the next add goes on from there. */
static void test_put_back(void **state)
{
    const char *a = add("mail x"), *b;

    (void)state;
    (void)redis("RPUSH R:q:sms:5 x");
    (void)add("mail x");
    assert_refused("ELATER_TYPE", "later_add sms x");
    (void)add("mail x");
    (void)redis("DEL R:clock");
    assert_refused("ELATER_TYPE", "later_add sms x");
    (void)add("mail x");
    (void)redis("SET R:clock 0");
    assert_refused("ELATER_TYPE", "later_add sms x");
    (void)redis("DEL R:q:sms:5");
    b = add("sms x");
    assert_true(strcmp(a, b) < 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {FX_TEST(test_goes_on), FX_TEST(test_somebody_else_wrote),
                                       FX_TEST(test_follows_the_time), FX_TEST(test_two_namespaces),
                                       FX_TEST(test_put_back)};

    return cmocka_run_group_tests(tests, fx_open, fx_close);
}
