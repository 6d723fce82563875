/*
 * The log: one event a line, key=value. Only worker/, daemon/, cli/ and run/'s pool threads
 * (handler output) call it. Any thread; errno is kept.
 *
 * Where stderr is the journal's stream, events go to the journal natively, as fields
 * (base/log_journal.h). Elsewhere, and while the journal does not take them, a line goes to stderr
 * by a single write, so that lines of several threads never mix: with <N> in front on a journal
 * stream, else with the UTC time (RFC 3339, milliseconds) and the level, or as log_set_format has
 * it.
 *
 * Values are escaped: no byte of a payload, a name or a handler's output can start a new line, end
 * its value or move a terminal's cursor. A line that cannot be written (full disk, full pipe,
 * reader gone) is dropped; the next one that gets through says dropped_lines=N. The program must
 * ignore SIGPIPE. Of a kind (base/log_rate.h; kinds are told apart by `queue`, too) only so many
 * lines are written: the rest is told as `event=suppressed … suppressed_lines=N`.
 */
#ifndef LATER_BASE_LOG_H
#define LATER_BASE_LOG_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/log_record.h"

enum log_level {
    LOG_LEVEL_ERR = 3,
    LOG_LEVEL_WARN = 4,
    LOG_LEVEL_NOTICE = 5,
    LOG_LEVEL_INFO = 6,
    LOG_LEVEL_DEBUG = 7
};

/* Look at stderr once, before threads exist: journal stream or not. */
void log_init(enum log_level max);
void log_set_level(enum log_level max);
/* Lines a second of one kind, for long; 0, as it is at first: no limit. Below DEBUG only. */
void log_set_rate(int64_t per_s);
/* How a line on stderr, where that is not the journal, is written: append it without LF; at most
 * PIPE_BUF - 1 bytes. NULL: as text. when: RFC 3339. */
typedef void log_format_f(const struct log_record *r, const char *when, int64_t worker,
                          struct buf *out);
void log_set_format(log_format_f *format);
/* The epoch that stands with every event in the journal; 0: none. */
void log_set_worker(int64_t epoch);
/* Once a second: tell what was suppressed, should nothing of its kind come any more. */
void log_tick(void);
/* error warn notice info debug */
const char *log_level_name(int level);

/* Write one event. The format is not printf's: see base/log_record.h. */
void log_line(enum log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* A line that a handler printed: ten times as many may come. */
void log_output(enum log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#define log_err(...) log_line(LOG_LEVEL_ERR, __VA_ARGS__)
#define log_warn(...) log_line(LOG_LEVEL_WARN, __VA_ARGS__)
#define log_notice(...) log_line(LOG_LEVEL_NOTICE, __VA_ARGS__)
#define log_info(...) log_line(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...) log_line(LOG_LEVEL_DEBUG, __VA_ARGS__)

#endif
