/* The pause of a queue or of a schedule, as Redis has it. */
#ifndef LATER_JSON_PAUSE_H
#define LATER_JSON_PAUSE_H

#include <jansson.h>
#include <stdbool.h>

#include "redis/reply.h"

struct pause {
    long long until_ms, since_ms; /* until_ms 0: until somebody resumes it */
    char by[210];
    const char *reason; /* points into the reply; "" for none */
};

/* "<until ms or 0> <since ms> <who> <reason>". False: it is none. */
bool pause_read(const struct reply *r, struct pause *ret);
/* The value of "paused" in a line of --json. */
json_t *pause_to_json(const struct pause *pause);

#endif
