#include "base/clock.h"

#include <time.h>

struct mono mono_now(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return (struct mono){(int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000};
}
