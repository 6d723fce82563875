/* The table of `later health --server`. */
#ifndef LATER_CLI_HEALTH_SERVER_H
#define LATER_CLI_HEALTH_SERVER_H

#include "cli/cli.h"

/* Show what the server can do for this user, and what each thing that it cannot costs. 0, or -1
 * when it cannot be asked, or has no functions (UNFIT). */
int health_server(struct cli *cli, struct err *err);

#endif
