/*
 * Stream mode: the long-lived processes that serve one queue (doc/stream.md). Keeps the configured
 * number of processes, restarts those that die early with a growing delay, gives each job to the
 * process with the fewest, and replaces worn processes. Main thread.
 */
#ifndef LATER_RUN_STREAM_STREAM_H
#define LATER_RUN_STREAM_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loop/loop.h"
#include "run/pool/pool.h"
#include "run/report.h"
#include "run/stream/stream_conf.h"

#define STREAM_RETRY_MS 100 /* delay before a process is replaced that died without an answer; */
#define STREAM_RETRY_MAX_MS 30000 /* doubles up to this */

struct stream_events {
    /* The job has ended. The place is free when this has returned. */
    void (*ended)(void *arg, unsigned place, const struct run_report *report);
    void (*told)(void *arg, unsigned place, enum run_word word, const char *text);
    void (*rest)(void *arg);     /* after the last of all events that came at the same time */
    void (*capacity)(void *arg); /* stream_capacity has changed */
    void (*closed)(void *arg);   /* after stream_close: all has ended, the stream will be freed */
    void *arg;
};

struct stream;
/* Starts the processes. Never NULL. */
struct stream *stream_new(struct loop *loop, struct pool *pool, const struct stream_conf *conf,
                          const struct stream_events *events);
/* No more jobs. Running jobs may end, then the processes get EOF. `closed` follows, perhaps before
 * this returns; then the stream is freed. */
void stream_close(struct stream *s);
/* Start no more processes; the present ones go on. */
void stream_start_no_more(struct stream *s);
/* Kill all processes; call it after stream_close. */
void stream_kill(struct stream *s);

/* How many jobs its processes take at once, running jobs included; 0 while none is ready. */
unsigned stream_capacity(const struct stream *s);
/* Why no process takes jobs: what the last one ended of, or that none has greeted yet. NULL: one
 * does. Valid until the next event. */
const char *stream_defect(const struct stream *s);
/* Was the stream made from the same settings? `queue` is not compared. */
bool stream_equal(const struct stream *s, const struct stream_conf *conf);

/*
 * Give the job to a process. Returns the number that stands for a fence in that process' origin, or
 * 0 when no process can take the job (one may have died since the claim, or the guard does not
 * admit it): then stream_flush ends it as STOPPED. `ended` never comes from inside.
 */
int64_t stream_start(struct stream *s, const struct stream_job *job);
/* Write the jobs that were started to the processes, and call `ended` for those that no process
 * could take. Call it after a group of stream_start calls. */
void stream_flush(struct stream *s);
/* End the job in this place, if there is one (exec.h). */
void stream_control(struct stream *s, unsigned place, enum exec_control what);

#endif
