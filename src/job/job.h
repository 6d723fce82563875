/*
 * A claimed job as the daemon holds it, and the parser of its record.
 *
 * Record (made by src/lua/core/jobs.lua, jobs.header): one header line, LF, payload bytes
 * untouched: <flag><queue>[ <priority>][ <name>=<value>]... flag '-': the payload follows; '+': it
 * is in R:big:<id> and nothing follows. Unknown names are skipped, so that an older daemon reads a
 * newer record. Pure; bytes from Redis are checked.
 */
#ifndef LATER_JOB_JOB_H
#define LATER_JOB_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"

#define JOB_ID_LEN 12
#define JOB_QUEUE_MAX 64
#define JOB_WORD_MAX 256 /* a key, a trace, a reason */
#define JOB_BATCH_MAX 128
#define JOB_NAME_MAX 128 /* of a schedule, of a topic */
#define JOB_PRIORITY 5   /* where the record has none */

/* The members of a batch as its callback is told of them. */
struct batch_counts {
    int64_t total, done, dead, cancelled;
};

struct job {
    char id[JOB_ID_LEN + 1];
    char queue[JOB_QUEUE_MAX + 1];
    int64_t start;   /* rises with every claim, never reset */
    int64_t attempt; /* counts against attempts_max; from 1 */
    int64_t crashes;
    int64_t fence;
    struct wall due;
    int priority;
    bool is_big;          /* the payload is still in R:big:<id> */
    bool is_guarded;      /* it runs under a lock, or under a semaphore with on_lost: kill */
    int64_t attempts_max; /* 0: the queue's setting */
    int64_t timeout_ms;   /* 0: the queue's setting */
    int64_t keep_ms;      /* -1: the queue's setting */
    char key[JOB_WORD_MAX + 1];
    char trace[JOB_WORD_MAX + 1];
    char parent[JOB_ID_LEN + 1];          /* the job that caused it; "": none */
    char parent_reason[JOB_WORD_MAX + 1]; /* why the parent died; "": it did not */
    char batch[JOB_BATCH_MAX + 1];        /* that it is a member or a callback of; "": none */
    bool is_callback;                     /* of this batch, and these are its counts */
    struct batch_counts counts;
    bool has_next;         /* when it is done, the next job of its chain gets its result */
    char *schedule;        /* that added it, owned; NULL: none */
    int64_t occurrence_ms; /* for which it was added; 0 without a schedule */
    char *topic;           /* under which it was published, owned; NULL: none */
    char *checkpoint;      /* where an earlier attempt stopped, owned; NULL: none has told */
    char *payload;         /* owned; NULL while is_big and not fetched */
    size_t payload_len;
};

/* A job was assigned to this one: give it names of its own. */
void job_own_names(struct job *job);

/* Read a record into a zeroed job; the caller sets id, start, is_guarded … 0, or -1 with code DATA.
 * Free it with job_done. */
int job_parse(struct job *job, const char *record, size_t n, struct err *err);
void job_done(struct job *job);

/* A 'j' and 11 of 0-9 a-z. */
bool job_is_id(const char *s, size_t n);

/* Decode the n bytes at p (percent-encoding, RFC 3986, 2.1) as the reason of a record. 0, or -1 if
 * they are none. */
int job_decode_reason(const char *p, size_t n, char out[JOB_WORD_MAX + 1]);

#endif
