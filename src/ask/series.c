#include "ask/series.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "redis/reply.h"

#define TEXTS_MAX 24 /* of one call */
#define DAYS_MAX 8

struct reply *series_names(struct ask_server *s, struct err *err)
{
    return ask_words(s, err, "later_v1_series", NULL);
}

/* n texts of one kind. */
static struct reply *ask(struct ask_server *s, const char *queue, const char *kind, int64_t first,
                         int64_t n, struct err *err)
{
    char from[24], count[24];

    (void)snprintf(from, sizeof(from), "%lld", (long long)first);
    (void)snprintf(count, sizeof(count), "%lld", (long long)n);
    return ask_words(s, err, "later_v1_series", queue, kind, from, count, NULL);
}

int series_totals_read(struct series_totals *t, struct ask_server *s, struct err *err)
{
    struct ask_call none = {.n = 0};
    struct reply *names = ask_loaded(s, "later_v1_series", &none, err);

    *t = (struct series_totals){.n = 0};
    if (names == NULL && ask_lacks_function(err)) {
        *err = (struct err)ERR_INIT;
        return 0;
    }
    if (names == NULL)
        return -1;
    t->of = mem_new((reply_count(names) + 1) * sizeof(*t->of));
    for (size_t i = 0; i < reply_count(names); i++) {
        const char *queue = reply_str(reply_at(names, i));
        struct series_total *total = &t->of[t->n];
        struct reply *r = ask(s, queue, "total", 0, 1, err);

        if (r == NULL) {
            reply_free(names);
            return -1;
        }
        text_copy(total->queue, sizeof(total->queue), queue);
        series_read_totals(total->at, reply_str(reply_at(r, 1)), reply_len(reply_at(r, 1)));
        t->n++;
        reply_free(r);
    }
    reply_free(names);
    return 0;
}

void series_totals_done(struct series_totals *t)
{
    free(t->of);
    *t = (struct series_totals){.n = 0};
}

/* Add the rows of a text, of which the first is row `row` since 1970, to their buckets. */
static void add_rows(const struct series_span *s, const struct reply *text, int64_t row,
                     int64_t rows, uint64_t (*ret)[SERIES_COLUMNS])
{
    for (int64_t i = 0; i < rows; i++) {
        int64_t at = row + i - s->from;

        if (at >= 0 && at / s->bucket < (int64_t)s->nbuckets)
            series_add_row(ret[at / s->bucket], reply_str(text), reply_len(text), (size_t)i);
    }
}

int series_read(struct ask_server *s, const char *queue, const struct series_span *span,
                uint64_t (*ret)[SERIES_COLUMNS], struct err *err)
{
    int64_t rows = span->by_hour ? 24 : 60; /* in one text */
    int64_t first = span->from / rows;
    int64_t last = (span->from + span->bucket * (int64_t)span->nbuckets - 1) / rows;

    memset(ret, 0, span->nbuckets * sizeof(*ret));
    for (; first <= last; first += TEXTS_MAX) {
        int64_t n = last - first + 1 < TEXTS_MAX ? last - first + 1 : TEXTS_MAX;
        struct reply *r = ask(s, queue, span->by_hour ? "h" : "m", first, n, err);

        if (r == NULL)
            return -1;
        for (int64_t i = 0; i < n; i++)
            add_rows(span, reply_at(r, 1 + (size_t)i), (first + i) * rows, rows, ret);
        reply_free(r);
    }
    return 0;
}

int64_t series_distinct(struct ask_server *s, const char *queue, int64_t first, int64_t last,
                        struct err *err)
{
    char from[24], count[24];
    struct reply *r;
    int64_t n;

    if (last - first + 1 > DAYS_MAX)
        first = last - DAYS_MAX + 1;
    (void)snprintf(from, sizeof(from), "%lld", (long long)first);
    (void)snprintf(count, sizeof(count), "%lld", (long long)(last - first + 1));
    r = ask_words(s, err, "later_v1_distinct", queue, from, count, NULL);
    n = r != NULL ? reply_int(reply_at(r, 0)) : -1;
    reply_free(r);
    return n;
}
