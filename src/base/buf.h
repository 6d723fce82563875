/*
 * A growing buffer for any bytes. A NUL always follows the last byte, for callers that hold text;
 * len does not count it.
 */
#ifndef LATER_BASE_BUF_H
#define LATER_BASE_BUF_H

#include <stdarg.h>
#include <stddef.h>

struct buf {
    char *data; /* NULL while empty and never grown */
    size_t len;
    size_t cap;
};

#define BUF_INIT                                                                                   \
    {                                                                                              \
        NULL, 0, 0                                                                                 \
    }

void buf_done(struct buf *b);
/* Empty it and keep its memory. */
void buf_clear(struct buf *b);
/* Make space for n more bytes and return where it starts; len stays. Usually you want buf_add. */
char *buf_reserve(struct buf *b, size_t n);
void buf_add(struct buf *b, const void *p, size_t n);
void buf_puts(struct buf *b, const char *s);
void buf_printf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void buf_vprintf(struct buf *b, const char *fmt, va_list ap) __attribute__((format(printf, 2, 0)));
/* Drop the first n bytes. */
void buf_drop(struct buf *b, size_t n);
/* The text, never NULL, still owned by b. */
const char *buf_str(struct buf *b);
/* Hand the bytes out (free them with free) and leave b empty. */
char *buf_take(struct buf *b);

#define CLEANUP_BUF __attribute__((cleanup(buf_done)))

#endif
