/*
 * Times and spans as people write them: "tomorrow 09:00", "monday 8:00", "18:00", "2026-12-24
 * 18:00", "in 90m", "1h30m", "now".
 *
 * What the library reads itself (src/lua/core/instant.lua: integer ms, @SECONDS, RFC 3339 with a
 * zone, +DURATION, a duration of one unit) is its own and not looked into here. Pure: the time that
 * is now and the zone are arguments.
 *
 * On the day when clocks go forward, a time that is skipped is that much later (02:30 is 03:30 of
 * summer time); on the day when they go back, a time that comes twice is the first of the two that
 * is not past.
 */
#ifndef LATER_CLI_ARGS_WHEN_H
#define LATER_CLI_ARGS_WHEN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

/* Seconds that local time is ahead of UTC at an instant (seconds since 1970). */
typedef int64_t (*when_offset_f)(int64_t utc_s);

enum when_kind {
    WHEN_SPAN,    /* ms from now on */
    WHEN_INSTANT, /* ms since 1970 */
    WHEN_SKIPPED, /* the same, moved out of the hour that does not exist */
    WHEN_TWICE    /* the same, one of two */
};

struct when {
    enum when_kind kind;
    int64_t ms;
};

/* Is it for the library to read? */
bool when_is_machine(const char *text);

/* 0, or -1 with code FORMAT, which says what is accepted. What is over by a minute or more is
 * refused too. */
int when_parse(const char *text, int64_t now_ms, when_offset_f offset, struct when *ret,
               struct err *err);

/* Does it need to know what time it is? Not a span, not "now". */
bool when_needs_clock(const char *text);

/* "1h30m", units falling, also "in 90m": ms, or -1. */
int when_parse_span(const char *text, int64_t *ret_ms);

#endif
