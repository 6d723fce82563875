/*
 * Redis' clock as seen from here. An answer tells what it showed when the call began, and is heard
 * later, by a way that is not known: taken as it is, it is slow by that. The answer that came
 * fastest tells best, and holds for as long as two clocks keep step: each may be off by 500 ppm,
 * as far as NTP slews one, so what it tells becomes slower by a thousandth of its age. No answer
 * can be older than its question: where what was known would say so, Redis' clock was set back, and
 * the answer counts. By this clock nothing is early, unless that clock was set back by less than an
 * answer takes. (The minimum filter of NTP, RFC 5905, 10, one-way.) Pure.
 */
#ifndef LATER_SCHED_SERVER_CLOCK_H
#define LATER_SCHED_SERVER_CLOCK_H

#include <stdint.h>

#include "base/clock.h"

struct server_clock {
    int64_t behind_us; /* our monotonic clock minus Redis', by the fastest answer */
    struct mono heard; /* when; us 0: none yet */
};

/* Redis said now_us (Unix microseconds); it was asked then and is heard now. -> what its clock
 * shows now, at least */
int64_t server_clock_hear(struct server_clock *c, struct mono asked, struct mono now,
                          int64_t now_us);

#endif
