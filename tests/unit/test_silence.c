/* After what silence a worker counts as dead, and which never may. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "run/guard/guard.h"
#include "sched/silence.h"

#define PEERS (SILENCE_PEERS_MAX + 10)

struct seen {
    int64_t now_ms;
    unsigned calls;
    int64_t epoch;
    char counter[24];
};

static void on_silence(void *arg, int64_t epoch, const char *counter)
{
    struct seen *seen = arg;

    seen->calls++;
    seen->epoch = epoch;
    (void)snprintf(seen->counter, sizeof(seen->counter), "%s", counter);
}

/* One beat of ours, ms after the one before. -> how many peers it told of */
static unsigned beat(struct silence *w, struct seen *seen, int64_t ms,
                     const struct store_peer *peers, size_t n)
{
    seen->now_ms += ms;
    seen->calls = 0;
    silence_beat(w, (struct mono){(1000000 + seen->now_ms) * 1000}, peers, n, on_silence, seen);
    return seen->calls;
}

static void test_five_beats(void **state)
{
    struct silence *w = silence_new();
    struct seen seen = {0};
    struct store_peer p = {.epoch = 7, .counter = "12"};

    (void)state;
    for (int i = 1; i < SILENCE_BEATS; i++)
        assert_int_equal(beat(w, &seen, 5000, &p, 1), 0);
    /* The beat that showed the counter first is the first of the five. */
    assert_int_equal(beat(w, &seen, 5000, &p, 1), 1);
    assert_int_equal(seen.epoch, 7);
    assert_string_equal(seen.counter, "12");
    assert_int_equal(seen.now_ms, 25000);
    /* It is told again with each beat until it is gone from the list. */
    assert_int_equal(beat(w, &seen, 5000, &p, 1), 1);
    assert_int_equal(beat(w, &seen, 5000, NULL, 0), 0);
    assert_int_equal(beat(w, &seen, 5000, &p, 1), 0);
    silence_free(w);
}

/* The least silence is the sum in sched/silence.h, and gives the other guard enough time. */
static void test_least_silence(void **state)
{
    struct silence *w = silence_new();
    struct seen seen = {0};
    struct store_peer p = {.epoch = 7, .counter = "12"};
    int64_t first_ms;

    (void)state;
    assert_int_equal(beat(w, &seen, 1, &p, 1), 0);
    first_ms = seen.now_ms;
    while (beat(w, &seen, 1, &p, 1) == 0)
        continue;
    assert_int_equal(seen.now_ms - first_ms, 19600);
    assert_int_equal(seen.now_ms - first_ms, SILENCE_LEAST_MS);
    assert_true(SILENCE_LEAST_MS - GUARD_UNACKED_MS >= 4600);
    silence_free(w);
}

static void test_moving_counter(void **state)
{
    struct silence *w = silence_new();
    struct seen seen = {0};
    char counter[24];
    struct store_peer p = {.epoch = 7, .counter = counter};

    (void)state;
    /* For an hour four beats at a time see the same counter. */
    for (int i = 0; i < 720; i++) {
        (void)snprintf(counter, sizeof(counter), "%d", i / (SILENCE_BEATS - 1));
        assert_int_equal(beat(w, &seen, 5000, &p, 1), 0);
    }
    /* A counter that went back (data loss) has moved as well. */
    (void)snprintf(counter, sizeof(counter), "1");
    for (int i = 1; i < SILENCE_BEATS; i++)
        assert_int_equal(beat(w, &seen, 5000, &p, 1), 0);
    assert_int_equal(beat(w, &seen, 5000, &p, 1), 1);
    silence_free(w);
}

