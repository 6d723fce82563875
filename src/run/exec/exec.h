/*
 * Exec mode: one process per job. The payload goes to its standard input, job facts into its
 * environment, its exit status says how it went (doc/protocol.md, handler contract).
 *
 * exec_run is called on a pool thread and blocks it for the life of the process. It touches no
 * Redis and no state but its arguments. The end of a job is the pidfd, never EOF on a pipe: after
 * it the pipes are drained for at most EXEC_DRAIN_MS and closed, whoever still holds them.
 *
 * The process may leave children behind when it ends by itself: they are let alone. When we end it
 * (timeout, stop, cancel), or the guard does, all that carries its fence is dead when exec_run
 * returns, whatever session it made, and its whole process group; members that still hold a pipe
 * get the order's grace like the leader.
 *
 * The process must block or ignore SIGPIPE and must not ignore SIGCHLD.
 */
#ifndef LATER_RUN_EXEC_EXEC_H
#define LATER_RUN_EXEC_EXEC_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/clock.h"
#include "run/guard/guard.h"
#include "run/result.h"

#define EXEC_LINE_BYTES 1024 /* longer lines of output are cut in the log */
#define EXEC_LOG_LINES 1000  /* lines of one attempt that reach the log; the rest is counted */
#define EXEC_DRAIN_MS 1000

/* A const order: everything exec_run needs, owned by the caller until it returns. */
struct exec_order {
    const char *id; /* 12 characters */
    const char *queue;
    char *const *argv; /* argv[0]: absolute path of the handler */
    char *const *envp; /* complete environment, LATER_* included; NULL-ended */
    const void *payload;
    size_t payload_len;
    int64_t timeout_ms; /* INT64_MAX: none */
    int64_t kill_grace_ms;
    /* It holds a lock: the guard is told before it is started. NULL: none is. */
    struct guard *guard;
    unsigned guard_slot;
    int64_t fence; /* as in envp; 0: it has none, and nobody is found by it */
};

/*
 * What other threads may do to a running exec: any number of exec_control calls, from any thread.
 * TERM to the group at once, KILL after the order's grace. KILL: at once.
 */
enum exec_control { EXEC_CONTROL_STOP = 1, EXEC_CONTROL_CANCEL = 2, EXEC_CONTROL_KILL = 4 };

/*
 * One place in the pool: an eventfd and the pid of what runs there. Reused from job to job;
 * a control call that comes late (after the job it was meant for ended) is dropped because it
 * carries the serial of that job.
 */
struct exec_slot;
struct exec_slot *exec_slot_new(void); /* NULL: no descriptors */
void exec_slot_free(struct exec_slot *slot);
/* Start a new serial for the next job of this slot; returned for exec_control. Main thread. */
uint64_t exec_slot_arm(struct exec_slot *slot);
void exec_slot_control(struct exec_slot *slot, uint64_t serial, enum exec_control what);
/* When the job was taken by its thread (0: it was not yet), and when it gave the last sign of life.
 */
void exec_slot_heard(const struct exec_slot *slot, struct mono *ret_taken, struct mono *ret_said);

/*
 * Called on the pool thread while the job runs, from exec_run; must not block for long. Each may be
 * NULL. progress comes at most ten times a second: the latest text wins, the last is always told.
 */
struct exec_hooks {
    void (*spawned)(void *arg, pid_t pid);                   /* the group leader */
    void (*ended)(void *arg);                                /* it is reaped */
    void (*progress)(void *arg, const char *text, size_t n); /* `progress …` on fd 3 */
    void *arg;
};

/*
 * Run one job; never fails: every outcome is in *ret (which was inited). The slot was armed for it
 * and is disarmed when this returns. hooks may be NULL.
 */
void exec_run(const struct exec_order *order, struct exec_slot *slot,
              const struct exec_hooks *hooks, struct run_result *ret);

#endif
