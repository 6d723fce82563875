#include "base/text.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define DIGITS "0123456789"
#define NEAREST_MAX 64 /* longer words get no suggestion */

struct unit {
    const char *name;
    int64_t scale;
};

/* Largest first: the first unit that divides a value gives its shortest form. */
static const struct unit duration_units[] = {{"d", 86400000}, {"h", 3600000}, {"m", 60000},
                                             {"s", 1000},     {"ms", 1},      {NULL, 0}};
/* The short spellings follow "", which divides every value, so they are never printed. */
static const struct unit size_units[] = {{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10},
                                         {"", 1},          {"G", 1 << 30},   {"M", 1 << 20},
                                         {"K", 1 << 10},   {NULL, 0}};

size_t text_utf8_len(const unsigned char *p, size_t n)
{
    /* The range of the second byte rules out overlong forms, surrogates and > U+10FFFF. */
    unsigned char low = 0x80, high = 0xbf;
    size_t len;

    if (n == 0)
        return 0;
    if (p[0] < 0x80)
        return 1;
    if (p[0] < 0xc2 || p[0] > 0xf4)
        return 0;
    len = p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
    if (n < len)
        return 0;
    if (p[0] == 0xe0)
        low = 0xa0;
    else if (p[0] == 0xed)
        high = 0x9f;
    else if (p[0] == 0xf0)
        low = 0x90;
    else if (p[0] == 0xf4)
        high = 0x8f;
    if (p[1] < low || p[1] > high)
        return 0;
    for (size_t i = 2; i < len; i++)
        if (p[i] < 0x80 || p[i] > 0xbf)
            return 0;
    return len;
}

/*
 * Whether a valid sequence shows as itself: no C0 or C1 control, no direction mark, embedding,
 * override or isolate (U+061C, U+200E, U+200F, U+202A-202E, U+2066-2069), and neither of the two
 * separators that some viewers take for a new line (U+2028, U+2029).
 */
static bool is_printable(const unsigned char *p, size_t len)
{
    if (len == 1)
        return p[0] >= 0x20 && p[0] != 0x7f;
    if (len == 2)
        return !(p[0] == 0xc2 && p[1] < 0xa0) && !(p[0] == 0xd8 && p[1] == 0x9c);
    if (len == 3 && p[0] == 0xe2 && p[1] == 0x80)
        return p[2] != 0x8e && p[2] != 0x8f && (p[2] < 0xa8 || p[2] > 0xae);
    if (len == 3 && p[0] == 0xe2 && p[1] == 0x81)
        return p[2] < 0xa6 || p[2] > 0xa9;
    return true;
}

void text_escape(struct buf *out, const void *p, size_t n)
{
    const unsigned char *s = p;
    size_t plain = 0; /* start of the run that is copied as it is */
    size_t i = 0;

    while (i < n) {
        size_t len = text_utf8_len(s + i, n - i);
        size_t end = i + (len > 0 ? len : 1);

        if (len > 0 && is_printable(s + i, len)) {
            i = end;
            continue;
        }
        buf_add(out, s + plain, i - plain);
        for (; i < end; i++)
            buf_printf(out, "\\x%02x", s[i]);
        plain = i;
    }
    if (n > plain)
        buf_add(out, s + plain, n - plain);
}

void text_copy(char *out, size_t size, const char *s)
{
    size_t n = strnlen(s, size - 1);

    memcpy(out, s, n);
    out[n] = '\0';
}

char *text_digits(char *end, uint64_t n)
{
    char *p = end;

    for (; n > 9; n /= 100) {
        *--p = (char)('0' + n % 10);
        *--p = (char)('0' + n / 10 % 10);
    }
    if (n > 0 || p == end)
        *--p = (char)('0' + n);
    return p;
}

uint32_t text_hash(const char *s)
{
    uint32_t hash = 2166136261U;

    for (; *s != '\0'; s++)
        hash = (hash ^ (unsigned char)*s) * 16777619U;
    return hash;
}

void text_quote(struct buf *out, const void *bytes, size_t n)
{
    const char *p = bytes, *q;

    for (; n > 0 && (q = memchr(p, '"', n)) != NULL; n -= (size_t)(q - p) + 1, p = q + 1) {
        text_escape(out, p, (size_t)(q - p));
        buf_puts(out, "\\x22");
    }
    text_escape(out, p, n);
}

void text_cut(struct buf *b, size_t max)
{
    size_t len;

    if (b->len <= max)
        return;
    len = max > 3 ? max - 3 : 0;
    while (len > 0 && ((unsigned char)b->data[len] & 0xc0) == 0x80)
        len--;
    b->len = len;
    buf_add(b, "...", max < 3 ? max : 3);
}

int text_parse_int(const char *s, int64_t min, int64_t max, int64_t *ret)
{
    bool negative = min < 0 && *s == '-';
    int64_t v = 0;

    if (negative)
        s++;
    if (*s == '\0')
        return -1;
    for (; *s != '\0'; s++) {
        int64_t digit = *s - '0';

        if (digit < 0 || digit > 9 || __builtin_mul_overflow(v, (int64_t)10, &v))
            return -1;
        if (__builtin_add_overflow(v, negative ? -digit : digit, &v))
            return -1;
    }
    if (v < min || v > max)
        return -1;
    *ret = v;
    return 0;
}

