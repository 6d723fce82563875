/*
 * A descriptor that becomes readable when a child of ours has ended.
 */
#ifndef LATER_RUN_PROCESS_PIDWATCH_H
#define LATER_RUN_PROCESS_PIDWATCH_H

#include <sys/types.h>

/*
 * The child must not be reaped before the descriptor is readable. A pidfd where the kernel gives
 * one; where it does not (before 5.3, or a sandbox that filters the call), a pipe whose other end a
 * thread holds until the child ends. -1: errno says why.
 */
int pidwatch_open(pid_t child);

#endif
