/* The scheduler in a world that works: entering, claiming, timing, waking, stopping, idling. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "fake_store.h"

#define J1 "j00000000001"
#define J2 "j00000000002"

static bool is_ready(const struct fake *f)
{
    struct sched_status st;

    sched_status(f->s, &st);
    return st.is_ready;
}

static size_t unsent(const struct fake *f)
{
    struct sched_status st;

    sched_status(f->s, &st);
    return st.unsent;
}

/* ---- entering */

static void test_register(void **state)
{
    struct fake *f = fake_new(4, "a b");

    (void)state;
    fake_run(f, 60000);
    assert_int_equal(fake_calls(f), 0);
    fake_up(f);
    assert_int_equal(fake_last(f, REG)->epoch, 0);
    assert_int_equal(fake_last(f, REG)->nresults, 0);
    fake_run(f, 20);
    assert_true(is_ready(f));
    assert_int_equal(f->registered, 1);
    assert_int_equal(f->count[REG], 1);
    /* No beat is due yet, but the first look is; a sync has nothing to do. */
    assert_int_equal(f->count[BEAT], 0);
    assert_int_equal(f->count[LOOK], 1);
    assert_int_equal(fake_last(f, LOOK)->nrooms, 2);
    assert_int_equal(f->count[SYNC], 0);
    fake_free(f);
}

static void clear(struct fake *f, bool is_clear)
{
    int64_t victim = f->clearing;

    f->clearing = 0;
    sched_on_orphans_ended(f->s, fake_now(f), victim, is_clear);
}

static void test_predecessor_is_reaped_at_once(void **state)
{
    struct fake *f = fake_new(4, "a");

    (void)state;
    f->peers[0] = fake_peer(70, "3");
    f->peers[1] = fake_peer(71, "9");
    f->npeers = 2;
    f->gone_peer = 71;
    f->clears_late = true;
    f->reap = STORE_REAP_MORE;
    f->reap_moved = 128;
    fake_up(f);
    fake_run(f, 2);
    /* Processes that it left running are ended first. */
    assert_int_equal(f->clearing, 71);
    assert_int_equal(f->count[REAP], 0);
    clear(f, true);
    fake_run(f, 2);
    assert_int_equal(fake_last(f, REAP)->victim, 71);
    assert_string_equal(fake_last(f, REAP)->text, "dead");
    assert_true(f->count[REAP] >= 2);
    f->reap = STORE_REAP_DONE;
    fake_run(f, 2);
    f->npeers = 1;
    assert_int_equal(f->count[BEAT], 0);
    /* The silent peer needs four beats of ours after the registration, which showed it first. */
    for (unsigned was = f->count[REAP], i = 0; i < 4; i++) {
        assert_int_equal(f->count[REAP], was);
        fake_run(f, 5001);
    }
    /* Processes of the silent peer on this host are ended, too. Even if it is not known that all
     * have ended, the peer is reaped: the full silence is over. */
    assert_int_equal(f->clearing, 70);
    clear(f, false);
    fake_run(f, 2);
    assert_int_equal(fake_last(f, REAP)->victim, 70);
    assert_string_equal(fake_last(f, REAP)->text, "3");
    fake_free(f);
}

/* A peer is gone, but not all that it started: it keeps its jobs until the full silence. */
static void test_predecessor_that_left_something(void **state)
{
    struct fake *f = fake_new(4, "a");

    (void)state;
    f->peers[0] = fake_peer(71, "9");
    f->npeers = 1;
    f->gone_peer = 71;
    f->clears_late = true;
    fake_up(f);
    for (int i = 0; i < 4; i++) {
        fake_run(f, 2);
        assert_int_equal(f->clearing, 71);
        clear(f, false);
        fake_run(f, 4999);
        assert_int_equal(f->count[REAP], 0);
    }
    assert_int_equal(f->clearing, 71);
    clear(f, false);
    fake_run(f, 2);
    assert_int_equal(fake_last(f, REAP)->victim, 71);
    fake_free(f);
}

/* ---- claims and results */

