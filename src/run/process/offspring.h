/*
 * Processes by their origins (origin.h): those that a worker started, with their descendants. So
 * neither a reused pid nor the moment at which somebody died can fool the search, and descendants
 * that left their group are found too. Not found is who wrote over its environment. Any thread; it
 * takes milliseconds.
 */
#ifndef LATER_RUN_PROCESS_OFFSPRING_H
#define LATER_RUN_PROCESS_OFFSPRING_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/clock.h"

struct offspring {
    pid_t pid;
    int pidfd;     /* of what was looked at; -1: a kernel without them */
    int64_t fence; /* of its origin that was looked for */
};

/* Who is looked for: what this worker started, */
struct offspring_query {
    const char *worker; /* as in an origin */
    /* with one of these fences (0 is a free place), */
    const int64_t *fences;
    size_t nfences;
    /* or, where fences is NULL, for one of these jobs or for none, as a stream process. NULL:
     * whatever that is. The worker is dead then, and what cannot be looked at may be of it. */
    const char *const *jobs;
    size_t njobs;
    int64_t since; /* when that worker began (pidstat.h); nobody older is of it */
};

/* The callee's to copy; it owns the pidfd. */
typedef void offspring_found_f(void *arg, const struct offspring *p);

/* How many were found, and how many may be of them but could not be looked at: they are becoming
 * another program just now; of a dead worker also who is hidden from us (another user's without
 * CAP_SETUID, one that is not dumpable). */
struct offspring_count {
    size_t found, unknown;
};

/* Look through /proc, ourselves left out, and tell of those that are looked for, max at most. What
 * has not been looked at by `until` counts as one unknown. */
struct offspring_count offspring_find(const struct offspring_query *whom, size_t max,
                                      struct mono until, offspring_found_f *found, void *arg);

/* KILL to it, and to its group if it leads one. */
void offspring_kill(const struct offspring *p);

#endif
