/*
 * Decides what the end of an attempt means for its job: applies the settings of the queue to the
 * report of its run. Pure: the random number of the backoff is an argument.
 */
#ifndef LATER_SERVE_POLICY_H
#define LATER_SERVE_POLICY_H

#include <stdbool.h>
#include <stdint.h>

#include "conf/conf.h"
#include "job/job.h"
#include "run/report.h"
#include "store/verdict.h"

/* How many attempts the job has: its own number, else that of its queue. */
int64_t policy_attempts_max(const struct job *job, const struct conf_queue *conf);

/* The verdict after a run. */
void policy_verdict(const struct job *job, const struct conf_queue *conf,
                    const struct run_report *run, uint32_t random, struct verdict *ret);

/* The verdict on a job that has ended well, but for the jobs that it adds, which are refused. */
void policy_refused(const struct job *job, const struct conf_queue *conf, const char *why,
                    uint32_t random, struct verdict *ret);

/* Before a run: false when the job may not start any more; *ret is its verdict then. */
bool policy_admit(const struct job *job, const struct conf_queue *conf, struct verdict *ret);

#endif
