#include "sched/session.h"

struct store_register session_request(struct session *s)
{
    return (struct store_register){s->seen, ++s->seq, s->epoch, NULL, 0};
}

void session_registered(struct session *s, struct mono now, int64_t epoch)
{
    session_accepted(s, now);
    s->epoch = epoch;
    session_saw(s, epoch);
}

void session_lost(struct session *s)
{
    s->epoch = 0;
}

void session_saw(struct session *s, int64_t number)
{
    /* Ignore a corrupt number: it would stop the clock, which takes none above CLOCK_MAX. */
    if (number > s->seen && number <= (INT64_C(1) << 52))
        s->seen = number;
}

void session_failed_over(struct session *s)
{
    s->has_moved = true;
}

void session_accepted(struct session *s, struct mono now)
{
    if (s->has_moved)
        s->guarded_from = mono_add_ms(now, SESSION_FAILOVER_MS);
    s->has_moved = false;
}
