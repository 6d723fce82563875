/*
 * The origin of a process: which worker started it, with which fence, for which job. It stands in
 * the environment of all that a worker starts, and so of all that this starts in turn. By it a
 * process is found (offspring.h), whatever session it is in and whatever became of its worker.
 *
 *   LATER_WORKER=WORKER/FENCE/JOB[ WORKER/FENCE/JOB]...
 *
 * The innermost origin comes first: a command of `later sem` in a handler has two, since it has to
 * end with either. WORKER has no space and no slash; JOB is empty where there is none.
 */
#ifndef LATER_RUN_PROCESS_ORIGIN_H
#define LATER_RUN_PROCESS_ORIGIN_H

#include <stdbool.h>
#include <stdint.h>

#define ORIGIN_NAME "LATER_WORKER="
#define ORIGIN_WORKER 96 /* bytes of a WORKER, with the NUL */

/* Which process of this host this one is, as it stands in R:worker:<epoch>. */
struct origin_place {
    /* Which processes it sees and may look at: the inode of its pid namespace, since pids compare
     * only inside one, its user, and + if it may become others ("4026531836.1000"). */
    char pidns[48];
    char pid[16];
    char pstart[24]; /* start time of the process in clock ticks since boot */
};

void origin_place_read(struct origin_place *ret);

/* The WORKER of what such a process starts. */
void origin_worker(const char *pidns, const char *pid, const char *pstart, char out[ORIGIN_WORKER]);
/* Of what this process starts. Any thread. */
void origin_own(char out[ORIGIN_WORKER]);

/* The variable for what this process starts; behind it the origins that it has itself. job: "" for
 * none. The caller's. */
char *origin_env(int64_t fence, const char *job);

/* One of a variable's value. */
struct origin {
    char worker[ORIGIN_WORKER];
    int64_t fence;
    char job[32];
};

/* Read the next one from *at on, and move *at behind it; what is none is passed over. False: there
 * is no more. */
bool origin_next(const char **at, struct origin *ret);

#endif
