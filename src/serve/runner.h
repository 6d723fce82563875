/*
 * Places and what runs in them: turns a held job into an order for the pool, and what the pool saw
 * into a verdict. Main thread; the pool's threads know nothing of it.
 */
#ifndef LATER_SERVE_RUNNER_H
#define LATER_SERVE_RUNNER_H

#include "sched/held_jobs.h"
#include "serve/served_queues.h"
#include "worker/state_folder.h"
#include "job/counts.h"
#include "loop/loop.h"
#include "run/guard/guard.h"

struct runner;

struct runner_events {
    void (*ended)(void *arg, const char *id, const struct verdict *v, const char *tail, size_t n);
    void (*progress)(void *arg, const char *id, const char *text);
    /* So many jobs of the queue may run here at once from now on. Not from inside runner_set. */
    void (*limit)(void *arg, const char *queue, unsigned limit);
    void (*rest)(void *arg); /* all that ended at once has been told */
    void (*idle)(void *arg); /* after runner_end: nothing runs any more */
    void *arg;
};

/* state may be NULL. */
struct runner *runner_new(struct loop *loop, unsigned places, const char *ns,
                          struct state_folder *state, const struct runner_events *events,
                          struct err *err);
/* Nothing may run. NULL is fine. */
void runner_free(struct runner *r);

/* What holds from now on; both stay the caller's and must outlive the next call of this. */
void runner_set(struct runner *r, const struct conf *conf, const struct served_queues *served);
/* How many jobs of this queue may run here at once, as things stand. */
unsigned runner_limit(const struct runner *r, const struct served_queue *q);
/* Told of jobs that hold a lock, which are not started without one. Has as many slots as there are
 * places; stays the caller's. */
void runner_set_guard(struct runner *r, struct guard *guard);

/* What it started and what will be tried again; the caller takes away what it has told. */
struct counts *runner_counts(struct runner *r);

bool runner_admit(struct runner *r, const struct job *job, struct verdict *refusal);
void runner_start(struct runner *r, struct held_job *h);
/* As pool_is_well. */
bool runner_is_well(struct runner *r, struct mono now, char *why, size_t size);
void runner_kill(struct runner *r, const char *id, bool at_once);
/* The daemon stops: jobs run on, but no process that serves many is started any more. */
void runner_finish(struct runner *r);
/* KILL to all that runs; processes that serve many and have no job may end by themselves. idle is
 * called when all have ended (at once if there are none). No other event follows. */
void runner_end(struct runner *r);

#endif
