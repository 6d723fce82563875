#include "job/backoff.h"

int64_t backoff_ms(const struct backoff *b, int64_t attempts, uint32_t random)
{
    double wait = (double)b->first_ms;
    double spread;

    for (int64_t i = 1;
         i < attempts && wait > 0 && wait < (double)b->max_ms && b->factor_milli > 1000; i++)
        wait *= (double)b->factor_milli / 1000.0;
    if (wait > (double)b->max_ms)
        wait = (double)b->max_ms;
    /* From -jitter to +jitter. The cap is applied first, so retries at the cap stay spread. */
    spread =
        wait * (double)b->jitter_pct / 100.0 * (2.0 * (double)random / (double)UINT32_MAX - 1.0);
    return wait + spread > 0 ? (int64_t)(wait + spread) : 0;
}
