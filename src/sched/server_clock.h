/*
 * An estimate of Redis' clock. Pure.
 *
 * An answer tells what the clock showed during the call, but it is received later, after a delay
 * that is not known. Taken as it is, the estimate would be slow by that delay. So the answer with
 * the shortest delay counts (the minimum filter of NTP, RFC 5905, 10, one-way).
 *
 * That answer becomes less exact with time: each of the two clocks may be off by 500 ppm, the most
 * that NTP slews a clock. So the estimate is made slower by a thousandth of its age.
 *
 * No answer can be delayed by more than its round trip. If the estimate says that one was, Redis'
 * clock was set back, and the answer replaces the estimate. By this clock nothing is early, unless
 * Redis' clock was set back by less than a round trip.
 */
#ifndef LATER_SCHED_SERVER_CLOCK_H
#define LATER_SCHED_SERVER_CLOCK_H

#include <stdint.h>

#include "base/clock.h"

struct server_clock {
    int64_t behind_us;    /* our monotonic clock minus Redis', by the fastest answer */
    struct mono received; /* when it was received; us 0: none yet */
};

/* Redis said now_us (Unix microseconds); it was asked at `asked`, and the answer is received now.
 * -> what its clock shows now, at least */
int64_t server_clock_note_time(struct server_clock *c, struct mono asked, struct mono now,
                               int64_t now_us);
/* What its clock shows at `now`, ms. */
int64_t server_clock_ms(const struct server_clock *c, struct mono now);
/* When its clock shows this. Exact: a millisecond of rounding would be a millisecond late. */
struct mono server_clock_at(const struct server_clock *c, int64_t ms);

#endif
