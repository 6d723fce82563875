/*
 * From a claimed job to the order a pool thread runs: arguments, environment, payload, all copied,
 * so that neither a reload nor the job's end pulls anything away under the thread.
 */
#ifndef LATER_DAEMON_ORDER_H
#define LATER_DAEMON_ORDER_H

#include "daemon/served.h"
#include "job/job.h"
#include "run/exec.h"

struct order;

/* late_us: how late the job is at this moment. The payload is taken out of the job. */
struct order *order_new(struct job *job, const struct served_queue *q, const char *ns,
                        int64_t late_us);
/* It holds a lock, and runs on this slot. */
void order_guard(struct order *o, struct guard *guard, unsigned slot, int64_t fence);
void order_free(void *order);
const struct exec_order *order_exec(const struct order *o);

#endif
