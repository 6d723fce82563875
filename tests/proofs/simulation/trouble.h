/*
 * The faults of a run: when workers crash, freeze, are stopped; when Redis hangs, is down, forgets;
 * when its clock is stepped. And their end.
 */
#ifndef LATER_TESTS_SIMULATION_TROUBLE_H
#define LATER_TESTS_SIMULATION_TROUBLE_H

#include "plan.h"

struct worker;

void trouble_begin(const struct plan *plan);
/* A worker has sent something: maybe it was the last thing it did. */
void trouble_sent(struct worker *w, const char *function);
/* A handler of it started that kills it. */
void trouble_poison(struct worker *w);
/* No more of it: Redis is there, somebody works. What hangs or is frozen still is, for a while. */
void trouble_end(void);

#endif
