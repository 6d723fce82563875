/*
 * The troubles of a run: workers crash, freeze, are stopped; Redis hangs, is down, loses data; its
 * clock is stepped. Also their end.
 */
#ifndef LATER_TESTS_SIMULATION_TROUBLE_H
#define LATER_TESTS_SIMULATION_TROUBLE_H

#include "plan.h"

struct worker;

void trouble_begin(const struct plan *plan);
/* A worker has sent a call. It may die right after. */
void trouble_sent(struct worker *w, const char *function);
/* A handler was started that will kill this worker. */
void trouble_poison(struct worker *w);
/* End the trouble: Redis is up and a worker works. What hangs or is frozen stays so for a while. */
void trouble_end(void);

#endif
