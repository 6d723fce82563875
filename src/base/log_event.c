#include "base/log_event.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"

/* ---- a small printf: several calls of vsnprintf cannot share one va_list */

#define SPARE 512 /* bytes of values that texts leave free for numbers */

static void put(struct log_event *r, const char *p, size_t n, size_t most)
{
    size_t cap = most > r->nvalues ? most - r->nvalues : 0;

    r->is_cut = r->is_cut || n > cap;
    n = n < cap ? n : cap;
    memcpy(r->values + r->nvalues, p, n);
    r->nvalues += n;
}

static void put_string(struct log_event *r, const char *s, int precision, bool is_counted)
{
    if (s == NULL)
        s = "(null)";
    else if (is_counted) {
        put(r, s, precision > 0 ? (size_t)precision : 0, LOG_BYTES_MAX - SPARE);
        return;
    }
    put(r, s, strnlen(s, precision >= 0 ? (size_t)precision : LOG_BYTES_MAX),
        LOG_BYTES_MAX - SPARE);
}

static void put_int(struct log_event *r, char kind, int longs, va_list *args)
{
    char text[24];
    int n;

    if (kind == 'u') {
        unsigned long long value = longs == 0   ? va_arg(*args, unsigned)
                                   : longs == 1 ? va_arg(*args, unsigned long)
                                                : va_arg(*args, unsigned long long);

        n = snprintf(text, sizeof(text), "%llu", value);
    } else {
        long long value = longs == 0   ? va_arg(*args, int)
                          : longs == 1 ? va_arg(*args, long)
                                       : va_arg(*args, long long);

        n = snprintf(text, sizeof(text), "%lld", value);
    }
    put(r, text, (size_t)n, LOG_BYTES_MAX);
}

/* Make one conversion. p: after its '%'; returns what follows the conversion. */
static const char *convert(struct log_event *r, const char *p, bool *is_int, va_list *args)
{
    int precision = -1, longs = 0;
    bool is_counted = false;

    if (*p == '.' && p[1] == '*') {
        precision = va_arg(*args, int);
        is_counted = true;
        p += 2;
    } else if (*p == '.') {
        for (precision = 0, p++; *p >= '0' && *p <= '9'; p++)
            precision = precision * 10 + (*p - '0');
    }
    for (; *p == 'l' || *p == 'z'; p++)
        longs += *p == 'z' ? (int)(sizeof(size_t) / sizeof(long)) : 1;
    if (*p == 's')
        put_string(r, va_arg(*args, const char *), precision, is_counted);
    else if (*p == 'd' || *p == 'u')
        put_int(r, *p, longs, args);
    else
        put(r, p, 1, LOG_BYTES_MAX); /* %% */
    *is_int = *p == 'd' || *p == 'u';
    return p + 1;
}

/* ---- pairs */

static const char *read_value(struct log_event *r, struct log_field *f, const char *p,
                              va_list *args)
{
    char end = ' ';
    unsigned parts = 0;
    bool is_int = false;

    f->at = (uint16_t)r->nvalues;
    f->is_quoted = *p == '"';
    if (f->is_quoted) {
        end = '"';
        p++;
    }
    while (*p != '\0' && *p != end) {
        size_t plain = strcspn(p, end == ' ' ? " %" : "\"%");

        parts++;
        if (plain > 0) {
            is_int = false;
            put(r, p, plain, LOG_BYTES_MAX);
            p += plain;
        } else {
            p = convert(r, p + 1, &is_int, args);
        }
    }
    f->is_number = parts == 1 && is_int && !f->is_quoted;
    f->len = (uint16_t)(r->nvalues - f->at);
    return *p == '"' ? p + 1 : p;
}

static bool is_key(const struct log_field *f, const char *key)
{
    return strlen(key) == f->key_len && memcmp(key, f->key, f->key_len) == 0;
}

void log_event_make(struct log_event *r, int level, const char *fmt, va_list *args)
{
    const char *p = fmt;

    r->level = level;
    r->dropped = 0;
    r->is_cut = false;
    r->nfields = 0;
    r->nvalues = 0;
    while (*(p += strspn(p, " ")) != '\0' && r->nfields < LOG_FIELDS_MAX) {
        struct log_field *f = &r->fields[r->nfields];
        size_t n = strcspn(p, "= ");

        f->key = p;
        f->key_len = (uint8_t)n;
        p = read_value(r, f, p[n] == '=' ? p + n + 1 : p + n, args);
        if (f->len == 0 && !f->is_quoted)
            continue;
        if (is_key(f, "cut"))
            r->is_cut = true;
        else
            r->nfields++;
    }
}

const struct log_field *log_event_find(const struct log_event *r, const char *key)
{
    for (unsigned i = 0; i < r->nfields; i++)
        if (is_key(&r->fields[i], key))
            return &r->fields[i];
    return NULL;
}

bool log_field_is(const struct log_event *r, const struct log_field *f, const char *text)
{
    return strlen(text) == f->len && memcmp(text, r->values + f->at, f->len) == 0;
}

/* ---- as text */

bool log_field_show(const struct log_event *r, const struct log_field *f, size_t *budget,
                    struct buf *out)
{
    CLEANUP_BUF struct buf shown = BUF_INIT;
    size_t most = *budget > 3 ? *budget : 3, had = out->len;
    bool is_whole;

    if (f->is_number) {
        buf_add(out, r->values + f->at, f->len);
        return true;
    }
    if (4U * f->len <= *budget) { /* fits however it is escaped; most values do */
        text_quote(out, r->values + f->at, f->len);
        *budget -= out->len - had;
        return true;
    }
    text_quote(&shown, r->values + f->at, f->len);
    is_whole = shown.len <= most;
    text_cut(&shown, most);
    buf_add(out, buf_str(&shown), shown.len);
    *budget -= shown.len < *budget ? shown.len : *budget;
    return is_whole;
}

void log_event_show(const struct log_event *r, struct buf *out)
{
    size_t budget = LOG_SHOWN_MAX;
    bool is_cut = r->is_cut;

    for (unsigned i = 0; i < r->nfields; i++) {
        const struct log_field *f = &r->fields[i];
        bool quotes = f->is_quoted || memchr(r->values + f->at, ' ', f->len) != NULL;

        buf_add(out, " ", i > 0 ? 1 : 0);
        buf_add(out, f->key, f->key_len);
        buf_puts(out, quotes ? "=\"" : "=");
        is_cut = !log_field_show(r, f, &budget, out) || is_cut;
        buf_add(out, "\"", quotes ? 1 : 0);
    }
    buf_puts(out, is_cut ? " cut=1" : "");
}
