/*
 * Capabilities (capabilities(7)). A service manager gives a daemon that is not root what it needs
 * as ambient ones, which each process it starts has too. Handlers must not: so caps_init takes them
 * out of that set, and they are lent to what the program starts of itself (its guard, and the
 * process that becomes a handler of another user).
 */
#ifndef LATER_RUN_ISOLATION_CAPS_H
#define LATER_RUN_ISOLATION_CAPS_H

#include <stdbool.h>

/* At the start, before there are threads. */
void caps_init(void);

/* Is it in effect for this process? cap: CAP_… of linux/capability.h. */
bool caps_has(int cap);

/* What this thread starts from now on has them; until caps_take_back. Nothing without caps_init. */
void caps_lend(void);
void caps_take_back(void);

/* This process, and what it becomes, has none from now on (root has them by being root). 0, or -1
 * with errno. */
int caps_drop(void);

#endif
