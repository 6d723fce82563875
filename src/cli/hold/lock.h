/*
 * One command run at a place of a gate: joins the keeper (keeper.h) with Redis, the guard and the
 * process. Used once in a process, before it has threads.
 */
#ifndef LATER_CLI_HOLD_LOCK_H
#define LATER_CLI_HOLD_LOCK_H

#include "cli/cli.h"
#include "cli/hold/keeper.h"

#define LOCK_LOST_STATUS 75
#define LOCK_OVERRAN_STATUS 124 /* as timeout(1) */

struct lock_order {
    const char *gate; /* lock:NAME or sem:NAME */
    struct keeper_conf keeper;
    int busy_status;
    char *const *argv; /* of the command */
};

/* The exit status; -1 with err. */
int lock_run(struct cli *cli, const struct lock_order *order, struct err *err);

/* The status of a command that could not be started, and err in words for it. */
int lock_not_run(const char *command, struct err *err);

/* Say it to whoever started us, with the gate's name. */
void lock_tell(const char *gate, const char *text);

#endif
