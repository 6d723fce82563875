/* The keeper of a permit of a gate: every answer and every missing answer, in virtual time. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "cli/hold/keeper.h"

#define EPOCH 1000
#define PEER 17

/* The effects, a letter each: R register, D define, E beat, N enter and wait in line, n enter and
 * do not wait, L ask for the beats, C clear, P reap, A ask whether it is done, M note it done, V
 * leave, S start, / relink. The command gets a signal: t TERM, k KILL, 0 another. ! done. */
static struct {
    char log[256];
    size_t n;
    bool admits, is_guarded, cannot_run;
    int64_t fence;
    struct mono armed;
    enum keeper_end end;
    bool is_done, is_gone;
    char told[200];
    int64_t redis_later_ms; /* than our clock */
} world;

static struct keeper *keeper;
static struct mono now;

static void put(char c)
{
    assert_in_range(world.n, 0, sizeof(world.log) - 2);
    world.log[world.n++] = c;
    world.log[world.n] = '\0';
}

static int op_reg(void *ctx, const struct store_register *req)
{
    (void)ctx;
    (void)req;
    put('R');
    return 0;
}

static int op_define(void *ctx)
{
    (void)ctx;
    put('D');
    return 0;
}

static int op_beat(void *ctx, int64_t epoch)
{
    (void)ctx;
    assert_int_equal(epoch, EPOCH);
    put('E');
    return 0;
}

static int op_enter(void *ctx, int64_t epoch, bool is_waiting)
{
    (void)ctx;
    assert_int_equal(epoch, EPOCH);
    put(is_waiting ? 'N' : 'n');
    return 0;
}

static int op_beats(void *ctx)
{
    (void)ctx;
    put('L');
    return 0;
}

static int op_clear(void *ctx, int64_t victim)
{
    (void)ctx;
    assert_int_equal(victim, PEER);
    put('C');
    return 0;
}

static int op_reap(void *ctx, int64_t epoch, int64_t victim, const char *counter)
{
    (void)ctx;
    assert_int_equal(epoch, EPOCH);
    assert_int_equal(victim, PEER);
    assert_string_equal(counter, "5");
    put('P');
    return 0;
}

static int op_ask_done(void *ctx)
{
    (void)ctx;
    put('A');
    return 0;
}

static int op_note_done(void *ctx)
{
    (void)ctx;
    put('M');
    return 0;
}

static int op_leave(void *ctx, int64_t epoch)
{
    (void)ctx;
    assert_int_equal(epoch, EPOCH);
    put('V');
    return 0;
}

static void op_relink(void *ctx, enum fault fault, const char *text)
{
    (void)ctx;
    put('/');
    keeper_link_down(keeper, now, fault, text);
}

static bool op_is_gone(void *ctx, const struct store_peer *peer)
{
    (void)ctx;
    (void)peer;
    return world.is_gone;
}

static bool op_admits(void *ctx, int64_t fence)
{
    (void)ctx;
    world.fence = fence;
    return world.admits;
}

static int op_start(void *ctx, int64_t epoch, int64_t fence, bool is_guarded)
{
    (void)ctx;
    assert_int_equal(epoch, EPOCH);
    world.fence = fence;
    world.is_guarded = is_guarded;
    put('S');
    return world.cannot_run ? -1 : 0;
}

static void op_kill(void *ctx, int sig)
{
    (void)ctx;
    put(sig == SIGTERM ? 't' : sig == SIGKILL ? 'k' : '0');
}

static void op_tell(void *ctx, const char *text)
{
    (void)ctx;
    (void)snprintf(world.told, sizeof(world.told), "%s", text);
}

static void op_fail(void *ctx, enum fault fault, const char *text)
{
    (void)ctx;
    (void)fault;
    (void)snprintf(world.told, sizeof(world.told), "%s", text);
}

static void op_arm(void *ctx, struct mono at)
{
    (void)ctx;
    world.armed = at;
}

static void op_done(void *ctx, enum keeper_end end)
{
    (void)ctx;
    assert_false(world.is_done);
    world.is_done = true;
    world.end = end;
    put('!');
}

static const struct keeper_ops ops = {op_reg,    op_define,  op_beat,     op_enter,     op_beats,
                                      op_clear,  op_reap,    op_ask_done, op_note_done, op_leave,
                                      op_relink, op_is_gone, op_admits,   op_start,     op_kill,
                                      op_tell,   op_fail,    op_arm,      op_done};

static void begin_with(const struct keeper_conf *conf)
{
    memset(&world, 0, sizeof(world));
    world.admits = true;
    world.redis_later_ms = INT64_C(1795000000000);
    now = (struct mono){1000000};
    keeper = keeper_new(conf, &ops, NULL, now);
}

static void begin(bool is_sem, int64_t wait_ms, int64_t ttl_ms)
{
    begin_with(&(struct keeper_conf){.is_sem = is_sem, .wait_ms = wait_ms, .ttl_ms = ttl_ms});
}

