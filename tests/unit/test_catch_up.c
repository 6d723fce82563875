/* What a schedule does about occurrences whose time has passed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "schedule/catch_up.h"

#define MINUTE INT64_C(60000)
#define HOUR (60 * MINUTE)

static struct catch_up_rule every(const char *text, enum catch_up mode, int64_t window_ms)
{
    struct catch_up_rule rule = {.mode = mode, .window_ms = window_ms, .until_ms = TIMING_NEVER};

    assert_int_equal(timing_parse("every", text, NULL, &rule.timing, NULL), 0);
    return rule;
}

static void test_on_time(void **state)
{
    static const enum catch_up modes[] = {CATCH_UP_NONE, CATCH_UP_LAST, CATCH_UP_ALL};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct catch_up_rule rule = every("1m", modes[i], HOUR);
        struct catch_up_plan p;

        catch_up_decide(&rule, 10 * MINUTE, 10 * MINUTE + 3, &p);
        assert_int_equal(p.n, 1);
        assert_int_equal(p.at[0], 10 * MINUTE);
        assert_int_equal(p.missed, 0);
        assert_int_equal(p.next, 11 * MINUTE);
        catch_up_decide(&rule, 10 * MINUTE, 10 * MINUTE - 1, &p); /* it is early */
        assert_int_equal(p.n, 0);
        assert_int_equal(p.next, 10 * MINUTE);
    }
}

static void test_none(void **state)
{
    struct catch_up_rule rule = every("1h", CATCH_UP_NONE, HOUR);
    struct catch_up_plan p;

    (void)state;
    catch_up_decide(&rule, HOUR, HOUR + CATCH_UP_LATE_MS, &p);
    assert_int_equal(p.n, 1);
    catch_up_decide(&rule, HOUR, HOUR + CATCH_UP_LATE_MS + 1, &p);
    assert_int_equal(p.n, 0);
    assert_int_equal(p.missed, 1);
    assert_int_equal(p.next, 2 * HOUR);
    catch_up_decide(&rule, HOUR, 5 * HOUR + 1, &p);
    assert_int_equal(p.n, 1);
    assert_int_equal(p.at[0], 5 * HOUR);
    assert_int_equal(p.missed, 4);
}

static void test_last(void **state)
{
    struct catch_up_rule rule = every("1m", CATCH_UP_LAST, 24 * HOUR);
    struct catch_up_plan p;

    (void)state;
    catch_up_decide(&rule, MINUTE, 1500 * MINUTE, &p);
    assert_int_equal(p.n, 1);
    assert_int_equal(p.at[0], 1500 * MINUTE);
    assert_int_equal(p.missed, 1499);
    assert_int_equal(p.next, 1501 * MINUTE);
    rule = every("7d", CATCH_UP_LAST, 24 * HOUR);
    catch_up_decide(&rule, 7 * 24 * HOUR, 9 * 24 * HOUR, &p); /* older than the window */
    assert_int_equal(p.n, 0);
    assert_int_equal(p.missed, 1);
    assert_int_equal(p.next, 14 * 24 * HOUR);
}

static void test_all(void **state)
{
    struct catch_up_rule rule = every("1m", CATCH_UP_ALL, 24 * HOUR);
    struct catch_up_plan p;

    (void)state;
    catch_up_decide(&rule, MINUTE, 45 * MINUTE, &p);
    assert_int_equal(p.n, 45);
    assert_int_equal(p.at[0], MINUTE);
    assert_int_equal(p.at[44], 45 * MINUTE);
    assert_int_equal(p.missed, 0);
    assert_int_equal(p.next, 46 * MINUTE);
    /* 1,500 of them: the newest thousand, a hundred at a time */
    catch_up_decide(&rule, MINUTE, 1500 * MINUTE, &p);
    assert_int_equal(p.n, CATCH_UP_TIMES);
    assert_int_equal(p.missed, 500);
    assert_int_equal(p.at[0], 501 * MINUTE);
    assert_int_equal(p.next, 601 * MINUTE);
    catch_up_decide(&rule, p.next, 1500 * MINUTE, &p);
    assert_int_equal(p.n, CATCH_UP_TIMES);
    assert_int_equal(p.missed, 0);
    assert_int_equal(p.next, 701 * MINUTE);
    rule.window_ms = 10 * MINUTE;
    catch_up_decide(&rule, MINUTE, 1500 * MINUTE, &p);
    assert_int_equal(p.n, 11);
    assert_int_equal(p.missed, 1489);
}

