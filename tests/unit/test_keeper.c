/* The keeper of a permit of a gate: every answer and every missing answer, in virtual time. */
#include "keeper_world.h"
#include "sched/session.h"

static void test_it_comes_in_and_goes(void **state)
{
    (void)state;
    come_in(false, 0);
    assert_int_equal(world.fence, 77);
    assert_true(world.must_end);
    until_out();
    out("E");
    beaten(STORE_OK);
    out("");
    keeper_on_end(keeper, now, KEEPER_ENDED);
    out("V");
    keeper_on_left(keeper, now, true);
    out("!");
    assert_int_equal(world.end, KEEPER_RAN);
    assert_string_equal(world.told, "");
}

static void test_what_cannot_run_gives_its_permit_back(void **state)
{
    (void)state;
    begin(false, 0, 0);
    world.cannot_run = true;
    keeper_link_up(keeper, now);
    registered();
    entered(true);
    out("RnSV");
}

static void test_it_starts_only_behind_a_fresh_beat(void **state)
{
    (void)state;
    begin(false, -1, 0);
    world.admits = false;
    keeper_link_up(keeper, now);
    registered();
    entered(true);
    out("RNE");
    world.admits = true;
    beaten(STORE_OK);
    out("S");
}

/* The permit may be lost with what had not reached the replica, or be given out there twice. */
static void test_a_failover(void **state)
{
    (void)state;
    begin(false, -1, 0);
    keeper_link_up(keeper, now);
    registered();
    entered(false);
    keeper_link_down(keeper, now, ERROR_CLASS_LINK, "gone");
    keeper_failed_over(keeper);
    keeper_link_up(keeper, now);
    out("RNE");
    beaten(STORE_OK);
    entered(true);
    out("N");
    now = mono_add_ms(now, SESSION_FAILOVER_MS - 1);
    keeper_on_timer(keeper, now);
    out("");
    until_out();
    beaten(STORE_OK);
    out("ES");
    assert_int_equal(gone_ms((struct mono){1000000}), SESSION_FAILOVER_MS);
    /* Inside: it is asked for again, and nothing is told if it is there as it was. */
    keeper_link_down(keeper, now, ERROR_CLASS_LINK, "gone");
    keeper_failed_over(keeper);
    keeper_link_up(keeper, now);
    beaten(STORE_OK);
    out("En");
    entered(true);
    assert_int_equal(world.times_told, 0);
    keeper_link_down(keeper, now, ERROR_CLASS_LINK, "gone");
    keeper_failed_over(keeper);
    keeper_link_up(keeper, now);
    beaten(STORE_OK);
    out("En");
    entered(false);
    out("k");
}

/* A new master may take no writes until it has a replica. The others come when it does. */
static void test_a_failover_to_one_that_refuses(void **state)
{
    struct mono since;

    (void)state;
    begin(false, -1, 0);
    keeper_link_up(keeper, now);
    registered();
    entered(false);
    keeper_link_down(keeper, now, ERROR_CLASS_LINK, "gone");
    keeper_failed_over(keeper);
    keeper_link_up(keeper, now);
    out("RNE");
    for (int i = 0; i < 6; i++) {
        keeper_on_error(keeper, now, ERROR_CLASS_FULL, "NOREPLICAS Not enough good replicas");
        until_out();
        out("E");
    }
    since = now;
    beaten(STORE_OK);
    entered(true);
    out("N");
    until_out();
    out("E");
    assert_int_equal(mono_until_us(since, now), SESSION_FAILOVER_MS * 1000);
    beaten(STORE_OK);
    out("S");
}

/* What was granted is asked for again: the other server may know nothing of it. */
static void test_a_failover_before_the_start(void **state)
{
    (void)state;
    begin(false, -1, 0);
    world.admits = false;
    keeper_link_up(keeper, now);
    registered();
    entered(true);
    keeper_link_down(keeper, now, ERROR_CLASS_LINK, "gone");
    keeper_failed_over(keeper);
    keeper_link_up(keeper, now);
    world.admits = true;
    out("RNEE");
    beaten(STORE_OK);
    out("N");
    entered(false);
    out("");
}

