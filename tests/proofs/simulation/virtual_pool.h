/*
 * run/pool/pool.h on virtual time: handlers are not processes but plans (how long, how it ends,
 * whether TERM is heard), made by chance when they start.
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
/* The worker is about to die: its handlers die too, or live on as orphans of its folder. */
void virtual_pool_orphan(struct worker *w, bool live_on);
/* A new worker has this folder: it kills what its forerunner left. */
void virtual_pool_kill_orphans(size_t folder);
/* The same of what this worker, which is dead, left. */
void virtual_pool_kill_orphans_of(const struct worker *w);
/* The guard's work: those of this worker, orphans included, that hold a lock. */
void virtual_pool_kill_locked(struct worker *w);
/* Handlers that run, orphans included. */
size_t virtual_pool_live(void);

#endif
