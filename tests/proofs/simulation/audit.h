/*
 * Every key of the namespace, compared with the ledger and with each other: each job in the one
 * place where it belongs, no entry without its job, no head behind its queue, no mark missing.
 * Holds between any two calls.
 */
#ifndef LATER_TESTS_SIMULATION_AUDIT_H
#define LATER_TESTS_SIMULATION_AUDIT_H

void audit(void);
/* At the end: nothing but outcomes and dead jobs. */
void audit_end(void);

#endif
