/*
 * What schedules have to add: each occurrence gets one job, or is counted as skipped or missed.
 * Jobs of schedules are known by their records; after each call that adds some, all are met.
 */
#ifndef LATER_TESTS_SIMULATION_SCHEDULE_H
#define LATER_TESTS_SIMULATION_SCHEDULE_H

#include "ledger.h"
#include "plan.h"

/* Define the schedules of the plan. */
void schedule_begin(const struct plan *p);
/* Delete them: they add no more jobs. */
void schedule_end(void);

/* Call these together with server_save and server_lose. */
void schedule_save(void);
void schedule_lose(void);

/* Is this the record of a job of a schedule? Then add it to the model. NULL: it is not. */
struct entry *schedule_meet(const char *id, const char *record);
/* A worker has called later_v1_fire; its arguments from EPOCH on, and the answer. */
void schedule_fired(const char *const *a, const struct reply *r);

/* Redis must have counted each occurrence. */
void schedule_check(void);

#endif
