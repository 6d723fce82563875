/*
 * The pool: threads that run what blocks. The main thread gives an order to a free slot and later
 * gets the result through the mailbox on its loop; nothing else is shared. A slot is a place for an
 * order. Sixteen threads are made at the start, more when there is work that no idle one can take,
 * one for each slot at most, and one more for tasks. What one turn of the loop starts is handed
 * over at its end, together; work queues up in order; the thread that went idle last takes it, and
 * wakes the next if more is left. Of work that is quick it does them all, unless that takes longer
 * than it should.
 *
 * Thread stacks are small (256 KiB) and all signals are blocked in them.
 */
#ifndef LATER_RUN_POOL_POOL_H
#define LATER_RUN_POOL_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "loop/loop.h"
#include "loop/mailbox.h"
#include "run/exec/exec.h"
#include "run/plugin/plugin.h"

struct pool;

/* Called on the main thread, from the loop; all but done may be NULL. The result is the callee's to
 * read only, the slot is free when done has returned. */
struct pool_events {
    void (*done)(void *arg, unsigned slot, const struct run_result *result);
    void (*progress)(void *arg, unsigned slot, uint64_t serial, const char *text);
    void (*rest)(void *arg); /* all that ended at once has been told */
    void *arg;
};

/* One of the first two. Both are the caller's; free(arg) is called when done has returned, unless
 * it is NULL. */
struct pool_order {
    const struct exec_order *exec;
    const struct plugin_order *plugin;
    void (*free)(void *arg);
    void *arg;
};

struct pool *pool_new(struct loop *loop, unsigned nslots, const struct pool_events *events,
                      struct err *err);
/* All slots must be idle. Waits for tasks under way, whose done is called. */
void pool_free(struct pool *pool);

/* Start an order on an idle slot (0 … nslots-1). Returns the serial for pool_control. */
uint64_t pool_start(struct pool *pool, unsigned slot, const struct pool_order *order);
void pool_control(struct pool *pool, unsigned slot, uint64_t serial, enum exec_control what);

/*
 * Whether it still works (run/pool/stall.h); to be asked once a second. False, with what is wrong
 * in why.
 */
bool pool_is_well(struct pool *pool, struct mono now, char *why, size_t size);

/* Something short that must not hold up the loop. Embedded in what it is about. */
struct pool_task {
    struct pool_work {
        struct mail mail; /* first */
        struct pool_work *next;
        bool is_quick; /* not worth to wake a thread for, while another is about */
        enum { POOL_SLOT, POOL_TASK, POOL_PROGRESS } kind;
    } work;                               /* the pool's */
    void (*run)(struct pool_task *task);  /* on one of its threads */
    void (*done)(struct pool_task *task); /* then, on the main thread; may free it */
};
void pool_do(struct pool *pool, struct pool_task *task);

#endif
