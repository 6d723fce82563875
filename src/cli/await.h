/*
 * Waiting for the end of a job: what `later wait` and `later add --wait` do.
 */
#ifndef LATER_CLI_AWAIT_H
#define LATER_CLI_AWAIT_H

#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"
#include "cli/cli.h"
#include "json/outcome.h"

#define AWAIT_FOREVER (-1)

/*
 * Wait until the job (an id or QUEUE@UNIQUE) has ended, through all its attempts; then print its
 * output, or with --json a line. timeout_ms may be AWAIT_FOREVER. Returns the exit status that
 * stands for its end (doc/cli.md), or -1: TEMP timeout_ms is over, REFUSED with ELATER_NOJOB (no
 * such job, or its outcome was not kept), or as ask_fcall.
 */
int await_job(struct cli *cli, const char *job, int64_t timeout_ms, struct err *err);

/* --wait-timeout, which goes with --wait. Leaves *timeout_ms as it is where it was not given. -1:
 * USAGE. */
int await_timeout(const struct cli *cli, int64_t *timeout_ms, struct err *err);
/* When that is over from now on; MONO_NEVER for AWAIT_FOREVER. */
struct mono await_deadline(int64_t timeout_ms);

typedef void await_show_f(void *arg, const struct cli *cli, const struct outcome *outcome);
/* The same until a deadline, which may be MONO_NEVER; show prints what is to be told. */
int await_with(struct cli *cli, const char *job, struct mono deadline, await_show_f *show,
               void *arg, struct err *err);

#endif
