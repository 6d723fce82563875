/*
 * Times and spans as people write them: "tomorrow 09:00", "monday 8:00", "18:00", "2026-12-24
 * 18:00", "in 90m", "1h30m", "now".
 *
 * The forms that the library reads itself are not parsed here: integer ms, @SECONDS, RFC 3339 with
 * a zone, +DURATION, a duration of one unit (src/lua/core/instant.lua). Pure: the present time and
 * the zone are arguments.
 *
 * On the day when clocks go forward, a skipped time moves later by what they skip (02:30 becomes
 * 03:30 of summer time). On the day when they go back, a time that comes twice means the first of
 * the two that is not past.
 */
#ifndef LATER_CLI_ARGS_WHEN_H
#define LATER_CLI_ARGS_WHEN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

/* Seconds that local time is later than UTC at an instant (seconds since 1970). */
typedef int64_t (*when_offset_f)(int64_t utc_s);

enum when_kind {
    WHEN_SPAN,    /* ms from now */
    WHEN_INSTANT, /* ms since 1970 */
    WHEN_SKIPPED, /* ms since 1970; the clocks skip the time, so it was moved later */
    WHEN_TWICE    /* ms since 1970; the clocks show the time twice, this is one of the two */
};

struct when {
    enum when_kind kind;
    int64_t ms;
};

/* Whether the library reads this text itself. */
bool when_is_machine(const char *text);

/* Read such a text here, for a verb that computes with the instant itself: integer ms, @SECONDS,
 * +DURATION, RFC 3339 with whole seconds. 0, or -1 with *ret_ms undefined. */
int when_read_machine(const char *text, int64_t now_ms, int64_t *ret_ms);

/* 0, or -1 with code FORMAT and a text that says what is accepted. A time that is past by a minute
 * or more is refused, too. */
int when_parse(const char *text, int64_t now_ms, when_offset_f offset, struct when *ret,
               struct err *err);

/* Whether when_parse needs now_ms. False for a span and for "now". */
bool when_needs_clock(const char *text);

/* Parse "1h30m" (units in falling order) or "in 90m". 0 with *ret_ms set, or -1. */
int when_parse_span(const char *text, int64_t *ret_ms);

#endif
