/*
 * What a long-lived handler prints, in the log: lines of its standard error, with the level that
 * `<N>` in front of one gives it (as sd-daemon(3) has it), and lines of its standard output that
 * are no answers. So many a minute; the rest is counted. Main thread.
 */
#ifndef LATER_RUN_STREAM_STREAM_LOG_H
#define LATER_RUN_STREAM_STREAM_LOG_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/clock.h"
#include "base/log.h"
#include "run/lines.h"

#define STREAM_LOG_LINES 1000 /* in STREAM_LOG_MS */
#define STREAM_LOG_MS 60000

struct stream_log {
    const char *queue; /* not owned */
    const char *id;    /* of the job it is about, if that is certain; during a call */
    pid_t pid;
    struct lines lines;
    struct mono since;
    int64_t logged, left_out;
};

void stream_log_init(struct stream_log *l, const char *queue);
void stream_log_start(struct stream_log *l, pid_t pid);
void stream_log_done(struct stream_log *l);
/* stream: the name of what it came from. */
void stream_log_line(struct stream_log *l, enum log_level level, const char *stream,
                     const char *line, size_t n, bool cut);
/* Bytes of its standard error. id: of the only job that runs in it, else "-". */
void stream_log_stderr(struct stream_log *l, const char *id, const char *p, size_t n);
/* It has ended: the last line without LF, and how many were left out. */
void stream_log_end(struct stream_log *l);

#endif
