/*
 * The daemon's side of stream mode, for tests of workers: no laterd, no Redis, two pipes.
 *
 * It is strict where a daemon is not: a line that is no answer, an answer to a job that is not in
 * flight, or one that does not come in time fails the test (cmocka's fail_msg). One thread.
 */
#ifndef LATER_TESTS_STREAM_DRIVE_H
#define LATER_TESTS_STREAM_DRIVE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "../support/proc.h"

struct stream_worker {
    struct proc proc;
    int in, out;       /* our ends of its pipes; -1 when closed */
    struct buf unsent; /* for its stdin */
    struct buf said;   /* from its stdout, lines not taken yet */
    unsigned inflight; /* from its greeting */
    bool knows_cancel; /* the same */
    bool is_drip;      /* a byte at a time, the next one when that was read */
    unsigned last_id;  /* of the jobs it got */
};

struct stream_job {
    const char *payload; /* the caller's */
    size_t len;
    bool has_cancel; /* cancelled at its first sign of life */
    char id[16];     /* from here on set by stream_run */
    char *answer;    /* verb and text, without the id; stream_jobs_done frees it */
    unsigned place;  /* among the answers of this run, from 1 */
    unsigned signs;  /* lines of progress and alive */
};

/* Start it with the environment that laterd gives, and take its greeting. */
void stream_start(struct stream_worker *w, const char *path);
/* Kill it if it still runs, close, free. Safe to call twice, and on zeroes. */
void stream_done(struct stream_worker *w);

/*
 * Give it these jobs, as many at once as it takes, until all are answered. With is_end its input
 * ends right behind the last of them, answered or not.
 */
void stream_run(struct stream_worker *w, struct stream_job *jobs, size_t n, bool is_end);
void stream_jobs_done(struct stream_job *jobs, size_t n);

/* End its input; the exit status, -1 when it still runs at the deadline. It must say nothing more.
 */
int stream_end(struct stream_worker *w, int deadline_ms);

#endif
