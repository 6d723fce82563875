/*
 * A descriptor that becomes readable when a child process of ours has ended.
 */
#ifndef LATER_RUN_PROCESS_PIDWATCH_H
#define LATER_RUN_PROCESS_PIDWATCH_H

#include <sys/types.h>

/*
 * A pidfd if the kernel gives one. If it does not (before Linux 5.3, or a sandbox filters the
 * call), a pipe whose other end a thread keeps open until it ends. The child process must not be
 * waited for before the descriptor is readable. The caller closes it. -1: errno says why.
 */
int pidwatch_open(pid_t child);

#endif
