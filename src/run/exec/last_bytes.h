/*
 * The last bytes of a stream: a ring of fixed size. Pure.
 */
#ifndef LATER_RUN_EXEC_LAST_BYTES_H
#define LATER_RUN_EXEC_LAST_BYTES_H

#include <stddef.h>

#include "base/buf.h"

struct last_bytes {
    char *ring;
    size_t cap;
    size_t len;  /* bytes held */
    size_t next; /* where the next byte goes */
};

/* Keep the last cap bytes; last_bytes_done frees them. */
void last_bytes_init(struct last_bytes *t, size_t cap);
void last_bytes_done(struct last_bytes *t);
void last_bytes_clear(struct last_bytes *t);
void last_bytes_add(struct last_bytes *t, const char *p, size_t n);
/* Append the bytes to out, the oldest first. */
void last_bytes_copy(const struct last_bytes *t, struct buf *out);

#endif
