/*
 * Ends what a worker of this host that died left running, before other workers take over its jobs
 * and gates: kills the processes, and waits for their ends. The guard of that worker does this too.
 * But the guard may have been killed with it, may be stopped, may still be at work, and knows only
 * guarded handlers.
 *
 * Redis is asked which process the worker was, and which jobs it ran. Then a thread searches all
 * processes: those that the worker started have its origin (run/process/origin.h). Processes that
 * were left behind by handlers which had ended by themselves are let alone: their jobs do not run
 * any more.
 *
 * The answer is "not clear", and the full silence has to be waited for, if this cannot be known:
 * the worker lives; it was on another host, in another pid namespace, of another user or version; a
 * process that may be of it cannot be read; or a killed process does not die. A stopped worker
 * lives, but cannot end what it runs: that is killed all the same.
 *
 * Main thread. One worker at a time.
 */
#ifndef LATER_WORKER_ORPHANS_H
#define LATER_WORKER_ORPHANS_H

#include <stdbool.h>
#include <stdint.h>

#include "loop/loop.h"
#include "redis/link.h"
#include "worker/identity.h"

struct orphans;

/* is_clear: no process of it is left, and none can come. */
typedef void orphans_f(void *arg, int64_t epoch, bool is_clear);

/* ns is copied; me must live as long as the result. NULL: no descriptors. */
struct orphans *orphans_new(struct loop *loop, struct link *link, const char *ns,
                            const struct identity *me, orphans_f *cb, void *arg);
void orphans_free(struct orphans *r); /* NULL is fine */
/* The link is down: Redis will not answer what it was asked. */
void orphans_reset(struct orphans *r);

/*
 * End what this worker left. may_be_past: it is known to be the predecessor of this very worker, so
 * nothing of it is left if this host was booted since. 0: cb is called in a later iteration of the
 * loop, unless the link is lost before Redis has answered. -1: nothing was asked, since a search is
 * under way or the link is down.
 */
int orphans_end(struct orphans *r, int64_t epoch, bool may_be_past);

#endif
