/*
 * Process 1 of a container. Whatever its handlers leave behind becomes its child, and stays a
 * zombie until it is waited for, which the daemon, who waits for its own children only, cannot do.
 * So the program starts itself again as a child, hands signals on to it, reaps, and ends as it
 * ends.
 */
#ifndef LATER_RUN_PROCESS_INIT_H
#define LATER_RUN_PROCESS_INIT_H

#include <stdbool.h>

#include "base/err.h"

bool init_is_needed(void);

/* Returns when the child has ended: its exit status, 128 + n for signal n. -1 when it cannot be
 * started. Before any thread; blocks all signals. */
int init_main(char **argv, char *const *env, struct err *err);

#endif
