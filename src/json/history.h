/* What happened to the jobs of a queue in a part of the past (ask/series.h). */
#ifndef LATER_JSON_HISTORY_H
#define LATER_JSON_HISTORY_H

#include <jansson.h>
#include <stdint.h>

#include "job/series.h"

typedef uint64_t history_row[SERIES_COLUMNS];

/* How late so large a share of the starts was at most, in us; -1 if there were none. */
int64_t history_late_us(const history_row row, double share);

json_t *history_row_to_json(const history_row row);

#endif