static void test_one_job(void **state)
{
    struct fake *f = fake_ready(4, "a b");

    (void)state;
    fake_add(f, 1, "b", 0);
    sched_on_wake(f->s, fake_now(f), "b");
    fake_run(f, 1);
    assert_non_null(fake_running(f, J1));
    assert_int_equal(fake_last(f, SYNC)->max, 4);
    sched_job_progress(f->s, J1, "half");
    fake_run(f, 1100);
    assert_int_equal(fake_state_of(f, J1), HELD);
    fake_end(f, J1, STORE_DONE);
    fake_run(f, 1);
    assert_int_equal(fake_state_of(f, J1), DONE);
    assert_int_equal(unsent(f), 0);
    fake_free(f);
}

/* Of the jobs that run for long, the oldest ones are told. */
static void test_long_runs(void **state)
{
    struct fake *f = fake_ready(4, "a");
    struct sched_run runs[2];

    (void)state;
    fake_add(f, 1, "a", 0);
    sched_on_wake(f->s, fake_now(f), "a");
    fake_run(f, 2000);
    assert_int_equal(sched_runs(f->s, fake_now(f), 5000, runs, 2), 0);
    fake_add(f, 2, "a", 0);
    sched_on_wake(f->s, fake_now(f), "a");
    fake_run(f, 2000);
    fake_add(f, 3, "a", 0);
    sched_on_wake(f->s, fake_now(f), "a");
    fake_run(f, 6000);
    assert_int_equal(sched_runs(f->s, fake_now(f), 7000, runs, 2), 2);
    assert_int_equal(sched_runs(f->s, fake_now(f), 5000, runs, 2), 2);
    assert_string_equal(runs[0].job->id, J1);
    assert_in_range(runs[0].ms, 9900, 10000);
    assert_string_equal(runs[1].job->id, J2);
    assert_in_range(runs[1].ms, 7900, 8000);
    fake_free(f);
}

/* Results go with claims: far fewer syncs than jobs, and never more runs than places. */
static void test_syncs_of_many(void **state)
{
    struct fake *f = fake_ready(64, "a b c");
    unsigned before = f->count[SYNC], both = 0;

    (void)state;
    f->run_ms = 3;
    for (unsigned i = 0; i < 500; i++)
        fake_add(f, i, i % 3 == 0 ? "a" : i % 3 == 1 ? "b" : "c", 0);
    sched_on_subscribed(f->s, fake_now(f));
    fake_run(f, 60);
    for (size_t i = 0; i < f->njobs; i++)
        assert_int_equal(f->jobs[i].state, DONE);
    for (const struct fake_call *c = f->asked; c != NULL; c = c->next)
        both += c->kind == SYNC && c->nresults > 0 && c->nclaims > 0;
    assert_true(both >= 5);
    assert_true(f->count[SYNC] - before < 120);
    fake_free(f);
}

/* When a sync claimed as much as it asked for, the next syncs overlap as long as places are free.
 * Never more syncs or claims than allowed. */
static void test_syncs_overlap(void **state)
{
    struct fake *f = fake_ready(300, "a");
    unsigned before;

    (void)state;
    f->run_ms = 1;
    for (unsigned i = 0; i < FAKE_JOBS; i++)
        fake_add(f, i, "a", 0);
    before = f->count[SYNC];
    sched_on_wake(f->s, fake_now(f), "a");
    fake_run(f, 100);
    for (size_t i = 0; i < f->njobs; i++)
        assert_int_equal(f->jobs[i].state, DONE);
    assert_int_equal(f->most_syncs, 2);
    assert_true(f->count[SYNC] - before < 40);
    fake_free(f);
}

/* Jobs that come one by one need no second sync. Ends of all running jobs do not wait for the sync
 * that is under way. */
static void test_an_end_overlaps(void **state)
{
    struct fake *f = fake_ready(8, "a");
    unsigned before;

    (void)state;
    for (unsigned i = 0; i < 8; i++) {
        fake_add(f, i, "a", 0);
        sched_on_wake(f->s, fake_now(f), "a");
        fake_run(f, 5);
    }
    assert_int_equal(f->most_syncs, 1);
    assert_int_equal(f->nruns, 8);
    f->is_held_back = true;
    sched_on_wake(f->s, fake_now(f), "!cancel");
    before = f->count[SYNC];
    fake_end_all(f, STORE_DONE);
    fake_run(f, 1);
    assert_int_equal(f->count[SYNC], before + 1);
    assert_int_equal(f->most_syncs, 2);
    assert_int_equal(fake_last(f, SYNC)->nresults, 8);
    f->is_held_back = false;
    fake_run(f, 10);
    assert_int_equal(unsent(f), 0);
    fake_free(f);
}

