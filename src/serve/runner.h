/*
 * The places of this worker, and what runs in them. Turns a held job into an order for the pool,
 * and the report of the run into a verdict. Main thread; the threads of the pool do not use it.
 */
#ifndef LATER_SERVE_RUNNER_H
#define LATER_SERVE_RUNNER_H

#include "job/key_counts.h"
#include "job/queue_counts.h"
#include "loop/loop.h"
#include "run/report.h"
#include "run/guard/guard.h"
#include "sched/held_jobs.h"
#include "serve/served_queues.h"
#include "worker/state_folder.h"

struct runner;

struct runner_events {
    void (*ended)(void *arg, const char *id, const struct verdict *v,
                  const struct verdict_data *data);
    void (*told)(void *arg, const char *id, enum run_word word, const char *text);
    /* From now on so many jobs of the queue may run here at once. Not called from
     * inside runner_set. */
    void (*max_at_once)(void *arg, const char *queue, unsigned n);
    void (*rest)(void *arg); /* all jobs that ended together have been reported */
    void (*idle)(void *arg); /* after runner_end: nothing runs any more */
    void *arg;
};

/* state may be NULL, and stays the caller's. NULL: err says why. */
struct runner *runner_new(struct loop *loop, unsigned places, const char *ns,
                          struct state_folder *state, const struct runner_events *events,
                          struct err *err);
/* Call it when nothing runs. NULL is fine. */
void runner_free(struct runner *r);

/* The settings and queues from now on. Both stay the caller's and must live until the next
 * runner_set. */
void runner_set(struct runner *r, const struct conf *conf, const struct served_queues *served);
/* How many jobs of this queue may run here at once, as of now. */
unsigned runner_max_at_once(const struct runner *r, const struct served_queue *q);
/* As backends_defect. */
const char *runner_defect(struct runner *r, const struct served_queue *q);
/* The guard is told of guarded jobs; without a guard they are not started. It has as many
 * places as the worker, and stays the caller's. */
void runner_set_guard(struct runner *r, struct guard *guard);

/* From now on jobs may keep steps by this socket (daemon/step_socket.h); "": none. */
void runner_set_step_socket(struct runner *r, const char *name);
/* The running job that was given this token; NULL: none. Valid until the next event. */
const struct job *runner_job_of(const struct runner *r, const char *token);

/* What is counted of queues and of keys. The caller takes it, and adds none. */
struct queue_counts *runner_counts(struct runner *r);
struct key_counts *runner_keys(struct runner *r);
/* How many attempts will be retried, since the last call of this. */
uint64_t runner_take_retried(struct runner *r);

/* May this job start? If not, *refusal is its verdict. */
bool runner_admit(struct runner *r, const struct job *job, struct verdict *refusal);
/* Redis cannot add the children of this job, which has ended well. *verdict: what comes of it. */
void runner_refuse(struct runner *r, const struct job *job, const char *why,
                   struct verdict *verdict);
/* Run the job in a free place; the caller makes sure that there is one. Takes over its payload. */
void runner_start(struct runner *r, struct held_job *h);
/* Does the pool still work? As pool_is_well. */
bool runner_is_well(struct runner *r, struct mono now, char *why, size_t size);
/* End the run of this job, if there is one: TERM, and KILL after the grace; at_once: KILL. */
void runner_kill(struct runner *r, const char *id, bool at_once);
/* The daemon stops: jobs run on, but no stream process is started any more. */
void runner_start_no_more(struct runner *r);
/* Kill all jobs and stream processes. While no job runs, stream processes get two seconds to end by
 * themselves. idle is called when all have ended (at once if there are none). No other event
 * follows. */
void runner_end(struct runner *r);

#endif
