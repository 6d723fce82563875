/*
 * Runs a command with a permit that an ancestor of ours holds already (lock_token.h). The guard of
 * that ancestor also guards us and the command.
 */
#ifndef LATER_CLI_HOLD_LOCK_INSIDE_H
#define LATER_CLI_HOLD_LOCK_INSIDE_H

#include "cli/hold/lock.h"

/*
 * Without --ttl this process becomes the command. With it, the command runs in its own process
 * group and this process ends it in time. Returns the exit status, or -1 with err. Used once per
 * process.
 */
int lock_inside(struct cli *cli, const struct lock_order *order, struct err *err);

#endif
