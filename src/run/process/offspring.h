/*
 * Finds processes by their origins (origin.h): those that a worker started, and their descendants.
 * So a reused pid cannot mislead the search, nor can the moment at which a process or worker died,
 * and descendants that left their process group are found, too. A process that wrote over its
 * environment is not found. Any thread; a search takes milliseconds.
 */
#ifndef LATER_RUN_PROCESS_OFFSPRING_H
#define LATER_RUN_PROCESS_OFFSPRING_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/clock.h"

struct offspring {
    pid_t pid;
    int pidfd;     /* of the process that was checked; -1: a kernel without pidfds */
    int64_t fence; /* of the origin that matched */
};

/* Which processes to find: those that this worker started */
struct offspring_query {
    const char *worker; /* as in an origin */
    /* with one of these fences (0: a free place) */
    const int64_t *fences;
    size_t nfences;
    /* or, if fences is NULL, for one of these jobs or for no job, as stream processes are. jobs
     * NULL: for any job. The worker died then, and processes that cannot be inspected
     * may be its own. */
    const char *const *jobs;
    size_t njobs;
    int64_t since; /* when that worker began (pidstat.h); older processes are not its own */
};

/* *p is valid during the call; the callee owns its pidfd. */
typedef void offspring_found_f(void *arg, const struct offspring *p);

/* found: processes that match. unknown: processes that may match but could not be inspected: they
 * are in the middle of an exec or, if the worker died, hidden from us (of another user without
 * CAP_SETUID, or not dumpable). */
struct offspring_count {
    size_t found, unknown;
};

/* Search /proc, except ourselves, and call found for each match, max at most. If the search is not
 * complete at `until`, that counts as one unknown. */
struct offspring_count offspring_find(const struct offspring_query *whom, size_t max,
                                      struct mono until, offspring_found_f *found, void *arg);

/* Send SIGKILL to the process, and to its group if it leads one. */
void offspring_kill(const struct offspring *p);

#endif
