/*
 * What an attempt's end means for its job: the settings of the queue applied to what the operating
 * system saw. Pure: the random number of the backoff is an argument.
 */
#ifndef LATER_SERVE_POLICY_H
#define LATER_SERVE_POLICY_H

#include <stdbool.h>
#include <stdint.h>

#include "conf/conf.h"
#include "job/job.h"
#include "run/result.h"
#include "store/verdict.h"

/* After a run. */
void policy_verdict(const struct job *job, const struct conf_queue *conf,
                    const struct run_result *run, uint32_t random, struct verdict *ret);

/* Before it: false when the job may not start any more, with the verdict. */
bool policy_admit(const struct job *job, const struct conf_queue *conf, struct verdict *ret);

#endif
