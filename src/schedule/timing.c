#include "schedule/timing.h"

#include <string.h>

#include "base/text.h"

/* The clock is not set back over more than this, so what it showed before is known from here on. */
#define LOOK_BACK_S (3 * INT64_C(86400))

int timing_parse(const char *kind, const char *text, struct zone *zone, struct timing *ret,
                 struct err *err)
{
    *ret = (struct timing){.zone = zone};
    if (strcmp(kind, "cron") == 0)
        return cron_parse(text, &ret->cron, err);
    if (strcmp(kind, "every") != 0)
        return err_set(err, ERR_FORMAT, "'%.32s' is neither cron nor every", kind);
    if (text_parse_duration(text, &ret->every_ms) == 0 && ret->every_ms > TIMING_EVERY_MAX_MS)
        return err_set(err, ERR_FORMAT, "'%.32s' is longer than 100 years", text);
    if (ret->every_ms < TIMING_EVERY_MIN_MS)
        return err_set(err, ERR_FORMAT, "'%.32s' is no duration from 1s on: write 90s, 5m, 12h, 7d",
                       text);
    return 0;
}

int timing_parse_when(const char *when, struct zone *zone, struct timing *ret, struct err *err)
{
    size_t n = strcspn(when, " ");
    char kind[8] = "";

    if (n < sizeof(kind))
        memcpy(kind, when, n);
    return timing_parse(kind, when[n] != '\0' ? when + n + 1 : "", zone, ret, err);
}

int timing_check(const char *kind, const char *text, struct zone *zone, struct err *err)
{
    struct timing t;

    if (timing_parse(kind, text, zone, &t, err) < 0)
        return -1;
    if (timing_next(&t, 0) == TIMING_NEVER)
        return err_set(err, ERR_FORMAT, "'%.100s' has no occurrence in nine years", text);
    return 0;
}

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

static int64_t next_every(const struct timing *t, int64_t after_ms)
{
    return t->anchor_ms + (floor_div(after_ms - t->anchor_ms, t->every_ms) + 1) * t->every_ms;
}

/*
 * The first occurrence in a stretch that is later than after_s. shown_s: all local times before
 * this one were shown before the stretch; times between it and the begin of the stretch do not
 * exist. -> its instant in seconds, or TIMING_NEVER
 */
static int64_t next_in_stretch(const struct timing *t, const struct stretch *s, int64_t shown_s,
                               int64_t after_s)
{
    int64_t local_from = s->from_s + s->offset_s, from = local_from, local;

    if (!cron_has_all_hours(&t->cron))
        from = shown_s;
    if (after_s >= s->from_s && after_s + 1 + s->offset_s > from)
        from = after_s + 1 + s->offset_s;
    if (!cron_next(&t->cron, from, s->until_s + s->offset_s, &local))
        return TIMING_NEVER;
    return local < local_from ? s->from_s : local - s->offset_s;
}

static int64_t next_cron(const struct timing *t, int64_t after_s)
{
    struct stretch s = zone_stretch(t->zone, after_s - LOOK_BACK_S);
    int64_t until_s = after_s + TIMING_HORIZON_MS / 1000, shown_s;

    /* What was shown before the look back cannot come again. */
    s.from_s = after_s - LOOK_BACK_S;
    shown_s = s.from_s + s.offset_s;
    if (until_s > ZONE_LAST_S)
        until_s = ZONE_LAST_S;
    for (;;) {
        int64_t at = s.until_s > after_s ? next_in_stretch(t, &s, shown_s, after_s) : TIMING_NEVER;

        if (at != TIMING_NEVER)
            return at < until_s ? at : TIMING_NEVER;
        if (s.until_s + s.offset_s > shown_s)
            shown_s = s.until_s + s.offset_s;
        if (s.until_s >= until_s)
            return TIMING_NEVER;
        s = zone_stretch(t->zone, s.until_s);
    }
}

int64_t timing_next(const struct timing *t, int64_t after_ms)
{
    int64_t at;

    if (t->every_ms > 0)
        return next_every(t, after_ms);
    at = next_cron(t, floor_div(after_ms, 1000));
    return at == TIMING_NEVER ? at : at * 1000;
}
