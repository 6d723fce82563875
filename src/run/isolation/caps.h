/*
 * Capabilities (capabilities(7)). A service manager gives a daemon that is not root its
 * capabilities as ambient ones, which every process that it starts inherits. Handlers must not have
 * them. So caps_init takes them out of the ambient set, and the daemon lends them only to copies of
 * its own program: the guard, and the process that isolates itself and becomes a handler.
 */
#ifndef LATER_RUN_ISOLATION_CAPS_H
#define LATER_RUN_ISOLATION_CAPS_H

#include <stdbool.h>

/* Call it at the start, before there are threads. Without it caps_lend does nothing. */
void caps_init(void);

/* Is cap effective for this thread? cap: CAP_… of linux/capability.h. */
bool caps_has(int cap);

/* Processes that this thread starts inherit our capabilities, until caps_take_back. */
void caps_lend(void);
void caps_take_back(void);

/* Give up all capabilities, also for the program that this process becomes (root keeps its own). 0,
 * or -1 with errno. */
int caps_drop(void);

#endif
