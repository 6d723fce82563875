#include "job/counts.h"

#include <stdio.h>

const int64_t counts_bounds_ms[COUNTS_BOUNDS] = {
    1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 30000, 60000, 600000, 3600000};

const char *counts_field(size_t i, char out[24])
{
    static const char *const named[] = {"late:inf", "late:us", "retried"};

    if (i >= COUNTS_BOUNDS)
        return named[i - COUNTS_BOUNDS];
    (void)snprintf(out, 24, "late:%lld", (long long)counts_bounds_ms[i]);
    return out;
}
