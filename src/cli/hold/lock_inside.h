/*
 * A command at a place that an ancestor of ours holds (lock_token.h): whoever guards that place
 * guards us and what we become.
 */
#ifndef LATER_CLI_HOLD_LOCK_INSIDE_H
#define LATER_CLI_HOLD_LOCK_INSIDE_H

#include "cli/hold/lock.h"

/*
 * Without --ttl this process becomes the command. With it the command runs in a group of its own,
 * and its time is kept here. The exit status, or -1 with err. Used once in a process.
 */
int lock_inside(struct cli *cli, const struct lock_order *order, struct err *err);

#endif
