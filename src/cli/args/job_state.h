/* The job states that the option --state accepts. */
#ifndef LATER_CLI_ARGS_JOB_STATE_H
#define LATER_CLI_ARGS_JOB_STATE_H

#include <stdbool.h>

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
/* Set the states of a list like "due,dead", or of "all". As job_state_parse. */
int job_states_parse(const char *text, bool is_wanted[JOB_STATE_MAX], struct err *err);
/* What the help says of an option that takes such a list. */
#define JOB_STATES_ARG "due|parked|running|dead|done|all,..."

#endif
