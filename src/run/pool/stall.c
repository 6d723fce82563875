#include "run/pool/stall.h"

int64_t stall_overdue_ms(const struct stall_job *job, struct mono now)
{
    struct mono end = mono_add_ms(mono_add_ms(job->started, job->timeout_ms), job->kill_grace_ms);

    if (job->started.us == 0)
        return 0;
    if (mono_before(end, job->said))
        end = job->said;
    return -mono_until_us(now, mono_add_ms(end, STALL_MARGIN_MS)) / 1000;
}

bool stall_work(struct stall_work *work, bool is_waiting, bool is_thread_free, uint64_t taken,
                struct mono now)
{
    if (!is_waiting || !is_thread_free || taken != work->taken) {
        *work = (struct stall_work){taken, {0}};
        return false;
    }
    if (work->since.us == 0)
        work->since = now;
    return !mono_before(now, mono_add_ms(work->since, STALL_MARGIN_MS));
}
