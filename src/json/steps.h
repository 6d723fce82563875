/*
 * The steps that a job has kept, as later_show and later_v1_export tell them:
 * {name, ' ', bytes of its output, LF, output}*.
 */
#ifndef LATER_JSON_STEPS_H
#define LATER_JSON_STEPS_H

#include <jansson.h>
#include <stdbool.h>

#include "redis/reply.h"

struct kept_step {
    const char *name, *output;
    size_t name_len, output_len;
};

/* The next one behind *at, which moves on; begin with *at 0. False: there is none, or it is
 * damaged. */
bool steps_next(const struct reply *packed, size_t *at, struct kept_step *ret);
/* [{"name": ..., "output": ...}...], as an import takes it. NULL: there are none. */
json_t *steps_to_json(const struct reply *packed);

#endif
