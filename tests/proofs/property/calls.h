/*
 * Random calls. A call is made from one number and the present state of the model: together they
 * decide the function and its arguments. So a sequence still works when calls are left out of it.
 */
#ifndef LATER_TESTS_PROPERTY_CALLS_H
#define LATER_TESTS_PROPERTY_CALLS_H

#include <stdint.h>

#include "model.h"
#include "server.h"

/* Numbers that look random, the same for the same seed (splitmix64). */
uint64_t rnd_next(uint64_t *state);

/*
 * Make the call that belongs to seed: move the model's clock, fill args with the command, write the
 * expected reply to want, and change the model as the call changes Redis.
 */
void calls_make(struct model *m, uint64_t seed, struct args *args, struct buf *want);

#endif
