#include "daemon/long_runs.h"

#define LEAST_MS 5000
#define RUNS_MAX 64

void long_runs_tell(const struct sched *s, struct mono now, int64_t redis_ms, struct buf *out)
{
    struct sched_run runs[RUNS_MAX];
    size_t n = sched_runs(s, now, LEAST_MS, runs, RUNS_MAX);

    for (size_t i = 0; i < n; i++)
        buf_printf(out, "%s %lld,", runs[i].id, (long long)(redis_ms - runs[i].ms));
}
