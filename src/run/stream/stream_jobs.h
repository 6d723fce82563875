/*
 * The jobs in a process: they are given to it, its lines answer them, and they end with it.
 */
#ifndef LATER_RUN_STREAM_STREAM_JOBS_H
#define LATER_RUN_STREAM_STREAM_JOBS_H

#include "run/stream/stream_core.h"

/* As stream_proc_start and stream_proc_control. */
void stream_jobs_start(struct stream_proc *p, const struct stream_job *job);
bool stream_jobs_control(struct stream_proc *p, unsigned place, enum exec_control what);
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
