/*
 * One long-lived handler process (doc/stream.md): its pipes, what runs in it, and its end. On the
 * main thread's loop; only its start, which blocks, is a task of the pool.
 *
 *   LAUNCHING  a thread makes the process
 *   GREETING   it has to say its first line, within start_timeout
 *   READY      it takes jobs
 *   CLOSING    its standard input is closed: it has kill_grace to end by itself, or a moment
 *              where it was the one who closed a pipe
 *   ENDING     it was told to by TERM, and after kill_grace by KILL
 *   GONE       it has ended, and what ran in it is being told
 *
 * Its end is its pidfd, never EOF. Then all that still runs in it is ended too, `gone` is called,
 * and it is freed.
 */
#ifndef LATER_RUN_STREAM_STREAM_PROC_H
#define LATER_RUN_STREAM_STREAM_PROC_H

#include "loop/loop.h"
#include "run/pool/pool.h"
#include "run/stream/stream.h"

struct stream_proc;

struct stream_proc_events {
    void (*ready)(void *arg, struct stream_proc *p);
    void (*done)(void *arg, unsigned place, const struct run_result *result);
    void (*progress)(void *arg, unsigned place, const char *text);
    /* All that was said at once has been told. */
    void (*rest)(void *arg, struct stream_proc *p);
    /* It takes no more jobs from here on, for a cause that is not `retire`. At most once. */
    void (*ending)(void *arg, struct stream_proc *p);
    /* It has ended; why: one line for people. Not to be used any more. */
    void (*gone)(void *arg, struct stream_proc *p, const char *why);
    void *arg;
};

/* conf and events are the caller's and outlive it. */
struct stream_proc *stream_proc_new(struct loop *loop, struct pool *pool,
                                    const struct stream_conf *conf,
                                    const struct stream_proc_events *events);

/* How many jobs it would take now; 0 unless READY. */
unsigned stream_proc_room(const struct stream_proc *p);
unsigned stream_proc_inflight(const struct stream_proc *p); /* that it greeted with; 0 before */
unsigned stream_proc_running(const struct stream_proc *p);
int64_t stream_proc_served(const struct stream_proc *p); /* answers so far */
bool stream_proc_is_ready(const struct stream_proc *p);
/* Does it, or will it, take jobs? */
bool stream_proc_is_kept(const struct stream_proc *p);
bool stream_proc_is_retired(const struct stream_proc *p);
/* Did it end before it answered anything, and by itself or by its own fault? */
bool stream_proc_has_failed(const struct stream_proc *p);
pid_t stream_proc_pid(const struct stream_proc *p);     /* 0 before there is one */
int64_t stream_proc_fence(const struct stream_proc *p); /* LATER_FENCE of the process */
/* Is it older, larger, or has it served more than its configuration wants? */
bool stream_proc_is_worn(struct stream_proc *p);

/* There is room. Its bytes go with the next flush. */
void stream_proc_start(struct stream_proc *p, const struct stream_job *job);
void stream_proc_flush(struct stream_proc *p);
/* Does it run that job? If so, end it. */
bool stream_proc_control(struct stream_proc *p, unsigned place, enum exec_control what);
/* No more jobs; EOF as soon as none runs. */
void stream_proc_retire(struct stream_proc *p);
void stream_proc_kill(struct stream_proc *p);

#endif
