/*
 * Cuts a stream of bytes into lines of at most `max` bytes; the rest of a longer line is dropped.
 * Where a line says that bytes follow which are no lines, they are handed out as they come. Pure.
 * Never keeps more than max bytes.
 */
#ifndef LATER_RUN_LINES_H
#define LATER_RUN_LINES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

/* Some of the bytes that lines_expect announced. */
typedef void lines_bytes_f(void *arg, const char *p, size_t n);

struct lines {
    struct buf part; /* of a line whose LF has not come yet */
    size_t max;
    bool cut;               /* part is full, and later bytes of the line were dropped */
    size_t expected;        /* bytes that are no lines */
    lines_bytes_f *on_some; /* takes them */
};

/* One line without its LF. Not NUL-ended, valid during the call only. cut: it was longer. */
typedef void lines_f(void *arg, const char *line, size_t n, bool cut);

void lines_init(struct lines *l, size_t max);
void lines_done(struct lines *l);
/* Take n bytes; cb is called for each line that ends in them. */
void lines_feed(struct lines *l, const char *p, size_t n, lines_f *cb, void *arg);
/* To be called by cb: the next n bytes are no lines, and go to on_some, with cb's arg. */
void lines_expect(struct lines *l, size_t n, lines_bytes_f *on_some);
/* The stream has ended: hand out a last line without LF. */
void lines_end(struct lines *l, lines_f *cb, void *arg);

#endif
