/*
 * Runs lines of shell for a test of the command line. Their environment has $LATER, the program,
 * and $DIR, the folder of the test.
 */
#ifndef LATER_TESTS_SUPPORT_SHELL_H
#define LATER_TESTS_SUPPORT_SHELL_H

#include "base/buf.h"
#include "proc.h"

/* Run the line. -> its exit status; its output on both streams is appended to *ret, unless that is
 * NULL */
int test_sh_out(const char *line, struct buf *ret);
int test_sh(const char *line);
/* The same for a line that is made like printf's; ret may be NULL. */
int test_shf(struct buf *ret, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Fails the test unless such a line exits with 0. */
void test_must(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Fails the test unless the line exits with this status and its output has the text. */
void test_says(const char *line, int status, const char *text);
/* Start the line by exec: the process is the program itself. Its output goes to $DIR/said. */
void test_sh_start(struct proc *p, const char *line);

#endif
