/*
 * A line of the log as fields, made from a format. Keys stand in the format literally, so that no
 * value can forge one.
 *
 *     event=end job=%s run_ms=%lld reason="%s: %s" now=%s
 *
 * Pairs are separated by a space; a value in double quotes may have spaces of its own. A pair
 * without quotes whose value is empty is left out. Conversions: %s %.Ns %.*s %d %u %ld %lu %lld
 * %llu %zu %%. `%.*s` takes that many bytes whatever they are, NUL too. `cut=%s` is no field: if
 * its value is not empty, is_cut is set, as it is when a value does not fit.
 */
#ifndef LATER_BASE_LOG_EVENT_H
#define LATER_BASE_LOG_EVENT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define LOG_FIELDS_MAX 24
#define LOG_BYTES_MAX 2048 /* of all values, before escaping */
/* Bytes of all values, escaped: a line with its keys then stays under PIPE_BUF. */
#define LOG_SHOWN_MAX 1800

struct log_field {
    const char *key; /* points into the format; not NUL-ended */
    uint8_t key_len;
    bool is_number;   /* one integer conversion and nothing else */
    bool is_quoted;   /* in the format */
    uint16_t at, len; /* in values */
};

struct log_event {
    int level;
    unsigned long dropped; /* lines lost before this one; the caller fills it in */
    bool is_cut;
    unsigned nfields;
    struct log_field fields[LOG_FIELDS_MAX];
    size_t nvalues;
    char values[LOG_BYTES_MAX];
};

/* Takes the arguments from *args. The texts of *r point into fmt, which must live as long. */
void log_event_make(struct log_event *r, int level, const char *fmt, va_list *args);

/* The field of this key, or NULL. Its bytes are not escaped and not NUL-ended. */
const struct log_field *log_event_find(const struct log_event *r, const char *key);
bool log_field_is(const struct log_event *r, const struct log_field *f, const char *text);

/*
 * Append the value escaped (text_quote), at most *budget bytes (3 if it is less), and subtract them
 * from *budget. Numbers are whole and cost nothing. False: it was cut and ends with "...".
 */
bool log_field_show(const struct log_event *r, const struct log_field *f, size_t *budget,
                    struct buf *out);

/* Append "key=value key=\"value\"", without LF. A value is quoted if it has a space, or quotes in
 * the format. */
void log_event_show(const struct log_event *r, struct buf *out);

#endif
