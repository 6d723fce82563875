/*
 * Random calls: each is a number that, with the state the model is in, says which function is
 * called with what. So a sequence stays a sequence when calls are taken out of it.
 */
#ifndef LATER_TESTS_PROPERTY_CALLS_H
#define LATER_TESTS_PROPERTY_CALLS_H

#include <stdint.h>

#include "model.h"
#include "server.h"

/* Numbers that look random and are the same for the same seed (splitmix64). */
uint64_t rnd_next(uint64_t *state);

/*
 * The call that seed stands for: moves the model's clock, fills args with the command, writes the
 * expected reply to want and makes the model what Redis must be after it.
 */
void calls_make(struct model *m, uint64_t seed, struct args *args, struct buf *want);

#endif
