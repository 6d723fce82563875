/*
 * Which rows of later_v1_list a user wants to see.
 */
#ifndef LATER_CLI_SHOW_ROW_H
#define LATER_CLI_SHOW_ROW_H

#include <stdbool.h>

#include "cli/cli.h"
#include "json/job_row.h"
#include "redis/reply.h"

/* NULL: any. A reason is a shell pattern: "exit status *". One that is equal matches, too. */
struct row_filter {
    const char *key;
    const char *reason;
};

/* Read --key and --reason, which ret then borrows from cli. 0, or -1 with err (ERR_USAGE). */
int row_filter_read(const struct cli *cli, struct row_filter *ret, struct err *err);

bool row_is_wanted(const struct row_filter *filter, const struct reply *row);

#endif
