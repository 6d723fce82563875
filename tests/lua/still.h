/*
 * A redis-server whose clock stands still until the test moves it.
 */
#ifndef LATER_TESTS_LUA_STILL_H
#define LATER_TESTS_LUA_STILL_H

#include "fixture.h"

#include <unistd.h>

#include "../support/clock.h"
#include "../support/env.h"

static struct test_clock *still_clock;

/* Start servers by this function, with still_clock for theirs. */
static inline void still_start(int (*start)(void **state), void **state)
{
    char path[] = "/tmp/later-test-clock-XXXXXX";
    char *preload = test_clock_preload(), *variable;
    int fd = mkstemp(path);

    assert_true(fd >= 0);
    still_clock = test_clock_make(path);
    variable = test_clock_variable(path);
    (void)putenv(preload);
    (void)putenv(variable);
    assert_int_equal(start(state), 0);
    (void)unsetenv("LD_PRELOAD");
    (void)unsetenv("LATER_TEST_CLOCK");
    (void)remove(path);
    free(preload);
    free(variable);
    (void)close(fd);
}

/* As fx_open and fx_close. */
static inline int still_open(void **state)
{
    still_start(fx_open, state);
    /* jemalloc's thread would never sleep while the clock stands still. */
    assert_string_equal(redis("CONFIG SET jemalloc-bg-thread no"), "OK");
    return 0;
}

static inline int still_close(void **state)
{
    test_clock_free(still_clock);
    return fx_close(state);
}

/*
 * The wall clock stands at this from here on, for the server too: Valkey 9.1 reads it once in a
 * millisecond and counts on from there by another one.
 */
static inline void still_set(int64_t us)
{
    enum { READ_AGAIN_US = 1000, ASKED_MAX = 1000000 };
    int64_t told_us = 0;

    still_clock->fixed_us = us;
    for (int asked = 0; told_us < us || told_us > us + READ_AGAIN_US; asked++) {
        assert_true(asked < ASKED_MAX);
        told_us = time_us();
    }
}

#endif