static void test_trouble_starts_anew(void **state)
{
    struct silence *w = silence_new();
    struct seen seen = {0};
    struct store_peer p = {.epoch = 7, .counter = "12"};

    (void)state;
    for (int round = 0; round < 4; round++) {
        for (int i = 1; i < SILENCE_BEATS; i++)
            assert_int_equal(beat(w, &seen, 5000, &p, 1), 0);
        silence_reset(w);
        /* Counts from before an outage do not go on after it, here one of an hour. */
        seen.now_ms += round == 2 ? 3600000 : 0;
    }
    for (int i = 1; i < SILENCE_BEATS; i++)
        assert_int_equal(beat(w, &seen, 5000, &p, 1), 0);
    assert_int_equal(beat(w, &seen, 5000, &p, 1), 1);
    silence_free(w);
}

static void test_beats_too_close_do_not_count(void **state)
{
    struct silence *w = silence_new();
    struct seen seen = {0};
    struct store_peer p = {.epoch = 7, .counter = "12"}, dead = {.epoch = 8, .counter = "dead"};

    (void)state;
    assert_int_equal(beat(w, &seen, 5000, &p, 1), 0);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(beat(w, &seen, 4, &p, 1), 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(beat(w, &seen, SILENCE_GAP_MS, &p, 1), 0);
    assert_int_equal(beat(w, &seen, SILENCE_GAP_MS - 1, &p, 1), 0);
    assert_int_equal(beat(w, &seen, 1, &p, 1), 1);
    assert_int_equal(beat(w, &seen, SILENCE_GAP_MS, &dead, 1), 1);
    silence_free(w);
}

static void test_dead_and_strangers(void **state)
{
    struct silence *w = silence_new();
    struct seen seen = {0};
    struct store_peer dead = {.epoch = 8, .counter = "dead"},
                      stranger = {.epoch = 9, .counter = "?"};

    (void)state;
    /* Another worker marked it dead: any worker may go on with reaping. */
    assert_int_equal(beat(w, &seen, 5000, &dead, 1), 1);
    assert_string_equal(seen.counter, "dead");
    silence_reset(w);
    assert_int_equal(beat(w, &seen, 5000, &dead, 1), 1);
    /* Jobs of an epoch without a worker: it may be about to register, so the wait is the same. */
    for (int i = 1; i < SILENCE_BEATS; i++)
        assert_int_equal(beat(w, &seen, 5000, &stranger, 1), 0);
    assert_int_equal(beat(w, &seen, 5000, &stranger, 1), 1);
    assert_string_equal(seen.counter, "?");
    silence_free(w);
}

static void test_table_limit(void **state)
{
    static struct store_peer peers[PEERS];
    struct silence *w = silence_new();
    struct seen seen = {0};

    (void)state;
    for (size_t i = 0; i < PEERS; i++)
        peers[i] = (struct store_peer){.epoch = (int64_t)i + 1, .counter = "1"};
    /* The order changes from beat to beat. Peers in the table stay there and are still counted. */
    for (int i = 1; i < SILENCE_BEATS; i++) {
        assert_int_equal(beat(w, &seen, 5000, peers, PEERS), 0);
        for (size_t k = 0; k < PEERS / 2; k++) {
            struct store_peer p = peers[k];

            peers[k] = peers[PEERS - 1 - k];
            peers[PEERS - 1 - k] = p;
        }
    }
    assert_int_equal(beat(w, &seen, 5000, peers, PEERS), SILENCE_PEERS_MAX);
    silence_free(w);
}

static void test_long_counter(void **state)
{
    struct silence *w = silence_new();
    struct seen seen = {0};
    struct store_peer p = {.epoch = 7, .counter = "1234567890123456789012345678901234567890"};

    (void)state;
    /* The library never writes such a counter. It must not overflow, and need not be reaped. */
    for (int i = 0; i < 9; i++)
        (void)beat(w, &seen, 5000, &p, 1);
    assert_true(strlen(seen.counter) < sizeof(seen.counter));
    silence_free(w);
    silence_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_five_beats),
        cmocka_unit_test(test_least_silence),
        cmocka_unit_test(test_moving_counter),
        cmocka_unit_test(test_trouble_starts_anew),
        cmocka_unit_test(test_beats_too_close_do_not_count),
        cmocka_unit_test(test_dead_and_strangers),
        cmocka_unit_test(test_table_limit),
        cmocka_unit_test(test_long_counter),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
