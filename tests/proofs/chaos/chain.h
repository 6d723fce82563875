/*
 * The chains of a namespace: what each end of a job has to cause, and which jobs were caused. A
 * caused job is known by its record, which names its parent.
 */
#ifndef LATER_TESTS_CHAOS_CHAIN_H
#define LATER_TESTS_CHAOS_CHAIN_H

#include "ledger.h"

/* A result `done` of this job was accepted; it died, and that is seen for the first time. */
void chain_goes_on(const struct ledger *l, struct job *j);
void chain_dies(struct job *j);

/* The value of this field in a header, up to a space; false if it has none. */
bool chain_field(const char *header, char name, char value[64]);
/* Is this a record with this chain, in this queue and of a member of this batch (a name; both may
 * be LEDGER_NONE)? */
bool chain_is_such(const char *record, int queue, const struct chain *chain, int batch);

/* Is this the record of a job that no answer told of: the next one of a chain, one that tells of a
 * death, a child (child.h) or a callback (batch.h)? Then add it to the ledger as one that waits.
 * NULL: it is not. A job that nothing can have caused, or not so, is a broken rule. */
struct job *chain_meet(struct ledger *l, const char *id, const char *record);

/* All jobs were looked at: each end must have caused its one job. A look that follows one at which
 * foreign keys were there can only learn what has happened. */
void chain_check(struct ledger *l);

#endif
