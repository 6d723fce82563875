/* The keeper where Redis refuses what it asks: full, a replica, without a disk or replicas. */
#include "keeper_world.h"

static const struct refusal {
    enum error_class class;
    const char *text;
} refusals[] = {
    {ERROR_CLASS_FULL, "OOM command not allowed"},
    {ERROR_CLASS_FULL, "MISCONF Redis cannot save"},
    {ERROR_CLASS_FULL, "NOREPLICAS Not enough good replicas"},
    {ERROR_CLASS_MOVED, "READONLY You can't write"},
};
#define N (sizeof(refusals) / sizeof(refusals[0]))

/* Refuse each question from now on, and let the link come back each time. */
static void refuse_until_over(const struct refusal *r)
{
    for (int i = 0; i < 1000 && !world.is_done; i++) {
        const char *calls = "RDEnNLPAMV";
        char last = world.n > 0 ? world.log[world.n - 1] : ' ';

        world.n = 0;
        world.log[0] = '\0';
        if (strchr(calls, last) != NULL)
            keeper_on_error(keeper, now, r->class, r->text);
        if (world.n > 0 && strchr(world.log, '/') != NULL) {
            now = mono_add_ms(now, 300);
            keeper_link_up(keeper, now);
        }
        until_out();
    }
}

static void until_refused(const struct refusal *r, struct mono since, int64_t wait_ms, bool is_once)
{
    keeper_free(keeper);
    begin_with(&(struct keeper_conf){.wait_ms = wait_ms, .is_once = is_once});
    since = now;
    keeper_link_up(keeper, now);
    refuse_until_over(r);
    assert_true(world.is_done);
    assert_int_equal(world.end, KEEPER_FAILED);
    assert_string_equal(world.told, r->text);
    assert_in_range(gone_ms(since), wait_ms, wait_ms + 1000);
}

/* Who gives up says why, and that is not that another has it. */
static void test_it_ends_in_time_with_the_reason(void **state)
{
    (void)state;
    for (size_t i = 0; i < N; i++) {
        until_refused(&refusals[i], now, 3000, false);
        until_refused(&refusals[i], now, 3000, true);
        until_refused(&refusals[i], now, 0, false);
        until_refused(&refusals[i], now, 0, true);
    }
}

/* It was registered before, as where Redis is full: beats are answered, and only they. */
static void test_a_beat_is_no_permit(void **state)
{
    struct mono since;

    (void)state;
    begin(false, 12000, 0);
    since = now;
    keeper_link_up(keeper, now);
    registered();
    for (int i = 0; i < 100 && !world.is_done; i++) {
        char last = world.n > 0 ? world.log[world.n - 1] : ' ';

        world.n = 0;
        if (last == 'N')
            keeper_on_error(keeper, now, refusals[0].class, refusals[0].text);
        else if (last == 'E')
            beaten(STORE_OK);
        else if (last == 'V')
            keeper_on_left(keeper, now, true);
        until_out();
    }
    assert_int_equal(world.end, KEEPER_FAILED);
    assert_string_equal(world.told, refusals[0].text);
    assert_int_equal(world.times_told, 1);
    assert_int_equal(gone_ms(since), 12000);
}

/* Who waits for ever says what for, once; not at the first refusal, which may be a failover. */
static void test_who_waits_says_what_for_once(void **state)
{
    (void)state;
    for (size_t i = 0; i < N; i++) {
        keeper_free(keeper);
        begin(false, -1, 0);
        keeper_link_up(keeper, now);
        for (int times = 1; times < 20; times++) {
            until_out();
            assert_int_equal(world.log[0], 'R');
            world.n = 0;
            world.log[0] = '\0';
            keeper_on_error(keeper, now, refusals[i].class, refusals[i].text);
            assert_int_equal(world.times_told, times > 1);
            if (refusals[i].class == ERROR_CLASS_MOVED) {
                out("/");
                keeper_link_up(keeper, now);
            }
        }
        assert_non_null(strstr(world.told, refusals[i].text));
        until_out();
        registered();
        entered(true);
        out("RNS");
    }
}

/* A holder whose beats are refused gets its time for an orderly end, and the reason. */
static void test_a_holder_is_told_of_refused_beats(void **state)
{
    (void)state;
    for (size_t i = 0; i < N; i++) {
        keeper_free(keeper);
        come_in(false, 0);
        for (int asked = 0; asked < 100 && strchr(world.log, 't') == NULL; asked++) {
            until_out();
            if (world.log[0] != 'E')
                break;
            world.n = 0;
            world.log[0] = '\0';
            keeper_on_error(keeper, now, refusals[i].class, refusals[i].text);
            if (refusals[i].class == ERROR_CLASS_MOVED) {
                out("/");
                now = mono_add_ms(now, 300);
                keeper_link_up(keeper, now);
            }
        }
        assert_non_null(strchr(world.log, 't'));
        assert_non_null(strstr(world.told, "refused the beats for 12 s"));
        assert_non_null(strstr(world.told, refusals[i].text));
        assert_int_equal(world.times_told, 1);
    }
}

/* A lost link is none of them, also after a refusal. */
static void test_a_lost_link_is_silence(void **state)
{
    (void)state;
    come_in(false, 0);
    until_out();
    out("E");
    keeper_on_error(keeper, now, ERROR_CLASS_FULL, "MISCONF");
    keeper_link_down(keeper, now, ERROR_CLASS_LINK, "gone");
    until_out();
    out("t");
    assert_non_null(strstr(world.told, "did not answer for 12 s"));
}

/* Neither is it "taken" when the time is up and there is no link, or no answer. */
static void test_no_answer_is_not_taken(void **state)
{
    (void)state;
    begin(false, 2000, 0);
    keeper_link_up(keeper, now);
    registered();
    entered(false);
    out("RN");
    keeper_link_down(keeper, now, ERROR_CLASS_LINK, "gone");
    until_out();
    out("!");
    assert_int_equal(world.end, KEEPER_FAILED);
    assert_string_equal(world.told, "gone");
    keeper_free(keeper);
    begin(false, 2000, 0);
    keeper_link_up(keeper, now);
    out("R");
    until_out();
    out("!");
    assert_int_equal(world.end, KEEPER_FAILED);
    assert_string_equal(world.told, "Redis did not answer in time");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_it_ends_in_time_with_the_reason, done),
        cmocka_unit_test_teardown(test_a_beat_is_no_permit, done),
        cmocka_unit_test_teardown(test_who_waits_says_what_for_once, done),
        cmocka_unit_test_teardown(test_a_holder_is_told_of_refused_beats, done),
        cmocka_unit_test_teardown(test_a_lost_link_is_silence, done),
        cmocka_unit_test_teardown(test_no_answer_is_not_taken, done),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
