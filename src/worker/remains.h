/*
 * What a worker of this host left running when it died: it is killed, and its end is waited for,
 * before others take the worker's places. Its guard does so too; but that may have been killed with
 * it, may stand still, may be at it just now, and knows of those alone who hold a lock.
 *
 * Redis is asked which process the worker was, and which jobs it ran. Then, on a thread, all
 * processes are looked at: what it started has its origin (run/process/origin.h). What handlers
 * left behind that had ended by themselves is let alone: their jobs are not running any more.
 *
 * It is not clear, and the full silence is to be waited for, where this cannot be known: the worker
 * lives; it was on another host, in another pid namespace, of another user or version; a process
 * that may be of it cannot be looked at; or what was killed does not die. One that was stopped
 * lives, but cannot end what it runs: that is killed all the same.
 *
 * Main thread. One worker at a time.
 */
#ifndef LATER_WORKER_REMAINS_H
#define LATER_WORKER_REMAINS_H

#include <stdbool.h>
#include <stdint.h>

#include "loop/loop.h"
#include "redis/link.h"
#include "worker/identity.h"

struct remains;

/* is_clear: nothing of it is left, and nothing can come. */
typedef void remains_f(void *arg, int64_t epoch, bool is_clear);

/* ns and me are the caller's. NULL: no descriptors. */
struct remains *remains_new(struct loop *loop, struct link *link, const char *ns,
                            const struct identity *me, remains_f *cb, void *arg);
void remains_free(struct remains *r); /* NULL is fine */
/* The link is down: what Redis was asked has no answer. */
void remains_reset(struct remains *r);

/*
 * End what this one left. may_be_past: it is known for the predecessor of this very worker, so
 * nothing of it is left when this host was booted since. 0, and the answer comes by cb, behind a
 * later turn of the loop, if the link lives until then; or -1: nothing was asked.
 */
int remains_end(struct remains *r, int64_t epoch, bool may_be_past);

#endif
