/*
 * Exec mode: one process per job. The payload goes to its standard input, facts about the job go
 * into its environment, its exit status is the result (doc/handlers.md).
 *
 * exec_run is called on a pool thread and blocks it while the process lives. It uses no Redis and
 * no data but its arguments. A job ends when the pidfd becomes readable, never by EOF on a pipe.
 * Then the pipes are read for at most EXEC_DRAIN_MS and closed, even if others have them open.
 *
 * A process that ends by itself may leave others behind; they are left alone. When we end it
 * (timeout, stop, cancel), or the guard does, its process group is killed, and so is every process
 * with its fence, in whatever session. exec_run waits until those with its fence have ended; after
 * 10 s it logs a warning and goes on. Group members that still have a pipe open get kill_grace_ms,
 * like the leader.
 *
 * The calling process must block or ignore SIGPIPE and must not ignore SIGCHLD.
 */
#ifndef LATER_RUN_EXEC_EXEC_H
#define LATER_RUN_EXEC_EXEC_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/clock.h"
#include "run/exec/exec_slot.h"
#include "run/guard/guard.h"
#include "run/report.h"

#define EXEC_DRAIN_MS 1000

/* Everything exec_run needs. The caller owns it and leaves it unchanged until exec_run returns. */
struct exec_order {
    const char *id; /* 12 characters */
    const char *queue;
    char *const *argv; /* argv[0]: absolute path of the handler */
    char *const *envp; /* complete environment, LATER_* included; NULL-ended */
    const void *payload;
    size_t payload_len;
    int64_t timeout_ms; /* INT64_MAX: none */
    int64_t kill_grace_ms;
    /* Set if the job is guarded (job/job.h): the guard is told before the start. NULL if not. */
    struct guard *guard;
    unsigned guard_place;
    int64_t fence; /* the same as in envp; 0: none, no process can be found by it */
};

/*
 * exec_run calls these on the pool thread while the job runs. They must not block for long; each
 * may be NULL. Each word is told at most ten times a second: the latest text wins, and the last one
 * is always told.
 */
struct exec_hooks {
    void (*spawned)(void *arg, pid_t pid); /* pid leads its process group */
    void (*ended)(void *arg);              /* the process was waited for */
    void (*told)(void *arg, enum run_word word, const char *text, size_t n); /* on fd 3 */
    void *arg;
};

/*
 * Run one job. Never fails: errors, too, are in *ret, which the caller has initialized. The slot
 * must be armed for the job; it is disarmed when exec_run returns. hooks may be NULL.
 */
void exec_run(const struct exec_order *order, struct exec_slot *slot,
              const struct exec_hooks *hooks, struct run_report *ret);

#endif
