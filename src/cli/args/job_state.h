/* The job states that the option --state accepts. */
#ifndef LATER_CLI_ARGS_JOB_STATE_H
#define LATER_CLI_ARGS_JOB_STATE_H

#include "base/err.h"

enum job_state {
    JOB_STATE_DUE,
    JOB_STATE_PARKED,
    JOB_STATE_RUNNING,
    JOB_STATE_DEAD,
    JOB_STATE_DONE,
    JOB_STATE_MAX
};

const char *job_state_name(enum job_state state);
/* 0, or -1 with code USAGE and the nearest word, or all of them. */
int job_state_parse(const char *name, enum job_state *ret, struct err *err);

#endif
