/*
 * The daemon's side of stream mode, for tests of stream processes: two pipes, no laterd, no Redis.
 *
 * It is stricter than the daemon: an invalid line, an answer to a job that is not in flight, or a
 * late answer fails the test (fail_msg of cmocka). One thread.
 */
#ifndef LATER_TESTS_STREAM_DRIVE_H
#define LATER_TESTS_STREAM_DRIVE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "../support/proc.h"

struct stream_worker {
    struct proc proc;
    int in, out;       /* our ends of its pipes; -1: closed */
    struct buf unsent; /* bytes for its stdin */
    struct buf said;   /* bytes of its stdout, lines not yet taken */
    unsigned inflight; /* how many it takes at once, as its greeting says */
    bool knows_cancel; /* as its greeting says */
    bool is_drip;      /* send byte by byte, each once the last was read */
    unsigned last_id;  /* of the last job it got */
};

struct stream_job {
    const char *payload; /* the caller's */
    size_t len;
    bool has_cancel; /* cancel it at its first `progress` or `alive` */
    char id[16];     /* this and the following are set by stream_run */
    char *answer;    /* verb and text, without the id; stream_jobs_done frees it */
    unsigned rank;   /* its number among the answers of this run, from 1 */
    unsigned signs;  /* number of `progress` and `alive` lines */
};

/* Start it with the environment that laterd sets, and take its greeting. */
void stream_start(struct stream_worker *w, const char *path);
/* Kill it if it runs, close, free. Can be called twice and on zeroes. */
void stream_done(struct stream_worker *w);

/*
 * Give it these jobs, as many at once as it takes, until all are answered. is_end: close its input
 * after the last job, without waiting for answers.
 */
void stream_run(struct stream_worker *w, struct stream_job *jobs, size_t n, bool is_end);
void stream_jobs_done(struct stream_job *jobs, size_t n);

/* Close its input. Returns its exit status, or -1 if it still runs at the deadline. More output
 * fails the test. */
int stream_end(struct stream_worker *w, int deadline_ms);

#endif
