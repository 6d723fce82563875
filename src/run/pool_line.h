/*
 * Work of the pool that waits, in the order in which it came. Whoever has the line sees to it that
 * one thread at a time does.
 */
#ifndef LATER_RUN_POOL_LINE_H
#define LATER_RUN_POOL_LINE_H

#include "run/pool.h"

struct pool_line {
    struct pool_work *first, **end; /* points into the line itself: it cannot be copied */
};

void pool_line_init(struct pool_line *l);
void pool_line_add(struct pool_line *l, struct pool_work *w);
/* The first; NULL: it is empty. */
struct pool_work *pool_line_take(struct pool_line *l);
/* All of `from` behind what is there; from is empty then. */
void pool_line_join(struct pool_line *l, struct pool_line *from);

#endif