/* Jobs that end at the same moment are told in one sync. */
static void test_ends_of_a_moment(void **state)
{
    struct fake *f = fake_ready(8, "a");
    unsigned before;

    (void)state;
    for (unsigned i = 0; i < 8; i++)
        fake_add(f, i, "a", 0);
    sched_on_wake(f->s, fake_now(f), "a");
    fake_run(f, 1);
    assert_int_equal(f->nruns, 8);
    before = f->count[SYNC];
    fake_end_all(f, STORE_DONE);
    fake_run(f, 1);
    assert_int_equal(f->count[SYNC], before + 1);
    assert_int_equal(fake_last(f, SYNC)->nresults, 8);
    assert_int_equal(unsent(f), 0);
    fake_free(f);
}

/* A look may find jobs in more queues than there are places. */
static void test_no_more_claims_than_places(void **state)
{
    struct fake *f = fake_ready(2, "a b c d e f g h");
    static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g", "h"};

    (void)state;
    for (unsigned i = 0; i < 64; i++)
        fake_add(f, i, names[i % 8], 0);
    f->run_ms = 10;
    fake_run(f, 3000);
    assert_int_equal(f->starts, 64);
    fake_free(f);
}

static void test_wake_during_a_sync(void **state)
{
    struct fake *f = fake_ready(4, "a b");

    (void)state;
    f->latency_us = 10000;
    sched_on_wake(f->s, fake_now(f), "a");
    /* The store has carried the sync out; its answer is under way. */
    fake_run(f, 7);
    fake_add(f, 1, "a", 0);
    sched_on_wake(f->s, fake_now(f), "a");
    fake_run(f, 14);
    assert_non_null(fake_running(f, J1));
    fake_free(f);
}

static void test_wakes_of_strangers_are_ignored(void **state)
{
    static const char *const texts[] = {"", "x", "!", "!x", "!cancelx", "a b", "!Beat"};
    struct fake *f = fake_ready(4, "a");
    unsigned before = fake_calls(f);

    (void)state;
    for (unsigned i = 0; i < 700; i++)
        sched_on_wake(f->s, fake_now(f), texts[i % 7]);
    assert_int_equal(fake_calls(f), before);
    /* A flood of valid wakes makes one sync after the other, no more. */
    for (unsigned i = 0; i < 700; i++)
        sched_on_wake(f->s, fake_now(f), i % 2 ? "a" : "!cancel");
    assert_int_equal(fake_calls(f), before + 1);
    fake_run(f, 3);
    assert_true(fake_calls(f) <= before + 3);
    fake_free(f);
}

static bool was_asked_at(const struct fake *f, enum fake_kind kind, int64_t at_us)
{
    for (const struct fake_call *c = f->asked; c != NULL; c = c->next) {
        if (c->kind == kind && c->at_us == at_us)
            return true;
    }
    return false;
}

/* The sync for a head is sent exactly (head - now) after the reply that told it, whatever this
 * host's clocks show. */
static void test_timer_is_exact(void **state)
{
    struct fake *f = fake_ready(4, "a");
    int64_t due_us;

    (void)state;
    fake_add(f, 1, "a", 357);
    due_us = f->jobs[0].due_ms * 1000 - FAKE_BEGIN_MS * 1000;
    sched_on_wake(f->s, fake_now(f), "a");
    fake_run(f, 400);
    assert_true(was_asked_at(f, SYNC, due_us + f->latency_us / 2));
    assert_non_null(fake_running(f, J1));
    assert_int_equal(f->jobs[0].start, 1);
    fake_free(f);
}

/* A job claimed ahead starts when it is due, to the microsecond, without another round trip. */
static void test_claimed_ahead(void **state)
{
    struct fake *f = fake_new_ahead(4, "a", 2000);
    int64_t due_us;
    unsigned before;

    (void)state;
    fake_up(f);
    fake_add(f, 1, "a", 357);
    fake_add(f, 2, "a", 358);
    due_us = f->jobs[0].due_ms * 1000 - FAKE_BEGIN_MS * 1000;
    sched_on_wake(f->s, fake_now(f), "a");
    fake_run(f, 20);
    before = f->count[SYNC];
    fake_run(f, 335);
    assert_int_equal(f->nruns, 0);
    fake_run(f, 10);
    /* Our estimate of the store's clock is behind by the time an answer takes. */
    assert_int_equal(fake_running(f, J1)->began_us, due_us + f->latency_us / 2);
    assert_int_equal(f->jobs[0].start, 1);
    assert_int_equal(f->nruns, 2);
    assert_int_equal(f->count[SYNC], before + 1);
    fake_free(f);
}

