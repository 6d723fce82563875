#include "sched/server_clock.h"

#define DRIFT 1000 /* one microsecond in this many */

int64_t server_clock_note_time(struct server_clock *c, struct mono asked, struct mono now,
                               int64_t now_us)
{
    int64_t received_us = now.us - now_us;
    int64_t known_us = c->behind_us + mono_until_us(c->received, now) / DRIFT;

    if (c->received.us == 0 || received_us <= known_us ||
        received_us - known_us > mono_until_us(asked, now)) {
        *c = (struct server_clock){received_us, now};
        known_us = received_us;
    }
    return now.us - known_us;
}

int64_t server_clock_ms(const struct server_clock *c, struct mono now)
{
    return (now.us - c->behind_us) / 1000;
}

struct mono server_clock_at(const struct server_clock *c, int64_t ms)
{
    return (struct mono){ms * 1000 + c->behind_us};
}
