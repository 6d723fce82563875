/* A verb whose first operand says what to do: later batch add, later schedule ls. */
#ifndef LATER_CLI_ARGS_SUBCOMMANDS_H
#define LATER_CLI_ARGS_SUBCOMMANDS_H

#include "cli/cli.h"

struct subcommand {
    const char *name;
    int min, max;                                 /* operands behind it */
    const char *operands;                         /* as the help writes them */
    const char *const *options;                   /* those of the verb that it takes; NULL-ended */
    int (*run)(struct cli *cli, struct err *err); /* argv[0] is the name */
};

/* Run the one that argv[0] names. all: ended by a NULL name. Returns what its run() returns, or -1
 * with code USAGE: there is none, or an option or operand does not belong to it. */
int subcommands_run(struct cli *cli, const struct subcommand *all, struct err *err);

#endif
