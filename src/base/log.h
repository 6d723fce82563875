/*
 * The log: one event per line, key=value. Any thread; errno is kept. run/, sched/, worker/, serve/
 * and daemon/ log events, loop/ only its fatal error; other folders return a struct err.
 *
 * If stderr is the journal's stream, events go to the journal natively, as fields
 * (base/log_journal.h). Otherwise, and while the journal does not take them, a line goes to stderr
 * by a single write, so that lines of several threads never mix. On a journal stream it starts with
 * <N>, its level; else with the UTC time (RFC 3339, milliseconds) and the level, unless
 * log_set_format has set another format.
 *
 * Values are escaped: no byte of a payload, a name or a handler's output can start a new line, end
 * its value or move a terminal's cursor. A line that cannot be written (full disk, full pipe,
 * reader gone) is dropped; the next one that gets through says dropped_lines=N. The program must
 * ignore SIGPIPE. The lines of each kind are limited (base/log_rate.h; `queue` is part of the
 * kind); lines over the limit are reported as `event=suppressed … suppressed_lines=N`.
 */
#ifndef LATER_BASE_LOG_H
#define LATER_BASE_LOG_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/log_event.h"

enum log_level {
    LOG_LEVEL_ERR = 3,
    LOG_LEVEL_WARN = 4,
    LOG_LEVEL_NOTICE = 5,
    LOG_LEVEL_INFO = 6,
    LOG_LEVEL_DEBUG = 7
};

/* Call once, before threads exist: finds out whether stderr is a journal stream. */
void log_init(enum log_level max);
void log_set_level(enum log_level max);
/* Limit each kind to this many lines a second on average; 0 (the default): no limit. DEBUG lines
 * are not limited. */
void log_set_rate(int64_t per_s);
/* Writes a line to stderr when that is no journal stream: appends it without LF, at most
 * PIPE_BUF - 1 bytes. when: RFC 3339. log_set_format(NULL): text. */
typedef void log_format_f(const struct log_event *r, const char *when, int64_t worker,
                          struct buf *out);
void log_set_format(log_format_f *format);
/* The epoch that the journal and log_format_f get with every event; 0: none. */
void log_set_worker(int64_t epoch);
/* Call once a second: reports suppressed lines of kinds of which no more lines come. */
void log_tick(void);
/* error warn notice info debug */
const char *log_level_name(int level);

/* Write one event. The format is not printf's: see base/log_event.h. */
void log_line(enum log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Write a line that a handler printed: the limit is ten times as high. */
void log_output(enum log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#define log_err(...) log_line(LOG_LEVEL_ERR, __VA_ARGS__)
#define log_warn(...) log_line(LOG_LEVEL_WARN, __VA_ARGS__)
#define log_notice(...) log_line(LOG_LEVEL_NOTICE, __VA_ARGS__)
#define log_info(...) log_line(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...) log_line(LOG_LEVEL_DEBUG, __VA_ARGS__)

#endif
