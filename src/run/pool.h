/*
 * The pool: a fixed number of threads, each runs one job at a time. The main thread gives an order
 * to a free slot and later gets the result through the mailbox on its loop; nothing else is shared.
 *
 * Thread stacks are small (256 KiB) and all signals are blocked in them.
 */
#ifndef LATER_RUN_POOL_H
#define LATER_RUN_POOL_H

#include <stdint.h>

#include "base/err.h"
#include "loop/loop.h"
#include "run/exec.h"

struct pool;

/* Called on the main thread, from the loop; all but done may be NULL. The result is the callee's to
 * read only. */
struct pool_events {
    void (*done)(void *arg, unsigned slot, const struct exec_result *result);
    void (*progress)(void *arg, unsigned slot, uint64_t serial, const char *text);
    void (*rest)(void *arg); /* all that ended at once has been told */
    void *arg;
};

struct pool *pool_new(struct loop *loop, unsigned nslots, const struct pool_events *events,
                      struct err *err);
/* All slots must be idle. */
void pool_free(struct pool *pool);

/*
 * Start an order on an idle slot (0 … nslots-1). The order is the pool's; it calls free_order when
 * done has returned (done may start the next order on the slot, and must not free the old one).
 * Returns the serial for pool_control.
 */
uint64_t pool_start(struct pool *pool, unsigned slot, const struct exec_order *order,
                    void (*free_order)(void *), void *free_arg);
void pool_control(struct pool *pool, unsigned slot, uint64_t serial, enum exec_control what);

#endif
