/*
 * Runs a handler once as laterd would, without a daemon and without Redis: the environment of a
 * job, the payload on standard input, descriptor 3. What laterd would make of it is decided by its
 * own code (serve/policy.h), with the settings of the queue. Its log goes to standard error.
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
    char *const *argv;  /* the handler and its arguments */
    const char *config; /* the file with the settings of the queue; NULL: the built-in ones */
    const char *ns;     /* the namespace; NULL: that of the configuration */
    struct job job;     /* as it was claimed; owned. fence 0: one is made */
    /* what came of it */
    struct run_report report;
    struct verdict verdict;
    struct buf progress, checkpoint; /* the last ones that it told */
    int signal;                      /* that has ended it by us; 0: none */
};

/* Blocks until the handler has ended. A signal that would end us ends the handler as a cancellation
 * does, a second one at once. 0, or -1 with code CONFIG, INPUT (no such file) or SYSTEM. */
int local_run(struct local_run *r, struct err *err);
void local_run_done(struct local_run *r);

#endif
