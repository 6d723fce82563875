/*
 * From a claimed job to what its handler is told, in each of the modes: an order for a pool thread
 * to make a process of (arguments, environment, payload, all copied, so that neither a reload nor
 * the job's end pulls anything away under the thread), the call of a plug-in, or the header line
 * for a process that serves many.
 */
#ifndef LATER_SERVE_INVOCATION_H
#define LATER_SERVE_INVOCATION_H

#include "serve/served_queues.h"
#include "job/job.h"
#include "run/exec/exec.h"
#include "run/plugin/later_plugin.h"

struct invocation;

/* INT64_MAX: none. */
int64_t invocation_timeout_ms(const struct job *job, const struct conf_queue *conf);

/* late_us: how late the job is at this moment. The payload is taken out of the job. */
struct invocation *invocation_new(struct job *job, const struct served_queue *q, const char *ns,
                                  int64_t late_us);
/* It holds a lock, and runs on this slot. */
void invocation_guard(struct invocation *o, struct guard *guard, unsigned slot);
void invocation_free(void *order);
const struct exec_order *invocation_exec(const struct invocation *o);

/* The same for a plug-in. Texts and payload stay the job's; a payload that is there is needed. */
struct later_job invocation_plugin(const struct job *job, const struct conf_queue *conf,
                                   const char *ns, int64_t late_us);

/* Append the header line of stream mode (doc/stream.md), without its LF. */
void invocation_header(const struct job *job, const struct conf_queue *conf, int64_t late_us,
                       struct buf *out);

#endif
