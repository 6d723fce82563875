/*
 * Process 1 of a container. What handlers leave behind becomes a child of process 1 and stays a
 * zombie until it is reaped. The daemon waits only for its own children, so it cannot reap them. As
 * process 1 the program therefore starts itself again as a child, passes signals on to it, reaps,
 * and ends with the child's status.
 */
#ifndef LATER_RUN_PROCESS_INIT_H
#define LATER_RUN_PROCESS_INIT_H

#include <stdbool.h>

#include "base/err.h"

/* Are we process 1? */
bool init_is_needed(void);

/* Returns the child's exit status when it has ended, 128 + n for signal n; -1 with err when it
 * cannot be started. Call it before any thread exists; it blocks all signals. */
int init_main(char **argv, char *const *env, struct err *err);

#endif
