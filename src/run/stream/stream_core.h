/*
 * The process under stream_proc.c and stream_jobs.c: what is written to it, and how it is ended.
 */
#ifndef LATER_RUN_STREAM_STREAM_CORE_H
#define LATER_RUN_STREAM_STREAM_CORE_H

#include <signal.h>

#include "base/err.h"
#include "loop/loop.h"
#include "run/exec/exec_pipes.h"
#include "run/lines.h"
#include "run/pool/pool.h"
#include "run/process/spawn.h"
#include "run/stream/stream_conf.h"
#include "run/stream/stream_line.h"
#include "run/stream/stream_log.h"

/* In the order of a process' life (stream_proc.h). */
enum stream_state { LAUNCHING, GREETING, READY, CLOSING, ENDING, DYING, GONE };

/* A job in the process; listed in the order in which they were given. */
struct stream_item {
    struct stream_item *next, *before;
    char id[STREAM_ID_LEN + 1];
    unsigned place;
    struct guard *guard; /* NULL: it holds no lock */
    int64_t timeout_ms;
    struct mono started, received;
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

/* As stream_proc_is_kept and stream_proc_flush. */
bool stream_core_is_kept(const struct stream_proc *p);
void stream_core_flush(struct stream_proc *p);
/* Queue bytes for it; the next flush writes them. */
void stream_core_put(struct stream_proc *p, const char *bytes, size_t n);
/* Make the timer ring at this time or earlier. */
void stream_core_arm(struct stream_proc *p, struct mono at);
/* The current state may last so long. */
void stream_core_set_deadline(struct stream_proc *p, int64_t ms);
/* Send a signal to its process group. */
void stream_core_signal(const struct stream_proc *p, int sig);
/* Send SIGTERM, and SIGKILL after kill_grace. why: for the log; the first call's reason counts. */
void stream_core_end(struct stream_proc *p, const char *why);
/* The same: it broke the protocol. */
void stream_core_breach(struct stream_proc *p, const char *why);
/* It closed one of its pipes: it has a moment to end by itself. */
void stream_core_expect_end(struct stream_proc *p, const char *why);
void stream_core_close_in(struct stream_proc *p);
/* Close its input if it is retired and runs no job. */
void stream_core_close_when_idle(struct stream_proc *p);

#endif
