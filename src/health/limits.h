/* From when on a queue counts as a cause of bad health. */
#ifndef LATER_HEALTH_LIMITS_H
#define LATER_HEALTH_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

#include "ask/ask.h"
#include "health/health.h"

struct health_limits {
    int64_t late_ms, parked_ms, paused_ms, dead; /* negative: not given */
};

bool health_limits_any(const struct health_limits *l);
/* Add a cause for each queue that is beyond them, and each schedule whose pause is. Asks Redis only
 * if one was given. 0 or -1. */
int health_limits_judge(const struct health_limits *l, struct health *h, struct ask_server *s,
                        struct err *err);

#endif
