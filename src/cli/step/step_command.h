/*
 * Runs the command of a step and catches what it prints. Blocks. The command stays in our process
 * group, so whoever ends the attempt ends it, too.
 */
#ifndef LATER_CLI_STEP_STEP_COMMAND_H
#define LATER_CLI_STEP_STEP_COMMAND_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"

/*
 * Returns its exit status, 128 + n for signal n; or 126, 127 or 71, with err filled, if it could
 * not be started. Its output is in *output, unless it is more than `max` bytes: then all of it was
 * printed as it came, *output is empty, and *is_long is true. The end of the process counts, not
 * that of the pipe, which others may have open.
 */
int step_command_run(char *const *argv, size_t max, struct buf *output, bool *is_long,
                     struct err *err);

#endif
