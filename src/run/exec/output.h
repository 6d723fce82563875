/*
 * The output of a handler: its first lines go to the log, its last bytes are kept with the job, and
 * the rest is only counted, so that 10 GB of output cost no memory and little time. Pool thread,
 * except output_log.
 */
#ifndef LATER_RUN_EXEC_OUTPUT_H
#define LATER_RUN_EXEC_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/log.h"
#include "run/exec/last_bytes.h"
#include "run/lines.h"

#define OUTPUT_LINE_BYTES 1024 /* longer lines are cut in the log */
#define OUTPUT_LOG_LINES 1000  /* lines of one run that reach the log; the rest is only counted */

enum output_stream { OUTPUT_STDOUT, OUTPUT_STDERR, OUTPUT_STREAMS };

struct output {
    const char *id, *queue; /* not owned */
    struct lines lines[OUTPUT_STREAMS];
    bool open[OUTPUT_STREAMS]; /* lines are only counted by now, and one has no LF yet */
    char begin[16]; /* first bytes of stdout, as far as they are needed to know a greeting */
    size_t nbegin;
    struct last_bytes last;
    struct last_bytes errors; /* last bytes of stderr: its last line is why a run failed */
    int64_t bytes;
    int64_t left_out; /* lines that did not reach the log */
    int logged;
};

/* Log one line, at most OUTPUT_LINE_BYTES of it. pid: 0 if the process serves this job only.
 * stream: the name of its source. Any thread. */
void output_log(enum log_level level, const char *id, const char *queue, pid_t pid,
                const char *stream, const char *p, size_t n, bool cut);

/* id and queue must outlive o. */
void output_init(struct output *o, const char *id, const char *queue);
void output_done(struct output *o);
/* Take n bytes of a stream. */
void output_add(struct output *o, enum output_stream which, const char *p, size_t n);
/* Log a line of another source, e.g. `log` on descriptor 3. It counts in OUTPUT_LOG_LINES, too. */
void output_line(struct output *o, const char *stream, const char *p, size_t n, bool cut);
/* Does stdout begin with the greeting of a stream handler? */
bool output_is_greeting(const struct output *o);
/* Append the last line of stderr that has more than white space, to be shown; cut if it is long. */
void output_last_error(const struct output *o, struct buf *ret);
/* Lines of stderr so far do not count for that any more. */
void output_forget_error(struct output *o);
/* The streams have ended: log last lines without LF, and how many lines were left out. */
void output_end(struct output *o);

#endif
