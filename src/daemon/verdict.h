/*
 * What an attempt's end means for its job: the policy of the queue applied to what the operating
 * system saw. Pure: the random number of the backoff is an argument.
 */
#ifndef LATER_DAEMON_VERDICT_H
#define LATER_DAEMON_VERDICT_H

#include <stdbool.h>
#include <stdint.h>

#include "conf/conf.h"
#include "job/job.h"
#include "run/result.h"
#include "store/store.h"

struct verdict {
    enum store_verb verb;
    int64_t amount; /* see struct store_result */
    int code;
    char text[256];
    bool is_error;      /* worth a warning in the log */
    bool is_host_fault; /* claims should back off */
};

/* After a run. */
void verdict_of(const struct job *job, const struct conf_queue *conf, const struct run_result *run,
                uint32_t random, struct verdict *ret);

/* Before it: false when the job may not start any more, with the verdict. */
bool verdict_admit(const struct job *job, const struct conf_queue *conf, struct verdict *ret);

#endif
