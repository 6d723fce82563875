/*
 * Fair queues of a run, whose tenants are the keys of jobs. People make queues fair and plain again
 * while jobs wait; the rows of the tenants must fit the jobs that wait, and go with the last one.
 */
#ifndef LATER_TESTS_SIMULATION_FAIR_H
#define LATER_TESTS_SIMULATION_FAIR_H

#include "plan.h"

/* Make the queues fair that the plan says. */
void fair_begin(const struct plan *p);
/* The text of R:queues for a queue that is fair, perhaps with weights, or plain: "". */
const char *fair_any_text(void);
const char *fair_any_tenant(void);

/* While the tenants of a queue take turns, its waiting jobs are those of its tenants. */
void fair_check(void);
/* All jobs have ended: nothing is left of any tenant. */
void fair_check_end(void);

#endif
