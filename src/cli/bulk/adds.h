/*
 * Adds jobs from the lines of a feed, several lines per call, with pipelined calls, and counts what
 * became of each line. The face says how lines become calls and whether an answer is a success.
 * Reading, signals, errors and the final report are common to all faces.
 *
 * The first error, or a signal, ends it: nothing more is sent, calls under way are waited for.
 * Calls that found their slot on another node of a cluster have done nothing, and are made there.
 * One thread. From adds_run on, SIGINT, SIGTERM and SIGHUP are blocked and read where nothing is
 * half done.
 */
#ifndef LATER_CLI_BULK_ADDS_H
#define LATER_CLI_BULK_ADDS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "cli/bulk/call_args.h"
#include "cli/bulk/feed.h"
#include "cli/bulk/line_results.h"
#include "cli/bulk/meter.h"
#include "cli/cli.h"

/*
 * While Redis runs a call, its other clients wait. If lines are short, it reads all calls under way
 * at once and runs them one after the other: four calls of 128 jobs take about 4 ms, and calls of
 * 256 are no faster (Redis 7.0.15). With four under way, Redis has the next call when one is done,
 * on a link with a latency of up to some milliseconds.
 */
#define ADDS_CALL_LINES 128
#define ADDS_CALL_BYTES (256UL << 10) /* of payload; a longer line is sent alone */
#define ADDS_CALLS_MAX 64             /* calls under way */
#define ADDS_CALLS_FULL 4 /* they have no more lines or bytes than so many full calls a shard */

struct adds_call {
    uint64_t first; /* number of its first line */
    int n;
    size_t bytes;
    uint64_t longest; /* number of its longest line */
    size_t longest_bytes;
    int shard;              /* that it was sent to */
    struct call_args words; /* on a cluster: what was sent, to be sent to another node */
};

struct adds;

struct adds_face {
    const char *function;
    int call_lines; /* of a full call, at most ADDS_CALL_LINES */
    /* Put the next line into the next call and count it by adds_next_has; or adds_fail. */
    void (*take)(struct adds *a, struct feed_line line);
    /* Send the next call by adds_send, then forget its lines. */
    void (*send)(struct adds *a);
    /* Whether this answer says that n lines were added. */
    bool (*is_good)(struct adds *a, const struct reply *r, int n);
    /* Set err: why the next line, of size bytes (0: more than max), is not accepted. */
    void (*too_long)(struct adds *a, size_t size, struct err *err);
    /* A call failed: return the number of the line to report, 0 for none. May improve err. */
    uint64_t (*name_error)(struct adds *a, const struct adds_call *c, struct err *err);
};

struct adds {
    const struct adds_face *face;
    void *arg; /* for the face */
    struct cli *cli;
    struct feed feed;
    size_t max; /* bytes of a line */
    struct meter meter;
    struct line_results tally;
    uint64_t lines;                        /* handed to the face */
    struct adds_call next;                 /* being made */
    struct adds_call sent[ADDS_CALLS_MAX]; /* waiting for an answer, the oldest first */
    int nsent;
    bool has_called[SHARDS_MAX]; /* by shard */
    int stop_fd, signal;         /* signalfd, -1: none; the signal that came, 0: none */
    struct err err;              /* the first error */
    uint64_t err_line;           /* number of its line, 0: none */
};

/* Open path (see feed_open) and connect. Call adds_done in any case. 0 or -1. */
int adds_open(struct adds *a, struct cli *cli, const struct adds_face *face, void *arg,
              const char *path, struct err *err);
void adds_done(struct adds *a);

/* Add all lines. The results stay in *a, for adds_tell. */
void adds_run(struct adds *a);

/* ---- for the face */

/* Whether an error or a signal has ended it. */
bool adds_is_over(const struct adds *a);
/* Count the next line, of so many bytes, into the next call. */
void adds_next_has(struct adds *a, size_t bytes);
/* Send the next call. Afterwards a->next is the one after it, unless all was over before. */
void adds_send(struct adds *a, int argc, const char *const *argv, const size_t *lens);
/* Send the next call and take all answers. Call it before reporting a line that cannot be sent, so
 * that it is known what became of all lines before it. */
void adds_finish(struct adds *a);
/* Keep an error and the number of its line, 0: none. Only the first error counts. */
void adds_fail(struct adds *a, const struct err *err, uint64_t line);
/* Append ", at line 7" to the text. */
void adds_name_line(struct err *err, uint64_t line);

/* ---- afterwards */

/* Wipe the meter. Print the error and what became of the lines on stderr. The exit status. */
int adds_tell(struct adds *a);
/* The same for --json: a new object, which the caller completes and frees. */
json_t *adds_json(const struct adds *a, const char *queue);

#endif
