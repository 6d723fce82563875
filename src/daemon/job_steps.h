/*
 * Keeps the steps of the jobs that run here (doc/resume.md): what a handler asks by the socket of
 * steps becomes a call of the library, under the number of its attempt, and the reply becomes the
 * answer. While the link is down, callers are told to ask again. Main thread.
 */
#ifndef LATER_DAEMON_JOB_STEPS_H
#define LATER_DAEMON_JOB_STEPS_H

#include "loop/loop.h"
#include "redis/link.h"
#include "serve/runner.h"

struct job_steps;

/* Tells the runner of the socket. If there is none, that is logged, and handlers have no steps.
 * ns: the namespace. Never NULL. */
struct job_steps *job_steps_new(struct loop *loop, struct link *link, struct runner *runner,
                                const char *ns);
void job_steps_free(struct job_steps *s); /* NULL is fine */
void job_steps_registered(struct job_steps *s, int64_t epoch);
void job_steps_link_down(struct job_steps *s);

#endif
