/*
 * A row of later_v1_list, and which rows a user wants to see.
 */
#ifndef LATER_CLI_SHOW_ROW_H
#define LATER_CLI_SHOW_ROW_H

#include <stdbool.h>

#include "cli/cli.h"
#include "cli/show/outcome.h"
#include "redis/reply.h"

/* The elements of a row. KEY and GATE are empty where there is none. */
enum row_field {
    ROW_ID, /* empty for a raw member */
    ROW_SCORE,
    ROW_PRIORITY,
    ROW_TRIES,
    ROW_LAST, /* first line of the outcome; of a running job its progress */
    ROW_BYTES,
    ROW_PREVIEW,
    ROW_GATE,
    ROW_KEY,
    ROW_QUEUE, /* this and the next two: only of running jobs */
    ROW_HOST,
    ROW_SINCE /* in ms; empty: it runs for less than some five seconds, or that is not known */
};

/* The outcome in ROW_LAST. 0, or -1 if there is none. */
int row_outcome(const struct reply *row, struct outcome *ret);

/* NULL: any. A reason is a shell pattern: "exit status *". One that is equal matches, too. */
struct row_filter {
    const char *key;
    const char *reason;
};

/* Read --key and --reason, which ret then borrows from cli. 0, or -1 with err (ERR_USAGE). */
int row_filter_read(const struct cli *cli, struct row_filter *ret, struct err *err);

bool row_is_wanted(const struct row_filter *filter, const struct reply *row);

#endif
