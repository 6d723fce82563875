/*
 * What serves a queue longer than one job lasts: the processes of its stream mode, or its plug-in.
 * Kept over a reload where the configuration of it stays the same; else what is there serves the
 * jobs it has and goes, and its successor takes the next. Main thread.
 */
#ifndef LATER_SERVE_BACKENDS_H
#define LATER_SERVE_BACKENDS_H

#include "serve/served_queues.h"
#include "run/plugin/plugin.h"
#include "run/pool/pool.h"
#include "run/stream/stream.h"

struct backends;
struct backend;

struct backends_events {
    /* Of a stream: its jobs, and that the limit of its queue is another now. */
    void (*done)(void *arg, unsigned place, const struct run_result *result);
    void (*progress)(void *arg, unsigned place, const char *text);
    void (*rest)(void *arg);
    void (*limit)(void *arg, const char *queue, unsigned limit);
    void (*gone)(void *arg); /* after backends_end */
    void *arg;
};

struct backends *backends_new(struct loop *loop, struct pool *pool, const char *ns,
                              const struct backends_events *events);
void backends_free(struct backends *b); /* after gone, or before anything was set; NULL is fine */

/* What is served from now on; `places` is how many jobs this daemon runs at once. */
void backends_set(struct backends *b, const struct served_queues *served, unsigned places);
/* The daemon stops: no process is started any more, and backends_set changes nothing. */
void backends_finish(struct backends *b);
/* Can a job of this queue be run now? Not where its plug-in could not be loaded. */
bool backends_can_run(struct backends *b, const struct served_queue *q);
/* How many jobs of it may run at once here: the queue's `concurrency`, or less where its processes
 * take less, or 0 while there is none. */
unsigned backends_limit(struct backends *b, const struct served_queue *q, unsigned places);

/* What runs a job of this queue now, to be given back when the job has ended. NULL: a process of
 * its own. */
struct backend *backends_take(struct backends *b, const char *queue);
void backends_put(struct backends *b, struct backend *at);
/* The one of these that it is; the other is NULL. */
struct stream *backend_stream(const struct backend *at);
struct plugin *backend_plugin(const struct backend *at);

/* Processes get the end of their input, and soon after that KILL (at once: without that). gone
 * follows, perhaps from inside, when every backend has been given back. A plug-in that does not
 * return ends the process after ten seconds. */
void backends_end(struct backends *b, bool at_once);

#endif
