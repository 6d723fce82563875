/* The next occurrences of a schedule. */
#ifndef LATER_ASK_OCCURRENCES_H
#define LATER_ASK_OCCURRENCES_H

#include <stddef.h>
#include <stdint.h>

#include "redis/reply.h"

/* The first ones later than after_ms, at most n, in ret; row: of later_schedules. -> how many; 0
 * for a rule or a time zone that this machine cannot read, too. */
size_t occurrences_of(const struct reply *row, int64_t after_ms, int64_t ret[], size_t n);

#endif