/* A job that may not be claimed ahead is asked for once too early, and again when it is due. */
static void test_not_claimed_ahead(void **state)
{
    struct fake *f = fake_new_ahead(4, "a", 2000);
    int64_t due_us;
    unsigned before;

    (void)state;
    fake_up(f);
    fake_add(f, 1, "a", 357);
    f->jobs[0].start = 1;
    due_us = f->jobs[0].due_ms * 1000 - FAKE_BEGIN_MS * 1000;
    sched_on_wake(f->s, fake_now(f), "a");
    fake_run(f, 20);
    before = f->count[SYNC];
    fake_run(f, 345);
    assert_true(was_asked_at(f, SYNC, due_us + f->latency_us / 2));
    assert_int_equal(f->jobs[0].start, 2);
    assert_true(f->count[SYNC] <= before + 3);
    fake_free(f);
}

/* A granted job starts at once, also when the store's clock was set back after its gates let it in:
 * waiting for its due time would take as long as the clock was set back. */
static void test_granted_before_the_clock_was_set_back(void **state)
{
    struct fake *f = fake_new_ahead(4, "a", 2000);

    (void)state;
    fake_up(f);
    fake_add(f, 1, "a", 720000)->is_granted = true;
    sched_on_wake(f->s, fake_now(f), "a");
    fake_run(f, 20);
    assert_non_null(fake_running(f, J1));
    fake_free(f);
}

/* A stop between the claim and the start gives the job back. */
static void test_stop_gives_back_what_was_claimed_ahead(void **state)
{
    struct fake *f = fake_new_ahead(4, "a", 2000);

    (void)state;
    fake_up(f);
    fake_add(f, 1, "a", 357);
    sched_on_wake(f->s, fake_now(f), "a");
    while (f->jobs[0].state == WAITS)
        fake_run(f, 1);
    assert_int_equal(f->nruns, 0);
    sched_stop(f->s, fake_now(f));
    fake_run(f, 20);
    assert_int_equal(f->gone, 1);
    assert_int_equal(f->starts, 0);
    assert_int_equal(f->jobs[0].state, WAITS);
    assert_int_equal(f->jobs[0].attempt, 0);
    fake_free(f);
}

static void test_rhythm(void **state)
{
    struct fake *f = fake_ready(4, "a");
    int64_t last[KINDS] = {0}, shortest = INT64_MAX, longest = 0;

    (void)state;
    fake_run(f, 600000);
    for (const struct fake_call *c = f->asked; c != NULL; c = c->next) {
        int64_t gap = c->at_us - last[c->kind];

        if (last[c->kind] != 0 && c->kind == LOOK) {
            shortest = gap < shortest ? gap : shortest;
            longest = gap > longest ? gap : longest;
        } else if (last[c->kind] != 0 && c->kind == BEAT) {
            assert_int_equal(gap, SCHED_BEAT_MS * 1000 + f->latency_us);
        } else if (last[c->kind] != 0 && c->kind == TIDY) {
            assert_int_equal(gap, SCHED_TIDY_MS * 1000);
        }
        last[c->kind] = c->at_us;
    }
    /* Looks are about a second apart, and not at the same time as those of other workers. */
    assert_in_range(shortest, 900000, 960000);
    assert_in_range(longest, 1040000, 1101000);
    assert_int_equal(f->count[SYNC], 0);
    fake_free(f);
}

static void test_idle_hour(void **state)
{
    struct fake *f = fake_ready(16, "a b c");

    (void)state;
    fake_add(f, 1, "a", 86400000);
    fake_run(f, 3600000);
    assert_true(fake_calls(f) <= 2 * 3600);
    assert_int_equal(f->starts, 0);
    fake_free(f);
}

/* ---- one by one */

