/* All schedules of the namespace, read page by page and kept, as they come in no order. */
#ifndef LATER_ASK_SCHEDULES_H
#define LATER_ASK_SCHEDULES_H

#include "ask/ask.h"
#include "redis/reply.h"

/* A row as of later_schedules. now_ms: by Redis' clock. False: that is enough. */
typedef bool schedules_f(void *arg, const struct reply *row, int64_t now_ms);

/* Call take() for each, by name. 0, or -1 with err. */
int schedules_each(struct ask_server *s, schedules_f *take, void *arg, struct err *err);

/* Refuse, with column and cure, what the library does not know to be wrong. 0, or -1 with code
 * FORMAT. */
int schedules_check(const char *kind, const char *text, const char *tz, struct err *err);

#endif
