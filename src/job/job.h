/*
 * A claimed job as the daemon holds it, and the codec of its record.
 *
 * Record (made by src/lua/core/record.lua, L.header): one header line, LF, payload bytes untouched:
 *   <flag><queue>[ <priority>][ <name>=<value>]...
 * flag '-': the payload follows; '+': it is in R:big:<id> and nothing follows. Unknown names are
 * passed over, so that an older daemon reads a newer record. Pure; bytes from Redis are checked.
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
#define JOB_WORD_MAX 256 /* a key, a trace */
#define JOB_PRIORITY 5   /* where the record has none */

struct job {
    char id[JOB_ID_LEN + 1];
    char queue[JOB_QUEUE_MAX + 1];
    int64_t start;   /* rises with every start, never reset */
    int64_t attempt; /* counts against attempts_max; from 1 */
    int64_t crashes;
    int64_t fence;
    struct wall due;
    int priority;
    bool is_big;          /* the payload is still in R:big:<id> */
    bool has_lock;        /* it holds a lock while it runs */
    int64_t attempts_max; /* 0: as the queue says */
    int64_t timeout_ms;   /* 0: as the queue says */
    int64_t keep_ms;      /* -1: as the queue says */
    char key[JOB_WORD_MAX + 1];
    char trace[JOB_WORD_MAX + 1];
    char *payload; /* owned; NULL while is_big and not fetched */
    size_t payload_len;
};

/* Read a record into a zeroed job (id, start, has_lock … are the caller's). 0 or -1 with code DATA.
 */
int job_parse(struct job *job, const char *record, size_t n, struct err *err);
void job_done(struct job *job);

bool job_is_id(const char *s, size_t n);

#endif
