#include "sched/prefetch.h"

unsigned prefetch_most(const struct prefetch *p, unsigned places, struct mono now)
{
    int64_t n;

    if (p->run_us == 0 || mono_before(now, p->rest_until))
        return 0;
    n = (int64_t)places *
        (mono_before(now, p->short_until) ? PREFETCH_SHORT_US : PREFETCH_WORK_US) / p->run_us;
    return n < PREFETCH_MAX ? (unsigned)n : PREFETCH_MAX;
}

void prefetch_ran(struct prefetch *p, int64_t us)
{
    if (us < 1)
        us = 1;
    /* An exponentially weighted moving average, as TCP keeps one of its round trips (RFC 6298). */
    p->run_us = p->run_us == 0 ? us : p->run_us + (us - p->run_us) / 8;
}

void prefetch_rest(struct prefetch *p, struct mono now)
{
    p->rest_until = mono_add_ms(now, PREFETCH_REST_MS);
}

void prefetch_short(struct prefetch *p, struct mono now)
{
    p->short_until = mono_add_ms(now, PREFETCH_REST_MS);
}
