/*
 * The help texts, made from the table of verbs. Each function writes to stdout and returns the exit
 * status 0.
 */
#ifndef LATER_CLI_HELP_H
#define LATER_CLI_HELP_H

#include "cli/cli.h"

int help_all(void);
int help_verb(const struct cli_verb *verb);
int help_version(void);

#endif
