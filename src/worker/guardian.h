/*
 * Keeps the guard (run/guard/guard.h) alive: starts it, notices its death, starts the next one.
 * Main thread.
 */
#ifndef LATER_WORKER_GUARDIAN_H
#define LATER_WORKER_GUARDIAN_H

#include "base/err.h"
#include "loop/loop.h"
#include "run/guard/guard.h"

struct guardian;

/* places: how many the worker has. If the guard process cannot be started, that is logged and
 * tried again; until then guard_is_up is false. NULL: no memory or descriptors. */
struct guardian *guardian_new(struct loop *loop, unsigned places, struct err *err);
/* Stops the guard. Call it when nothing runs. NULL is fine. */
void guardian_free(struct guardian *g);
/* Owned by g. */
struct guard *guardian_guard(struct guardian *g);

#endif
