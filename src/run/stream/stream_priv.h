/*
 * What the two halves of stream_proc.h share: stream_proc.c has the process, stream_jobs.c its
 * jobs.
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

/* In the order of a process' life (stream_proc.h). */
enum stream_state { LAUNCHING, GREETING, READY, CLOSING, ENDING, DYING, GONE };

/* A job in the process; listed in the order in which they were given. */
struct stream_item {
    struct stream_item *next, *before;
    char id[STREAM_ID_LEN + 1];
    unsigned place;
    struct guard *guard; /* NULL: it holds no lock */
    int64_t timeout_ms;
    struct mono started, heard;
    uint64_t at;          /* position of its first byte, counted like `queued` */
    enum run_end cause;   /* why we asked it to end; RUN_EXITED: we did not */
    bool lacks_heartbeat; /* if TIMED_OUT: by `heartbeat` */
    struct mono kill_at;  /* after a `cancel`: when we end its process */
    struct children children;
};

struct stream_proc {
    struct pool_task task; /* first; for launch and end_all */
    struct loop *loop;
    struct pool *pool;
    const struct stream_conf *conf;
    const struct stream_proc_events *events;
    enum stream_state state;
    bool is_retired, is_killed; /* asked for, maybe while LAUNCHING or while jobs run */
    bool was_ended;             /* by us, not by itself */
    bool is_in_breach;          /* it broke the protocol: its jobs have failed */
    char why[256];              /* why we ended it */
    char met[96];               /* which limit of its cgroup it met, or "" */
    int64_t number;             /* stands for a fence in its origin */
    struct exec_pipes pipes;
    struct spawned process;
    struct err err; /* of the launch */
    struct loop_fd *watch_in, *watch_out, *watch_err, *watch_pid;
    struct loop_timer *timer;
    struct mono armed, deadline; /* when the timer rings; of the current state */
    struct buf out;              /* bytes to write to it; sent: how many were written */
    size_t sent;
    uint64_t queued, written; /* bytes put and written since its start */
    uint64_t taken;           /* bytes that it has read; known from CLOSING on */
    struct lines lines;
    struct stream_item *adding; /* the job to which the last `add` belongs; NULL: none of ours */
    struct children strays;     /* of no job: their payloads are skipped */
    struct stream_log log;
    struct stream_greeting greeting;
    struct stream_item *first, *last;
    unsigned running;
    int64_t served;
    struct mono born, measured; /* measured: when its memory was measured */
    bool is_large;
    unsigned depth; /* number of calls that still use it */
    bool is_gone;
};

/* ---- stream_proc.c */

/* Make the timer ring at this time or earlier. */
void stream_proc_arm(struct stream_proc *p, struct mono at);
/* Send SIGTERM, and SIGKILL after kill_grace. why: for the log; the first call's reason counts. */
void stream_proc_end(struct stream_proc *p, const char *why);
/* The same: it broke the protocol. */
void stream_proc_breach(struct stream_proc *p, const char *why);
/* Send a signal to its process group. */
void stream_proc_signal(const struct stream_proc *p, int sig);
/* Queue bytes for it; the next flush writes them. */
void stream_proc_put(struct stream_proc *p, const char *bytes, size_t n);

/* ---- stream_jobs.c */

/* Take a line of n bytes that it wrote after its greeting: an answer, an `add`, or output. cut: it
 * was longer. An answer may end the job. */
void stream_jobs_line(struct stream_proc *p, const char *line, size_t n, bool cut);
/* End the jobs whose time is over; arm the timer for the others. */
void stream_jobs_check(struct stream_proc *p, struct mono now);
/* Has the guard killed the process, for a guarded job in it? */
bool stream_jobs_by_guard(const struct stream_proc *p);
/* The process has ended: end its jobs, too. */
void stream_jobs_end(struct stream_proc *p, const siginfo_t *status);
/* How the process ended, in words. */
#define STREAM_STATUS 200
void stream_jobs_status(const struct stream_proc *p, const siginfo_t *st, char out[STREAM_STATUS]);

#endif
