/* `later retry QUEUE --all`: every dead job of a queue. */
#ifndef LATER_CLI_BULK_RETRY_ALL_H
#define LATER_CLI_BULK_RETRY_ALL_H

#include "cli/cli.h"

/* spread_ms: make them due evenly over this time; 0: at once. Returns as a verb's run(). */
int retry_all(struct cli *cli, const char *queue, int64_t spread_ms, struct err *err);

#endif
