/*
 * Checks of a schedule that its rows cannot express: its name, the expression, the time zone, and
 * which settings go together. Errors are CONFIG; the caller adds where it was written.
 */
#ifndef LATER_CONF_CONF_SCHEDULE_H
#define LATER_CONF_CONF_SCHEDULE_H

#include "base/err.h"
#include "conf/conf.h"

/* 0, or -1: *ret_row is the wrong row, or -1 when one is missing or the name is wrong. */
int conf_schedule_check(const struct conf_schedule *schedule, int *ret_row, struct err *err);

#endif
