#include "cli/show/batch.h"

#include <inttypes.h>
#include <string.h>

#include "cli/show/fields.h"
#include "cli/show/json.h"
#include "cli/show/out.h"
#include "cli/show/outcome.h"

static const struct field fields[] = {
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
#define NFIELDS (sizeof(fields) / sizeof(fields[0]))

/* How fast it goes, in members that end in a second, from its opening on. */
struct pace {
    double per_s;
    int64_t left_ms; /* -1: unknown, or none are left */
};

static struct pace pace_of(const struct reply *r, int64_t now_ms)
{
    struct pace p = {.left_ms = -1};
    int64_t live = reply_named_int(r, "live", 0), ended = reply_named_int(r, "total", 0) - live;
    int64_t until_ms = reply_named_int(r, "ended_ms", now_ms);
    int64_t took_ms = until_ms - reply_named_int(r, "created_ms", 0);

    if (ended <= 0 || took_ms <= 0)
        return p;
    p.per_s = 1000.0 * (double)ended / (double)took_ms;
    if (live > 0)
        p.left_ms = (int64_t)((double)live * (double)took_ms / (double)ended);
    return p;
}

static void show_pace(const struct reply *r, struct pace p)
{
    char span[48];

    if (p.per_s == 0)
        return;
    out_label("pace");
    out_printf("%.3g/s", p.per_s);
    if (p.left_ms >= 0)
        out_printf(", %" PRId64 " left: %s at this pace", reply_named_int(r, "live", 0),
                   out_span(p.left_ms, span));
    out_printf("\n");
}

/* Why the member that died first did. Nothing if it is gone. */
static void show_first_death(const struct reply *job)
{
    const struct reply *last = reply_named(job, "outcome");
    struct outcome outcome;

    if (last != NULL && outcome_parse(reply_str(last), reply_len(last), &outcome) == 0) {
        out_label("");
        out_text(outcome.reason, outcome.reason_len);
        out_printf("\n");
    }
}

void batch_show(const struct cli *cli, const struct reply *r, const struct reply *first_dead,
                int64_t now_ms)
{
    const struct reply *payload = reply_named(r, "payload");
    struct pace pace = pace_of(r, now_ms);

    if (cli->json) {
        json_t *line = json_object();

        fields_to_json(fields, NFIELDS, r, line);
        if (pace.per_s != 0)
            (void)json_object_set_new(line, "ended_per_s", json_real(pace.per_s));
        if (pace.left_ms >= 0)
            json_put_int(line, "left_ms", pace.left_ms);
        json_put_bytes(line, "payload", reply_str(payload), reply_len(payload));
        json_print(line);
        return;
    }
    fields_show(fields, NFIELDS, r, now_ms);
    show_first_death(first_dead);
    show_pace(r, pace);
    if (reply_len(payload) > 0) {
        out_label("payload");
        out_text(reply_str(payload), reply_len(payload));
        out_printf("\n");
    }
}

/* ---- rows */

static const char *const columns_json[] = {"batch", "state", "created_ms", "total",
                                           "live",  "done",  "dead",       "cancelled"};

void batch_table_init(struct table *table)
{
    static const struct table_column columns[] = {
        {"BATCH", false, TABLE_SOFT}, {"STATE", false, false},   {"OPENED", false, TABLE_SPARE},
        {"MEMBERS", true, false},     {"LIVE", true, false},     {"DONE", true, false},
        {"DEAD", true, false},        {"CANCELLED", true, false}};

    table_init(table, columns, sizeof(columns) / sizeof(columns[0]));
}

void batch_put_rows(const struct cli *cli, struct table *table, const struct reply *page)
{
    char instant[48];

    for (size_t i = 1; i < reply_count(page); i++) {
        const struct reply *row = reply_at(page, i);
        json_t *line = cli->json ? json_object() : NULL;

        for (size_t k = 0; k < sizeof(columns_json) / sizeof(columns_json[0]); k++) {
            const struct reply *cell = reply_at(row, k);

            if (line != NULL && k < 2)
                json_put_text(line, columns_json[k], reply_str(cell), reply_len(cell));
            else if (line != NULL)
                json_put_int(line, columns_json[k], reply_int(cell));
            else if (k < 2)
                table_add(table, reply_str(cell), reply_len(cell));
            else if (k == 2)
                table_printf(table, "%s", out_instant(reply_int(cell), instant));
            else
                table_printf(table, "%" PRId64, reply_int(cell));
        }
        if (line != NULL)
            json_print(line);
    }
}
