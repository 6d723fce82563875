#include "schedule/cron.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/date.h"

#define DAY_S 86400
#define TEXT_MAX 256 /* bytes of an expression */

/* ---- parsing */

enum field { SECOND, MINUTE, HOUR, DAY, MONTH, WEEKDAY, FIELDS };

static const char *const months[] = {"jan", "feb", "mar", "apr", "may", "jun", "jul",
                                     "aug", "sep", "oct", "nov", "dec", NULL};
static const char *const weekdays[] = {"sun", "mon", "tue", "wed", "thu", "fri", "sat", NULL};

static const struct field_kind {
    const char *name;
    unsigned min, max;
    const char *const *words; /* names of values from min on; NULL: none */
} kinds[FIELDS] = {{"second", 0, 59, NULL}, {"minute", 0, 59, NULL},  {"hour", 0, 23, NULL},
                   {"day", 1, 31, NULL},    {"month", 1, 12, months}, {"weekday", 0, 7, weekdays}};

static const struct {
    const char *name, *text;
} nicknames[] = {{"@hourly", "0 * * * *"},   {"@daily", "0 0 * * *"},
                 {"@midnight", "0 0 * * *"}, {"@weekly", "0 0 * * 0"},
                 {"@monthly", "0 0 1 * *"},  {"@yearly", "0 0 1 1 *"},
                 {"@annually", "0 0 1 1 *"}, {NULL, NULL}};

struct parser {
    const char *text, *at;
    struct cron *cron;
    struct err *err;
};

static int column(const struct parser *p)
{
    return (int)(p->at - p->text) + 1;
}

/* The text from here to the end of the field, for an error. */
static int word_length(const struct parser *p)
{
    size_t n = strcspn(p->at, " \t,");

    return n > 0 ? (int)n : 1;
}

static int refuse(const struct parser *p, const struct field_kind *kind)
{
    if (*p->at == '?')
        return err_set(p->err, ERR_FORMAT, "column %d: '?' is not taken here: write *", column(p));
    if (*p->at == '\0')
        return err_set(p->err, ERR_FORMAT, "column %d: the %s is missing", column(p), kind->name);
    if (toupper((unsigned char)*p->at) == 'W' && kind == &kinds[DAY])
        return err_set(p->err, ERR_FORMAT,
                       "column %d: 'W' is not taken here: name the days, and weekdays 1-5",
                       column(p));
    if (kind->words != NULL)
        return err_set(p->err, ERR_FORMAT,
                       "column %d: '%.*s' is no %s: write %u to %u, or %s to %s", column(p),
                       word_length(p), p->at, kind->name, kind->min, kind->max, kind->words[0],
                       kind == &kinds[MONTH] ? "dec" : "sat");
    return err_set(p->err, ERR_FORMAT, "column %d: '%.*s' is no %s: write %u to %u", column(p),
                   word_length(p), p->at, kind->name, kind->min, kind->max);
}

/* Digits only, from min to max; nothing is taken if it is something else. */
static bool take_number(struct parser *p, unsigned min, unsigned max, unsigned *ret)
{
    size_t n = strspn(p->at, "0123456789");
    unsigned value = 0;

    if (n == 0 || n > 4)
        return false;
    for (size_t i = 0; i < n; i++)
        value = 10 * value + (unsigned)(p->at[i] - '0');
    if (value < min || value > max)
        return false;
    p->at += n;
    *ret = value;
    return true;
}

static bool take_value(struct parser *p, const struct field_kind *kind, unsigned *ret)
{
    if (take_number(p, kind->min, kind->max, ret))
        return true;
    for (unsigned i = 0; kind->words != NULL && kind->words[i] != NULL; i++) {
        if (strncasecmp(p->at, kind->words[i], 3) == 0) {
            *ret = kind->min + i;
            p->at += 3;
            return true;
        }
    }
    return false;
}

/* What stands behind the value of a weekday: "#2" or "L". 1: taken, 0: nothing, -1 with err. */
static int take_place(struct parser *p, unsigned weekday)
{
    unsigned nth;

    if (*p->at == '#') {
        p->at++;
        if (!take_number(p, 1, 5, &nth))
            return err_set(p->err, ERR_FORMAT, "column %d: behind # comes 1 to 5", column(p));
        p->cron->nth[weekday % 7] |= (uint8_t)(1u << nth);
        return 1;
    }
    if (*p->at == 'L' || *p->at == 'l') {
        p->at++;
        p->cron->last_weekdays |= 1u << weekday % 7;
        return 1;
    }
    return 0;
}

