/* Who runs this command. */
#ifndef LATER_CLI_ARGS_WHOAMI_H
#define LATER_CLI_ARGS_WHOAMI_H

#include <stddef.h>

/* USER@HOST, so that a person who finds something paused knows whom to ask. */
void whoami(char *out, size_t cap);

#endif
