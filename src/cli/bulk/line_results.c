#include "cli/bulk/line_results.h"

void line_results_add(struct line_results *t, enum line_result result, uint64_t first, uint64_t n)
{
    bool goes_on = t->n > 0 && t->span[t->n - 1].result == result;

    t->count[result] += n;
    if (!goes_on && t->n < LINE_RESULTS_SPANS) {
        t->span[t->n].result = result;
        t->span[t->n++].first = first;
    }
    t->span[t->n - 1].last = first + n - 1;
}

void line_results_put(const struct line_results *t, enum line_result result, struct buf *out)
{
    const char *before = t->count[result] == 1 ? "line " : "lines ";

    for (int i = 0; i < t->n; i++) {
        if (t->span[i].result != result)
            continue;
        buf_printf(out, "%s%llu", before, (unsigned long long)t->span[i].first);
        if (t->span[i].last > t->span[i].first)
            buf_printf(out, " to %llu", (unsigned long long)t->span[i].last);
        before = ", ";
    }
}

json_t *line_results_json(const struct line_results *t, enum line_result result)
{
    json_t *spans = json_array();

    for (int i = 0; i < t->n; i++) {
        json_t *span;

        if (t->span[i].result != result)
            continue;
        span = json_array();
        (void)json_array_append_new(span, json_integer((json_int_t)t->span[i].first));
        (void)json_array_append_new(span, json_integer((json_int_t)t->span[i].last));
        (void)json_array_append_new(spans, span);
    }
    return spans;
}
