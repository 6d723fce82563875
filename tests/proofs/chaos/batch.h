/*
 * The batches of a namespace: who joined them, how each member ended, and which callbacks they
 * owe. They are judged between any two calls: the state of each member is what became of its job;
 * each callback is there exactly once, when it is owed, and told the right counts.
 */
#ifndef LATER_TESTS_CHAOS_BATCH_H
#define LATER_TESTS_CHAOS_BATCH_H

#include "ledger.h"

/* Load the script that reads the keys. */
void batch_start(void);

/* The present batch of this name; NULL: there is none. */
struct batch *batch_of(struct ledger *l, int name);
/* A batch was opened. The one that had its name must have been forgotten. */
void batch_opened(struct ledger *l, const struct batch *opened);
/* A job was accepted with this batch (LEDGER_NONE: without). parent: whose child it is, or NULL. */
void batch_join(struct ledger *l, int batch, const struct job *parent);
/* All pages of a cancel were answered. */
void batch_cancelled(struct ledger *l, struct batch *b);
/* Is the job a member of a batch that is cancelled? */
bool batch_is_cancelled(const struct ledger *l, const struct job *j);
/* May the batch of this name owe something because of a foreign key? */
bool batch_is_hindered(const struct ledger *l, const char *name);

/* Is this the record of a callback? Then add it to the ledger. NULL: it is not. */
struct job *batch_meet(struct ledger *l, const char *id, const char *record);
/* All jobs were looked at. */
void batch_check(struct ledger *l);
/* All is over: each batch has ended. */
void batch_check_ended(const struct ledger *l);

#endif
