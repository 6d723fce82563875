/*
 * Ends processes that are known by their origins (run/process/offspring.h). A killed process keeps
 * its locks and files until the kernel has removed it, which may take a while. So these functions
 * wait for the ends, and repeat until a pass over all processes finds none: a process may have
 * forked during a pass.
 *
 * They block until then or until `until`: call them on a thread, or before the loop runs.
 */
#ifndef LATER_RUN_PROCESS_OFFSPRING_END_H
#define LATER_RUN_PROCESS_OFFSPRING_END_H

#include <stdbool.h>

#include "base/clock.h"
#include "run/process/offspring.h"

/* True: no process is left, and none is unknown. *ret_found: how many the first pass found; may be
 * NULL. */
bool offspring_end(const struct offspring_query *whom, struct mono until, size_t *ret_found);

/* End what this worker started with this fence. True: no process with it is left. Threads that call
 * it at the same time share passes. Any thread. */
bool offspring_end_one(int64_t fence, struct mono until);

#endif
