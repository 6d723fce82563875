/*
 * A batch for people and as JSON: one with all that is known of it, or rows of a table.
 */
#ifndef LATER_CLI_SHOW_BATCH_H
#define LATER_CLI_SHOW_BATCH_H

#include "cli/cli.h"
#include "cli/show/table.h"
#include "redis/reply.h"

/* r: of later_batch_show. first_dead: of later_show, the member that died first; NULL: there is
 * none, or it is gone. now_ms: 0 if unknown. */
void batch_show(const struct cli *cli, const struct reply *r, const struct reply *first_dead,
                int64_t now_ms);

/* A table for the rows of later_v1_batches. */
void batch_table_init(struct table *table);
/* Add the rows of a page to the table, or print them as JSON. */
void batch_put_rows(const struct cli *cli, struct table *table, const struct reply *page);

#endif
