/*
 * Bytes as they come, cut into lines of at most `max` bytes: the rest of a longer line is dropped.
 * Pure and bounded: never more than max bytes are kept.
 */
#ifndef LATER_RUN_LINES_H
#define LATER_RUN_LINES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

struct lines {
    struct buf part; /* of a line whose end has not come yet */
    size_t max;
    bool cut; /* part is full and bytes behind it were dropped */
};

/* One line without its LF, not NUL-ended, not kept; cut: it was longer. */
typedef void lines_f(void *arg, const char *line, size_t n, bool cut);

void lines_init(struct lines *l, size_t max);
void lines_done(struct lines *l);
void lines_feed(struct lines *l, const char *p, size_t n, lines_f *cb, void *arg);
/* The stream has ended: hand out a last line without LF. */
void lines_end(struct lines *l, lines_f *cb, void *arg);

#endif
