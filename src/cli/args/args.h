/*
 * The command line: global options anywhere, then the verb, its operands and its options in any
 * order.
 */
#ifndef LATER_CLI_ARGS_ARGS_H
#define LATER_CLI_ARGS_ARGS_H

#include "base/err.h"
#include "cli/cli.h"

enum args_result { ARGS_RUN, ARGS_HELP, ARGS_VERSION, ARGS_BAD };

/* The global options, ended by a NULL name, for the help. */
extern const struct cli_option args_globals[];

/* The letter that stands for this option, NUL if there is none. */
char args_letter(const char *option);

/*
 * Fill cli from the command line. ARGS_RUN: verb, operands and values are set and counted.
 * ARGS_HELP: verb, or NULL for the list. ARGS_BAD: err has code USAGE and says what to write
 * instead. Values and operands point into argv, whose order may be changed.
 */
enum args_result args_parse(struct cli *cli, int argc, char **argv, struct err *err);

#endif
