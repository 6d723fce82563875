#include "daemon/long_runs.h"

#include "serve/invocation.h"

#define LEAST_MS 5000
#define RUNS_MAX 64

void long_runs_tell(const struct sched *s, const struct served_queues *served, struct mono now,
                    int64_t redis_ms, struct long_runs *out)
{
    struct sched_run runs[RUNS_MAX];
    size_t n = sched_runs(s, now, LEAST_MS, runs, RUNS_MAX);

    for (size_t i = 0; i < n; i++) {
        const struct job *job = runs[i].job;
        const struct served_queue *q = served_queues_find(served, job->queue);
        int64_t timeout_ms = q != NULL ? invocation_timeout_ms(job, q->conf) : CONF_NEVER;

        buf_printf(&out->started, "%s %lld,", job->id, (long long)(redis_ms - runs[i].ms));
        if (timeout_ms != CONF_NEVER)
            buf_printf(&out->timeouts, "%s %lld,", job->id, (long long)timeout_ms);
    }
}

void long_runs_done(struct long_runs *r)
{
    buf_done(&r->started);
    buf_done(&r->timeouts);
}
