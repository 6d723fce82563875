/*
 * What /proc tells of every process, whoever owns it. The start time tells a process from a later
 * one with the same pid. Any thread.
 */
#ifndef LATER_RUN_PROCESS_PIDSTAT_H
#define LATER_RUN_PROCESS_PIDSTAT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define PIDSTAT_NAME 64 /* with the NUL; the kernel keeps 15 bytes of a program's name */

struct pidstat {
    char name[PIDSTAT_NAME];
    char state; /* Z, X: dead; T: stopped */
    pid_t parent;
    bool is_kernels; /* a thread of the kernel */
    bool is_fork;    /* forked, but has not called exec yet */
    int64_t threads;
    int64_t start; /* in clock ticks (sysconf(_SC_CLK_TCK)) since boot */
};

/* 0, or -1 with errno: ENOENT or ESRCH if there is no such process. */
int pidstat_read(pid_t pid, struct pidstat *ret);

/* Its start time; -1: the process cannot be read, -2: it has ended already. */
int64_t pidstat_start(pid_t pid);
/* Its resident memory in bytes; 0: unknown. */
int64_t pidstat_memory(pid_t pid);
/* Has it ended, and its parent has not waited for it yet? */
bool pidstat_is_dead(const struct pidstat *p);

#endif
