/*
 * A line of the log as fields. The format is the structure: keys stand in it, literally, so that no
 * value can forge one.
 *
 *     event=end job=%s run_ms=%lld reason="%s: %s" now=%s
 *
 * Pairs are parted by a space; a value in double quotes may have spaces of its own. A pair whose
 * value, without quotes, comes out empty is left out. Conversions: %s %.Ns %.*s %d %u %ld %lu %lld
 * %llu %zu %%. `%.*s` takes so many bytes whatever they are, NUL too. `cut=%s` is no field: if it
 * is not empty the record is marked as cut, as it is by a value that does not fit.
 */
#ifndef LATER_BASE_LOG_RECORD_H
#define LATER_BASE_LOG_RECORD_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define LOG_FIELDS_MAX 24
#define LOG_BYTES_MAX 2048 /* of all values, as they come */
/* Of all values, escaped: with its keys a line is under PIPE_BUF then. */
#define LOG_SHOWN_MAX 1800

struct log_field {
    const char *key; /* in the format; not NUL-ended */
    uint8_t key_len;
    bool is_number; /* one integer conversion and nothing else */
    bool is_quoted; /* in the format */
    uint16_t at, len;
};

struct log_record {
    int level;
    unsigned long dropped; /* lines lost before this one; the caller's to fill in */
    bool is_cut;
    unsigned nfields;
    struct log_field fields[LOG_FIELDS_MAX];
    size_t nvalues;
    char values[LOG_BYTES_MAX];
};

/* Takes its arguments from *args. The record points into fmt. */
void log_record_make(struct log_record *r, int level, const char *fmt, va_list *args);

/* NULL: there is none. Its bytes are raw and not NUL-ended. */
const struct log_field *log_record_find(const struct log_record *r, const char *key);
bool log_field_is(const struct log_record *r, const struct log_field *f, const char *text);

/*
 * Append the value escaped (text_quote), at most *budget bytes, and take from the budget; numbers
 * are always whole. False: it was shortened, "..." stands at its end.
 */
bool log_field_show(const struct log_record *r, const struct log_field *f, size_t *budget,
                    struct buf *out);

/* Append "key=value key=\"value\"", without LF. What could be read as more than one word is quoted.
 */
void log_record_show(const struct log_record *r, struct buf *out);

#endif
