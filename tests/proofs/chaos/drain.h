/*
 * The end of a run: foreign keys go, gates open, workers stay. Then every job has to end, and
 * nothing may be left of those that waited or held something.
 */
#ifndef LATER_TESTS_CHAOS_DRAIN_H
#define LATER_TESTS_CHAOS_DRAIN_H

#include "world.h"

void drain(struct world *w);

#endif
