/*
 * A foreign queue that workers adopt: each member is in its set, or became exactly one job. Jobs of
 * members are known by the keys in their records.
 */
#ifndef LATER_TESTS_SIMULATION_FOREIGN_H
#define LATER_TESTS_SIMULATION_FOREIGN_H

#include <stdbool.h>

#include "conf/conf.h"
#include "ledger.h"
#include "plan.h"

/* Plan when its producer writes the members. */
void foreign_begin(const struct plan *p);
/* The settings of the queue that adopts it, made of these. */
const struct conf_queue *foreign_conf(const struct conf_queue *defaults);

/* Call these together with server_save and server_lose. */
void foreign_save(void);
void foreign_lose(void);

/* Is this the record of a member's job? Then add it to the model. NULL: it is not. */
struct entry *foreign_meet(const char *id, const char *record);
/* Are there members that are to become jobs? */
bool foreign_is_left(void);
/* No member may be lost, or in both places. */
void foreign_check(void);

#endif
