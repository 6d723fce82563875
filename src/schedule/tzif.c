#include "schedule/tzif.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define HEADER_BYTES 44
#define TYPE_BYTES 6
#define DAY_S INT64_C(86400)
#define OFFSET_MIN_S (-89999) /* RFC 8536, 3.2 */
#define OFFSET_MAX_S 93599
#define HOURS_MAX 167

/* ---- the changes */

struct growing {
    struct tzif t;
    int64_t first_s, last_s;
};

/* Only what is behind the last one. */
static void add(struct growing *g, int64_t from_s, int64_t offset_s)
{
    struct tzif_change *last = g->t.n > 0 ? &g->t.of[g->t.n - 1] : NULL;

    if (from_s < g->first_s)
        from_s = g->first_s;
    if (from_s >= g->last_s || (last != NULL && from_s < last->from_s))
        return;
    if (last != NULL && last->from_s == from_s) {
        last->offset_s = offset_s;
        return;
    }
    if (last != NULL && last->offset_s == offset_s)
        return;
    g->t.of = mem_grow(g->t.of, g->t.n + 1, sizeof(*g->t.of));
    g->t.of[g->t.n++] = (struct tzif_change){from_s, offset_s};
}

/* ---- the footer: a rule as of POSIX TZ, "CET-1CEST,M3.5.0,M10.5.0/3" */

struct day_rule {
    char kind; /* 'M', 'J': the day of the year without 29 February, 'n': with it, from 0 on */
    int month, week, day;
    int64_t time_s;
};

struct rule {
    int64_t standard_s, summer_s; /* Dublin: its summer time, in winter, is the lower one */
    bool has_summer;
    struct day_rule from, until;
};

static bool take(const char **at, char c)
{
    if (**at != c)
        return false;
    (*at)++;
    return true;
}

static bool take_number(const char **at, int min, int max, int *ret)
{
    int value = 0, digits = 0;

    for (; isdigit((unsigned char)**at) && digits < 3; (*at)++, digits++)
        value = value * 10 + (**at - '0');
    *ret = value;
    return digits > 0 && value >= min && value <= max;
}

static bool take_name(const char **at)
{
    bool quoted = take(at, '<');
    size_t n = 0;

    for (; isalpha((unsigned char)**at) ||
           (quoted && (isdigit((unsigned char)**at) || **at == '+' || **at == '-'));
         (*at)++)
        n++;
    return n >= 3 && (!quoted || take(at, '>'));
}

/* [+-]H[:M[:S]] */
static bool take_time(const char **at, int hours_max, int64_t *ret_s)
{
    bool is_negative = take(at, '-');
    int h, m = 0, s = 0;

    if (!is_negative)
        (void)take(at, '+');
    if (!take_number(at, 0, hours_max, &h) ||
        (take(at, ':') &&
         (!take_number(at, 0, 59, &m) || (take(at, ':') && !take_number(at, 0, 59, &s)))))
        return false;
    *ret_s = (h * 60 + m) * 60 + s;
    if (is_negative)
        *ret_s = -*ret_s;
    return true;
}

static bool take_day(const char **at, struct day_rule *d)
{
    bool ok;

    d->time_s = 7200;
    if (take(at, 'M')) {
        d->kind = 'M';
        ok = take_number(at, 1, 12, &d->month) && take(at, '.') &&
             take_number(at, 1, 5, &d->week) && take(at, '.') && take_number(at, 0, 6, &d->day);
    } else if (take(at, 'J')) {
        d->kind = 'J';
        ok = take_number(at, 1, 365, &d->day);
    } else {
        d->kind = 'n';
        ok = take_number(at, 0, 365, &d->day);
    }
    return ok && (!take(at, '/') || take_time(at, HOURS_MAX, &d->time_s));
}

/* POSIX counts offsets westwards. */
static bool read_rule(const char *at, struct rule *r)
{
    if (!take_name(&at) || !take_time(&at, 24, &r->standard_s))
        return false;
    r->standard_s = -r->standard_s;
    r->has_summer = *at != '\0';
    if (!r->has_summer)
        return true;
    if (!take_name(&at))
        return false;
    r->summer_s = r->standard_s + 3600;
    if (*at != ',') {
        if (!take_time(&at, 24, &r->summer_s))
            return false;
        r->summer_s = -r->summer_s;
    }
    return take(&at, ',') && take_day(&at, &r->from) && take(&at, ',') &&
           take_day(&at, &r->until) && *at == '\0';
}

