/*
 * Logs the output of a long-lived handler: the lines of its standard error, where `<N>` in front
 * sets the level (as in sd-daemon(3)), and the lines of its standard output that are no answers. At
 * most STREAM_LOG_LINES a minute; the rest is only counted. Main thread.
 */
#ifndef LATER_RUN_STREAM_STREAM_LOG_H
#define LATER_RUN_STREAM_STREAM_LOG_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/clock.h"
#include "base/log.h"
#include "run/lines.h"

#define STREAM_LOG_LINES 1000 /* at most, in STREAM_LOG_MS */
#define STREAM_LOG_MS 60000

struct stream_log {
    const char *queue; /* not owned */
    const char *id;    /* of the job that wrote it, if certain, else "-"; set during a call */
    pid_t pid;
    struct lines lines;
    struct mono since;
    int64_t logged, left_out;
};

/* queue must outlive l. */
void stream_log_init(struct stream_log *l, const char *queue);
void stream_log_start(struct stream_log *l, pid_t pid);
void stream_log_done(struct stream_log *l);
/* Log one line. stream: the name of its source. */
void stream_log_line(struct stream_log *l, enum log_level level, const char *stream,
                     const char *line, size_t n, bool cut);
/* Take bytes of its standard error. id: of the only job that runs in the process, else "-". */
void stream_log_stderr(struct stream_log *l, const char *id, const char *p, size_t n);
/* The process has ended: log a last line without LF, and how many lines were left out. */
void stream_log_end(struct stream_log *l);

#endif
