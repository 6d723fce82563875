/*
 * What /proc tells of a process without its leave: among others when it began, which tells it from
 * a later one with its pid. Any thread.
 */
#ifndef LATER_RUN_PROCESS_PIDSTAT_H
#define LATER_RUN_PROCESS_PIDSTAT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define PIDSTAT_NAME 64 /* with the NUL; the kernel keeps 15 of a program's */

struct pidstat {
    char name[PIDSTAT_NAME];
    char state; /* Z, X: it is dead; T: it was stopped */
    pid_t parent;
    bool is_kernels; /* a thread of the kernel */
    bool is_fork;    /* it was forked, and has not become a program of its own */
    int64_t threads;
    int64_t start; /* in clock ticks (sysconf(_SC_CLK_TCK)) since boot */
};

/* 0, or -1 with errno: ENOENT and ESRCH when there is none. */
int pidstat_read(pid_t pid, struct pidstat *ret);

/* Its start; -1 when no process is seen, -2 for one that is dead already. */
int64_t pidstat_start(pid_t pid);
/* Resident bytes of it, 0 when nobody knows. */
int64_t pidstat_memory(pid_t pid);
/* Only its parent does not know yet. */
bool pidstat_is_dead(const struct pidstat *p);

#endif
