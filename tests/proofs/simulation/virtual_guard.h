/*
 * run/guard/guard.h on virtual time: what the guard of a worker does while the worker is stopped,
 * cut off or dead.
 */
#ifndef LATER_TESTS_SIMULATION_VIRTUAL_GUARD_H
#define LATER_TESTS_SIMULATION_VIRTUAL_GUARD_H

#include <stdbool.h>

#include "run/guard/guard.h"
#include "worker.h"

/* To test the simulation itself: no guard kills anything, and neither does a worker that finds
 * another one dead. */
void virtual_guard_asleep(bool is_asleep);
bool virtual_guard_is_asleep(void);
struct guard *virtual_guard_new(struct worker *w);
/* The worker has died or was stopped in order. */
void virtual_guard_free(struct guard *g);
/* The worker was killed: kill its handlers that hold locks. */
void virtual_guard_alone(struct worker *w);

#endif
