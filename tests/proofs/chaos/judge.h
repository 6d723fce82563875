/*
 * Whether what Redis holds fits the ledger, between any two calls: every job in exactly one place
 * where it may be, what runs is what was handed out, who runs has its locks and its places, and no
 * semaphore has let in more than it has.
 */
#ifndef LATER_TESTS_CHAOS_JUDGE_H
#define LATER_TESTS_CHAOS_JUDGE_H

#include "ledger.h"

/* Once, after the server was started. */
void judge_start(void);
/* Looks at all of it. Where a job might have been in several places, the ledger knows it after. */
void judge_look(struct ledger *l);
/* Nothing may be left but outcomes: no line, no place, no lock. */
void judge_end(struct ledger *l);
/* Callers whose wait has been over for so long stand nowhere, and of a semaphore that only such
 * leases hold nothing is left. */
void judge_leftovers(struct ledger *l, int64_t now_ms, int64_t for_ms);

#endif
