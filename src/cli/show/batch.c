#include "cli/show/batch.h"

#include <inttypes.h>
#include <string.h>

#include "base/text.h"
#include "cli/show/fields.h"
#include "cli/show/json.h"
#include "cli/show/out.h"
#include "json/batch.h"
#include "json/outcome.h"

static void show_pace(const struct reply *r, struct pace p)
{
    char span[48];

    if (p.per_s == 0)
        return;
    out_label("pace");
    out_printf("%.3g/s", p.per_s);
    if (p.left_ms >= 0)
        out_printf(", %" PRId64 " left: %s at this pace", reply_named_int(r, "live", 0),
                   text_span(p.left_ms, span));
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
    struct pace pace = batch_pace(r, now_ms);

    if (cli->json) {
        json_t *line = batch_to_json(r, now_ms);

        batch_put_payload(line, r);
        json_print(line);
        return;
    }
    fields_show(batch_fields, batch_nfields, r, now_ms);
    show_first_death(first_dead);
    show_pace(r, pace);
    if (reply_len(payload) > 0) {
        out_label("payload");
        out_text(reply_str(payload), reply_len(payload));
        out_printf("\n");
    }
}

/* ---- rows */

#define COLUMNS 8

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

        if (cli->json) {
            json_print(batch_row_to_json(row));
            continue;
        }
        for (size_t k = 0; k < COLUMNS; k++) {
            const struct reply *cell = reply_at(row, k);

            if (k < 2)
                table_add(table, reply_str(cell), reply_len(cell));
            else if (k == 2)
                table_printf(table, "%s", out_instant(reply_int(cell), instant));
            else
                table_printf(table, "%" PRId64, reply_int(cell));
        }
    }
}