static void test_cancel(void **state)
{
    struct fake *f = fake_ready(4, "a");

    (void)state;
    fake_add(f, 1, "a", 0);
    fake_run(f, 1200);
    f->jobs[0].is_cancelled = true;
    sched_on_wake(f->s, fake_now(f), "!cancel");
    fake_run(f, 3000);
    assert_int_equal(fake_running(f, J1)->terms, 1);
    assert_int_equal(fake_running(f, J1)->kills, 0);
    fake_end(f, J1, STORE_RELEASE);
    fake_run(f, 1);
    assert_non_null(fake_result_in(fake_last(f, SYNC), J1));
    fake_free(f);
}

static void test_big_payloads(void **state)
{
    struct fake *f = fake_ready(4, "a");

    (void)state;
    f->latency_us = 10000;
    fake_add(f, 1, "a", 0)->is_big = true;
    fake_add(f, 2, "a", 0)->is_big = true;
    f->jobs[1].no_payload = true;
    sched_on_wake(f->s, fake_now(f), "a");
    fake_run(f, 15);
    assert_int_equal(f->count[FETCH], 2);
    assert_int_equal(f->starts, 0);
    fake_run(f, 100);
    assert_non_null(fake_running(f, J1));
    assert_int_equal(fake_state_of(f, J2), DEAD);
    assert_int_equal(f->starts, 1);
    fake_free(f);
}

static void test_what_is_not_started(void **state)
{
    struct fake *f = fake_ready(1, "a b");

    (void)state;
    fake_add(f, 1, "a", 0)->is_corrupt = true;
    fake_run(f, 1200);
    assert_int_equal(fake_state_of(f, J1), DEAD);
    f->refuses_start = true;
    fake_add(f, 2, "a", 0);
    fake_run(f, 1200);
    assert_int_equal(fake_state_of(f, J2), DEAD);
    assert_int_equal(f->starts, 0);
    /* Neither of them kept its place. */
    f->refuses_start = false;
    fake_add(f, 3, "a", 0);
    fake_run(f, 1200);
    assert_int_equal(f->starts, 1);
    fake_free(f);
}

static void test_queues_may_change(void **state)
{
    struct fake *f = fake_ready(1, "a b");

    (void)state;
    fake_add(f, 1, "a", 0);
    fake_run(f, 1200);
    assert_non_null(fake_running(f, J1));
    fake_queues(f, "b c");
    fake_run(f, 1);
    assert_string_equal(fake_last(f, BEAT)->text, "b,c");
    /* The queue comes back while its job still runs: no second job starts beside it. */
    fake_queues(f, "a b");
    fake_add(f, 2, "a", 0);
    fake_run(f, 6000);
    assert_int_equal(fake_last(f, SYNC)->nrooms, 0);
    fake_end(f, J1, STORE_DONE);
    fake_run(f, 1);
    assert_string_equal(fake_last(f, SYNC)->rooms[0].queue, "a");
    assert_int_equal(fake_last(f, SYNC)->rooms[0].room, 1);
    assert_non_null(fake_running(f, J2));
    /* A beat with new names was lost: the next one carries them again. */
    fake_queues(f, "a c");
    assert_string_equal(fake_last(f, BEAT)->text, "a,c");
    fake_cut(f, false);
    fake_up(f);
    assert_string_equal(fake_last(f, BEAT)->text, "a,c");
    fake_run(f, 6000);
    assert_false(fake_last(f, BEAT)->has_text);
    fake_free(f);
}

/* ---- quiet */

static void test_quiet(void **state)
{
    struct fake *f = fake_ready(4, "a");

    (void)state;
    fake_add(f, 1, "a", 0);
    fake_run(f, 1200);
    f->quiet = true;
    sched_on_wake(f->s, fake_now(f), "!beat");
    fake_run(f, 1);
    fake_add(f, 2, "a", 0);
    fake_end(f, J1, STORE_DONE);
    fake_run(f, 10000);
    assert_int_equal(fake_state_of(f, J1), DONE);
    assert_int_equal(fake_state_of(f, J2), WAITS);
    f->quiet = false;
    sched_on_wake(f->s, fake_now(f), "!beat");
    fake_run(f, 2);
    assert_non_null(fake_running(f, J2));
    fake_add(f, 3, "a", 0);
    sched_quiet(f->s, fake_now(f));
    fake_run(f, 60000);
    assert_int_equal(f->starts, 2);
    fake_free(f);
}

/* ---- stop */

