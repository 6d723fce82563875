/* The job states that the option --state accepts. */
#ifndef LATER_CLI_ARGS_JOB_STATE_H
#define LATER_CLI_ARGS_JOB_STATE_H

#include <stdbool.h>

enum job_state {
    JOB_STATE_WAITING, /* its name is `due`, also before its due time */
    JOB_STATE_PARKED,
    JOB_STATE_RUNNING,
    JOB_STATE_DEAD,
    JOB_STATE_DONE,
    JOB_STATE_MAX
};

const char *job_state_name(enum job_state state);

/* The argument of an option that takes a list of states, which args_parse checks (arg_words.h). */
#define JOB_STATES_ARG "due|parked|running|dead|done|all,..."
/* Which states such a list has. */
void job_states_of(const char *list, bool is_wanted[JOB_STATE_MAX]);

#endif
