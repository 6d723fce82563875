/*
 * When a process began, which tells it from a later one with its pid. Any thread.
 */
#ifndef LATER_RUN_PIDSTAT_H
#define LATER_RUN_PIDSTAT_H

#include <stdint.h>
#include <sys/types.h>

/* Start time in clock ticks (sysconf(_SC_CLK_TCK)) since boot; -1 when no process is seen, -2 for
 * one that is dead already. */
int64_t pidstat_start(pid_t pid);

#endif
