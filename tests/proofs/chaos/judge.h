/*
 * Compares what Redis holds with the ledger, between any two calls. Every job is in exactly one
 * state, and in one where it may be. A running job was handed out, and has its locks and its
 * permits of semaphores. No semaphore has let in more holders than its limit.
 */
#ifndef LATER_TESTS_CHAOS_JUDGE_H
#define LATER_TESTS_CHAOS_JUDGE_H

#include "ledger.h"

/* Load the script that reads the keys. Call this after arena_start. */
void judge_start(void);
/* Check everything. Where a job might have been in several states, the ledger then has the one
 * where it is. */
void judge_all(struct ledger *l);
/* Check that only outcomes are left: no waiter, no permit, no lock. */
void judge_end(struct ledger *l);
/* Check what ended more than for_ms ago. A caller whose wait ended then may not be a waiter any
 * more, and a semaphore whose last lease ended then may not have a key. */
void judge_leftovers(struct ledger *l, int64_t now_ms, int64_t for_ms);

#endif
