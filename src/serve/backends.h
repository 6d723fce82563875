/*
 * A backend serves a queue longer than one job lasts: it is the stream processes of the queue, or
 * its plug-in. A reload keeps a backend whose configuration and file stay the same. Otherwise the
 * old backend finishes the jobs that it has and is removed, and a new one takes the next jobs. Main
 * thread.
 */
#ifndef LATER_SERVE_BACKENDS_H
#define LATER_SERVE_BACKENDS_H

#include "run/plugin/plugin.h"
#include "run/pool/pool.h"
#include "run/stream/stream.h"
#include "serve/served_queues.h"

struct backends;
struct backend;

struct backends_events {
    /* Events of streams. ended, told, rest: as in struct stream_events. max_at_once: from now
     * on so many jobs of this queue may run at once. */
    void (*ended)(void *arg, unsigned place, const struct run_report *report);
    void (*told)(void *arg, unsigned place, enum run_word word, const char *text);
    void (*rest)(void *arg);
    void (*max_at_once)(void *arg, const char *queue, unsigned n);
    void (*gone)(void *arg); /* after backends_end: no backend is left */
    void *arg;
};

struct backends *backends_new(struct loop *loop, struct pool *pool, const char *ns,
                              const struct backends_events *events);
void backends_free(struct backends *b); /* after gone, or before backends_set; NULL is fine */

/* Serve these queues from now on; nothing of `served` is kept. places: how many jobs this daemon
 * runs at once. */
void backends_set(struct backends *b, const struct served_queues *served, unsigned places);
/* The daemon stops: start no more processes. From now on backends_set changes nothing. */
void backends_start_no_more(struct backends *b);
/* Can a job of this queue run now? Not if its plug-in could not be loaded. */
bool backends_can_run(struct backends *b, const struct served_queue *q);
/* How many jobs of the queue may run here at once: its `concurrency`, or less if its processes take
 * less; 0 while none of them is up. */
unsigned backends_max_at_once(struct backends *b, const struct served_queue *q, unsigned places);

/* Why jobs of the queue cannot run here now; NULL: they can. Valid until the next event. */
const char *backends_defect(struct backends *b, const struct served_queue *q);

/* Returns what runs a job of this queue now; give it back by backends_put when the job has ended.
 * NULL: the job gets a process of its own. */
struct backend *backends_take(struct backends *b, const char *queue);
void backends_put(struct backends *b, struct backend *at);
/* A backend has a stream or a plug-in; the other function returns NULL. */
struct stream *backend_stream(const struct backend *at);
struct plugin *backend_plugin(const struct backend *at);

/* Stream processes get the end of their input, and KILL two seconds later; with at_once, KILL now.
 * `gone` follows, perhaps from inside, when every backend has been given back. If a plug-in does
 * not return, the daemon exits after ten seconds. */
void backends_end(struct backends *b, bool at_once);

#endif
