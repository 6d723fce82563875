/*
 * Process 1 of a container. What handlers leave behind becomes a child process of process 1 and
 * stays a zombie until somebody waits for it. The daemon waits only for what it started, not for
 * the rest. As process 1 the program therefore starts itself again as a child process, passes
 * signals on to it, waits for all, and ends with its status.
 */
#ifndef LATER_RUN_PROCESS_INIT_H
#define LATER_RUN_PROCESS_INIT_H

#include <stdbool.h>

#include "base/err.h"

/* Are we process 1? */
bool init_is_needed(void);

/* Returns the exit status of that process when it has ended, 128 + n for signal n; -1 with err when
 * it cannot be started. Call it before any thread exists; it blocks all signals. */
int init_main(char **argv, char *const *env, struct err *err);

#endif
