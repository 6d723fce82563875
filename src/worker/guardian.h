/*
 * Keeps the guard (run/guard/guard.h) alive: starts it, hears of its death, starts the next one.
 * Main thread.
 */
#ifndef LATER_WORKER_GUARDIAN_H
#define LATER_WORKER_GUARDIAN_H

#include "base/err.h"
#include "loop/loop.h"
#include "run/guard/guard.h"

struct guardian;

/* With a guard for so many places. That it cannot be started is logged, and tried again: until then
 * guard_is_up is false. NULL: no memory or descriptors. */
struct guardian *guardian_new(struct loop *loop, unsigned slots, struct err *err);
/* Stops the guard; nothing runs any more. NULL is fine. */
void guardian_free(struct guardian *g);
struct guard *guardian_guard(struct guardian *g);

#endif
