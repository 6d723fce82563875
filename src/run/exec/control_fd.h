/*
 * Descriptor 3, on which a handler may tell the daemon more than an exit status does
 * (doc/handlers.md). One text line each; it is cut after CONTROL_LINE_BYTES, so that a result of
 * RUN_RESULT_BYTES fits into one:
 *
 *   progress TEXT       how far the handler is; shown, not kept
 *   checkpoint TEXT     where the next attempt goes on; kept with the job, the last line counts
 *   retry-in DURATION   when to retry if this run fails or asks for it; the last line counts
 *   reason TEXT         why this run fails; the last line counts
 *   result TEXT         kept with the outcome; several are joined by LF up to RUN_RESULT_BYTES
 *   log TEXT            a message for the log
 *   add QUEUE [name value]... -- PAYLOAD, or ... len N, then N bytes and a line feed: a child of
 *                       this job (job/children.h)
 *   filter NAME         this filter runs now (run/isolation/filters.h); without a name: none does
 *
 * Other lines are logged at debug level and ignored: a handler cannot break the daemon here.
 */
#ifndef LATER_RUN_EXEC_CONTROL_FD_H
#define LATER_RUN_EXEC_CONTROL_FD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/clock.h"
#include "run/exec/output.h"
#include "run/lines.h"
#include "run/report.h"

#define CONTROL_LINE_BYTES (RUN_RESULT_BYTES + 64)
#define CONTROL_TELL_MS 100 /* a word is told at most this often; the latest text wins */

enum control_kind {
    CONTROL_OTHER,
    CONTROL_PROGRESS,
    CONTROL_CHECKPOINT,
    CONTROL_RETRY_IN,
    CONTROL_REASON,
    CONTROL_RESULT,
    CONTROL_LOG,
    CONTROL_ADD,
    CONTROL_FILTER,
};

struct control_line {
    enum control_kind kind;
    const char *text; /* after the word and one space; points into the parsed line */
    size_t len;
    int64_t ms; /* RETRY_IN only */
};

/* Pure. A retry-in with an invalid duration is OTHER. */
void control_line_parse(const char *line, size_t n, struct control_line *ret);

typedef void control_told_f(void *arg, enum run_word word, const char *text, size_t n);

/* A word whose latest text may not have been passed on yet. */
struct control_word {
    struct buf text;
    bool waits;
    struct mono at; /* earliest time for the next one */
};

/* The data of one run. Owns only its buffers (lines, words). */
struct control_fd {
    struct lines lines;
    struct output *output;
    control_told_f *tell;
    void *arg; /* of tell */
    struct run_report *ret;
    bool has_result, is_result_cut;
    bool is_ending;                                /* the line that comes now has no line feed */
    struct buf reason;                             /* the last one */
    struct buf filter;                             /* that runs, or has failed; empty: none */
    struct control_word words[RUN_CHECKPOINT + 1]; /* by enum run_word */
};

/* output and ret must outlive c. tell: NULL, or what is called with these words. */
void control_fd_init(struct control_fd *c, struct output *output, struct run_report *ret,
                     control_told_f *tell, void *arg);
void control_fd_done(struct control_fd *c);
/* Take n bytes that the handler wrote. */
void control_fd_add(struct control_fd *c, const char *p, size_t n);
/* Pass on words that are due. Returns when to call again; MONO_NEVER: none waits. */
struct mono control_fd_tick(struct control_fd *c, struct mono now);
/* The stream has ended: take a last line without LF, pass on the words that wait. */
void control_fd_end(struct control_fd *c);

#endif
