#include "cli/show/bulk.h"

#include "cli/show/fields.h"
#include "cli/show/json.h"
#include "cli/show/out.h"

static const struct field fields[] = {
    {"bulk", "bulk", FIELD_TEXT},
    {"status", "status", FIELD_STATE},
    {"verb", "verb", FIELD_TEXT},
    {"queue", "queue", FIELD_TEXT},
    {"state", "jobs that are", FIELD_TEXT},
    {"reason", "with reason", FIELD_TEXT},
    {"key", "with key", FIELD_TEXT},
    {"to", "to queue", FIELD_TEXT},
    {"at_ms", "due", FIELD_INSTANT},
    {"spread_ms", "spread over", FIELD_LENGTH},
    {"rate", "at a time", FIELD_NUMBER},
    {"per_ms", "each", FIELD_LENGTH},
    {"by", "by", FIELD_TEXT},
    {"why", "why", FIELD_TEXT},
    {"created_ms", "begun", FIELD_INSTANT},
    {"advanced_ms", "went on", FIELD_INSTANT},
    {"worker", "by worker", FIELD_TEXT},
    {"ended_ms", "ended", FIELD_INSTANT},
    {"aborted_by", "aborted by", FIELD_TEXT},
    {"total", "jobs at most", FIELD_NUMBER},
    {"seen", "met", FIELD_NUMBER},
    {"changed", "changed", FIELD_NUMBER},
    {"failed", "failed", FIELD_NUMBER},
    {"left", "left at most", FIELD_NUMBER},
    {"left_ms", "time left", FIELD_LENGTH},
    {"error", "last error", FIELD_TEXT},
};
#define NFIELDS (sizeof(fields) / sizeof(fields[0]))

json_t *bulk_to_json(const struct reply *r)
{
    json_t *object = json_object();

    fields_to_json(fields, NFIELDS, r, object);
    return object;
}

void bulk_show(const struct reply *r, int64_t now_ms)
{
    fields_show(fields, NFIELDS, r, now_ms);
}

/* ---- rows */

void bulk_table_init(struct table *table)
{
    static const struct table_column columns[] = {
        {"BULK", false, false},  {"STATUS", false, false},  {"VERB", false, false},
        {"QUEUE", false, true},  {"STATE", false, false},   {"BEGUN", false, TABLE_SPARE},
        {"JOBS", true, false},   {"MET", true, false},      {"CHANGED", true, false},
        {"FAILED", true, false}, {"BY", false, TABLE_SPARE}};

    table_init(table, columns, sizeof(columns) / sizeof(columns[0]));
}

void bulk_put_row(struct table *table, const struct reply *r)
{
    static const char *const names[] = {"bulk",    "status",     "verb",  "queue",
                                        "state",   "created_ms", "total", "seen",
                                        "changed", "failed",     "by"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const struct reply *value = reply_named(r, names[i]);
        char instant[48];

        if (value != NULL && names[i][0] == 'c' && names[i][1] == 'r')
            table_printf(table, "%s", out_instant(reply_int(value), instant));
        else
            table_add(table, reply_str(value), reply_len(value));
    }
}
