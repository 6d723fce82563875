/* `later retry QUEUE --all` and `--reason`: dead jobs of a queue. */
#ifndef LATER_CLI_BULK_RETRY_ALL_H
#define LATER_CLI_BULK_RETRY_ALL_H

#include "cli/cli.h"
#include "cli/show/row.h"

struct retry_order {
    const char *queue;
    struct row_filter filter; /* which of its dead jobs */
    int64_t spread_ms;        /* make them due evenly over this time; 0: at once */
    bool is_from_start;       /* forget what they have kept */
};

/* Returns as a verb's run(). */
int retry_all(struct cli *cli, const struct retry_order *order, struct err *err);

#endif
