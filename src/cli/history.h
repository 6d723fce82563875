/* What happened in queues over the last minutes, hours or days: `later stats --since`. */
#ifndef LATER_CLI_HISTORY_H
#define LATER_CLI_HISTORY_H

#include "cli/cli.h"

/* Show the queue that the operand names bucket by bucket, or all queues. Reads the options since
 * and by. 0, or -1 with err. */
int history_show(struct cli *cli, struct err *err);

#endif
