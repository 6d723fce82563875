/*
 * One question of `later step` to the daemon that runs the job (job/step.h). Blocks.
 */
#ifndef LATER_CLI_STEP_STEP_CALL_H
#define LATER_CLI_STEP_STEP_CALL_H

#include "base/buf.h"
#include "base/err.h"

enum step_answer { STEP_RUN, STEP_KEPT };

/*
 * where: the value of LATER_STEP. Without output: is anything kept under this name? With it: keep
 * these n bytes. While the daemon cannot tell (its link to Redis is down) it is asked again, for a
 * minute. STEP_KEPT: *kept has what counts. With STEP_NONE nobody is asked: it has to run, and
 * its own output counts. -1 with err: TEMP (the attempt was given up, or the
 * minute is over), DATA (the job may not keep it), USAGE (where is no such value).
 */
int step_call(const char *where, const char *name, const char *output, size_t n, struct buf *kept,
              struct err *err);

#endif
