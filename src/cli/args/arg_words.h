/*
 * What a command line takes, as its help writes it: an argument in capitals stands for what a user
 * gives (FILE, D, N), one in small letters with bars between is one of these words ("keep|kill").
 * So the help, the check, the manual page and the completion all go by one text.
 */
#ifndef LATER_CLI_ARGS_ARG_WORDS_H
#define LATER_CLI_ARGS_ARG_WORDS_H

#include <stdbool.h>

#include "base/err.h"
#include "cli/cli.h"

#define ARG_WORDS_MAX 16 /* of one option */

/* Whether the value of an option is one of the words that its argument names. NULL: it is not. */
bool arg_words_named(const char *arg);

/* 0, or -1 with code USAGE and the nearest word if the option has words and value is none. */
int arg_words_check(const struct cli_option *option, const char *value, struct err *err);

#endif