static int parse_scaled(const char *s, const struct unit *units, int64_t *ret)
{
    size_t digits = strspn(s, DIGITS);
    char number[20];
    int64_t v;

    if (digits == 0 || digits >= sizeof(number))
        return -1;
    memcpy(number, s, digits);
    number[digits] = '\0';
    if (text_parse_int(number, 0, INT64_MAX, &v) < 0)
        return -1;
    for (; units->name != NULL; units++)
        if (strcmp(units->name, s + digits) == 0)
            break;
    if (units->name == NULL || __builtin_mul_overflow(v, units->scale, &v))
        return -1;
    *ret = v;
    return 0;
}

static const char *print_scaled(int64_t v, const struct unit *units, char out[24])
{
    while (v % units->scale != 0)
        units++;
    (void)snprintf(out, 24, "%lld%s", (long long)(v / units->scale), units->name);
    return out;
}

int text_parse_duration(const char *s, int64_t *ret_ms)
{
    return parse_scaled(s, duration_units, ret_ms);
}

const char *text_duration(int64_t ms, char out[24])
{
    if (ms == 0)
        return memcpy(out, "0s", 3);
    return print_scaled(ms, duration_units, out);
}

int text_parse_size(const char *s, int64_t *ret_bytes)
{
    return parse_scaled(s, size_units, ret_bytes);
}

const char *text_size(int64_t bytes, char out[24])
{
    if (bytes == 0)
        return memcpy(out, "0", 2);
    return print_scaled(bytes, size_units, out);
}

static bool is_alnum(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool text_is_queue_name(const char *s, size_t n)
{
    if (n < 1 || n > 64 || !is_alnum(s[0]))
        return false;
    for (size_t i = 1; i < n; i++)
        if (!is_alnum(s[i]) && s[i] != '_' && s[i] != '-')
            return false;
    return true;
}

/* Case, and - against _, make no difference: people mix them up. */
static bool is_same_letter(char a, char b)
{
    return a == b || tolower((unsigned char)a) == tolower((unsigned char)b) ||
           (a == '-' && b == '_') || (a == '_' && b == '-');
}

static size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Number of edits (insert, delete, replace, swap of neighbours) between two words of at most
 * NEAREST_MAX bytes. */
static size_t distance(const char *a, size_t na, const char *b, size_t nb)
{
    size_t rows[3][NEAREST_MAX + 1];

    for (size_t j = 0; j <= nb; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= na; i++) {
        const size_t *above2 = rows[(i + 1) % 3], *above = rows[(i + 2) % 3];
        size_t *row = rows[i % 3];

        row[0] = i;
        for (size_t j = 1; j <= nb; j++) {
            size_t d = above[j - 1] + (is_same_letter(a[i - 1], b[j - 1]) ? 0 : 1);

            d = min_size(d, min_size(above[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && is_same_letter(a[i - 1], b[j - 2]) &&
                is_same_letter(a[i - 2], b[j - 1]))
                d = min_size(d, above2[j - 2] + 1);
            row[j] = d;
        }
    }
    return rows[na % 3][nb];
}

const char *text_nearest(const char *word, const char *const *names)
{
    size_t n = strlen(word);
    size_t best = n < 4 ? 2 : n < 8 ? 3 : 4; /* one edit more than a suggestion may need */
    const char *found = NULL;

    if (n < 2 || n > NEAREST_MAX)
        return NULL;
    for (; *names != NULL; names++) {
        size_t m = strlen(*names), d;

        if (m > NEAREST_MAX)
            continue;
        d = distance(word, n, *names, m);
        if (d < best) {
            best = d;
            found = *names;
        }
    }
    return found;
}

bool text_take_word(const char **p, size_t *n, char *word, size_t cap)
{
    const char *space = memchr(*p, ' ', *n);
    size_t len = space != NULL ? (size_t)(space - *p) : *n;

    if (len == 0 || len >= cap)
        return false;
    memcpy(word, *p, len);
    word[len] = '\0';
    len += space != NULL ? 1 : 0;
    *p += len;
    *n -= len;
    return true;
}

bool text_take_int(const char **p, size_t *n, int64_t *ret)
{
    char word[24];

    return text_take_word(p, n, word, sizeof(word)) && text_parse_int(word, 0, INT64_MAX, ret) == 0;
}

const char *text_span(int64_t ms, char out[48])
{
    static const struct {
        int64_t ms;
        const char *name;
    } units[] = {{86400000, "d"}, {3600000, "h"}, {60000, "m"}, {1000, "s"}};
    const size_t n = sizeof(units) / sizeof(units[0]);

    for (size_t i = 0; i < n; i++) {
        int64_t rest;

        if (ms < units[i].ms)
            continue;
        rest = i + 1 < n ? ms % units[i].ms / units[i + 1].ms : 0;
        if (rest > 0)
            (void)snprintf(out, 48, "%lld%s %lld%s", (long long)(ms / units[i].ms), units[i].name,
                           (long long)rest, units[i + 1].name);
        else
            (void)snprintf(out, 48, "%lld%s", (long long)(ms / units[i].ms), units[i].name);
        return out;
    }
    (void)snprintf(out, 48, "%lldms", (long long)ms);
    return out;
}

size_t text_utf8_prefix(const char *text, size_t n)
{
    const unsigned char *p = (const unsigned char *)text;
    size_t i = 0, len;

    while (i < n && (len = text_utf8_len(p + i, n - i)) > 0)
        i += len;
    return i;
}
