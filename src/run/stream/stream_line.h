/*
 * The lines of stream mode (doc/stream.md): what a long-lived handler says on its standard output.
 * Pure; a line is data from a stranger: bounded, checked, never trusted to end.
 *
 *   later-stream 1 [inflight=N] [cancel]   first of all: it speaks version 1, takes N jobs at once
 *                                          (1), and wants `cancel ID` instead of its own end
 *   ok ID [TEXT]                done; TEXT is kept as the result
 *   retry ID [DURATION] [TEXT]  try again, it is no error
 *   fail ID [TEXT]              failed: try again with backoff
 *   dead ID [TEXT]              never try again
 *   progress ID TEXT            how far it is; shown, not kept
 *   alive [ID]                  it works; its time starts anew where `heartbeat` is set
 */
#ifndef LATER_RUN_STREAM_STREAM_LINE_H
#define LATER_RUN_STREAM_STREAM_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STREAM_LINE_BYTES 4096
#define STREAM_VERSION 1
#define STREAM_INFLIGHT_MAX 1024
#define STREAM_ID_LEN 12

struct stream_greeting {
    int64_t version; /* that it names; only STREAM_VERSION is spoken here */
    unsigned inflight;
    bool can_cancel;
};

/* False: the line is no greeting. Words behind it that are not known are passed over, so that a
 * newer handler can say more to a newer daemon. */
bool stream_greeting_parse(const char *line, size_t n, struct stream_greeting *ret);

enum stream_word {
    STREAM_OTHER, /* no answer: something the handler printed */
    STREAM_OK,
    STREAM_RETRY,
    STREAM_FAIL,
    STREAM_DEAD,
    STREAM_PROGRESS,
    STREAM_ALIVE,
};

struct stream_answer {
    enum stream_word word;
    char id[STREAM_ID_LEN + 1]; /* "" where ALIVE names none */
    const char *text;           /* behind all that; into the line that was parsed */
    size_t len;
    int64_t retry_in_ms; /* RETRY: -1 when it did not say */
};

void stream_answer_parse(const char *line, size_t n, struct stream_answer *ret);

#endif