static int done(void **state)
{
    (void)state;
    keeper_free(keeper);
    keeper = NULL;
    return 0;
}

/* Exactly these effects came out since the last call. */
static void out(const char *expected)
{
    assert_string_equal(world.log, expected);
    world.n = 0;
    world.log[0] = '\0';
}

static int64_t redis_ms(void)
{
    return now.us / 1000 + world.redis_later_ms;
}

static void registered_with(const struct store_peer *peers, size_t n)
{
    keeper_on_registered(
        keeper, now,
        &(struct store_register_reply){
            .now_us = redis_ms() * 1000, .epoch = EPOCH, .link = 1, .peers = peers, .npeers = n});
}

static void registered(void)
{
    registered_with(NULL, 0);
}

static void begin_once(void)
{
    begin_with(&(struct keeper_conf){.is_once = true});
    keeper_link_up(keeper, now);
    registered();
}

static void entered(bool is_granted)
{
    keeper_on_entered(keeper, now, &(struct gate_enter_reply){STORE_OK, is_granted, 77});
}

static void beaten_with(enum store_status status, const struct store_peer *peers, size_t n)
{
    keeper_on_beat(keeper, now,
                   &(struct store_beat_reply){.status = status, .peers = peers, .npeers = n});
}

static void beaten(enum store_status status)
{
    beaten_with(status, NULL, 0);
}

/* Answer: one worker has just beaten, the other ago_ms before, by Redis' present clock. */
static void heard(int64_t ago_ms)
{
    const int64_t beats_ms[] = {redis_ms(), redis_ms() - ago_ms};

    keeper_on_beats(keeper, now, &(struct gate_beats_reply){redis_ms(), beats_ms, 2});
}

/* Let the timer fire until an effect comes out. */
static void until_out(void)
{
    for (int i = 0; i < 100 && world.n == 0; i++) {
        assert_true(world.armed.us != INT64_MAX);
        if (mono_before(now, world.armed))
            now = world.armed;
        keeper_on_timer(keeper, now);
    }
}

static void come_in(bool is_sem, int64_t ttl_ms)
{
    begin(is_sem, -1, ttl_ms);
    keeper_link_up(keeper, now);
    registered();
    entered(true);
    out("RNS");
}

static int64_t gone_ms(struct mono since)
{
    return mono_until_us(since, now) / 1000;
}

static void test_it_comes_in_and_goes(void **state)
{
    (void)state;
    come_in(false, 0);
    assert_int_equal(world.fence, 77);
    assert_true(world.is_guarded);
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
            keeper_on_reaped(keeper, now, STORE_REAP_CLEAR, 0);
            entered(true);
            out("PNS");
            continue;
        }
        until_out();
        out("V");
        assert_int_equal(gone_ms(since), KEEPER_REAP_MS);
    }
}

static void test_once_runs_what_is_not_done(void **state)
{
    (void)state;
    begin_once();
    entered(true);
    out("RnA");
    keeper_on_done_asked(keeper, now, false);
    out("S");
    keeper_on_end(keeper, now, KEEPER_SUCCEEDED);
    out("M");
    keeper_on_done_noted(keeper, now);
    out("V");
    keeper_on_left(keeper, now, true);
    out("!");
    assert_int_equal(world.end, KEEPER_RAN);
    assert_string_equal(world.told, "");
}

static void test_once_does_not_run_what_is_done(void **state)
{
    (void)state;
    begin_once();
    entered(true);
    keeper_on_done_asked(keeper, now, true);
    keeper_on_left(keeper, now, true);
    out("RnAV!");
    assert_int_equal(world.end, KEEPER_REPEATED);
}

static void test_once_does_not_note_what_failed(void **state)
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
static void test_once_asks_again_with_a_new_permit(void **state)
{
    (void)state;
    begin_once();
    entered(true);
    out("RnA");
    keeper_link_down(keeper, now, FAULT_LINK, "gone");
    keeper_link_up(keeper, now);
    out("E");
    beaten(STORE_OK);
    out("A");
    keeper_link_down(keeper, now, FAULT_LINK, "gone");
    keeper_link_up(keeper, now);
    beaten(STORE_UNKNOWN);
    out("ER");
    registered();
    entered(true);
    keeper_on_done_asked(keeper, now, true);
    out("nAV");
}

static void test_once_tells_when_it_cannot_note(void **state)
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
            keeper_on_fault(keeper, now, FAULT_DENIED, "NOPERM");
            until_out();
            out("V");
        } else {
            keeper_link_down(keeper, now, FAULT_LINK, "gone");
            until_out();
            out("!");
            assert_int_equal(gone_ms(since), KEEPER_LEAVE_MS);
        }
        assert_non_null(strstr(world.told, denied ? "it may run again" : "in half a minute"));
    }
}

