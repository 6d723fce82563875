#include "web/history.h"

#include <stdlib.h>

#include "ask/series.h"
#include "base/mem.h"
#include "json/history.h"
#include "json/put.h"

#define MINUTE_MS 60000
#define MINUTES 60

static struct series_span last_hour(int64_t now_ms)
{
    return (struct series_span){
        .from = now_ms / MINUTE_MS - MINUTES + 1, .bucket = 1, .nbuckets = MINUTES};
}

static json_t *to_json(const history_row *rows, int64_t now_ms)
{
    struct series_span span = last_hour(now_ms);
    json_t *out = json_object(), *list = json_array();

    json_put_int(out, "from_ms", span.from * MINUTE_MS);
    json_put_int(out, "by_ms", MINUTE_MS);
    for (size_t i = 0; i < MINUTES; i++)
        (void)json_array_append_new(list, history_row_to_json(rows[i]));
    json_put(out, "buckets", list);
    return out;
}

/* Add the queue's counts to rows. 0, or -1 with call->err. */
static int add(struct api_call *call, const char *queue, int64_t now_ms, history_row *rows)
{
    struct series_span span = last_hour(now_ms);
    history_row *its = mem_new(MINUTES * sizeof(*its));
    int rc = series_read(call->server, queue, &span, its, &call->err);

    for (size_t i = 0; rc == 0 && i < MINUTES; i++)
        for (size_t c = 0; c < SERIES_COLUMNS; c++)
            rows[i][c] += its[i][c];
    free(its);
    return rc;
}

json_t *history_of_queue(struct api_call *call, const char *queue, int64_t now_ms)
{
    history_row *rows = mem_new(MINUTES * sizeof(*rows));
    json_t *out = add(call, queue, now_ms, rows) == 0 ? to_json(rows, now_ms) : NULL;

    free(rows);
    return out;
}

json_t *history_of_all(struct api_call *call, int64_t now_ms)
{
    struct reply *names = series_names(call->server, &call->err);
    history_row *rows;
    json_t *out = NULL;
    size_t i = 0;

    if (names == NULL)
        return NULL;
    rows = mem_new(MINUTES * sizeof(*rows));
    while (i < reply_count(names) && add(call, reply_str(reply_at(names, i)), now_ms, rows) == 0)
        i++;
    if (i == reply_count(names))
        out = to_json(rows, now_ms);
    free(rows);
    reply_free(names);
    return out;
}
