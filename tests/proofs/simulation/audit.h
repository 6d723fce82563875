/*
 * Compares every key of the namespace with the ledger and with each other: each job is in the one
 * set where it belongs, no entry lacks its job, no head is too late, no mark is missing. Holds
 * between any two calls.
 */
#ifndef LATER_TESTS_SIMULATION_AUDIT_H
#define LATER_TESTS_SIMULATION_AUDIT_H

void audit(void);
/* Only meet the jobs that no answer told of, before the model is saved. */
void audit_meet(void);
/* At the end: only outcomes and dead jobs may be left. */
void audit_end(void);

#endif
