/* The rows of conf.def as data. */
#ifndef LATER_CONF_CONF_ROW_H
#define LATER_CONF_CONF_ROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "conf/conf.h"

enum conf_type {
    CONF_TYPE_STR,
    CONF_TYPE_DUR,
    CONF_TYPE_DUR_OR_NONE,
    CONF_TYPE_SIZE,
    CONF_TYPE_INT,
    CONF_TYPE_PCT,
    CONF_TYPE_FACTOR,
    CONF_TYPE_CHOICE,
    CONF_TYPE_RATE,
    CONF_TYPE_STRS,
    CONF_TYPE_PAIRS,
    CONF_TYPE_INTS,
};

struct conf_row {
    const char *path; /* "backoff.first" */
    enum conf_type type;
    size_t offset; /* of the field */
    const char *def;
    int64_t min, max;
    bool is_reloaded;
    const char *prose;
    const char *const *words; /* of a CHOICE, NULL-ended */
};

extern const struct conf_row conf_top_rows[CONF_TOP_ROWS];
extern const struct conf_row conf_queue_rows[CONF_QUEUE_ROWS];
extern const struct conf_row conf_limit_rows[CONF_LIMIT_ROWS];
extern const struct conf_row conf_schedule_rows[CONF_SCHEDULE_ROWS];

/* Whether this key or mode is planned, but not in this version. */
bool conf_is_later_word(const char *word);

/* Text from outside, for a message: escaped and cut. */
struct conf_shown {
    char s[64];
};
struct conf_shown conf_show(const char *text);

/* The row with this path among n; NULL: there is none. */
const struct conf_row *conf_row_find(const struct conf_row *rows, size_t n, const char *path);

#endif
