/*
 * The end of processes that are known by their origins (run/process/offspring.h). Who is killed
 * keeps its locks and files until the kernel has taken it apart, which may take a while: so their
 * ends are waited for, and it is done again until a pass over all processes finds nobody; one may
 * have forked behind our back.
 *
 * Blocks until that is so, or until the time that is given: for a thread, or before the loop turns.
 */
#ifndef LATER_RUN_PROCESS_OFFSPRING_END_H
#define LATER_RUN_PROCESS_OFFSPRING_END_H

#include <stdbool.h>

#include "base/clock.h"
#include "run/process/offspring.h"

/* True: nobody is left, and nobody unknown. *ret_found: how many the first pass found; may be NULL.
 */
bool offspring_end(const struct offspring_query *whom, struct mono until, size_t *ret_found);

/* What this worker started with one fence. Many threads at once share their passes. Any thread. */
bool offspring_end_one(int64_t fence, struct mono until);

#endif
