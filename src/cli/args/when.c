#include "cli/args/when.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/buf.h"
#include "base/date.h"
#include "base/text.h"

#define DAY_S 86400
#define LONGEST_MS INT64_C(3155760000000) /* 100 years, the library's limit */
#define TEXT_MAX 64

/* ---- spans */

static const char *skip_in(const char *text)
{
    return strncasecmp(text, "in ", 3) == 0 ? text + 3 + strspn(text + 3, " ") : text;
}

/* Add the number and unit at *p to *ret_ms. The unit must be shorter than *below ms. 0 or -1. */
static int read_part(const char **p, int64_t *below, int64_t *ret_ms)
{
    static const struct {
        const char *name;
        int64_t ms;
    } units[] = {{"d", 86400000}, {"h", 3600000}, {"m", 60000}, {"s", 1000}, {"ms", 1}};
    size_t digits = strspn(*p, "0123456789"), letters;
    int64_t n = 0;

    for (letters = digits; isalpha((unsigned char)(*p)[letters]) != 0;)
        letters++;
    if (digits == 0 || digits > 13)
        return -1;
    for (size_t i = 0; i < digits; i++)
        n = n * 10 + ((*p)[i] - '0');
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (strncasecmp(*p + digits, units[i].name, letters - digits) != 0 ||
            strlen(units[i].name) != letters - digits)
            continue;
        if (units[i].ms >= *below || n > LONGEST_MS / units[i].ms)
            return -1;
        *below = units[i].ms;
        *ret_ms += n * units[i].ms;
        *p += letters;
        return 0;
    }
    return -1;
}

int when_parse_span(const char *text, int64_t *ret_ms)
{
    int64_t below = INT64_MAX, ms = 0;
    const char *p = skip_in(text);

    do {
        if (read_part(&p, &below, &ms) < 0)
            return -1;
    } while (*p != '\0');
    if (ms > LONGEST_MS)
        return -1;
    *ret_ms = ms;
    return 0;
}

/* ---- days (Howard Hinnant, chrono-compatible low-level date algorithms) */

static int64_t days_of(int64_t y, int m, int d)
{
    int64_t era, yoe, doy;

    y -= m <= 2;
    era = (y >= 0 ? y : y - 399) / 400;
    yoe = y - era * 400;
    doy = (153 * (m + (m > 2 ? -3 : 9)) + 2) / 5 + d - 1;
    return era * 146097 + yoe * 365 + yoe / 4 - yoe / 100 + doy - 719468;
}

static bool is_date(int y, int m, int d)
{
    return m >= 1 && m <= 12 && d >= 1 && d <= date_days_in_month(y, m);
}

/* ---- words */

/* A day as it was written: by its date, or counted from today. */
struct day {
    enum { DAY_NONE, DAY_DATE, DAY_AFTER, DAY_WEEKDAY } kind;
    /* DATE: days since 1970. AFTER: days from today. WEEKDAY: 0 Thursday (as 1970-01-01) to 6. */
    int64_t n;
};

static int weekday_of(const char *word)
{
    static const char *const names[] = {"thursday", "friday",  "saturday", "sunday",
                                        "monday",   "tuesday", "wednesday"};

    for (int i = 0; i < 7; i++) {
        if (strcasecmp(word, names[i]) == 0 ||
            (strlen(word) == 3 && strncasecmp(word, names[i], 3) == 0))
            return i;
    }
    return -1;
}

/* Whether s has exactly this shape; d is a digit. sscanf alone would also take blanks and signs. */
static bool has_shape(const char *s, const char *shape)
{
    for (; *shape != '\0'; s++, shape++) {
        if (*shape == 'd' ? isdigit((unsigned char)*s) == 0 : *s != *shape)
            return false;
    }
    return *s == '\0';
}

