/*
 * Lines of shell for a test of the command line. The environment has what they name: $LATER, the
 * program, and $DIR, the folder of the test.
 */
#ifndef LATER_TESTS_SUPPORT_SHELL_H
#define LATER_TESTS_SUPPORT_SHELL_H

#include "base/buf.h"
#include "proc.h"

/* The exit status; what is said on both streams is appended to *ret, unless that is NULL. */
int test_sh_out(const char *line, struct buf *ret);
int test_sh(const char *line);
/* Fails the test when the status is another, or the text is not among what is said. */
void test_says(const char *line, int status, const char *text);
/* exec: the process is the program itself. What it says goes to $DIR/said. */
void test_sh_start(struct proc *p, const char *line);

#endif
