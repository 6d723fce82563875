#include "json/history.h"

#include "json/put.h"

int64_t history_late_us(const history_row row, double share)
{
    return series_quantile_us(&row[SERIES_LATE], series_late_ms, SERIES_LATE_CLASSES, share);
}

json_t *history_row_to_json(const history_row row)
{
    static const char *const names[] = {"added", "done", "failed", "dead", "cancelled", "busy_ms"};
    json_t *one = json_object();

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        json_put_int(one, names[i], (int64_t)row[SERIES_ADDED + i]);
    if (history_late_us(row, 0.5) >= 0) {
        json_put_int(one, "late_p50_us", history_late_us(row, 0.5));
        json_put_int(one, "late_p99_us", history_late_us(row, 0.99));
    }
    return one;
}
