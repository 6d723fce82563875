/* Schedules as people and programs read them. */
#ifndef LATER_CLI_SHOW_SCHEDULE_H
#define LATER_CLI_SHOW_SCHEDULE_H

#include "cli/cli.h"
#include "cli/show/table.h"
#include "schedule/zone.h"

/* The reply of later_schedules for one schedule. now_ms: 0 if unknown. */
void schedule_show(const struct cli *cli, const struct reply *r, int64_t now_ms);

void schedule_table_columns(struct table *table);
/* A row of the table, or a line of JSON. */
void schedule_put_row(const struct cli *cli, struct table *table, const struct reply *row,
                      int64_t now_ms);

/*
 * One occurrence: the clock there, the instant in UTC, how far it is, and whether the clock changes
 * on that day. With --json {"ms":…,"at":…}. now_ms: 0 if unknown.
 */
void schedule_put_occurrence(const struct cli *cli, struct zone *zone, int64_t ms, int64_t now_ms);

#endif