static void test_stop_idle(void **state)
{
    struct fake *f = fake_ready(4, "a");

    (void)state;
    sched_stop(f->s, fake_now(f));
    fake_run(f, 2);
    assert_int_equal(f->count[LEAVE], 1);
    assert_int_equal(f->gone, 1);
    assert_int_equal(f->armed.us, INT64_MAX);
    /* Events after the end change nothing. */
    sched_stop(f->s, fake_now(f));
    sched_on_wake(f->s, fake_now(f), "a");
    sched_link_down(f->s, fake_now(f));
    sched_link_up(f->s, fake_now(f));
    sched_on_timer(f->s, fake_now(f));
    assert_int_equal(f->gone, 1);
    fake_free(f);
}

static void test_stop_waits_for_running_jobs(void **state)
{
    struct fake *f = fake_ready(4, "a");

    (void)state;
    fake_add(f, 1, "a", 0);
    fake_run(f, 1200);
    sched_stop(f->s, fake_now(f));
    fake_add(f, 2, "a", 0);
    sched_on_wake(f->s, fake_now(f), "a");
    fake_run(f, 15000);
    assert_int_equal(f->gone, 0);
    assert_int_equal(fake_state_of(f, J2), WAITS);
    assert_int_equal(fake_running(f, J1)->terms, 0);
    fake_end(f, J1, STORE_DONE);
    fake_run(f, 3);
    assert_int_equal(fake_state_of(f, J1), DONE);
    assert_int_equal(f->count[LEAVE], 1);
    assert_int_equal(f->gone, 1);
    fake_free(f);
}

static void test_stop_gives_back_what_was_not_started(void **state)
{
    struct fake *f = fake_ready(4, "a");

    (void)state;
    f->latency_us = 10000;
    fake_add(f, 1, "a", 0);
    fake_add(f, 2, "a", 0)->is_big = true;
    sched_on_wake(f->s, fake_now(f), "a");
    fake_run(f, 7);
    assert_int_equal(fake_state_of(f, J1), HELD);
    sched_stop(f->s, fake_now(f));
    fake_run(f, 40);
    assert_int_equal(f->starts, 0);
    assert_int_equal(f->gone, 1);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(f->jobs[i].state, WAITS);
        assert_int_equal(f->jobs[i].attempt, 0);
        assert_int_equal(f->jobs[i].start, 1);
    }
    fake_free(f);
}

/* TERM at stop_timeout (20 s) or at the second stop, KILL 6 s later. Then the job is given back and
 * the worker leaves. */
static void test_stop_presses(void **state)
{
    for (int twice = 0; twice < 2; twice++) {
        struct fake *f = fake_ready(4, "a");
        int64_t term_ms = twice ? 0 : 20000;

        (void)state;
        fake_add(f, 1, "a", 0);
        fake_run(f, 1200);
        sched_stop(f->s, fake_now(f));
        fake_run(f, twice ? 0 : term_ms - 1);
        assert_int_equal(fake_running(f, J1)->terms, 0);
        if (twice)
            sched_stop(f->s, fake_now(f));
        fake_run(f, 1);
        assert_int_equal(fake_running(f, J1)->terms, 1);
        fake_run(f, 5998);
        assert_int_equal(fake_running(f, J1)->terms, 1);
        assert_int_equal(fake_running(f, J1)->kills, 0);
        fake_run(f, 10);
        assert_int_equal(f->gone, 1);
        assert_int_equal(fake_state_of(f, J1), WAITS);
        assert_int_equal(f->jobs[0].attempt, 0);
        assert_int_equal(f->count[LEAVE], 1);
        fake_free(f);
    }
}

static int64_t ms_until_gone(struct fake *f)
{
    int64_t ms = 0;

    sched_stop(f->s, fake_now(f));
    for (; f->gone == 0 && ms < 100000; ms += 10)
        fake_run(f, 10);
    return ms;
}

