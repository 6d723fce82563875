/*
 * What the two halves of stream_proc.h share: stream_proc.c has the process, stream_jobs.c what
 * runs in it.
 */
#ifndef LATER_RUN_STREAM_STREAM_PRIV_H
#define LATER_RUN_STREAM_STREAM_PRIV_H

#include <signal.h>

#include "base/err.h"
#include "run/exec/exec_pipes.h"
#include "run/lines.h"
#include "run/process/spawn.h"
#include "run/stream/stream_line.h"
#include "run/stream/stream_log.h"
#include "run/stream/stream_proc.h"

/* DYING: we ended it, and it has ended; what it left in sessions of its own is being killed. */
enum stream_state { LAUNCHING, GREETING, READY, CLOSING, ENDING, DYING, GONE };

/* A job in the process, in the order in which they were given. */
struct stream_item {
    struct stream_item *next, *before;
    char id[STREAM_ID_LEN + 1];
    unsigned place;
    struct guard *guard; /* NULL: it holds no lock */
    int64_t timeout_ms;
    struct mono started, heard;
    uint64_t at;         /* its first byte, counted as `queued` */
    enum run_end cause;  /* why it was told to end; RUN_EXITED: it was not */
    bool is_silent;      /* TIMED_OUT: by `heartbeat` */
    struct mono kill_at; /* it was told by `cancel`: then its process ends */
};

struct stream_proc {
    struct pool_task task; /* first: the launch, and the end */
    struct loop *loop;
    struct pool *pool;
    const struct stream_conf *conf;
    const struct stream_proc_events *events;
    enum stream_state state;
    bool is_retired, is_killed; /* asked for while it was LAUNCHING, or while jobs run */
    bool was_ended;             /* by us, and */
    bool is_at_fault;           /* it did what no worker may: its jobs have failed */
    char why[256];              /* the cause of its end, if it was ours */
    char met[96];               /* the limit of its cgroup that it met, or empty */
    int64_t fence;
    struct exec_pipes pipes;
    struct spawned child;
    struct err err; /* of the launch */
    struct loop_fd *watch_in, *watch_out, *watch_err, *watch_pid;
    struct loop_timer *timer;
    struct mono armed, deadline; /* what the timer is set for; of the state */
    struct buf out;              /* to be written */
    size_t sent;
    uint64_t queued, written; /* bytes for it, since it was made */
    uint64_t taken;           /* of these it has read; known from CLOSING on */
    struct lines lines;
    struct stream_log log;
    struct stream_greeting greeting;
    struct stream_item *first, *last;
    unsigned running;
    int64_t served;
    struct mono born, looked; /* looked: at its memory */
    bool is_large;
    unsigned depth; /* of calls that still use it */
    bool is_gone;
};

/* ---- stream_proc.c */

/* The timer rings at this instant, or before it. */
void stream_proc_arm(struct stream_proc *p, struct mono at);
/* TERM, and KILL after the grace. why: what the log says; that of the first time holds. */
void stream_proc_end(struct stream_proc *p, const char *why);
/* To its group. */
void stream_proc_signal(const struct stream_proc *p, int sig);
/* Bytes for it, to be written by the next flush. */
void stream_proc_put(struct stream_proc *p, const char *bytes, size_t n);

/* ---- stream_jobs.c */

struct stream_item *stream_jobs_find(const struct stream_proc *p, const char *id);
/* What it said of a job: OK, RETRY, FAIL or DEAD, which end it (the item is freed), or PROGRESS. */
void stream_jobs_answer(struct stream_proc *p, struct stream_item *it,
                        const struct stream_answer *a);
/* End those whose time is over; arm the timer for the others. */
void stream_jobs_check(struct stream_proc *p, struct mono now);
/* Has the guard killed it, for a job in it that holds a lock? */
bool stream_jobs_by_guard(const struct stream_proc *p);
/* The process has ended, and so have they. */
void stream_jobs_end(struct stream_proc *p, const siginfo_t *status);
/* How it ended, in words. */
#define STREAM_STATUS 200
void stream_jobs_status(const struct stream_proc *p, const siginfo_t *st, char out[STREAM_STATUS]);

#endif