static bool is_leap(int year)
{
    return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

/* Days from 1 January 1970 to that of a year behind 1800. */
static int64_t days_before(int year)
{
    int64_t y = year - 1;

    return INT64_C(365) * (year - 1970) + (y / 4 - y / 100 + y / 400) - 477;
}

/* Seconds since 1970 on the clock before the change. */
static int64_t local_of(const struct day_rule *d, int year)
{
    static const int before[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365};
    int64_t day = days_before(year), first, length;

    if (d->kind == 'n')
        return (day + d->day) * DAY_S + d->time_s;
    if (d->kind == 'J')
        return (day + d->day - 1 + (is_leap(year) && d->day > 59)) * DAY_S + d->time_s;
    day += before[d->month - 1] + (is_leap(year) && d->month > 2);
    length = before[d->month] - before[d->month - 1] + (is_leap(year) && d->month == 2);
    /* 1 January 1970 was a Thursday, 4. */
    first = (d->day - ((day + 4) % 7 + 7) % 7 + 7) % 7 + 7 * (d->week - 1);
    if (first >= length)
        first -= 7;
    return (day + first) * DAY_S + d->time_s;
}

/* A rule begins where the table of the file ends. */
static void add_by_rule(struct growing *g, int64_t table_end_s, int64_t from_s, int64_t offset_s)
{
    if (from_s > table_end_s)
        add(g, from_s, offset_s);
}

static void write_rule_out(struct growing *g, const struct rule *r, int64_t table_end_s)
{
    int first = 1970 + (int)(g->first_s / (366 * DAY_S)) - 2;
    int last = 1970 + (int)(g->last_s / (365 * DAY_S)) + 1;

    for (int year = first; r->has_summer && year <= last; year++) {
        int64_t from_s = local_of(&r->from, year) - r->standard_s;
        int64_t until_s = local_of(&r->until, year) - r->summer_s;

        if (from_s < until_s)
            add_by_rule(g, table_end_s, from_s, r->summer_s);
        add_by_rule(g, table_end_s, until_s, r->standard_s);
        if (from_s >= until_s)
            add_by_rule(g, table_end_s, from_s, r->summer_s);
    }
}

/* ---- the blocks */

struct block {
    const uint8_t *times, *types_of, *types, *behind;
    size_t ntimes, ntypes, time_bytes;
};

static uint32_t u32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static int64_t time_at(const struct block *b, size_t i)
{
    const uint8_t *p = b->times + i * b->time_bytes;

    if (b->time_bytes == 4)
        return (int32_t)u32(p);
    return (int64_t)((uint64_t)u32(p) << 32 | u32(p + 4));
}

static int64_t offset_of(const struct block *b, size_t type)
{
    return (int32_t)u32(b->types + type * TYPE_BYTES);
}

/* A header and what it counts, within n bytes. */
static bool read_block(const uint8_t *p, size_t n, size_t time_bytes, struct block *b)
{
    uint64_t nut, nstd, nleap, nchars;

    if (n < HEADER_BYTES || memcmp(p, "TZif", 4) != 0)
        return false;
    nut = u32(p + 20);
    nstd = u32(p + 24);
    nleap = u32(p + 28);
    b->ntimes = u32(p + 32);
    b->ntypes = u32(p + 36);
    nchars = u32(p + 40);
    /* A count of leap seconds is not Redis' clock. */
    if (nleap != 0 || (nut != 0 && nut != b->ntypes) || (nstd != 0 && nstd != b->ntypes) ||
        b->ntypes > 256 ||
        (uint64_t)b->ntimes * (time_bytes + 1) + b->ntypes * TYPE_BYTES + nchars + nstd + nut >
            n - HEADER_BYTES)
        return false;
    b->time_bytes = time_bytes;
    b->times = p + HEADER_BYTES;
    b->types_of = b->times + b->ntimes * time_bytes;
    b->types = b->types_of + b->ntimes;
    b->behind = b->types + b->ntypes * TYPE_BYTES + nchars + nstd + nut;
    return true;
}

static bool is_sound(const struct block *b, size_t nchars)
{
    for (size_t i = 0; i < b->ntypes; i++) {
        const uint8_t *type = b->types + i * TYPE_BYTES;

        if (offset_of(b, i) < OFFSET_MIN_S || offset_of(b, i) > OFFSET_MAX_S || type[4] > 1 ||
            type[5] >= nchars)
            return false;
    }
    for (size_t i = 0; i < b->ntimes; i++) {
        if (b->types_of[i] >= b->ntypes || (i > 0 && time_at(b, i) <= time_at(b, i - 1)))
            return false;
    }
    return b->ntypes > 0;
}

/* A line feed, the rule or nothing, a line feed, and nothing behind it. */
static bool read_footer(const uint8_t *p, const uint8_t *end, struct rule *r, bool *ret_has)
{
    char text[64];
    size_t n;

    if (end - p < 2 || p[0] != '\n' || end[-1] != '\n' || end - p - 2 >= (ptrdiff_t)sizeof(text))
        return false;
    n = (size_t)(end - p) - 2;
    memcpy(text, p + 1, n);
    text[n] = '\0';
    *ret_has = n > 0;
    return n == 0 || (strlen(text) == n && read_rule(text, r));
}

int tzif_read(const uint8_t *p, size_t n, int64_t first_s, int64_t last_s, struct tzif *ret)
{
    struct growing g = {.first_s = first_s, .last_s = last_s};
    struct block b;
    struct rule rule = {0};
    const uint8_t *second = p;
    bool has_rule = false;

    *ret = (struct tzif){0};
    if (!read_block(p, n, 4, &b))
        return -1;
    if (p[4] != '\0') { /* the first block is for old readers */
        second = b.behind;
        if (!read_block(second, n - (size_t)(second - p), 8, &b) ||
            !read_footer(b.behind, p + n, &rule, &has_rule))
            return -1;
    } else if (b.behind != p + n) {
        return -1;
    }
    if (!is_sound(&b, u32(second + 40)))
        return -1;
    add(&g, first_s, has_rule && b.ntimes == 0 ? rule.standard_s : offset_of(&b, 0));
    for (size_t i = 0; i < b.ntimes; i++)
        add(&g, time_at(&b, i), offset_of(&b, b.types_of[i]));
    if (has_rule)
        write_rule_out(&g, &rule, b.ntimes > 0 ? time_at(&b, b.ntimes - 1) : INT64_MIN);
    *ret = g.t;
    return 0;
}

void tzif_utc(int64_t first_s, struct tzif *ret)
{
    struct growing g = {.first_s = first_s, .last_s = INT64_MAX};

    add(&g, first_s, 0);
    *ret = g.t;
}

void tzif_done(struct tzif *t)
{
    free(t->of);
    *t = (struct tzif){0};
}
