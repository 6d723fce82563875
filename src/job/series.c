#include "job/series.h"

const int64_t series_late_ms[SERIES_LATE_CLASSES - 1] = {
    1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 30000, 60000, 600000, 3600000};
const int64_t series_run_ms[SERIES_RUN_CLASSES - 1] = {1,    5,    10,    50,     100,   500,
                                                       1000, 5000, 30000, 120000, 600000};

static size_t class_of(const int64_t *bounds_ms, size_t nbounds, int64_t us)
{
    size_t i = 0;

    while (i < nbounds && us > bounds_ms[i] * 1000)
        i++;
    return i;
}

size_t series_late_class(int64_t us)
{
    return class_of(series_late_ms, SERIES_LATE_CLASSES - 1, us);
}

size_t series_run_class(int64_t us)
{
    return class_of(series_run_ms, SERIES_RUN_CLASSES - 1, us);
}

int64_t series_quantile_us(const uint64_t *counts, const int64_t *bounds_ms, size_t nclasses,
                           double share)
{
    uint64_t all = 0;
    double wanted, before = 0;

    for (size_t i = 0; i < nclasses; i++)
        all += counts[i];
    if (all == 0)
        return -1;
    wanted = share * (double)all;
    for (size_t i = 0; i + 1 < nclasses; i++) {
        double low = i > 0 ? (double)bounds_ms[i - 1] * 1000 : 0,
               high = (double)bounds_ms[i] * 1000;

        if (counts[i] > 0 && before + (double)counts[i] >= wanted)
            return (int64_t)(low + (high - low) * (wanted - before) / (double)counts[i]);
        before += (double)counts[i];
    }
    return bounds_ms[nclasses - 2] * 1000;
}

static uint64_t number_at(const char *text, size_t n, size_t at, size_t bytes)
{
    uint64_t value = 0;

    for (size_t i = at; i < at + bytes; i++)
        value = value << 8 | (i < n ? (unsigned char)text[i] : 0);
    return value;
}

void series_add_row(uint64_t sum[SERIES_COLUMNS], const char *text, size_t n, size_t at)
{
    for (size_t c = 0; c < SERIES_COLUMNS; c++)
        sum[c] += number_at(text, n, (at * SERIES_COLUMNS + c) * 4, 4);
}

void series_read_totals(uint64_t out[SERIES_TOTALS], const char *text, size_t n)
{
    for (size_t c = 0; c < SERIES_TOTALS; c++) {
        uint64_t value = number_at(text, n, c * 8, 8);

        out[c] = value <= INT64_MAX / (2 * SERIES_TOTALS) ? value : 0; /* somebody overwrote it */
    }
}
