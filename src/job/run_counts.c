#include "job/run_counts.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"

void run_counts_done(struct run_counts *c)
{
    free(c->at);
    *c = (struct run_counts){0};
}

/* The first entry that is not before this queue. */
static size_t index_of(const struct run_counts *c, const char *queue)
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

struct run_count *run_counts_find(const struct run_counts *c, const char *queue)
{
    size_t i = index_of(c, queue);

    return i < c->n && strcmp(c->at[i].queue, queue) == 0 ? &c->at[i] : NULL;
}

struct run_count *run_counts_of(struct run_counts *c, const char *queue)
{
    struct run_count *found = run_counts_find(c, queue);
    size_t i = index_of(c, queue);

    if (found != NULL)
        return found;
    c->at = mem_grow(c->at, c->n + 1, sizeof(*c->at));
    memmove(&c->at[i + 1], &c->at[i], (c->n - i) * sizeof(*c->at));
    c->n++;
    c->at[i] = (struct run_count){.runs = 0};
    text_copy(c->at[i].queue, sizeof(c->at[i].queue), queue);
    return &c->at[i];
}
