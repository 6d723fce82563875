#include "cli/show/bulk.h"

#include "cli/show/fields.h"
#include "cli/show/out.h"
#include "json/bulk.h"

void bulk_show(const struct reply *r, int64_t now_ms)
{
    fields_show(bulk_fields, bulk_nfields, r, now_ms);
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
