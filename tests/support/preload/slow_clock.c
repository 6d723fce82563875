/*
 * A clock that takes a millisecond for each reading, as on hosts whose kernel has no fast clock. It
 * is preloaded into laterd. LATER_TEST_CLOCK_CALLS names a file of eight bytes that counts the
 * readings.
 */
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "shared.h"

static int64_t *calls;

__attribute__((constructor)) static void find_counter(void)
{
    calls = shared_map("LATER_TEST_CLOCK_CALLS", sizeof(*calls));
}

int clock_gettime(clockid_t clock, struct timespec *ts)
{
    const struct timespec ms = {0, 1000000};

    if (calls != NULL)
        (void)__atomic_add_fetch(calls, 1, __ATOMIC_SEQ_CST);
    (void)syscall(SYS_nanosleep, &ms, NULL);
    return (int)syscall(SYS_clock_gettime, clock, ts);
}
