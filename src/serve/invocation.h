/*
 * Turns a claimed job into what its handler is told, for each mode: an order for the pool thread
 * that makes a process; the call of a plug-in; or the header line for a stream process. An order
 * owns its arguments, environment and payload, so that neither a reload nor the end of the job
 * frees them while the thread uses them.
 */
#ifndef LATER_SERVE_INVOCATION_H
#define LATER_SERVE_INVOCATION_H

#include "job/job.h"
#include "run/exec/exec.h"
#include "run/plugin/later_plugin.h"
#include "serve/served_queues.h"

struct invocation;

/* The job's own time limit, or that of its queue. INT64_MAX: none. */
int64_t invocation_timeout_ms(const struct job *job, const struct conf_queue *conf);

/* late_us: how late the job is at this moment; step: what LATER_STEP is, "" for none. Takes over
 * the payload of the job. */
struct invocation *invocation_new(struct job *job, const struct served_queue *q, const char *ns,
                                  const char *step, int64_t late_us);
/* The job is guarded, and runs in this place of the worker. */
void invocation_guard(struct invocation *o, struct guard *guard, unsigned place);
void invocation_free(void *order);
/* Owned by o. */
const struct exec_order *invocation_exec(const struct invocation *o);

/* The call of a plug-in. Texts and payload stay the job's, and must live until the call returns. */
struct later_job invocation_plugin(const struct job *job, const struct conf_queue *conf,
                                   const char *ns, const char *step, int64_t late_us);

/* Append the header line of stream mode (doc/stream.md), without its LF. */
void invocation_header(const struct job *job, const struct conf_queue *conf, const char *step,
                       int64_t late_us, struct buf *out);

#endif