static void test_it_waits_for_its_turn(void **state)
{
    (void)state;
    begin(false, -1, 0);
    keeper_link_up(keeper, now);
    registered();
    entered(false);
    out("RN");
    /* A wake for another epoch or for a queue. */
    keeper_on_wake(keeper, now, "@999");
    keeper_on_wake(keeper, now, "mail");
    out("");
    keeper_on_wake(keeper, now, "@1000");
    out("N");
    entered(false);
    /* A wake may be lost: the keeper asks again after each beat. */
    until_out();
    out("E");
    beaten(STORE_OK);
    out("N");
    entered(true);
    out("S");
}

static void test_it_does_not_wait(void **state)
{
    (void)state;
    begin(false, 0, 0);
    keeper_link_up(keeper, now);
    registered();
    entered(false);
    out("RnL");
    heard(4000);
    out("V");
    keeper_on_left(keeper, now, true);
    out("!");
    assert_int_equal(world.end, KEEPER_BUSY);
}

static void test_it_waits_so_long(void **state)
{
    struct mono since;

    (void)state;
    begin(false, 2500, 0);
    since = now;
    keeper_link_up(keeper, now);
    registered();
    entered(false);
    out("RN");
    until_out();
    assert_int_equal(gone_ms(since), 2500);
    out("L");
    heard(4000);
    out("V");
}

/* -n says that the holder may be dead, and does not wait for that. */
static void test_it_does_not_wait_for_a_silent_holder(void **state)
{
    (void)state;
    begin(false, 0, 0);
    keeper_link_up(keeper, now);
    registered();
    entered(false);
    out("RnL");
    heard(60000);
    out("V");
    assert_non_null(strstr(world.told, "has been silent for 60 s"));
    keeper_on_left(keeper, now, true);
    out("!");
    assert_int_equal(world.end, KEEPER_BUSY);
}

/* What is certainly dead is reaped at once, also with -n; but no longer than a second. */
static void test_it_reaps_a_dead_holder_at_once(void **state)
{
    const struct store_peer peer = {PEER, "5", "", "", "", "", ""};
    struct mono since;

    (void)state;
    for (int reaped = 0; reaped < 2; reaped++) {
        keeper_free(keeper);
        begin(false, 0, 0);
        since = now;
        world.is_gone = true;
        keeper_link_up(keeper, now);
        registered_with(&peer, 1);
        entered(false);
        out("RCnN");
        entered(false);
        if (reaped) {
            keeper_on_cleared(keeper, now, PEER, true);
            keeper_on_reaped(keeper, now, STORE_REAP_DONE, 0);
            entered(true);
            out("PNS");
            continue;
        }
        until_out();
        out("V");
        assert_int_equal(gone_ms(since), KEEPER_REAP_MS);
    }
}

/* Redis' clock is set during two and a half seconds of waiting. */
static void wait_through_step(int64_t step_ms)
{
    keeper_free(keeper);
    begin(false, 2500, 0);
    keeper_link_up(keeper, now);
    registered();
    entered(false);
    out("RN");
    world.redis_later_ms += step_ms;
    until_out();
    out("L");
}

static void test_a_step_of_the_clock_is_no_silence(void **state)
{
    const int64_t hour_ms = 3600000;

    (void)state;
    /* The other worker's last beat was before the step of the clock, or after it. */
    wait_through_step(hour_ms);
    heard(hour_ms + 4000);
    out("V");
    wait_through_step(hour_ms);
    heard(1000);
    out("V");
    wait_through_step(-hour_ms);
    heard(4000 - hour_ms);
    out("V");
    wait_through_step(-hour_ms);
    heard(1000);
    out("V");
    /* It was unheard all the same. */
    wait_through_step(hour_ms);
    heard(hour_ms + 60000);
    out("N");
    wait_through_step(-hour_ms);
    heard(60000 - hour_ms);
    out("N");
}

/* A beat in the future (Redis' clock was set back earlier) does not show that its worker lives. */
static void test_a_beat_in_the_future_is_none(void **state)
{
    (void)state;
    begin_once();
    entered(false);
    out("RnL");
    heard(4000 - 3600000);
    out("N");
}

