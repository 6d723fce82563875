/*
 * run/pool/pool.h on virtual time. Handlers are not processes but plans, made at random when they
 * start: how long they take, how they end, whether they obey TERM.
 */
#ifndef LATER_TESTS_SIMULATION_VIRTUAL_POOL_H
#define LATER_TESTS_SIMULATION_VIRTUAL_POOL_H

#include <stdbool.h>
#include <stddef.h>

#include "plan.h"
#include "run/pool/pool.h"
#include "worker.h"

void virtual_pool_begin(const struct plan *plan);
void virtual_pool_end(void);
/* The worker is about to die. Its handlers die, too, or live on as orphans of its folder. */
void virtual_pool_orphan(struct worker *w, bool live_on);
/* A new worker has this folder: kill the orphans of its predecessors. */
void virtual_pool_kill_orphans(size_t folder);
/* The same for the orphans of this worker, which died. */
void virtual_pool_kill_orphans_of(const struct worker *w);
/* For the guard: kill the handlers of this worker, orphans included, that hold a lock. */
void virtual_pool_kill_locked(struct worker *w);
/* How many handlers run, orphans included? */
size_t virtual_pool_live(void);

#endif
