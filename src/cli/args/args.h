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

/* The short letter of this option, NUL if it has none. */
char args_letter(const char *option);

/*
 * Fill cli from the command line. ARGS_RUN: verb, operands and values are set, and the number of
 * operands is right. ARGS_HELP: cli->verb is the verb to explain, NULL for the list of verbs.
 * ARGS_BAD: err has code USAGE and says what to write instead. Values and operands point into argv,
 * which may be reordered.
 */
enum args_result args_parse(struct cli *cli, int argc, char **argv, struct err *err);

#endif