/* A worker is gone: what it left running is ended before anybody takes what it held. */
static void test_one_that_is_gone_is_cleared_first(void **state)
{
    const struct store_peer peer = {PEER, "5", "", "", "", "", ""};

    (void)state;
    begin(false, -1, 0);
    keeper_link_up(keeper, now);
    world.is_gone = true;
    registered_with(&peer, 1);
    entered(false);
    out("RCN");
    /* It is not known that nothing is left: the keeper asks again after the next beat. */
    keeper_on_cleared(keeper, now, PEER, false);
    until_out();
    beaten_with(STORE_OK, &peer, 1);
    entered(false);
    out("ECN");
    keeper_on_cleared(keeper, now, PEER, true);
    out("P");
}

static void test_a_dead_link_ends_the_command(void **state)
{
    struct mono since;

    (void)state;
    come_in(false, 0);
    since = now;
    keeper_link_down(keeper, now, ERROR_CLASS_LINK, "gone");
    until_out();
    assert_int_equal(gone_ms(since), KEEPER_TERM_MS);
    out("t");
    until_out();
    assert_int_equal(gone_ms(since), KEEPER_KILL_MS);
    out("k");
    keeper_on_end(keeper, now, KEEPER_ENDED);
    out("k");
    until_out();
    out("!");
    assert_int_equal(world.end, KEEPER_LOST);
}

/* An answer counts from when its beat was sent, so a late one is no fresh beat. */
static void test_an_old_answer_is_no_news(void **state)
{
    struct mono since;

    (void)state;
    come_in(false, 0);
    since = now;
    until_out();
    out("E");
    now = mono_add_ms(since, 11000);
    beaten(STORE_OK);
    until_out();
    out("E");
    until_out();
    assert_int_equal(gone_ms(since), 5000 + KEEPER_TERM_MS);
    out("t");
}

static void test_a_short_outage_is_nothing(void **state)
{
    (void)state;
    come_in(false, 0);
    keeper_link_down(keeper, now, ERROR_CLASS_LINK, "gone");
    now = mono_add_ms(now, 10000);
    keeper_link_up(keeper, now);
    out("E");
    beaten(STORE_OK);
    now = mono_add_ms(now, 4000);
    keeper_on_timer(keeper, now);
    out("");
}

static void test_who_was_given_up_ends_at_once(void **state)
{
    (void)state;
    come_in(false, 0);
    until_out();
    beaten(STORE_GIVEN_UP);
    out("Ek");
    keeper_on_end(keeper, now, KEEPER_ENDED);
    out("k!");
    assert_int_equal(world.end, KEEPER_LOST);
}

static void test_what_the_guard_killed_is_lost(void **state)
{
    (void)state;
    come_in(false, 0);
    keeper_on_end(keeper, now, KEEPER_KILLED_BY_GUARD);
    out("kV");
    keeper_on_left(keeper, now, false);
    out("!");
    assert_int_equal(world.end, KEEPER_LOST);
    assert_non_null(strstr(world.told, "the permit was lost"));
}

static void test_lost_data_is_entered_again(void **state)
{
    (void)state;
    come_in(false, 0);
    until_out();
    beaten(STORE_UNKNOWN);
    registered();
    out("ERn");
    entered(true);
    out("");
    assert_non_null(strstr(world.told, "another fence"));
    /* The next time another worker was first. */
    until_out();
    beaten(STORE_UNKNOWN);
    registered();
    entered(false);
    out("ERnk");
    keeper_on_end(keeper, now, KEEPER_ENDED);
    keeper_on_left(keeper, now, true);
    out("kV!");
    assert_int_equal(world.end, KEEPER_LOST);
}

static void test_a_semaphore_may_be_kept(void **state)
{
    (void)state;
    begin(true, -1, 0);
    keeper_link_up(keeper, now);
    out("D");
    keeper_on_limit(keeper, now, "semaphore 3 keep");
    registered();
    entered(true);
    out("RNS");
    assert_false(world.must_end);
    keeper_link_down(keeper, now, ERROR_CLASS_LINK, "gone");
    now = mono_add_ms(now, 100000);
    keeper_on_timer(keeper, now);
    out("");
    keeper_link_up(keeper, now);
    beaten(STORE_GIVEN_UP);
    registered();
    entered(false);
    out("ERN");
    until_out();
    beaten(STORE_OK);
    entered(true);
    out("EN");
    keeper_on_end(keeper, now, KEEPER_ENDED);
    out("V");
    keeper_on_left(keeper, now, true);
    assert_int_equal(world.end, KEEPER_RAN);
}

