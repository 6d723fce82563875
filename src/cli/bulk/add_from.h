/* `later add QUEUE --from FILE`: a job for each line. */
#ifndef LATER_CLI_BULK_ADD_FROM_H
#define LATER_CLI_BULK_ADD_FROM_H

#include "cli/cli.h"

/*
 * head: the queue and the options. path: see feed_open. Tells what became of the lines and returns
 * the exit status: 0, 128 + n after signal n, or that of the fault; -1 with err when it did not
 * come to the first line.
 */
int add_from(struct cli *cli, const struct cli_call *head, const char *path, struct err *err);

#endif