/* "/STEP", if there is one. 0, or -1 with err. */
static int take_step(struct parser *p, const struct field_kind *kind, unsigned *ret)
{
    *ret = 1;
    if (*p->at != '/')
        return 0;
    p->at++;
    if (!take_number(p, 1, kind->max, ret))
        return err_set(p->err, ERR_FORMAT, "column %d: the step of a %s is 1 to %u", column(p),
                       kind->name, kind->max);
    return 0;
}

/* One part of a list. 0, or -1 with err. */
static int take_part(struct parser *p, const struct field_kind *kind, uint64_t *bits)
{
    unsigned from = kind->min, to = kind->max, step;

    if (kind == &kinds[DAY] && (*p->at == 'L' || *p->at == 'l')) {
        p->at++;
        p->cron->has_last_day = true;
        return 0;
    }
    if (*p->at == '*') {
        p->at++;
        if (kind == &kinds[WEEKDAY])
            to = 6;
    } else {
        const char *begin = p->at;
        int placed = 0;

        if (!take_value(p, kind, &from))
            return refuse(p, kind);
        to = from;
        if (kind == &kinds[WEEKDAY])
            placed = take_place(p, from);
        if (placed != 0)
            return placed > 0 ? 0 : -1;
        if (*p->at == '/')
            return err_set(p->err, ERR_FORMAT,
                           "column %d: a step needs a range: write %u-%u/ or */", column(p), from,
                           kind->max);
        if (*p->at == '-') {
            p->at++;
            if (!take_value(p, kind, &to))
                return refuse(p, kind);
            if (to < from)
                return err_set(p->err, ERR_FORMAT,
                               "column %d: the range ends before it begins: write %u-%u,%u-%u",
                               (int)(begin - p->text) + 1, from,
                               kind == &kinds[WEEKDAY] ? 6 : kind->max, kind->min, to);
        }
    }
    if (take_step(p, kind, &step) < 0)
        return -1;
    for (unsigned i = from; i <= to; i += step)
        *bits |= UINT64_C(1) << (kind == &kinds[WEEKDAY] ? i % 7 : i);
    return 0;
}

static int take_field(struct parser *p, enum field f, uint64_t *bits)
{
    *bits = 0;
    for (;;) {
        if (take_part(p, &kinds[f], bits) < 0)
            return -1;
        if (*p->at != ',')
            break;
        p->at++;
    }
    if (*p->at != '\0' && *p->at != ' ' && *p->at != '\t')
        return refuse(p, &kinds[f]);
    p->at += strspn(p->at, " \t");
    return 0;
}

static int count_fields(const char *s)
{
    int n = 0;

    for (s += strspn(s, " \t"); *s != '\0'; s += strspn(s, " \t")) {
        s += strcspn(s, " \t");
        n++;
    }
    return n;
}

static int parse_fields(struct parser *p, enum field first)
{
    uint64_t bits[FIELDS] = {1};
    bool has_star[FIELDS] = {false};
    struct cron *c = p->cron;

    p->at += strspn(p->at, " \t");
    for (enum field f = first; f < FIELDS; f++) {
        has_star[f] = *p->at == '*';
        if (take_field(p, f, &bits[f]) < 0)
            return -1;
    }
    c->seconds = bits[SECOND];
    c->minutes = bits[MINUTE];
    c->hours = (uint32_t)bits[HOUR];
    c->days = (uint32_t)bits[DAY];
    c->months = (uint32_t)bits[MONTH];
    c->weekdays = (uint32_t)bits[WEEKDAY];
    c->is_either = !has_star[DAY] && !has_star[WEEKDAY];
    return 0;
}

static int parse_nickname(const char *text, struct cron *ret, struct err *err)
{
    for (size_t i = 0; nicknames[i].name != NULL; i++) {
        if (strcasecmp(text, nicknames[i].name) == 0)
            return cron_parse(nicknames[i].text, ret, err);
    }
    if (strcasecmp(text, "@reboot") == 0)
        return err_set(err, ERR_FORMAT, "@reboot is no time: add a job where the system starts");
    return err_set(err, ERR_FORMAT,
                   "'%.32s' is none of @hourly @daily @midnight @weekly @monthly @yearly @annually",
                   text);
}

