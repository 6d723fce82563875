/*
 * A step of a handler: a command that runs once for a job, whose output is kept with the job
 * (doc/resume.md). `later step` asks the daemon by a socket; a request is a line
 *
 *   TOKEN NAME          what has been kept under this name?
 *   TOKEN NAME BYTES    keep this: so many bytes follow
 *
 * and the answer is one of
 *
 *   run                 nothing: its command has to run
 *   kept BYTES          this counts: so many bytes follow
 *   gone TEXT           the attempt is not this worker's any more: run nothing, nothing was kept
 *   refused TEXT        the job may not keep it, now or later
 *   again TEXT          it cannot be told now: ask again
 *
 * Pure.
 */
#ifndef LATER_JOB_STEP_H
#define LATER_JOB_STEP_H

#include <stdbool.h>
#include <stddef.h>

#define STEP_NONE "none" /* LATER_STEP where nobody keeps steps: `later run` */
#define STEP_NAME_MAX 64
#define STEP_OUTPUT_MAX 16384 /* bytes; the library refuses more */
#define STEP_TOKEN_MAX 64
#define STEP_LINE_MAX (STEP_TOKEN_MAX + STEP_NAME_MAX + 32) /* of a request */

struct step_request {
    char token[STEP_TOKEN_MAX + 1];
    char name[STEP_NAME_MAX + 1];
    bool has_output;
    size_t output_len; /* bytes that follow */
};

/* The n bytes at p are the line of a request, without its LF. False: they are none. */
bool step_request_parse(const char *p, size_t n, struct step_request *ret);
/* Up to STEP_NAME_MAX of A-Z a-z 0-9 . _ : -, the first one a letter or a digit. */
bool step_is_name(const char *name);

#endif
