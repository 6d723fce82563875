/*
 * The output of a command, for people on a terminal or for the next program in a pipe.
 *
 * Bytes from Redis go through out_text, out_lines or a table, which escape them. out_bytes is for
 * what the user wants raw. This is the one way to standard output, in buffers of its own: a write
 * error (the reader went away, the disk is full) is kept, and out_finish returns it. One thread.
 */
#ifndef LATER_CLI_SHOW_OUT_H
#define LATER_CLI_SHOW_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define OUT_LOST_MAX 1024 /* bytes that are kept of what could not be written */

/* Look at stdout and the environment once: terminal or not, its width, colour or not. */
void out_init(void);
bool out_is_tty(void);
/* Columns of the terminal; 0 if stdout is no terminal. */
size_t out_width(void);

/* Does the locale of the user write UTF-8? */
bool out_is_utf8(void);

enum out_style { OUT_PLAIN, OUT_BOLD, OUT_GOOD, OUT_BAD, OUT_STYLES };
/* The sequence that switches a style on (OUT_PLAIN: back to normal); "" where colour is off. */
const char *out_style(enum out_style style);

/* What comes next, if anything comes, stands under this heading, which is copied. NULL: none. */
void out_heading(const char *text);
/* These two do not escape. */
void out_printf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* The name in front of a value, in a column of its own. */
void out_label(const char *label);
void out_bytes(const void *p, size_t n);
/* Escaped, on one line. */
void out_text(const void *p, size_t n);
/* Escaped, but line ends and tabs stay; ends with a line end if there was anything. */
void out_lines(const void *p, size_t n);

/* Write what is there so far, before something else is said or waited for. Whether all was. */
bool out_flush(void);
/* Whether a write has failed: then a long listing may stop. */
bool out_has_failed(void);
/* Flush. 0, or -1 with code OUTPUT (errnum EPIPE: the reader went away). */
int out_finish(struct err *err);
/* Once a write has failed: the begin of what was not written, and how many bytes that are in all.
 */
size_t out_lost(const char **ret, size_t *ret_n);

/* "in 4m 59s", "3s ago", "now"; the instant itself when now_ms is 0 (unknown). */
const char *out_when(int64_t ms, int64_t now_ms, char out[48]);
/* "2030-01-31 09:00:00 +0100" in the local zone. */
const char *out_instant(int64_t ms, char out[48]);

#endif
