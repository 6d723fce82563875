/*
 * What `later fsck` would find, without a process for it: later_v1_audit, phase by phase.
 */
#ifndef LATER_TESTS_CHAOS_AUDIT_H
#define LATER_TESTS_CHAOS_AUDIT_H

#include "ledger.h"

/* A finding is a verdict. */
void audit(const struct ledger *l);

#endif