int cron_parse(const char *text, struct cron *ret, struct err *err)
{
    struct parser p = {text, text, ret, err};
    int n = count_fields(text);

    *ret = (struct cron){0};
    if (text[0] == '@')
        return parse_nickname(text, ret, err);
    if (strlen(text) > TEXT_MAX)
        return err_set(err, ERR_FORMAT, "an expression has at most %d bytes", TEXT_MAX);
    if (n != 5 && n != 6)
        return err_set(err, ERR_FORMAT,
                       "an expression has 5 fields (minute hour day month weekday) or 6 (second "
                       "first), not %d",
                       n);
    return parse_fields(&p, n == 6 ? SECOND : MINUTE);
}

/* ---- matching */

bool cron_has_all_hours(const struct cron *c)
{
    return c->hours == (1u << 24) - 1;
}

static int length_of_month(const struct tm *day)
{
    return date_days_in_month(day->tm_year + 1900, day->tm_mon + 1);
}

static bool fits_day(const struct cron *c, const struct tm *day, int length)
{
    return (c->days >> day->tm_mday & 1) != 0 || (c->has_last_day && day->tm_mday == length);
}

static bool fits_weekday(const struct cron *c, const struct tm *day, int length)
{
    int nth = (day->tm_mday - 1) / 7 + 1;

    return (c->weekdays >> day->tm_wday & 1) != 0 || (c->nth[day->tm_wday] >> nth & 1) != 0 ||
           ((c->last_weekdays >> day->tm_wday & 1) != 0 && day->tm_mday + 7 > length);
}

static bool matches_day(const struct cron *c, const struct tm *day)
{
    int length = length_of_month(day);

    if ((c->months >> (day->tm_mon + 1) & 1) == 0)
        return false;
    return c->is_either ? fits_day(c, day, length) || fits_weekday(c, day, length)
                        : fits_day(c, day, length) && fits_weekday(c, day, length);
}

/* The first set bit from `from` on, -1 if there is none. */
static int next_bit(uint64_t bits, int from)
{
    uint64_t left = from < 64 ? bits >> from << from : 0;

    return left != 0 ? __builtin_ctzll(left) : -1;
}

/* The first matching second of a day from `from` on (0 to 86399), -1 if there is none. */
static int next_in_day(const struct cron *c, int from)
{
    int hour = from / 3600, minute = from / 60 % 60, second = from % 60;
    int h = next_bit(c->hours, hour), m, s;

    if (h == hour) {
        m = next_bit(c->minutes, minute);
        s = m == minute ? next_bit(c->seconds, second) : -1;
        if (s >= 0)
            return h * 3600 + m * 60 + s;
        m = next_bit(c->minutes, minute + 1);
        if (m >= 0)
            return h * 3600 + m * 60 + next_bit(c->seconds, 0);
        h = next_bit(c->hours, hour + 1);
    }
    return h < 0 ? -1 : h * 3600 + next_bit(c->minutes, 0) * 60 + next_bit(c->seconds, 0);
}

/* The number of the first day of the next month. number: of the day */
static int64_t next_month(const struct tm *day, int64_t number)
{
    return number + length_of_month(day) - day->tm_mday + 1;
}

bool cron_next(const struct cron *c, int64_t from_s, int64_t until_s, int64_t *ret_s)
{
    int from = (int)((from_s % DAY_S + DAY_S) % DAY_S);
    int64_t number = (from_s - from) / DAY_S;

    while (number * DAY_S + from < until_s) {
        time_t at = (time_t)number * DAY_S;
        struct tm day;
        int second;

        (void)gmtime_r(&at, &day);
        second = matches_day(c, &day) ? next_in_day(c, from) : -1;
        if (second >= 0 && number * DAY_S + second >= until_s)
            return false;
        if (second >= 0) {
            *ret_s = number * DAY_S + second;
            return true;
        }
        number = (c->months >> (day.tm_mon + 1) & 1) != 0 ? number + 1 : next_month(&day, number);
        from = 0;
    }
    return false;
}
