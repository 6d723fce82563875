/*
 * The pool: threads for work that blocks. The main thread gives an order to a free place and later
 * gets the report through the mailbox on its loop; nothing else is shared. A place takes one
 * order at a time.
 *
 * Up to sixteen threads are created at the start. More are created when work waits and no thread is
 * idle: at most one for each place, and one more for tasks. What one iteration of the loop starts
 * is handed over together at its end. Work is taken in order. The thread that became idle last
 * takes it, and rouses the next thread if work is left. Quick work rouses no thread while one is
 * awake, unless it has waited for a millisecond.
 *
 * Thread stacks are small (256 KiB), and the threads block all signals.
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

/* Called on the main thread, from the loop; all but ended may be NULL. ended may only read the
 * report; the place is free when it has returned. */
struct pool_events {
    void (*ended)(void *arg, unsigned place, const struct run_report *report);
    void (*told)(void *arg, unsigned place, uint64_t serial, enum run_word word, const char *text);
    void (*rest)(void *arg); /* after the last of all events that came at the same time */
    void *arg;
};

/* Either exec or plugin. The caller owns them until `ended` has returned; then free(arg) is called,
 * unless free is NULL. */
struct pool_order {
    const struct exec_order *exec;
    const struct plugin_order *plugin;
    void (*free)(void *arg);
    void *arg;
};

/* NULL with err: no thread, descriptor or memory. */
struct pool *pool_new(struct loop *loop, unsigned nplaces, const struct pool_events *events,
                      struct err *err);
/* All places must be free. Waits for the tasks under way and calls their done. NULL is fine. */
void pool_free(struct pool *pool);

/* Start an order on a free place (0 … nplaces-1). Returns the serial for pool_control. */
uint64_t pool_start(struct pool *pool, unsigned place, const struct pool_order *order);
/* Ask the job of this serial to end (exec.h). Does nothing if it has ended. */
void pool_control(struct pool *pool, unsigned place, uint64_t serial, enum exec_control what);

/*
 * Does the pool still work (run/pool/stall.h)? Call it about once a second. False: why has the
 * reason.
 */
bool pool_is_well(struct pool *pool, struct mono now, char *why, size_t size);

/* Short work that would block the loop. Embed it in the struct that the work is about. */
struct pool_task {
    struct pool_work {
        struct mail mail; /* first */
        struct pool_work *next;
        bool is_quick; /* not worth rousing a thread for, while another one is awake */
        enum { POOL_PLACE, POOL_TASK, POOL_TOLD } kind;
    } work;                               /* private to the pool */
    void (*run)(struct pool_task *task);  /* on a thread of the pool */
    void (*done)(struct pool_task *task); /* then on the main thread; may free the task */
};
/* Run a task. Main thread; the caller owns the task until its done is called. */
void pool_do(struct pool *pool, struct pool_task *task);

#endif
