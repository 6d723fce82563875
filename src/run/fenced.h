/*
 * Processes by their fence: the number in LATER_FENCE, which no other job ever had. So neither a
 * reused pid nor the moment at which somebody died can fool the search, and descendants that left
 * their group are found too. Not found is who cannot be looked at (another user's without
 * CAP_SETUID, one that is not dumpable) or who wrote over its environment. Any thread.
 */
#ifndef LATER_RUN_FENCED_H
#define LATER_RUN_FENCED_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct fenced {
    pid_t pid;
    int pidfd; /* of what was looked at; -1: a kernel without them */
    int64_t fence;
};

/* The callee's to copy; it owns the pidfd. */
typedef void fenced_found_f(void *arg, const struct fenced *p);

/*
 * Look through /proc, ourselves left out, and tell of each process that has one of the n fences
 * (those of 0 are free places), max at most. Returns how many.
 */
size_t fenced_find(const int64_t *fences, size_t n, size_t max, fenced_found_f *found, void *arg);

/* KILL to it, and to its group if it leads one. */
void fenced_kill(const struct fenced *p);

#endif
