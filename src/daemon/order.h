/*
 * From a claimed job to what its handler is told, in each of the modes: an order for a pool thread
 * to make a process of (arguments, environment, payload, all copied, so that neither a reload nor
 * the job's end pulls anything away under the thread), the call of a plug-in, or the header line
 * for a process that serves many.
 */
#ifndef LATER_DAEMON_ORDER_H
#define LATER_DAEMON_ORDER_H

#include "daemon/served.h"
#include "job/job.h"
#include "run/exec.h"
#include "run/later_plugin.h"

struct order;

/* INT64_MAX: none. */
int64_t order_timeout_ms(const struct job *job, const struct conf_queue *conf);

/* late_us: how late the job is at this moment. The payload is taken out of the job. */
struct order *order_new(struct job *job, const struct served_queue *q, const char *ns,
                        int64_t late_us);
/* It holds a lock, and runs on this slot. */
void order_guard(struct order *o, struct guard *guard, unsigned slot);
void order_free(void *order);
const struct exec_order *order_exec(const struct order *o);

/* The same for a plug-in. Texts and payload stay the job's; a payload that is there is needed. */
struct later_job order_plugin(const struct job *job, const struct conf_queue *conf, const char *ns,
                              int64_t late_us);

/* Append the header line of stream mode (doc/stream.md), without its LF. */
void order_header(const struct job *job, const struct conf_queue *conf, int64_t late_us,
                  struct buf *out);

#endif