/* The permit was lost with what had not reached the replica: the command runs beside the limit. */
static void test_a_failover_is_told_where_kept(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        begin(true, -1, 0);
        keeper_link_up(keeper, now);
        keeper_on_limit(keeper, now, "semaphore 3 keep");
        registered();
        entered(true);
        keeper_link_down(keeper, now, ERROR_CLASS_LINK, "gone");
        keeper_failed_over(keeper);
        keeper_link_up(keeper, now);
        beaten(i == 0 ? STORE_OK : STORE_UNKNOWN);
        if (i == 1)
            registered();
        entered(false);
        assert_string_equal(world.told, "the permit was lost; the command goes on (on_lost: keep)");
        assert_int_equal(world.times_told, 1);
        /* The definition is gone. */
        until_out();
        beaten(STORE_OK);
        keeper_on_error(keeper, now, ERROR_CLASS_CALL, "ELATER_LIMIT there is no sem 'three'");
        assert_null(strchr(world.log, 'k'));
        (void)done(NULL);
    }
}

static void test_a_command_may_run_so_long(void **state)
{
    struct mono since;

    (void)state;
    come_in(false, 3000);
    since = now;
    until_out();
    assert_int_equal(gone_ms(since), 3000);
    out("t");
    until_out();
    out("E");
    beaten(STORE_OK);
    until_out();
    assert_int_equal(gone_ms(since), 8000);
    out("k");
    keeper_on_end(keeper, now, KEEPER_ENDED);
    out("kV"); /* the k ends what the command left, before the permit is given back */
    keeper_on_left(keeper, now, true);
    assert_int_equal(world.end, KEEPER_OVERRAN);
}

/* The command ends at its TERM. Processes that it left running have to end as well. */
static void test_one_that_overran_leaves_nothing(void **state)
{
    (void)state;
    come_in(false, 3000);
    until_out();
    out("t");
    keeper_on_end(keeper, now, KEEPER_ENDED);
    out("kV");
    keeper_on_left(keeper, now, true);
    assert_int_equal(world.end, KEEPER_OVERRAN);
}

static void test_signals_are_passed_or_obeyed(void **state)
{
    (void)state;
    come_in(false, 0);
    keeper_on_signal(keeper, now, SIGINT);
    out("0");
    keeper_on_end(keeper, now, KEEPER_ENDED);
    keeper_on_left(keeper, now, true);
    assert_int_equal(world.end, KEEPER_RAN);
    keeper_free(keeper);
    begin(false, -1, 0);
    keeper_link_up(keeper, now);
    /* A registration under way is completed, so that the keeper can leave properly. */
    keeper_on_signal(keeper, now, SIGTERM);
    out("R");
    registered();
    out("V");
    keeper_on_left(keeper, now, true);
    assert_int_equal(world.end, KEEPER_STOPPED);
}

static void test_without_a_server_it_fails(void **state)
{
    struct mono since;

    (void)state;
    begin(false, -1, 0);
    keeper_link_down(keeper, now, ERROR_CLASS_LINK, "refused");
    out("!");
    assert_int_equal(world.end, KEEPER_FAILED);
    assert_string_equal(world.told, "refused");
    keeper_free(keeper);
    begin(false, -1, 0);
    keeper_link_up(keeper, now);
    registered();
    entered(false);
    out("RN");
    since = now;
    keeper_link_down(keeper, now, ERROR_CLASS_LINK, "gone");
    now = mono_add_ms(now, 1000);
    keeper_link_down(keeper, now, ERROR_CLASS_LINK, "still gone");
    until_out();
    out("!");
    assert_int_equal(world.end, KEEPER_FAILED);
    assert_in_range(gone_ms(since), KEEPER_AWAY_MS, KEEPER_AWAY_MS + KEEPER_LEAVE_MS);
}

