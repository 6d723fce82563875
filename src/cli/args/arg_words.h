/*
 * The argument of an option, as the help writes it. In capitals (FILE, D, N) it stands for a value
 * that the user gives. In small letters with bars between ("keep|kill") it lists the allowed words.
 * One that ends with ",..." takes a list: values with commas between, or the option several times.
 * The help, the check, the manual page and the completion all use this one text.
 */
#ifndef LATER_CLI_ARGS_ARG_WORDS_H
#define LATER_CLI_ARGS_ARG_WORDS_H

#include <stdbool.h>

#include "base/err.h"
#include "cli/cli.h"

#define ARG_WORDS_MAX 16 /* per option */

/* Whether this argument lists words. False for NULL. */
bool arg_words_named(const char *arg);

/* Whether this argument is a list. False for NULL. */
bool arg_words_is_list(const char *arg);

/* The words of such an argument, with bars between; the caller's. */
char *arg_words_copy(const char *arg);

/* 0, or -1 with code USAGE if the option lists words and value is none of them. */
int arg_words_check(const struct cli_option *option, const char *value, struct err *err);

#endif
