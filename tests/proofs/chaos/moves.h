/*
 * The moves. Each makes one call with arguments from the dice (a few send a plain Redis command)
 * and enters the answer into the ledger.
 */
#ifndef LATER_TESTS_CHAOS_MOVES_H
#define LATER_TESTS_CHAOS_MOVES_H

#include "world.h"

#define CROWD 30 /* jobs alive; beyond that few are added */

/* Choose a namespace, let time pass, make one random move and judge. */
void move_any(struct world *w);

/* ---- jobs (moves_jobs.c) */

void move_add(struct world *w);
void move_add_many(struct world *w);
void move_add_raw(struct world *w);
void move_cancel(struct world *w);
void move_job(struct world *w); /* run now, reschedule, retry */
void move_pause(struct world *w);
void move_purge(struct world *w);
void move_read(struct world *w); /* calls that write nothing */
/* Add random options of a job to the call, and to o. */
void option_plain(struct world *w, struct job *o);
void option_chain(struct world *w, struct job *o);
void option_gates(struct world *w, struct job *o);
/* Returns a job that may be in one of these states, mostly a recent one; NULL: none was found. */
struct job *move_pick(struct world *w, int may);

/* ---- batches (moves_batch.c) */

void move_batch(struct world *w);
/* Add a batch to the call, and to o, in so many percent of all calls, of jobs that may join. o then
 * names one that is there, or none. */
void option_batch(struct world *w, int percent, struct job *o);
/* Seal the batch of this name. */
void batch_seal(struct world *w, int name);

/* ---- workers (moves_workers.c, moves_sync.c) */

void move_register(struct world *w);
void move_beat(struct world *w);
void move_reconcile(struct world *w);
void move_reap(struct world *w);
void move_leave(struct world *w);
void move_tidy(struct world *w);
void move_program(struct world *w); /* enter, exit */
void move_sync(struct world *w);
void move_keep(struct world *w); /* a step of a running job is kept, or asked for */
/* Returns a registered worker that is not written off; NULL: there is none. */
struct worker *move_pick_worker(struct world *w, bool is_program);

/* For drain.c. */
void worker_enter(struct world *w);
void worker_beat(struct world *w, struct worker *v);
void worker_reap(struct world *w, const struct worker *v, struct worker *victim, int crashes);
void worker_tidy(struct world *w, const struct worker *v);
/* A sync that reports all jobs of this worker as done and has room for all queues. */
void worker_finish(struct world *w, struct worker *v);

/* ---- gates (moves_gates.c) */

void move_lock(struct world *w);
void move_unlock(struct world *w);
void move_renew(struct world *w);
void move_throttle(struct world *w);
void move_limit(struct world *w);
/* Define a limit: a semaphore, or a rate with its algorithm and period. */
void limit_set(struct world *w, int defined, const struct limit *limit);
void limit_delete(struct world *w, int defined);

/* ---- foreign keys (moves_foreign.c) */

void move_foreign(struct world *w);
/* Remove the foreign keys whose time is over. foreign_remove_all removes all of them. */
void foreign_go_on(struct world *w);
void foreign_remove_all(struct world *w);

#endif
