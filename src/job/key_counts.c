#include "job/key_counts.h"

#include <search.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

struct key_count {
    struct mono first;
    uint64_t of[3]; /* failed attempts, run time and lateness in us */
    bool is_told;
    char key[];
};

enum { FAILED, RUN_US, LATE_US };

struct key_counts {
    void *tree; /* of tsearch: the keys of the counts */
    struct key_count *at[KEY_COUNTS_MAX];
    size_t n;
};

static int by_key(const void *a, const void *b)
{
    return strcmp(a, b);
}

struct key_counts *key_counts_new(void)
{
    return mem_new(sizeof(struct key_counts));
}

static void forget(struct key_counts *c)
{
    for (size_t i = 0; i < c->n; i++) {
        (void)tdelete(c->at[i]->key, &c->tree, by_key);
        free(c->at[i]);
    }
    c->n = 0;
}

void key_counts_free(struct key_counts *c)
{
    if (c == NULL)
        return;
    forget(c);
    free(c);
}

/* The count of this key; NULL if there is room for no more, or no memory. */
static struct key_count *count_of(struct key_counts *c, const char *key, struct mono now)
{
    char *const *found = tfind(key, &c->tree, by_key);
    struct key_count *added;
    size_t n = strlen(key);

    if (found != NULL)
        return (struct key_count *)(void *)(*found - offsetof(struct key_count, key));
    if (c->n == KEY_COUNTS_MAX)
        return NULL;
    added = mem_new(sizeof(*added) + n + 1);
    memcpy(added->key, key, n);
    added->first = now;
    if (tsearch(added->key, &c->tree, by_key) == NULL) {
        free(added);
        return NULL;
    }
    c->at[c->n++] = added;
    return added;
}

void key_counts_add(struct key_counts *c, const char *key, bool has_failed, int64_t run_us,
                    int64_t late_us, struct mono now)
{
    struct key_count *k = count_of(c, key, now);

    if (k == NULL)
        return;
    k->of[FAILED] += has_failed;
    k->of[RUN_US] += run_us > 0 ? (uint64_t)run_us : 0;
    k->of[LATE_US] += late_us > 0 ? (uint64_t)late_us : 0;
}

/* The highest first; of equal ones the earlier. */
static int compare(const void *a, const void *b, void *which)
{
    const struct key_count *x = *(struct key_count *const *)a, *y = *(struct key_count *const *)b;
    int i = *(const int *)which;

    if (x->of[i] != y->of[i])
        return x->of[i] > y->of[i] ? -1 : 1;
    return x->first.us < y->first.us ? -1 : x->first.us > y->first.us;
}

static void tell(struct key_count *k, struct mono now, struct buf *out)
{
    if (k->is_told)
        return;
    k->is_told = true;
    buf_printf(out, "%lld %llu %llu %llu %s\n", (long long)(mono_until_us(k->first, now) / 1000000),
               (unsigned long long)k->of[FAILED], (unsigned long long)(k->of[RUN_US] / 1000),
               (unsigned long long)(k->of[LATE_US] / 1000), k->key);
}

void key_counts_take(struct key_counts *c, struct mono now, struct buf *out)
{
    for (int which = FAILED; which <= LATE_US; which++) {
        if (c->n > KEY_COUNTS_TOLD)
            qsort_r(c->at, c->n, sizeof(c->at) / KEY_COUNTS_MAX, compare, &which);
        for (size_t i = 0; i < c->n && i < KEY_COUNTS_TOLD; i++)
            if (c->at[i]->of[which] > 0)
                tell(c->at[i], now, out);
    }
    forget(c);
}
