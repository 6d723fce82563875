/* `later add QUEUE --from FILE`: one job per line of the file. */
#ifndef LATER_CLI_BULK_ADD_FROM_H
#define LATER_CLI_BULK_ADD_FROM_H

#include "cli/cli.h"

/*
 * front: the queue and the options. path: see feed_open. Prints what became of the lines and
 * returns the exit status: 0, 128 + n after signal n, or that of the first error; -1 with err if it
 * failed before the first line.
 */
int add_from(struct cli *cli, const struct ask_call *front, const char *path, struct err *err);

#endif
