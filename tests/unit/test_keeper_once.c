/* The keeper of later once: it asks whether the command was done, and notes that it is. */
#include "keeper_world.h"

static void test_it_runs_what_is_not_done(void **state)
{
    (void)state;
    begin_once();
    entered(true);
    out("RnA");
    keeper_on_done_asked(keeper, now, false);
    out("S");
    keeper_on_end(keeper, now, KEEPER_SUCCEEDED);
    out("M");
    keeper_on_done_told(keeper, now);
    out("V");
    keeper_on_left(keeper, now, true);
    out("!");
    assert_int_equal(world.end, KEEPER_RAN);
    assert_string_equal(world.told, "");
}

static void test_it_does_not_run_what_is_done(void **state)
{
    (void)state;
    begin_once();
    entered(true);
    keeper_on_done_asked(keeper, now, true);
    keeper_on_left(keeper, now, true);
    out("RnAV!");
    assert_int_equal(world.end, KEEPER_REPEATED);
}

static void test_it_does_not_note_what_failed(void **state)
{
    (void)state;
    begin_once();
    entered(true);
    keeper_on_done_asked(keeper, now, false);
    out("RnAS");
    keeper_on_end(keeper, now, KEEPER_ENDED);
    out("V");
}

/* Redis goes away while the question is under way; the lock was another's in between. */
static void test_it_asks_again_with_a_new_permit(void **state)
{
    (void)state;
    begin_once();
    entered(true);
    out("RnA");
    keeper_link_down(keeper, now, ERROR_CLASS_LINK, "gone");
    keeper_link_up(keeper, now);
    out("E");
    beaten(STORE_OK);
    out("A");
    keeper_link_down(keeper, now, ERROR_CLASS_LINK, "gone");
    keeper_link_up(keeper, now);
    beaten(STORE_UNKNOWN);
    out("ER");
    registered();
    entered(true);
    keeper_on_done_asked(keeper, now, true);
    out("nAV");
}

static void test_it_tells_when_it_cannot_note(void **state)
{
    struct mono since;

    (void)state;
    for (int denied = 0; denied < 2; denied++) {
        keeper_free(keeper);
        begin_once();
        entered(true);
        keeper_on_done_asked(keeper, now, false);
        since = now;
        keeper_on_end(keeper, now, KEEPER_SUCCEEDED);
        out("RnASM");
        if (denied) {
            keeper_on_error(keeper, now, ERROR_CLASS_DENIED, "NOPERM");
            until_out();
            out("V");
        } else {
            keeper_link_down(keeper, now, ERROR_CLASS_LINK, "gone");
            until_out();
            out("!");
            assert_int_equal(gone_ms(since), KEEPER_LEAVE_MS);
        }
        assert_non_null(strstr(world.told, denied ? "it may run again" : "in half a minute"));
    }
}

/* A server that is full or loads for a moment must not make every host run the command again. */
static void test_it_notes_again_what_may_come_right(void **state)
{
    static const enum error_class classes[] = {ERROR_CLASS_FULL, ERROR_CLASS_WAIT};

    (void)state;
    for (int i = 0; i < 4; i++) {
        keeper_free(keeper);
        begin_once();
        entered(true);
        keeper_on_done_asked(keeper, now, false);
        keeper_on_end(keeper, now, KEEPER_SUCCEEDED);
        out("RnASM");
        keeper_on_error(keeper, now, classes[i / 2], "OOM");
        until_out();
        out("M");
        if (i % 2 == 0) {
            keeper_on_done_told(keeper, now);
            out("V");
            assert_string_equal(world.told, "");
            continue;
        }
        /* While there is time to give the permit back. */
        keeper_on_error(keeper, now, classes[i / 2], "OOM");
        until_out();
        out("M");
        keeper_on_error(keeper, now, classes[i / 2], "OOM");
        until_out();
        out("V");
        assert_non_null(strstr(world.told, "it may run again"));
    }
}

static void test_it_fails_when_it_cannot_ask(void **state)
{
    (void)state;
    begin_once();
    entered(true);
    out("RnA");
    keeper_on_error(keeper, now, ERROR_CLASS_DENIED, "NOPERM");
    until_out();
    keeper_on_left(keeper, now, true);
    out("V!");
    assert_int_equal(world.end, KEEPER_FAILED);
}

static void test_it_watches_a_silent_holder(void **state)
{
    const struct store_peer peer = {PEER, "5", "", "", "", "", ""};

    (void)state;
    begin_with(&(struct keeper_conf){.is_once = true});
    keeper_link_up(keeper, now);
    registered_with(&peer, 1);
    entered(false);
    out("RnL");
    heard(60000);
    out("N");
    entered(false);
    /* The registration counts as the first of five beats. */
    for (int i = 2; i < 5; i++) {
        until_out();
        out("E");
        beaten_with(STORE_OK, &peer, 1);
        out("N");
        entered(false);
        out("L");
        heard(60000);
        out("");
    }
    until_out();
    out("E");
    beaten_with(STORE_OK, &peer, 1);
    out("CN");
    keeper_on_cleared(keeper, now, PEER, false);
    entered(false);
    out("L");
    heard(60000);
    out("P");
    keeper_on_reaped(keeper, now, STORE_REAP_DONE, 0);
    out("N");
    entered(true);
    out("A");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_it_runs_what_is_not_done, done),
        cmocka_unit_test_teardown(test_it_does_not_run_what_is_done, done),
        cmocka_unit_test_teardown(test_it_does_not_note_what_failed, done),
        cmocka_unit_test_teardown(test_it_asks_again_with_a_new_permit, done),
        cmocka_unit_test_teardown(test_it_tells_when_it_cannot_note, done),
        cmocka_unit_test_teardown(test_it_notes_again_what_may_come_right, done),
        cmocka_unit_test_teardown(test_it_fails_when_it_cannot_ask, done),
        cmocka_unit_test_teardown(test_it_watches_a_silent_holder, done),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
