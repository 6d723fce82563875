/*
 * `later quiet --wait`: until workers that were told to claim no more hold nothing.
 */
#ifndef LATER_CLI_QUIET_WAIT_H
#define LATER_CLI_QUIET_WAIT_H

#include "base/clock.h"
#include "cli/cli.h"

/*
 * who: an epoch, or "*": all workers there are. They were told already; this tells them again. A
 * worker that is not registered any more holds nothing. *held: how many jobs they hold at the end.
 * 0, or -1: code TEMP after the deadline, REFUSED (ELATER_STATE)
 * where somebody took the quiet back.
 */
int quiet_wait(struct cli *cli, const char *who, struct mono deadline, int64_t *held,
               struct err *err);

#endif
