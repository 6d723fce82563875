/*
 * One long-lived handler process (doc/stream.md): its pipes, its jobs, and its end. On the main
 * thread's loop. Only what blocks is a task of the pool: its start, and the end of what it started.
 *
 *   LAUNCHING  a pool thread creates the process
 *   GREETING   it has to write its first line, within start_timeout
 *   READY      it takes jobs
 *   CLOSING    its standard input is closed: it has kill_grace to end by itself, or a moment if it
 *              closed a pipe itself
 *   ENDING     we ended it: SIGTERM, and SIGKILL after kill_grace
 *   DYING      ended by us or the guard; a pool thread ends what it started in other sessions
 *   GONE       its end is handled: its jobs end
 *
 * It ends when its pidfd becomes readable, never by EOF. Then its jobs end, too, `gone` is called,
 * and it is freed.
 */
#ifndef LATER_RUN_STREAM_STREAM_PROC_H
#define LATER_RUN_STREAM_STREAM_PROC_H

#include "loop/loop.h"
#include "run/pool/pool.h"
#include "run/stream/stream_conf.h"

/* The caller owns conf and events, which must outlive the process. Never NULL. */
struct stream_proc *stream_proc_new(struct loop *loop, struct pool *pool,
                                    const struct stream_conf *conf,
                                    const struct stream_proc_events *events);

/* How many more jobs it can take now; 0 unless READY. */
unsigned stream_proc_free_places(const struct stream_proc *p);
unsigned stream_proc_inflight(const struct stream_proc *p); /* of its greeting; 0 before */
unsigned stream_proc_running(const struct stream_proc *p);
int64_t stream_proc_served(const struct stream_proc *p); /* how many jobs it has answered */
bool stream_proc_is_ready(const struct stream_proc *p);
/* Does it take jobs, or will it once it is ready? */
bool stream_proc_is_kept(const struct stream_proc *p);
bool stream_proc_is_retired(const struct stream_proc *p);
/* Has it answered no job, and did it end by itself or by an error of its own? */
bool stream_proc_has_failed(const struct stream_proc *p);
pid_t stream_proc_pid(const struct stream_proc *p);      /* 0 before the process exists */
int64_t stream_proc_number(const struct stream_proc *p); /* instead of a fence, in its origin */
/* Is it older or larger, or has it served more jobs, than the configuration allows? */
bool stream_proc_is_worn(struct stream_proc *p);

/* Give it a job; stream_proc_free_places must not be 0. stream_proc_flush writes the job. */
void stream_proc_start(struct stream_proc *p, const struct stream_job *job);
void stream_proc_flush(struct stream_proc *p);
/* If it runs the job of this place, end that job (exec.h). False: it does not. */
bool stream_proc_control(struct stream_proc *p, unsigned place, enum exec_control what);
/* Give it no more jobs, and EOF as soon as none runs. */
void stream_proc_retire(struct stream_proc *p);
/* Send SIGKILL; its jobs end as STOPPED. */
void stream_proc_kill(struct stream_proc *p);

#endif
