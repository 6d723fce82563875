/*
 * Which unserved queues the log names: each when it becomes one, and all of them again once an
 * hour, since nothing else of a daemon says so. Redis tells them every ten seconds. Main thread.
 */
#ifndef LATER_DAEMON_UNSERVED_H
#define LATER_DAEMON_UNSERVED_H

#include <stdbool.h>
#include <stddef.h>

#include "base/clock.h"

#define UNSERVED_AGAIN_MS 3600000

/* Zeros: none. */
struct unserved {
    char **names; /* sorted: those of the last time */
    size_t n;
    struct mono again_at;
};

/* These queues are unserved now. tell() is called for each that is to be logged. */
void unserved_take(struct unserved *u, const char *const *names, size_t n, struct mono now,
                   void (*tell)(void *arg, const char *queue), void *arg);
void unserved_done(struct unserved *u);

#endif
