/*
 * What the ends of jobs have to cause. A caused job is known by its record, which names its parent;
 * a claim or an audit meets it there.
 */
#ifndef LATER_TESTS_SIMULATION_CHAIN_H
#define LATER_TESTS_SIMULATION_CHAIN_H

#include "ledger.h"

/* The payload of a child begins so; then follows the id of its parent, and CHAIN_JOINS if it joins
 * the batch of its parent. */
#define CHAIN_CHILD "child of "
#define CHAIN_JOINS ", joins"

/* An option of an add; any. */
void chain_option(struct chain *c, const char *name, const char *value);

/* The value of this field in a header; false, and "", if it has none. */
bool chain_field(const char *record, char name, char *value, size_t size);

/* Is this the record of a caused job, of a callback (batch.h) or of a schedule (schedule.h)? Then
 * add it to the model. NULL: it is not. */
struct entry *chain_meet(const char *id, const char *record);

/* Has an end of this job caused a job that nobody has met yet? */
bool chain_owes(const struct entry *e);
/* An audit has met all jobs. */
void chain_check(const struct entry *e);

#endif
