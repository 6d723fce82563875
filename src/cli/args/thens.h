/* The value of --then: queues with commas between them. */
#ifndef LATER_CLI_ARGS_THENS_H
#define LATER_CLI_ARGS_THENS_H

#include "cli/cli.h"

/* Append `then QUEUE` for each queue of the option, if it was given. *ret_text has the words; the
 * caller frees it after the call. 0, or -1 with code USAGE. */
int thens_add(struct ask_call *call, const struct cli *cli, char **ret_text, struct err *err);

#endif
