/*
 * The lines of a file or a stream, byte for byte, read in large pieces. A line ends before a LF; if
 * bytes follow the last LF, they are a line, too. NUL, CR and bytes that are no text are ordinary
 * bytes.
 *
 * Memory: the lines that were handed out and not dropped, the longest line, and a piece. One
 * thread. Only feed_open and feed_read may wait.
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
    size_t base;     /* the bytes before it were dropped */
    size_t at;       /* where the next line starts */
    size_t seen;     /* no LF between at and here */
    bool is_over;    /* the end of the input was read */
    uint64_t size;   /* bytes to read when it was opened, 0: not known */
    uint64_t passed; /* bytes handed out as lines */
};

struct feed_line {
    size_t offset; /* for feed_at */
    size_t size;   /* FEED_LONG: 0 if its end has not been read */
    size_t next;   /* offset of the line after it */
};

enum feed_got {
    FEED_LINE,
    FEED_NONE, /* no whole line has been read: call feed_read */
    FEED_LONG, /* the next line is longer than max; it was not consumed */
    FEED_END,
};

/*
 * Whether feed_open would take this path, so that nothing is changed before for a file that is not
 * there. It opens nothing: a named pipe would lose its writer. 0, or -1 as feed_open.
 */
int feed_check(const char *path, struct err *err);
/*
 * path "-": standard input. Opening a named pipe waits until somebody writes to it. 0, or -1 with
 * code INPUT (no such file, a folder), DENIED, SYSTEM. Call feed_done in any case.
 */
int feed_open(struct feed *f, const char *path, struct err *err);
void feed_done(struct feed *f);

/* Hand out the next line, of at most max bytes. */
enum feed_got feed_next(struct feed *f, size_t max, struct feed_line *line);
/* The bytes at an offset. Valid until the next feed_read. */
const char *feed_at(const struct feed *f, size_t offset);
/* Whether the end was read and every line was handed out. */
bool feed_is_empty(const struct feed *f);
/* Give up the bytes before this offset, which becomes offset 0. */
void feed_drop(struct feed *f, size_t offset);

/*
 * Read a piece, or find the end. 1: done. 0: nothing is there yet (without may_wait), the read was
 * interrupted, or stop_fd (-1: none) is readable. -1 with code SYSTEM.
 */
int feed_read(struct feed *f, int stop_fd, bool may_wait, struct err *err);

#endif
