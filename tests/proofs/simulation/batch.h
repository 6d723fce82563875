/*
 * What batches have to count and to cause. A callback is known by its record, which names its batch
 * and what it tells; a claim or an audit meets it there.
 */
#ifndef LATER_TESTS_SIMULATION_BATCH_H
#define LATER_TESTS_SIMULATION_BATCH_H

#include "ledger.h"
#include "redis/reply.h"

#define BATCH_CALLBACKS 3

/* The options of the batches: callback number i goes to queue number i, where there is one. */
extern const char *const batch_callbacks[BATCH_CALLBACKS];

void batch_begin(const struct plan *p);
/* As ledger_save and ledger_lose. */
void batch_save(void);
void batch_lose(void);

/* "b3" -> 3 */
int batch_number(const char *name);

/* Redis executed one of the functions about this batch. */
void batch_opened(int number);
void batch_sealed(int number);
void batch_cancelled(int number);
/* A job joins the batch. parent: whose child or next job it is; NULL: none. */
void batch_join(struct entry *e, int number, const struct entry *parent);
bool batch_is_cancelled(int number);

/* Is this the record of a callback? Then add it to the model. NULL: it is not. */
struct entry *batch_meet(const char *id, const char *record);

/* Is a batch not sealed yet? */
bool batch_is_any_open(void);
/* An audit has met all jobs, and knows which of them have expired. */
void batch_check(void);

#endif
