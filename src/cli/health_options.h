/* --late, --parked, --paused and --dead of `later health`. */
#ifndef LATER_CLI_HEALTH_OPTIONS_H
#define LATER_CLI_HEALTH_OPTIONS_H

#include "cli/cli.h"
#include "health/limits.h"

/* Read them from the command line. 0, or -1 with code USAGE. */
int health_options_read(struct health_limits *l, const struct cli *cli, struct err *err);

#endif
