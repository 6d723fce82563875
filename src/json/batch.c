#include "json/batch.h"

#include "json/put.h"

const struct field batch_fields[] = {
    {"batch", "batch", FIELD_TEXT},
    {"state", "state", FIELD_STATE},
    {"created_ms", "opened", FIELD_INSTANT},
    {"touched_ms", "last joined", FIELD_INSTANT},
    {"sealed_ms", "sealed", FIELD_INSTANT},
    {"ended_ms", "ended", FIELD_INSTANT},
    {"until_ms", "kept until", FIELD_INSTANT},
    {"keep_ms", "keep", FIELD_LENGTH},
    {"then", "then", FIELD_TEXT},
    {"finally", "finally", FIELD_TEXT},
    {"on_dead", "on dead", FIELD_TEXT},
    {"fired", "callbacks added", FIELD_TEXT},
    {"total", "members", FIELD_NUMBER},
    {"live", "live", FIELD_NUMBER},
    {"done", "done", FIELD_NUMBER},
    {"dead", "dead", FIELD_NUMBER},
    {"cancelled", "cancelled", FIELD_NUMBER},
    {"first_dead", "died first", FIELD_TEXT},
};
const size_t batch_nfields = sizeof(batch_fields) / sizeof(batch_fields[0]);

struct pace batch_pace(const struct reply *r, int64_t now_ms)
{
    struct pace p = {.left_ms = -1};
    int64_t live = reply_named_int(r, "live", 0), ended = reply_named_int(r, "total", 0) - live;
    int64_t until_ms = reply_named_int(r, "ended_ms", now_ms);
    int64_t took_ms = until_ms - reply_named_int(r, "created_ms", 0);

    if (ended <= 0 || took_ms <= 0)
        return p;
    p.per_s = 1000.0 * (double)ended / (double)took_ms;
    if (live > 0) {
        double left_ms = (double)live * (double)took_ms / (double)ended;

        p.left_ms = left_ms < (double)REPLY_INT_MAX ? (int64_t)left_ms : REPLY_INT_MAX;
    }
    return p;
}

json_t *batch_to_json(const struct reply *r, int64_t now_ms)
{
    struct pace pace = batch_pace(r, now_ms);
    json_t *line = json_object();

    fields_to_json(batch_fields, batch_nfields, r, line);
    if (pace.per_s != 0)
        json_put(line, "ended_per_s", json_real(pace.per_s));
    if (pace.left_ms >= 0)
        json_put_int(line, "left_ms", pace.left_ms);
    return line;
}

void batch_put_payload(json_t *line, const struct reply *r)
{
    const struct reply *payload = reply_named(r, "payload");

    json_put_bytes(line, "payload", reply_str(payload), reply_len(payload));
}

json_t *batch_row_to_json(const struct reply *row)
{
    static const char *const names[] = {"batch", "state", "created_ms", "total",
                                        "live",  "done",  "dead",       "cancelled"};
    json_t *line = json_object();

    for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++) {
        if (k < 2)
            json_put_reply(line, names[k], reply_at(row, k));
        else
            json_put_int(line, names[k], reply_int(reply_at(row, k)));
    }
    return line;
}
