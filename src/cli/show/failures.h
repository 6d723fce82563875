/* The last attempts of a job that failed (json/failures.h), for people. */
#ifndef LATER_CLI_SHOW_FAILURES_H
#define LATER_CLI_SHOW_FAILURES_H

#include <stdint.h>

#include "redis/reply.h"

/* Print a line for each. now_ms 0: unknown. value NULL: print nothing. */
void failures_show(const struct reply *value, int64_t now_ms);

#endif
