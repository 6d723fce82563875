/*
 * A wall clock that a test sets, preloaded into redis-server or laterd. All calls for the time of
 * day read it from a file that is mapped into the process. The monotonic clocks do not step with
 * it, as with a real clock; a test can let them go ahead by themselves, as after a suspension.
 *
 * LATER_TEST_CLOCK names the file: struct test_clock (tests/support/clock.h), written by the test.
 * Without it the real time is returned.
 */
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "../clock.h"
#include "shared.h"

static const struct test_clock *shared;

__attribute__((constructor)) static void find_clock(void)
{
    shared = shared_map("LATER_TEST_CLOCK", sizeof(*shared));
}

static int64_t wall_us(void)
{
    struct timespec ts = {0, 0};
    int64_t fixed = shared != NULL ? __atomic_load_n(&shared->fixed_us, __ATOMIC_SEQ_CST) : 0;

    if (fixed != 0)
        return fixed;
    /* Use the system call, since clock_gettime is replaced here. */
    (void)syscall(SYS_clock_gettime, CLOCK_REALTIME, &ts);
    return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000 +
           (shared != NULL ? __atomic_load_n(&shared->offset_us, __ATOMIC_SEQ_CST) : 0);
}

static int monotonic(clockid_t clock, struct timespec *ts)
{
    int rc = (int)syscall(SYS_clock_gettime, clock, ts);
    int64_t ahead = shared != NULL ? __atomic_load_n(&shared->ahead_s, __ATOMIC_SEQ_CST) : 0;

    ts->tv_sec += clock == CLOCK_MONOTONIC || clock == CLOCK_MONOTONIC_COARSE ||
                          clock == CLOCK_MONOTONIC_RAW || clock == CLOCK_BOOTTIME
                      ? ahead
                      : 0;
    return rc;
}

int clock_gettime(clockid_t clock, struct timespec *ts)
{
    int64_t us;

    if (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE)
        return monotonic(clock, ts);
    us = wall_us();
    ts->tv_sec = us / 1000000;
    ts->tv_nsec = us % 1000000 * 1000;
    return 0;
}

int gettimeofday(struct timeval *restrict tv, void *restrict zone)
{
    int64_t us = wall_us();

    (void)zone;
    tv->tv_sec = us / 1000000;
    tv->tv_usec = us % 1000000;
    return 0;
}

time_t time(time_t *ret)
{
    time_t now = wall_us() / 1000000;

    if (ret != NULL)
        *ret = now;
    return now;
}
