/*
 * `later add --replicas N`: has what this connection wrote reached so many replicas?
 */
#ifndef LATER_CLI_CONFIRM_H
#define LATER_CLI_CONFIRM_H

#include "cli/cli.h"

struct confirm {
    int64_t replicas; /* 0: not asked for */
    int64_t ms;
    bool is_fsync;
};

/* From --replicas, --confirm and --fsync. 0, or -1 with code USAGE. */
int confirm_parse(const struct cli *cli, struct confirm *ret, struct err *err);

/* After the job was added on the same connection. 0, or -1 with code TEMP: too few, or not known.
 */
int confirm_wait(struct cli *cli, const struct confirm *c, const char *id, struct err *err);

#endif