static int read_day(const char *word, struct day *day)
{
    int y, m, d, weekday = weekday_of(word);

    if (strcasecmp(word, "today") == 0 || strcasecmp(word, "tomorrow") == 0) {
        *day = (struct day){DAY_AFTER, strcasecmp(word, "tomorrow") == 0};
        return 0;
    }
    if (weekday >= 0) {
        *day = (struct day){DAY_WEEKDAY, weekday};
        return 0;
    }
    if (!has_shape(word, "dddd-dd-dd") || sscanf(word, "%4d-%2d-%2d", &y, &m, &d) != 3 ||
        !is_date(y, m, d))
        return -1;
    *day = (struct day){DAY_DATE, days_of(y, m, d)};
    return 0;
}

/* Seconds since midnight. */
static int read_time(const char *word, int64_t *ret_s)
{
    int h = 0, m = 0, s = 0;

    if (has_shape(word, "dd:dd:dd"))
        (void)sscanf(word, "%2d:%2d:%2d", &h, &m, &s);
    else if (has_shape(word, "dd:dd") || has_shape(word, "d:dd"))
        (void)sscanf(word, "%2d:%2d", &h, &m);
    else
        return -1;
    *ret_s = h * 3600 + m * 60 + s;
    return h < 24 && m < 60 && s < 60 ? 0 : -1;
}

/* ---- local time */

/*
 * The instant at which clocks show this local time. Of two instants, the first that is not past. If
 * there is none, the instant at which a clock that was not set forward would show it.
 */
static struct when find(int64_t local_s, int64_t now_s, when_offset_f offset)
{
    int64_t first = local_s - offset(local_s - DAY_S), second = local_s - offset(local_s + DAY_S);
    bool is_first = first + offset(first) == local_s,
         is_second = second + offset(second) == local_s;
    int64_t earlier = first < second ? first : second, later = first < second ? second : first;

    if (is_first && is_second && first != second)
        return (struct when){WHEN_TWICE, (earlier > now_s ? earlier : later) * 1000};
    if (!is_first && !is_second)
        return (struct when){WHEN_SKIPPED, first * 1000};
    return (struct when){WHEN_INSTANT, (is_first ? first : second) * 1000};
}

static struct when resolve(struct day day, int64_t time_s, int64_t now_ms, when_offset_f offset)
{
    int64_t now_s = now_ms / 1000, today = (now_s + offset(now_s)) / DAY_S;
    int64_t n = day.n, step = 0;
    struct when w;

    if (day.kind == DAY_NONE) {
        n = today;
        step = 1;
    } else if (day.kind == DAY_AFTER) {
        n += today;
    } else if (day.kind == DAY_WEEKDAY) {
        n = today + (day.n - today % 7 + 7) % 7;
        step = 7;
    }
    w = find(n * DAY_S + time_s, now_s, offset);
    if (step > 0 && w.ms <= now_ms)
        w = find((n + step) * DAY_S + time_s, now_s, offset);
    return w;
}

/* ---- all together */

static int refuse(const char *text, struct err *err)
{
    CLEANUP_BUF struct buf safe = BUF_INIT;

    text_escape(&safe, text, strlen(text));
    text_cut(&safe, 40);
    return err_set(err, ERR_FORMAT,
                   "'%s' is no time: write tomorrow 09:00, today 17:30, monday 8:00, 18:00, "
                   "2030-12-24 18:00, in 90m, now; or 2030-01-31T09:00:00Z, @SECONDS, integer ms, "
                   "+5m",
                   buf_str(&safe));
}

/* Split into one or two words; "2030-12-24T18:00" counts as two. -1: none, more, or too long. */
static int split(const char *text, char words[2][TEXT_MAX])
{
    char copy[TEXT_MAX], *save = NULL, *word;
    int n = 0;

    if (strlen(text) >= sizeof(copy))
        return -1;
    text_copy(copy, sizeof(copy), text);
    if (strlen(copy) > 10 && copy[4] == '-' && (copy[10] == 'T' || copy[10] == 't'))
        copy[10] = ' ';
    words[0][0] = words[1][0] = '\0';
    for (word = strtok_r(copy, " ", &save); word != NULL; word = strtok_r(NULL, " ", &save)) {
        if (n == 2)
            return -1;
        text_copy(words[n++], TEXT_MAX, word);
    }
    return n > 0 ? 0 : -1;
}

