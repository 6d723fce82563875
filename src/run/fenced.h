/*
 * Processes by their marks: LATER_FENCE, a number that no other job ever had, and LATER_WORKER, the
 * worker that started it or what started it (worker/identity.h). So neither a reused pid nor the
 * moment at which somebody died can fool the search, and descendants that left their group are
 * found too. Not found is who wrote over its environment. Any thread; it takes milliseconds.
 */
#ifndef LATER_RUN_FENCED_H
#define LATER_RUN_FENCED_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct fenced {
    pid_t pid;
    int pidfd;     /* of what was looked at; -1: a kernel without them */
    int64_t fence; /* 0: none of those that are looked for */
};

/* Who is looked for. */
struct fenced_whom {
    const int64_t *fences; /* who has one of these; those of 0 are free places */
    size_t nfences;
    /* In their place, unless it is NULL: who has this LATER_WORKER, and one of these LATER_ID, or
     * none as a stream process. NULL: whatever that is. */
    const char *worker;
    const char *const *jobs;
    size_t njobs;
    int64_t since; /* with worker: when that began (pidstat.h); nobody older is of it */
};

/* The callee's to copy; it owns the pidfd. */
typedef void fenced_found_f(void *arg, const struct fenced *p);

/* How many were found, and how many may be of them but could not be looked at: they are becoming
 * another program just now; with worker also who is hidden from us (another user's without
 * CAP_SETUID, one that is not dumpable). */
struct fenced_tally {
    size_t found, unknown;
};

/* Look through /proc, ourselves left out, and tell of those that are looked for, max at most. */
struct fenced_tally fenced_find(const struct fenced_whom *whom, size_t max, fenced_found_f *found,
                                void *arg);

/* KILL to it, and to its group if it leads one. */
void fenced_kill(const struct fenced *p);

#endif
