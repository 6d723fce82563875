/*
 * What is counted of queues in the model: R:total:<queue> has all that was counted, up to the last
 * tidy. Rows by the minute and the hour are written with it, from the same numbers
 * (tests/lua/test_series.c reads them).
 */
#include "model.h"

#include <stdio.h>
#include <string.h>

#include "rows.h"

#define MINUTE_US 60000000
#define DAY_MS 86400000
#define KEPT_DAYS 16 /* the day of the tidy and 15 more */
#define ROWS_AT_ONCE 100

void series_count(struct model *m, int q, enum model_counter which, int64_t n)
{
    struct model_series *s = &m->series;
    int64_t minute = m->now_us / MINUTE_US;

    if (s->minutes == 0 || s->minute[s->minutes - 1].minute != minute) {
        if (s->minutes == MODEL_MINUTES)
            memmove(&s->minute[0], &s->minute[1], --s->minutes * sizeof(s->minute[0]));
        s->minute[s->minutes++] = (struct model_minute){.minute = minute};
    }
    s->minute[s->minutes - 1].n[q][which] += n;
}

static void expire(struct model *m)
{
    struct model_series *s = &m->series;

    for (int q = 0; q < MODEL_QUEUES; q++) {
        if (s->until_ms[q] > MODEL_MS(m))
            continue;
        s->until_ms[q] = 0;
        memset(s->total[q], 0, sizeof(s->total[q]));
    }
}

/* Returns how many rows were written: 1 or 0. */
static int write_row(struct model *m, int q, const int64_t n[COUNTERS])
{
    struct model_series *s = &m->series;
    int has_any = 0;

    for (int c = 0; c < COUNTERS; c++) {
        s->total[q][c] += n[c];
        has_any |= n[c] > 0;
    }
    if (has_any)
        s->until_ms[q] = (MODEL_MS(m) / DAY_MS + KEPT_DAYS) * DAY_MS;
    return has_any;
}

void series_tidy(struct model *m)
{
    struct model_series *s = &m->series;
    size_t written = 0;
    int left = ROWS_AT_ONCE;

    expire(m);
    for (; written < s->minutes && left > 0; written++)
        for (int q = 0; q < MODEL_QUEUES; q++)
            left -= write_row(m, q, s->minute[written].n[q]);
    s->minutes -= written;
    memmove(&s->minute[0], &s->minute[written], s->minutes * sizeof(s->minute[0]));
}

void series_render(struct model *m, struct rows *rows)
{
    const struct model_series *s = &m->series;

    expire(m);
    for (int q = 0; q < MODEL_QUEUES; q++) {
        char key[96], text[160];
        const int64_t *n = s->total[q];

        if (s->until_ms[q] == 0)
            continue;
        (void)snprintf(key, sizeof(key), "total:%s", m->queue[q].name);
        (void)snprintf(text, sizeof(text), "%lld %lld %lld %lld %lld @%lld",
                       (long long)n[COUNT_ADDED], (long long)n[COUNT_DONE],
                       (long long)n[COUNT_FAILED], (long long)n[COUNT_DEAD],
                       (long long)n[COUNT_CANCELLED], (long long)s->until_ms[q]);
        rows_text(rows, key, "string", NULL, text);
    }
}
