/*
 * Parses what a long-lived handler writes to its standard output (doc/stream.md). Pure. A line is
 * untrusted data: it is bounded and checked, and need not end in LF or NUL.
 *
 *   later-stream 1 [inflight=N] [cancel]   the first line: it speaks version 1, takes N jobs at
 *                                          once (default 1), and understands `cancel ID`
 *   ok ID [TEXT]                done; TEXT is kept as the result
 *   retry ID [DURATION] [TEXT]  try again; no error
 *   fail ID [TEXT]              failed: try again with backoff
 *   dead ID [TEXT]              never try again
 *   progress ID TEXT            how far the job is; shown, not kept
 *   checkpoint ID TEXT          where the next attempt goes on; kept with the job
 *   alive [ID]                  the job (or each job) runs; its `heartbeat` time starts anew
 *   add ID QUEUE ...            a child of the job, as job/children.h says
 */
#ifndef LATER_RUN_STREAM_STREAM_LINE_H
#define LATER_RUN_STREAM_STREAM_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "run/report.h"

#define STREAM_LINE_BYTES (RUN_RESULT_BYTES + 64) /* the longest result fits into one */
#define STREAM_VERSION 1
#define STREAM_INFLIGHT_MAX 1024
#define STREAM_ID_LEN 12

/* How a greeting begins; a digit follows. */
#define STREAM_GREETING "later-stream "

struct stream_greeting {
    int64_t version; /* as given; only STREAM_VERSION is supported */
    unsigned inflight;
    bool can_cancel;
};

/* False: the line is no greeting. Unknown words after it are ignored, so that a newer handler can
 * say more to a newer daemon. */
bool stream_greeting_parse(const char *line, size_t n, struct stream_greeting *ret);

enum stream_word {
    STREAM_OTHER, /* no answer: output of the handler */
    STREAM_OK,
    STREAM_RETRY,
    STREAM_FAIL,
    STREAM_DEAD,
    STREAM_PROGRESS,
    STREAM_CHECKPOINT,
    STREAM_ALIVE,
    STREAM_ADD,
};

struct stream_answer {
    enum stream_word word;
    char id[STREAM_ID_LEN + 1]; /* "" if ALIVE names none */
    const char *text;           /* what follows, or all of the line for OTHER; points into it */
    size_t len;
    int64_t retry_in_ms; /* RETRY only; -1: not given */
};

/* A line that is no valid answer is OTHER. */
void stream_answer_parse(const char *line, size_t n, struct stream_answer *ret);

#endif
