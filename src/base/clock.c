#include "base/clock.h"

#include <time.h>

struct mono mono_now(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return (struct mono){(int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000};
}

struct boot boot_now(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_BOOTTIME, &ts);
    return (struct boot){(int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000};
}

int64_t wall_skew_ms(int64_t told_us)
{
    struct timespec ts = {0, 0};

    (void)clock_gettime(CLOCK_REALTIME, &ts);
    return (ts.tv_sec * INT64_C(1000000) + ts.tv_nsec / 1000 - told_us) / 1000;
}
