/*
 * Runs the checks of `later fsck` without its process: later_v1_audit, phase by phase.
 */
#ifndef LATER_TESTS_CHAOS_AUDIT_H
#define LATER_TESTS_CHAOS_AUDIT_H

#include "ledger.h"

/* Each finding goes to finding_break. */
void audit(const struct ledger *l);

#endif
