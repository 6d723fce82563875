/*
 * The origin of a process: which worker started it, with which fence, for which job. It is in the
 * environment of every process that a worker starts, and these pass it on to theirs. By its origin
 * a process is found (offspring.h), whatever its session and even after its worker has died.
 *
 *   LATER_WORKER=WORKER/FENCE/JOB[ WORKER/FENCE/JOB]...
 *
 * The innermost origin comes first: a command of `later sem` in a handler has two, since it has to
 * end with either. WORKER has no space and no slash; JOB is empty if there is no job.
 */
#ifndef LATER_RUN_PROCESS_ORIGIN_H
#define LATER_RUN_PROCESS_ORIGIN_H

#include <stdbool.h>
#include <stdint.h>

#define ORIGIN_NAME "LATER_WORKER="
#define ORIGIN_WORKER 96 /* size of a WORKER, NUL included */

/* Which process of this host we are, as in R:worker:<epoch>. */
struct origin_process {
    /* Tells which processes we see and may inspect: the inode of our pid namespace (pids are unique
     * only inside one), our uid, and + if we may become other users ("4026531836.1000"). */
    char pidns[48];
    char pid[16];
    char pstart[24]; /* start time of the process in clock ticks since boot */
};

/* What cannot be read becomes "" (pidns) or "-1" (pstart). */
void origin_process_read(struct origin_process *ret);

/* The WORKER of the processes that the process with these facts starts. */
void origin_worker(const char *pidns, const char *pid, const char *pstart, char out[ORIGIN_WORKER]);
/* The WORKER of the processes that we start. Any thread. */
void origin_own(char out[ORIGIN_WORKER]);

/* The variable for a process that we start: its new origin, then our own ones. job: "" for none.
 * The caller frees it. */
char *origin_env(int64_t fence, const char *job);

/* One origin of a variable's value. */
struct origin {
    char worker[ORIGIN_WORKER];
    int64_t fence;
    char job[32];
};

/* Read the next origin from *at on, and move *at past it. Text that is no origin is skipped. False:
 * there is no more. */
bool origin_next(const char **at, struct origin *ret);

#endif
