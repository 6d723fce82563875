/*
 * The lines of a file or a stream, byte for byte, read in large pieces: a line is what stands
 * before a LF, and what stands behind the last one if there is anything. NUL, CR and bytes that are
 * no text are bytes as others.
 *
 * Memory: the lines that were handed out and not dropped, the longest line, and a piece. One
 * thread; feed_read is the only one that waits.
 */
#ifndef LATER_CLI_BULK_FEED_H
#define LATER_CLI_BULK_FEED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

struct feed {
    int fd;
    struct buf bytes;
    size_t base;     /* what was dropped ends here */
    size_t at;       /* where the next line starts */
    size_t seen;     /* no LF between at and here */
    bool is_over;    /* there is nothing behind bytes */
    uint64_t size;   /* bytes there were when it was opened, 0: not known */
    uint64_t passed; /* bytes handed out as lines */
};

struct feed_line {
    size_t offset; /* for feed_at */
    size_t size;   /* of FEED_LONG 0 when its end has not been seen */
    size_t next;   /* the offset behind it */
};

enum feed_got {
    FEED_LINE,
    FEED_NONE, /* no whole line has been read: feed_read */
    FEED_LONG, /* the next line is longer than max; it stays the next one */
    FEED_END,
};

/*
 * path "-": standard input. A pipe with a name is waited for until somebody writes to it. 0, or -1
 * with code INPUT (no such file, a folder), DENIED, SYSTEM; feed_done is due in any case.
 */
int feed_open(struct feed *f, const char *path, struct err *err);
void feed_done(struct feed *f);

enum feed_got feed_next(struct feed *f, size_t max, struct feed_line *line);
/* The bytes at an offset; good until the next feed_read. */
const char *feed_at(const struct feed *f, size_t offset);
/* The end was read, and every line handed out. */
bool feed_is_empty(const struct feed *f);
/* What is before this offset is not needed any more: the offset counts as 0 from here on. */
void feed_drop(struct feed *f, size_t offset);

/*
 * Read a piece, or find the end. 1: done. 0: nothing is there yet (may_wait false), or stop_fd (-1:
 * none) is readable. -1 with code SYSTEM.
 */
int feed_read(struct feed *f, int stop_fd, bool may_wait, struct err *err);

#endif
