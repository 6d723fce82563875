/*
 * What a command line takes, as its help writes it: an argument in capitals stands for what a user
 * gives (FILE, D, N), one in small letters with bars between is one of these words ("keep|kill").
 * So the help, the check, the manual page and the completion all go by one text.
 */
#ifndef LATER_CLI_CHOICE_H
#define LATER_CLI_CHOICE_H

#include <stdbool.h>

#include "base/err.h"
#include "cli/cli.h"

#define CHOICE_MAX 16 /* of one option */

/* Whether the value of an option is one of the words that its argument names. NULL: it is not. */
bool choice_is(const char *arg);

/* 0, or -1 with code USAGE and the nearest word if the option has words and value is none. */
int choice_check(const struct cli_option *option, const char *value, struct err *err);

#endif