/* Redis is away in every way, with and without a job: the stop ends in bounded time. */
static void test_stop_without_redis(void **state)
{
    enum { CUT, FROZEN, REFUSES, DEAF, NEVER_UP, HOWS };
    static const int64_t most_ms[] = {0, 2010, 2010, 2010, 0};

    (void)state;
    for (int how = 0; how < HOWS; how++) {
        for (int with_job = 0; with_job < 2; with_job++) {
            struct fake *f = fake_new(4, "a");
            int64_t ms;

            if (how != NEVER_UP)
                fake_up(f);
            if (with_job)
                fake_add(f, 1, "a", 0);
            fake_run(f, 1200);
            f->is_held_back = how == FROZEN;
            f->takes_nothing = how == DEAF;
            f->failing_kinds = how == REFUSES ? ALL_KINDS : 0;
            f->class = ERROR_CLASS_FULL;
            if (how == CUT)
                fake_cut(f, false);
            fake_run(f, 6000);
            ms = ms_until_gone(f);
            /* A job that ignores TERM: 20 s, 6 s, and 2 s for Redis. */
            if (with_job && how != NEVER_UP)
                assert_in_range(ms, 26000, 28100);
            else
                assert_true(ms <= most_ms[how] + 10);
            fake_free(f);
        }
    }
}

/* A beat was under way when the stop gave up. Its late answer changes nothing, whatever it says. */
static void test_gone_stays_gone(void **state)
{
    static const enum store_status statuses[] = {STORE_GIVEN_UP, STORE_UNKNOWN, STORE_OK};

    (void)state;
    for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
        struct fake *f = fake_ready(4, "a");
        const struct store_beat_reply late = {.status = statuses[i]};
        unsigned calls;

        fake_run(f, 1200);
        f->is_held_back = true;
        fake_run(f, 6000);
        (void)ms_until_gone(f);
        calls = fake_calls(f);
        sched_on_beat(f->s, fake_now(f), &late);
        assert_int_equal(fake_calls(f), calls);
        assert_int_equal(f->gone, 1);
        fake_free(f);
    }
}

static void test_stop_with_an_unanswered_leave(void **state)
{
    struct fake *f = fake_ready(4, "a");

    (void)state;
    f->is_held_back = true;
    assert_in_range(ms_until_gone(f), 1990, 2020);
    assert_int_equal(f->count[LEAVE], 1);
    fake_free(f);
}

/* A leave that the link did not take is sent again, so that the worker need not be reaped. */
static void test_stop_with_a_leave_that_was_not_sent(void **state)
{
    struct fake *f = fake_ready(4, "a");

    (void)state;
    fake_run(f, 1200);
    f->takes_nothing = true;
    sched_stop(f->s, fake_now(f));
    f->takes_nothing = false;
    fake_run(f, 500);
    assert_int_equal(f->count[LEAVE], 1);
    assert_int_equal(f->gone, 1);
    fake_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_register),
        cmocka_unit_test(test_predecessor_is_reaped_at_once),
        cmocka_unit_test(test_predecessor_that_left_something),
        cmocka_unit_test(test_one_job),
        cmocka_unit_test(test_long_runs),
        cmocka_unit_test(test_syncs_of_many),
        cmocka_unit_test(test_syncs_overlap),
        cmocka_unit_test(test_an_end_overlaps),
        cmocka_unit_test(test_ends_of_a_moment),
        cmocka_unit_test(test_no_more_claims_than_places),
        cmocka_unit_test(test_wake_during_a_sync),
        cmocka_unit_test(test_wakes_of_strangers_are_ignored),
        cmocka_unit_test(test_timer_is_exact),
        cmocka_unit_test(test_claimed_ahead),
        cmocka_unit_test(test_granted_before_the_clock_was_set_back),
        cmocka_unit_test(test_not_claimed_ahead),
        cmocka_unit_test(test_stop_gives_back_what_was_claimed_ahead),
        cmocka_unit_test(test_rhythm),
        cmocka_unit_test(test_idle_hour),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_big_payloads),
        cmocka_unit_test(test_what_is_not_started),
        cmocka_unit_test(test_queues_may_change),
        cmocka_unit_test(test_quiet),
        cmocka_unit_test(test_stop_idle),
        cmocka_unit_test(test_stop_waits_for_running_jobs),
        cmocka_unit_test(test_stop_gives_back_what_was_not_started),
        cmocka_unit_test(test_stop_presses),
        cmocka_unit_test(test_stop_without_redis),
        cmocka_unit_test(test_gone_stays_gone),
        cmocka_unit_test(test_stop_with_an_unanswered_leave),
        cmocka_unit_test(test_stop_with_a_leave_that_was_not_sent),
    };

    log_set_level((enum log_level)0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
