/*
 * Adds that are under way: the lines of a feed, some to a call, calls pipelined, and what became of
 * each line. The face says how lines become calls and whether an answer is a good one; reading,
 * signals, faults and what is told in the end are the same for all of them.
 *
 * The first fault, or a signal, ends it: nothing more is sent, what is under way is waited for. One
 * thread; from adds_run on SIGINT, SIGTERM and SIGHUP are blocked and looked for where nothing is
 * half done.
 */
#ifndef LATER_CLI_BULK_ADDS_H
#define LATER_CLI_BULK_ADDS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "cli/cli.h"
#include "cli/bulk/feed.h"
#include "cli/bulk/meter.h"
#include "cli/bulk/line_results.h"

/*
 * Calls keep Redis from everybody else. Where lines are short it reads all that are under way at
 * once and makes them one after the other: four of 128 jobs take it about 4 ms, and calls of 256
 * are no faster (Redis 7.0.15). Four have the next one there when one is done, over a link of up to
 * some milliseconds.
 */
#define ADDS_CALL_LINES 128
#define ADDS_CALL_BYTES (256UL << 10) /* of payload; a longer line goes alone */
#define ADDS_CALLS_MAX 64
#define ADDS_CALLS_FULL 4 /* full ones under way */

struct adds_call {
    uint64_t first; /* line */
    int n;
    size_t bytes;
    uint64_t longest; /* line */
    size_t longest_bytes;
};

struct adds;

struct adds_face {
    const char *function;
    int call_lines; /* of a full call, at most ADDS_CALL_LINES */
    /* The next line: put it into the next call, adds_next_has counts it; or adds_fail. */
    void (*take)(struct adds *a, struct feed_line line);
    /* Send the next call by adds_send, and forget its lines. */
    void (*send)(struct adds *a);
    /* Does this answer say that n lines were added? */
    bool (*is_good)(struct adds *a, const struct reply *r, int n);
    /* Why the next line, of so many bytes (0: more than max), is not taken. */
    void (*too_long)(struct adds *a, size_t size, struct err *err);
    /* A call was refused or failed: the line to name, 0 for none; err may be put better. */
    uint64_t (*name_fault)(struct adds *a, const struct adds_call *c, struct err *err);
};

struct adds {
    const struct adds_face *face;
    void *arg; /* the face's */
    struct cli *cli;
    struct feed feed;
    size_t max; /* bytes of a line */
    struct meter meter;
    struct line_results tally;
    uint64_t lines;                        /* handed to the face */
    struct adds_call next;                 /* being made */
    struct adds_call sent[ADDS_CALLS_MAX]; /* without an answer, the oldest first */
    int nsent;
    bool has_called;
    int stop_fd, signal; /* 0: none */
    struct err err;      /* the first fault */
    uint64_t err_line;   /* that it names, 0: none */
};

/* Open path (see feed_open) and connect; adds_done is due in any case. 0 or -1. */
int adds_open(struct adds *a, struct cli *cli, const struct adds_face *face, void *arg,
              const char *path, struct err *err);
void adds_done(struct adds *a);

/* Add all lines. What is left afterwards is told by adds_tell. */
void adds_run(struct adds *a);

/* ---- for the face */

bool adds_is_over(const struct adds *a);
/* The line that comes is in the next call. */
void adds_next_has(struct adds *a, size_t bytes);
/* Make the next call; a.next is the one behind it afterwards, unless it is over by then. */
void adds_send(struct adds *a, int argc, const char *const *argv, const size_t *lens);
/* Before a line that cannot be sent: all others first, so that its number tells all. */
void adds_finish(struct adds *a);
/* Only the first one counts. */
void adds_fail(struct adds *a, const struct err *err, uint64_t line);
/* "…, at line 7" behind the text. */
void adds_name_line(struct err *err, uint64_t line);

/* ---- afterwards */

/* Wipe the meter; a fault and what became of the lines go to stderr. Returns the exit status. */
int adds_tell(struct adds *a);
/* The same for --json, an object for the caller to complete. */
json_t *adds_json(const struct adds *a);

#endif
