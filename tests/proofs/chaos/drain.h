/*
 * The end of a run: remove foreign keys, open the gates, keep one worker in each namespace. Then
 * every job has to end, and nothing may be left of what waited or held a gate.
 */
#ifndef LATER_TESTS_CHAOS_DRAIN_H
#define LATER_TESTS_CHAOS_DRAIN_H

#include "world.h"

void drain(struct world *w);

#endif
