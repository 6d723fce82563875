/* All schedules of the namespace, read page by page and kept, as they come in no order. */
#ifndef LATER_CLI_SCHEDULES_H
#define LATER_CLI_SCHEDULES_H

#include "cli/cli.h"
#include "redis/reply.h"

/* A row as of later_schedules. now_ms: by Redis' clock. */
typedef void schedules_f(void *arg, const struct reply *row, int64_t now_ms);

/* Call take() for each, by name. 0, or -1 with err. */
int schedules_each(struct cli *cli, schedules_f *take, void *arg, struct err *err);

/* Refuse, with column and cure, what the library does not know to be wrong. 0, or -1 with code
 * FORMAT. */
int schedules_check(const char *kind, const char *text, const char *tz, struct err *err);

#endif