/* A year of seconds is not counted one by one. */
static void test_very_many(void **state)
{
    struct catch_up_rule rule = every("1s", CATCH_UP_LAST, 24 * HOUR);
    struct zone *zone = zone_new("UTC", NULL);
    int64_t now = 365 * 24 * HOUR;
    struct catch_up_plan p;

    (void)state;
    catch_up_decide(&rule, 1000, now, &p);
    assert_int_equal(p.n, 1);
    assert_int_equal(p.at[0], now);
    assert_int_equal(p.missed, now / 1000 - 1);
    assert_int_equal(timing_parse("cron", "* * * * * *", zone, &rule.timing, NULL), 0);
    catch_up_decide(&rule, 1000, now, &p);
    assert_int_equal(p.n, 1);
    assert_int_equal(p.at[0], now);
    assert_true(p.missed >= 100000);
    assert_int_equal(p.next, now + 1000);
    zone_free(zone);
}

/* More lie in the window than are counted one by one: the newest all the same. */
static void test_very_many_in_the_window(void **state)
{
    struct zone *zone = zone_new("UTC", NULL);
    struct catch_up_rule rule = every("1s", CATCH_UP_LAST, 7 * 24 * HOUR);
    int64_t now = 3 * 24 * HOUR;
    struct catch_up_plan p;

    (void)state;
    for (int i = 0; i < 2; i++) {
        rule.mode = CATCH_UP_LAST;
        catch_up_decide(&rule, 1000, now, &p);
        assert_int_equal(p.n, 1);
        assert_int_equal(p.at[0], now);
        assert_int_equal(p.next, now + 1000);
        assert_true(p.missed >= 100000);
        rule.mode = CATCH_UP_ALL;
        catch_up_decide(&rule, 1000, now, &p);
        assert_int_equal(p.n, CATCH_UP_TIMES);
        assert_int_equal(p.at[0], now - (CATCH_UP_MAX - 1) * 1000);
        catch_up_decide(&rule, p.next, now, &p);
        assert_int_equal(p.missed, 0);
        assert_int_equal(timing_parse("cron", "* * * * * *", zone, &rule.timing, NULL), 0);
    }
    zone_free(zone);
}

static void test_bounds(void **state)
{
    struct catch_up_rule rule = every("1m", CATCH_UP_ALL, HOUR);
    struct catch_up_plan p;

    (void)state;
    rule.from_ms = 5 * MINUTE;
    rule.until_ms = 7 * MINUTE;
    assert_int_equal(catch_up_first(&rule, 0), 5 * MINUTE);
    assert_int_equal(catch_up_first(&rule, 5 * MINUTE), 6 * MINUTE);
    assert_int_equal(catch_up_first(&rule, 7 * MINUTE), TIMING_NEVER);
    catch_up_decide(&rule, 5 * MINUTE, 20 * MINUTE, &p);
    assert_int_equal(p.n, 3);
    assert_int_equal(p.next, TIMING_NEVER);
    catch_up_decide(&rule, TIMING_NEVER, 20 * MINUTE, &p);
    assert_int_equal(p.n, 0);
    assert_int_equal(p.next, TIMING_NEVER);
}

static void test_words(void **state)
{
    enum catch_up mode;

    (void)state;
    assert_int_equal(catch_up_parse("none", &mode), 0);
    assert_int_equal(mode, CATCH_UP_NONE);
    assert_int_equal(catch_up_parse("all", &mode), 0);
    assert_int_equal(mode, CATCH_UP_ALL);
    assert_int_equal(catch_up_parse("some", &mode), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_on_time),   cmocka_unit_test(test_none),
        cmocka_unit_test(test_last),      cmocka_unit_test(test_all),
        cmocka_unit_test(test_very_many), cmocka_unit_test(test_very_many_in_the_window),
        cmocka_unit_test(test_bounds),    cmocka_unit_test(test_words),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
