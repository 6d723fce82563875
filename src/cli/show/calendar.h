/*
 * The calendar of a schedule as a picture: a column for each week, a row for each weekday, in
 * letters, and in colour on a terminal; with counts and streaks below it.
 */
#ifndef LATER_CLI_SHOW_CALENDAR_H
#define LATER_CLI_SHOW_CALENDAR_H

#include <stddef.h>
#include <stdint.h>

#include "cli/cli.h"

/* bits: n bytes of later_schedule_calendar. today: days since 1970-01-01; later ones are left
 * blank. With --json one object: the numbers of the days of each row, and the sums. */
void calendar_show(const struct cli *cli, const char *name, int year, const char *bits, size_t n,
                   int64_t today);

#endif
