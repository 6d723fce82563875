/*
 * Stream mode: the long-lived processes that serve one queue (doc/stream.md). Keeps as many as the
 * configuration wants, starts them anew with a growing wait when they die early, gives each job to
 * the one with the fewest, and replaces those that are worn. Main thread.
 */
#ifndef LATER_RUN_STREAM_STREAM_H
#define LATER_RUN_STREAM_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loop/loop.h"
#include "run/guard/guard.h"
#include "run/pool/pool.h"
#include "run/result.h"

#define STREAM_RETRY_MS 100 /* before a process that died before it answered is started anew; */
#define STREAM_RETRY_MAX_MS 30000 /* doubles up to this */

/* All of it is copied. */
struct stream_conf {
    const char *queue;
    char *const *argv; /* argv[0]: absolute path */
    char *const *envp; /* without LATER_FENCE, which each process gets for itself */
    unsigned processes;
    unsigned places; /* jobs at once that could ever be given: bounds `inflight` */
    int64_t kill_grace_ms, start_timeout_ms;
    int64_t heartbeat_ms;                 /* INT64_MAX: none */
    int64_t recycle_jobs, recycle_memory; /* 0: never */
    int64_t recycle_age_ms;               /* INT64_MAX: never */
};

/* A job; nothing of it is kept but its place and its times. */
struct stream_job {
    const char *id;
    unsigned place;     /* the caller's name for it */
    const char *header; /* one line for the process, without LF */
    size_t header_len;
    const char *payload;
    size_t payload_len;
    int64_t timeout_ms;  /* INT64_MAX: none */
    struct guard *guard; /* it holds a lock; NULL: it does not */
};

struct stream_events {
    /* The place is free when this has returned. */
    void (*done)(void *arg, unsigned place, const struct run_result *result);
    void (*progress)(void *arg, unsigned place, const char *text);
    void (*rest)(void *arg);     /* all that ended at once has been told */
    void (*capacity)(void *arg); /* stream_capacity has changed */
    void (*closed)(void *arg);   /* after stream_close: nothing is left; not to be used any more */
    void *arg;
};

struct stream;
struct stream *stream_new(struct loop *loop, struct pool *pool, const struct stream_conf *conf,
                          const struct stream_events *events);
/* No more jobs; those that run may end, then the processes get EOF. `closed` follows, perhaps from
 * inside; the stream is freed behind it. */
void stream_close(struct stream *s);
/* No process is started any more; those that are there serve on. */
void stream_finish(struct stream *s);
/* After stream_close: KILL to what is left. */
void stream_kill(struct stream *s);

/* How many jobs its processes take at once, those that run counted; 0 while none is up. */
unsigned stream_capacity(const struct stream *s);
/* Was it made from the same? */
bool stream_equal(const struct stream *s, const struct stream_conf *conf);

/*
 * Give the job to a process. Returns the LATER_FENCE by which that one is known, or 0 when none has
 * room any more (one died since the claim): then it is put back. `done` never comes from inside.
 */
int64_t stream_start(struct stream *s, const struct stream_job *job);
/* What was started since is written, what could not be is told; call it when a batch is complete.
 */
void stream_flush(struct stream *s);
void stream_control(struct stream *s, unsigned place, enum exec_control what);

#endif