static void test_an_end_that_cannot_be_told_is_the_end(void **state)
{
    struct mono since;

    (void)state;
    come_in(false, 0);
    keeper_link_down(keeper, now, ERROR_CLASS_LINK, "gone");
    keeper_on_end(keeper, now, KEEPER_ENDED);
    since = now;
    until_out();
    out("!");
    assert_int_equal(gone_ms(since), KEEPER_LEAVE_MS);
    assert_int_equal(world.end, KEEPER_RAN);
    assert_non_null(strstr(world.told, "could not be told"));
}

static void test_refusals_end_it_or_are_tried_again(void **state)
{
    (void)state;
    begin(false, -1, 0);
    keeper_link_up(keeper, now);
    registered();
    out("RN");
    keeper_on_error(keeper, now, ERROR_CLASS_CALL, "ELATER_LIMIT none");
    until_out();
    out("V");
    keeper_on_left(keeper, now, true);
    assert_int_equal(world.end, KEEPER_FAILED);
    assert_string_equal(world.told, "ELATER_LIMIT none");
    keeper_free(keeper);
    begin(false, -1, 0);
    keeper_link_up(keeper, now);
    registered();
    out("RN");
    keeper_on_error(keeper, now, ERROR_CLASS_FULL, "OOM");
    out("");
    until_out();
    out("N");
    /* A refused beat is not acknowledged. */
    entered(true);
    out("S");
    until_out();
    out("E");
    keeper_on_error(keeper, now, ERROR_CLASS_WAIT, "BUSY");
    until_out();
    out("E");
    keeper_on_error(keeper, now, ERROR_CLASS_MOVED, "READONLY");
    out("/");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_it_comes_in_and_goes, done),
        cmocka_unit_test_teardown(test_what_cannot_run_gives_its_permit_back, done),
        cmocka_unit_test_teardown(test_it_starts_only_behind_a_fresh_beat, done),
        cmocka_unit_test_teardown(test_a_failover, done),
        cmocka_unit_test_teardown(test_a_failover_to_one_that_refuses, done),
        cmocka_unit_test_teardown(test_a_failover_before_the_start, done),
        cmocka_unit_test_teardown(test_it_waits_for_its_turn, done),
        cmocka_unit_test_teardown(test_it_does_not_wait, done),
        cmocka_unit_test_teardown(test_it_waits_so_long, done),
        cmocka_unit_test_teardown(test_it_does_not_wait_for_a_silent_holder, done),
        cmocka_unit_test_teardown(test_it_reaps_a_dead_holder_at_once, done),
        cmocka_unit_test_teardown(test_a_step_of_the_clock_is_no_silence, done),
        cmocka_unit_test_teardown(test_a_beat_in_the_future_is_none, done),
        cmocka_unit_test_teardown(test_one_that_is_gone_is_cleared_first, done),
        cmocka_unit_test_teardown(test_a_dead_link_ends_the_command, done),
        cmocka_unit_test_teardown(test_an_old_answer_is_no_news, done),
        cmocka_unit_test_teardown(test_a_short_outage_is_nothing, done),
        cmocka_unit_test_teardown(test_who_was_given_up_ends_at_once, done),
        cmocka_unit_test_teardown(test_what_the_guard_killed_is_lost, done),
        cmocka_unit_test_teardown(test_lost_data_is_entered_again, done),
        cmocka_unit_test_teardown(test_a_semaphore_may_be_kept, done),
        cmocka_unit_test_teardown(test_a_failover_is_told_where_kept, done),
        cmocka_unit_test_teardown(test_a_command_may_run_so_long, done),
        cmocka_unit_test_teardown(test_one_that_overran_leaves_nothing, done),
        cmocka_unit_test_teardown(test_signals_are_passed_or_obeyed, done),
        cmocka_unit_test_teardown(test_without_a_server_it_fails, done),
        cmocka_unit_test_teardown(test_an_end_that_cannot_be_told_is_the_end, done),
        cmocka_unit_test_teardown(test_refusals_end_it_or_are_tried_again, done),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
