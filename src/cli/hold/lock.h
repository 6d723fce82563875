/*
 * Runs one command while a permit of a gate is held: joins the keeper (keeper.h) with Redis, the
 * guard and the command's process. Used once per process, before it has threads.
 */
#ifndef LATER_CLI_HOLD_LOCK_H
#define LATER_CLI_HOLD_LOCK_H

#include "cli/cli.h"
#include "cli/hold/keeper.h"

#define LOCK_OVERRAN_STATUS 124 /* as timeout(1) */

struct lock_order {
    const char *gate; /* lock:NAME or sem:NAME */
    struct keeper_conf keeper;
    const char
        *done; /* keeper.is_once: the lock that is held for per_ms once the command is done */
    int64_t per_ms;
    bool is_forced; /* keeper.is_once: run it even if it is done */
    int busy_status;
    char *const *argv; /* of the command */
};

/* Returns the exit status, or -1 with err. */
int lock_run(struct cli *cli, const struct lock_order *order, struct err *err);

/* Print text on stderr, with the gate's name. */
void lock_tell(const char *gate, const char *text);

#endif
