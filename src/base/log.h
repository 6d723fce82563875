/*
 * The log: one line an event, key=value, to stderr by a single write, so that lines of several
 * threads never mix. Only worker/, daemon/, cli/ and run/'s pool threads (handler output) call it.
 *
 * On a journal stream each line starts with <N>. Values are escaped: no byte of a payload, a name
 * or a handler's output can start a new line or move a terminal's cursor. Elsewhere a line starts
 * with the UTC time (RFC 3339, milliseconds) and the level.
 *
 * A line that cannot be written (full disk, full pipe, reader gone) is dropped; the next one that
 * gets through says dropped_lines=N. The program must ignore SIGPIPE. Any thread; errno is kept.
 */
#ifndef LATER_BASE_LOG_H
#define LATER_BASE_LOG_H

#include <stddef.h>

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
/* Name to level ("error warn notice info debug"), -1 when there is none such. */
int log_level_parse(const char *name);

/*
 * Write one line: the message, printf-style, already made of key=value pairs. Bytes below 0x20,
 * 0x7f and invalid UTF-8 are escaped as \xNN. Truncated at 2 KiB.
 */
void log_line(enum log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#define log_err(...) log_line(LOG_LEVEL_ERR, __VA_ARGS__)
#define log_warn(...) log_line(LOG_LEVEL_WARN, __VA_ARGS__)
#define log_notice(...) log_line(LOG_LEVEL_NOTICE, __VA_ARGS__)
#define log_info(...) log_line(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...) log_line(LOG_LEVEL_DEBUG, __VA_ARGS__)

#endif
