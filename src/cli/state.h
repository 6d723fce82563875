/* The states of a job, as commands are told them. */
#ifndef LATER_CLI_STATE_H
#define LATER_CLI_STATE_H

#include "base/err.h"

enum state { STATE_DUE, STATE_PARKED, STATE_RUNNING, STATE_DEAD, STATE_DONE, STATE_MAX };

const char *state_name(enum state state);
/* 0, or -1 with code USAGE and the nearest right word. */
int state_parse(const char *name, enum state *ret, struct err *err);

#endif