/* A server that is full or loads for a moment must not make every host run the command again. */
static void test_once_notes_again_what_may_come_right(void **state)
{
    static const enum fault faults[] = {FAULT_FULL, FAULT_WAIT};

    (void)state;
    for (int i = 0; i < 4; i++) {
        keeper_free(keeper);
        begin_once();
        entered(true);
        keeper_on_done_asked(keeper, now, false);
        keeper_on_end(keeper, now, KEEPER_SUCCEEDED);
        out("RnASM");
        keeper_on_fault(keeper, now, faults[i / 2], "OOM");
        until_out();
        out("M");
        if (i % 2 == 0) {
            keeper_on_done_noted(keeper, now);
            out("V");
            assert_string_equal(world.told, "");
            continue;
        }
        /* While there is time to give the permit back. */
        keeper_on_fault(keeper, now, faults[i / 2], "OOM");
        until_out();
        out("M");
        keeper_on_fault(keeper, now, faults[i / 2], "OOM");
        until_out();
        out("V");
        assert_non_null(strstr(world.told, "it may run again"));
    }
}

static void test_once_fails_when_it_cannot_ask(void **state)
{
    (void)state;
    begin_once();
    entered(true);
    out("RnA");
    keeper_on_fault(keeper, now, FAULT_DENIED, "NOPERM");
    until_out();
    keeper_on_left(keeper, now, true);
    out("V!");
    assert_int_equal(world.end, KEEPER_FAILED);
}

static void test_once_watches_a_silent_holder(void **state)
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
    keeper_on_reaped(keeper, now, STORE_REAP_CLEAR, 0);
    out("N");
    entered(true);
    out("A");
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
    keeper_link_down(keeper, now, FAULT_LINK, "gone");
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
    keeper_link_down(keeper, now, FAULT_LINK, "gone");
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
    beaten(STORE_DEAD);
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
    keeper_on_defined(keeper, now, "semaphore 3 keep");
    registered();
    entered(true);
    out("RNS");
    assert_false(world.is_guarded);
    keeper_link_down(keeper, now, FAULT_LINK, "gone");
    now = mono_add_ms(now, 100000);
    keeper_on_timer(keeper, now);
    out("");
    keeper_link_up(keeper, now);
    beaten(STORE_DEAD);
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
    keeper_link_down(keeper, now, FAULT_LINK, "refused");
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
    keeper_link_down(keeper, now, FAULT_LINK, "gone");
    now = mono_add_ms(now, 1000);
    keeper_link_down(keeper, now, FAULT_LINK, "still gone");
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
    keeper_link_down(keeper, now, FAULT_LINK, "gone");
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
    keeper_on_fault(keeper, now, FAULT_CALL, "ELATER_LIMIT none");
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
    keeper_on_fault(keeper, now, FAULT_FULL, "OOM");
    out("");
    until_out();
    out("N");
    /* A refused beat is not acknowledged. */
    entered(true);
    out("S");
    until_out();
    out("E");
    keeper_on_fault(keeper, now, FAULT_WAIT, "BUSY");
    until_out();
    out("E");
    keeper_on_fault(keeper, now, FAULT_MOVED, "READONLY");
    out("/");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_it_comes_in_and_goes, done),
        cmocka_unit_test_teardown(test_what_cannot_run_gives_its_permit_back, done),
        cmocka_unit_test_teardown(test_it_starts_only_behind_a_fresh_beat, done),
        cmocka_unit_test_teardown(test_it_waits_for_its_turn, done),
        cmocka_unit_test_teardown(test_it_does_not_wait, done),
        cmocka_unit_test_teardown(test_it_waits_so_long, done),
        cmocka_unit_test_teardown(test_it_does_not_wait_for_a_silent_holder, done),
        cmocka_unit_test_teardown(test_it_reaps_a_dead_holder_at_once, done),
        cmocka_unit_test_teardown(test_once_runs_what_is_not_done, done),
        cmocka_unit_test_teardown(test_once_does_not_run_what_is_done, done),
        cmocka_unit_test_teardown(test_once_does_not_note_what_failed, done),
        cmocka_unit_test_teardown(test_once_asks_again_with_a_new_permit, done),
        cmocka_unit_test_teardown(test_once_tells_when_it_cannot_note, done),
        cmocka_unit_test_teardown(test_once_notes_again_what_may_come_right, done),
        cmocka_unit_test_teardown(test_once_fails_when_it_cannot_ask, done),
        cmocka_unit_test_teardown(test_once_watches_a_silent_holder, done),
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
        cmocka_unit_test_teardown(test_a_command_may_run_so_long, done),
        cmocka_unit_test_teardown(test_one_that_overran_leaves_nothing, done),
        cmocka_unit_test_teardown(test_signals_are_passed_or_obeyed, done),
        cmocka_unit_test_teardown(test_without_a_server_it_fails, done),
        cmocka_unit_test_teardown(test_an_end_that_cannot_be_told_is_the_end, done),
        cmocka_unit_test_teardown(test_refusals_end_it_or_are_tried_again, done),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
