/*
 * The last bytes of a stream: a ring of fixed size. Pure.
 */
#ifndef LATER_RUN_TAIL_H
#define LATER_RUN_TAIL_H

#include <stddef.h>

#include "base/buf.h"

struct tail {
    char *ring;
    size_t cap;
    size_t len;  /* bytes held */
    size_t next; /* where the next byte goes */
};

void tail_init(struct tail *t, size_t cap);
void tail_done(struct tail *t);
void tail_add(struct tail *t, const char *p, size_t n);
/* Append what is held, oldest byte first. */
void tail_copy(const struct tail *t, struct buf *out);

#endif
