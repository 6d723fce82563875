/*
 * What the ends of jobs have to cause. A caused job is known by its record, which names its parent;
 * a claim or an audit meets it there.
 */
#ifndef LATER_TESTS_SIMULATION_CHAIN_H
#define LATER_TESTS_SIMULATION_CHAIN_H

#include "ledger.h"

/* An option of an add; any. */
void chain_option(struct chain *c, const char *name, const char *value);

/* Is this the record of a caused job? Then add it to the model. NULL: it is not. */
struct entry *chain_meet(const char *id, const char *record);

/* Has an end of this job caused a job that nobody has met yet? */
bool chain_owes(const struct entry *e);
/* An audit has met all jobs. */
void chain_check(const struct entry *e);

#endif