/* Whether the library gets this integer: ms, or seconds, which it recognizes by their size. Nobody
 * means ms by 900 (a time of day), 20301224 or 203012241800 (dates). */
static bool is_ms(const char *digits)
{
    int64_t ms;

    return text_parse_int(digits, 0, INT64_MAX, &ms) < 0 || ms == 0 ||
           (ms >= INT64_C(100000000) && ms <= INT64_C(100000000000)) ||
           ms >= INT64_C(1000000000000);
}

bool when_is_machine(const char *text)
{
    size_t n = strlen(text);
    const char *zone = n >= 6 ? text + n - 6 : "";

    if (text[strspn(text, "0123456789")] == '\0')
        return is_ms(text);
    if (text[0] == '@' || text[0] == '+')
        return true;
    return n >= 20 && text[4] == '-' && text[13] == ':' && text[16] == ':' &&
           (toupper((unsigned char)text[n - 1]) == 'Z' || has_shape(zone, "+dd:dd") ||
            has_shape(zone, "-dd:dd"));
}

#define INSTANT_MOST_MS INT64_C(100000000000000)

int when_read_machine(const char *text, int64_t now_ms, int64_t *ret_ms)
{
    struct tm tm = {0};
    const char *rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);
    int hours, minutes, n = 0, rc;
    char sign;

    *ret_ms = 0;
    if (rest == NULL && text[0] == '+') {
        rc = text_parse_duration(text + 1, ret_ms);
        return __builtin_add_overflow(*ret_ms, now_ms, ret_ms) ? -1 : rc;
    }
    if (rest == NULL && text[0] == '@') {
        rc = text_parse_int(text + 1, 0, INSTANT_MOST_MS / 1000, ret_ms);
        *ret_ms *= 1000;
        return rc;
    }
    if (rest == NULL)
        return text_parse_int(text, 0, INSTANT_MOST_MS, ret_ms);
    *ret_ms = (int64_t)timegm(&tm) * 1000;
    if (strcasecmp(rest, "Z") == 0)
        return 0;
    if (sscanf(rest, "%c%2d:%2d%n", &sign, &hours, &minutes, &n) != 3 || rest[n] != '\0' ||
        (sign != '+' && sign != '-'))
        return -1;
    *ret_ms -= (sign == '-' ? -1 : 1) * (hours * 60 + minutes) * INT64_C(60000);
    return 0;
}

bool when_needs_clock(const char *text)
{
    int64_t ms;

    return strcasecmp(text, "now") != 0 && when_parse_span(text, &ms) < 0;
}

int when_parse(const char *text, int64_t now_ms, when_offset_f offset, struct when *ret,
               struct err *err)
{
    struct day day = {DAY_NONE, 0};
    char words[2][TEXT_MAX];
    int64_t time_s;

    *ret = (struct when){WHEN_SPAN, 0};
    if (strcasecmp(text, "now") == 0 || when_parse_span(text, &ret->ms) == 0)
        return 0;
    if (split(text, words) < 0)
        return refuse(text, err);
    if (words[1][0] == '\0' && read_day(words[0], &day) == 0)
        return err_set(err, ERR_FORMAT, "'%s' needs a time of day: %s 09:00", words[0], words[0]);
    if (words[1][0] != '\0' && read_day(words[0], &day) < 0)
        return refuse(text, err);
    if (read_time(words[words[1][0] != '\0'], &time_s) < 0)
        return refuse(text, err);
    *ret = resolve(day, time_s, now_ms, offset);
    if (ret->ms <= now_ms - 60000)
        return err_set(err, ERR_FORMAT, "'%s %s' is past: write now, or another day", words[0],
                       words[1]);
    return 0;
}
