#include "gate_judge.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../support/laterd.h"
#include "base/cleanup.h"
#include "base/mem.h"

static int by_time(const void *a, const void *b)
{
    const struct gate_line *x = a, *y = b;

    if (x->us != y->us)
        return x->us < y->us ? -1 : 1;
    return x->is_start - y->is_start;
}

void gate_judge_read(struct gate_judge *ret, const char *path, const char *queue)
{
    CLEANUP_BUF struct buf all = BUF_INIT;
    char *save = NULL;

    test_read(path, &all);
    ret->lines = mem_new((all.len / 16 + 1) * sizeof(*ret->lines));
    ret->n = 0;
    for (char *p = all.len > 0 ? strtok_r(all.data, "\n", &save) : NULL; p != NULL;
         p = strtok_r(NULL, "\n", &save)) {
        struct gate_line *l = &ret->lines[ret->n];
        long long us, fence;
        char what[8];

        if (sscanf(p, "%lld %7s %15s %d %31s %lld %31s", &us, what, l->id, &l->attempt, l->key,
                   &fence, l->queue) != 7) {
            (void)fprintf(stderr, "gate_judge: %s\n", p);
            abort();
        }
        l->us = us;
        l->fence = fence;
        l->is_start = strcmp(what, "start") == 0;
        ret->n += (l->is_start || strcmp(what, "end") == 0) &&
                  (queue == NULL || strcmp(l->queue, queue) == 0);
    }
    qsort(ret->lines, ret->n, sizeof(*ret->lines), by_time);
}

void gate_judge_done(struct gate_judge *b)
{
    free(b->lines);
    b->lines = NULL;
    b->n = 0;
}

size_t gate_judge_starts(const struct gate_judge *b)
{
    size_t n = 0;

    for (size_t i = 0; i < b->n; i++)
        n += b->lines[i].is_start;
    return n;
}

const struct gate_line *gate_judge_start(const struct gate_judge *b, const char *id)
{
    for (size_t i = 0; i < b->n; i++)
        if (b->lines[i].is_start && strcmp(b->lines[i].id, id) == 0)
            return &b->lines[i];
    return NULL;
}

/* ---- at once */

int gate_judge_most(const struct gate_judge *b, const char *key)
{
    int now = 0, most = 0;

    for (size_t i = 0; i < b->n; i++) {
        if (key != NULL && strcmp(b->lines[i].key, key) != 0)
            continue;
        now += b->lines[i].is_start ? 1 : -1;
        most = now > most ? now : most;
    }
    return most;
}

static int by_key(const void *a, const void *b)
{
    const struct gate_line *x = a, *y = b;
    int order = strcmp(x->key, y->key);

    return order != 0 ? order : by_time(a, b);
}

int gate_judge_most_of_a_key(const struct gate_judge *b)
{
    CLEANUP_FREE struct gate_line *lines = mem_new((b->n + 1) * sizeof(*lines));
    int now = 0, most = 0;

    if (b->n > 0)
        memcpy(lines, b->lines, b->n * sizeof(*lines));
    qsort(lines, b->n, sizeof(*lines), by_key);
    for (size_t i = 0; i < b->n; i++) {
        if (i > 0 && strcmp(lines[i].key, lines[i - 1].key) != 0)
            now = 0;
        now += lines[i].is_start ? 1 : -1;
        most = now > most ? now : most;
    }
    return most;
}

double gate_judge_average(const struct gate_judge *b)
{
    double ran_us = 0;
    size_t first = 0, last = b->n;
    int now = 0;

    while (first < b->n && !b->lines[first].is_start)
        first++;
    while (last > first && !b->lines[last - 1].is_start)
        last--;
    if (last <= first + 1)
        return 0;
    for (size_t i = first; i + 1 < last; i++) {
        now += b->lines[i].is_start ? 1 : -1;
        ran_us += (double)now * (double)(b->lines[i + 1].us - b->lines[i].us);
    }
    return ran_us / (double)(b->lines[last - 1].us - b->lines[first].us);
}

/* ---- order */

static int by_value(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

size_t gate_judge_handovers(const struct gate_judge *b, size_t limit, int64_t **ret)
{
    CLEANUP_FREE int64_t *ends = mem_new((b->n + 1) * sizeof(*ends));
    int64_t *out = mem_new((b->n + 1) * sizeof(*out));
    size_t n = 0, nends = 0, nstarts = 0;

    for (size_t i = 0; i < b->n; i++)
        if (!b->lines[i].is_start)
            ends[nends++] = b->lines[i].us;
    for (size_t i = 0; i < b->n; i++) {
        if (!b->lines[i].is_start || nstarts++ < limit)
            continue;
        if (nstarts - 1 - limit < nends)
            out[n++] = b->lines[i].us - ends[nstarts - 1 - limit];
    }
    qsort(out, n, sizeof(*out), by_value);
    *ret = out;
    return n;
}

int64_t gate_quantile(const int64_t *sorted, size_t n, int permille)
{
    return n > 0 ? sorted[(n - 1) * (size_t)permille / 1000] : 0;
}

/* ---- starts in a period */

/* The fences of the starts, sorted. */
static int64_t *fences(const struct gate_judge *b, size_t *n)
{
    int64_t *out = mem_new((b->n + 1) * sizeof(*out));

    *n = 0;
    for (size_t i = 0; i < b->n; i++)
        if (b->lines[i].is_start)
            out[(*n)++] = b->lines[i].fence;
    qsort(out, *n, sizeof(*out), by_value);
    return out;
}

void gate_judge_windows(const struct gate_judge *b, int64_t window_us, int64_t from_us,
                        int *ret_most, int *ret_fewest)
{
    size_t n;
    CLEANUP_FREE int64_t *at = fences(b, &n);

    *ret_most = *ret_fewest = 0;
    for (size_t i = 0, most = 0, few = 0; i < n; i++) {
        /* The most are in [at, at + window), the fewest in (at, at + window]. */
        for (most = most < i ? i : most; most < n && at[most] < at[i] + window_us;)
            most++;
        for (few = few < i ? i : few; few < n && at[few] <= at[i] + window_us;)
            few++;
        if (at[i] < from_us)
            continue;
        if ((int)(most - i) > *ret_most)
            *ret_most = (int)(most - i);
        if (few < n && (*ret_fewest == 0 || (int)(few - i - 1) < *ret_fewest))
            *ret_fewest = (int)(few - i - 1);
    }
}

int gate_judge_most_aligned(const struct gate_judge *b, int64_t window_us)
{
    size_t n;
    CLEANUP_FREE int64_t *at = fences(b, &n);
    int now = 0, most = 0;

    for (size_t i = 0; i < n; i++) {
        now = i > 0 && at[i] / window_us == at[i - 1] / window_us ? now + 1 : 1;
        most = now > most ? now : most;
    }
    return most;
}
