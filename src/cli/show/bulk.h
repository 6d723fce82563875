/*
 * A bulk for people: one with all that is known of it, or rows of a table.
 */
#ifndef LATER_CLI_SHOW_BULK_H
#define LATER_CLI_SHOW_BULK_H

#include <stdint.h>

#include "cli/show/table.h"
#include "redis/reply.h"

/* r: of later_bulk_show with an ID, here and below. now_ms: 0 if unknown. */
void bulk_show(const struct reply *r, int64_t now_ms);

void bulk_table_init(struct table *table);
void bulk_put_row(struct table *table, const struct reply *r);

#endif
