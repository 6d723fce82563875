/*
 * Producers and operators: what people and programs ask of the public functions, over the same bad
 * network as the workers. A producer that heard nothing asks again with its token.
 */
#ifndef LATER_TESTS_SIMULATION_PRODUCER_H
#define LATER_TESTS_SIMULATION_PRODUCER_H

#include "plan.h"

/* Plan all adds and deeds of the run. */
void producer_begin(const struct plan *plan);
/* The faults are over: resume all queues, tell nobody to be quiet. */
void producer_calm(void);
/* Adds that are still to be made. */
unsigned producer_waits(void);

#endif
