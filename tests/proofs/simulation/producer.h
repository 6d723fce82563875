/*
 * Producers and operators: what people and programs ask of the public functions, over the same bad
 * network as the workers. A producer that gets no answer asks again with the same token.
 */
#ifndef LATER_TESTS_SIMULATION_PRODUCER_H
#define LATER_TESTS_SIMULATION_PRODUCER_H

#include "plan.h"

/* Plan all adds and other actions of the run. */
void producer_begin(const struct plan *plan);
/* The trouble is over: resume all queues and end all quiet. */
void producer_calm(void);
/* How many adds are not made yet? */
unsigned producer_waits(void);

#endif
