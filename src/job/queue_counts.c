#include "job/queue_counts.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"

void queue_counts_done(struct queue_counts *c)
{
    free(c->at);
    *c = (struct queue_counts){0};
}

/* The first entry that is not before this queue. */
static size_t index_of(const struct queue_counts *c, const char *queue)
{
    size_t low = 0, high = c->n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (strcmp(c->at[middle].queue, queue) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct queue_count *queue_counts_find(const struct queue_counts *c, const char *queue)
{
    size_t i = index_of(c, queue);

    return i < c->n && strcmp(c->at[i].queue, queue) == 0 ? &c->at[i] : NULL;
}

struct queue_count *queue_counts_of(struct queue_counts *c, const char *queue)
{
    struct queue_count *found = queue_counts_find(c, queue);
    size_t i = index_of(c, queue);

    if (found != NULL)
        return found;
    c->at = mem_grow(c->at, c->n + 1, sizeof(*c->at));
    memmove(&c->at[i + 1], &c->at[i], (c->n - i) * sizeof(*c->at));
    c->n++;
    c->at[i] = (struct queue_count){.has_any = false};
    text_copy(c->at[i].queue, sizeof(c->at[i].queue), queue);
    return &c->at[i];
}

void queue_count_start(struct queue_count *c, int64_t late_us)
{
    c->has_any = true;
    c->at[SERIES_LATE + series_late_class(late_us)]++;
    c->at[SERIES_LATE_US] += late_us > 0 ? (uint64_t)late_us : 0;
}

void queue_count_run(struct queue_count *c, int64_t us)
{
    us = us > 0 ? us : 0;
    c->has_any = true;
    c->at[SERIES_RUN + series_run_class(us)]++;
    c->at[SERIES_RUN_US] += (uint64_t)us;
    c->rest_us += us;
    c->at[SERIES_BUSY_MS] += (uint64_t)(c->rest_us / 1000);
    c->rest_us %= 1000;
}

bool queue_count_take(struct queue_count *c, struct buf *out)
{
    bool had_any = c->has_any;

    for (size_t i = SERIES_BUSY_MS; had_any && i < SERIES_TOTALS; i++) {
        if (c->at[i] > 0)
            buf_printf(out, "%s%zu:%llu", out->len > 0 ? " " : "", i + 1,
                       (unsigned long long)c->at[i]);
        c->at[i] = 0;
    }
    c->has_any = false;
    return had_any;
}
