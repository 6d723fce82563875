/*
 * The children of jobs that were done. No answer names them: each is known by its payload and its
 * parent. One that was added must come exactly once, any other never.
 */
#ifndef LATER_TESTS_CHAOS_CHILD_H
#define LATER_TESTS_CHAOS_CHILD_H

#include "ledger.h"

/* Note a child that a result asks for. Its payload is `n<serial>`. */
struct child *child_new(struct ledger *l, int serial, const struct job *parent,
                        const struct job *job);
/* The result was accepted: these n children, noted one after the other, were added. */
void child_added(struct ledger *l, struct child *first, int n);

/* Is this the record of a child? Then add it to the ledger. NULL: it is not. */
struct job *child_meet(struct ledger *l, const char *id, const char *record);
/* `told` is the record of a job that tells of the death of job `id`, which no answer has named: a
 * child that expired before it was met. It is added to the ledger. NULL: it is none. */
struct job *child_died_unseen(struct ledger *l, const char *id, const char *told);
/* All jobs were looked at: each child that was added must have been met. */
void child_check(struct ledger *l);

#endif
