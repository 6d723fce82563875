/*
 * run/guard/guard.h on virtual time: what the guard of a worker does, while that is stopped, cut
 * off or dead.
 */
#ifndef LATER_TESTS_SIMULATION_VIRTUAL_GUARD_H
#define LATER_TESTS_SIMULATION_VIRTUAL_GUARD_H

#include <stdbool.h>

#include "run/guard/guard.h"
#include "worker.h"

/* It kills nobody, and neither does who finds its worker dead: a test of the tests. */
void virtual_guard_asleep(bool is_asleep);
bool virtual_guard_is_asleep(void);
struct guard *virtual_guard_new(struct worker *w);
/* Its worker has gone; it is dead or was stopped in order. */
void virtual_guard_free(struct guard *g);
/* Its worker was killed: so are its handlers that hold locks. */
void virtual_guard_alone(struct worker *w);

#endif
