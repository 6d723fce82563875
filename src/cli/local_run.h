/*
 * Runs a handler once as laterd would, without a daemon and without Redis: the environment of a
 * job, the payload on standard input, descriptor 3. What laterd would make of it is decided by its
 * own code (serve/policy.h), with the settings of a queue that the configuration does not name.
 */
#ifndef LATER_CLI_LOCAL_RUN_H
#define LATER_CLI_LOCAL_RUN_H

#include "base/buf.h"
#include "base/err.h"
#include "job/job.h"
#include "run/report.h"
#include "store/verdict.h"

/* Init by zeroes and the first part; free with local_run_done. */
struct local_run {
    char *const *argv; /* the handler and its arguments */
    const char *ns;
    struct job job; /* as it was claimed; owned */
    /* what came of it */
    struct run_report report;
    struct verdict verdict;
    struct buf progress, checkpoint; /* the last ones that it told */
};

/* Blocks until the handler has ended; SIGINT and SIGTERM end it as a cancellation does. 0, or -1
 * with code INPUT (no such file) or SYSTEM. */
int local_run(struct local_run *r, struct err *err);
void local_run_done(struct local_run *r);

#endif
