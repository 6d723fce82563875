#include "json/schedule.h"

#include "json/pause.h"
#include "json/put.h"

const struct field schedule_fields[] = {
    {"schedule", "schedule", FIELD_TEXT},   {"when", "when", FIELD_TEXT},
    {"tz", "time zone", FIELD_TEXT},        {"queue", "queue", FIELD_TEXT},
    {"options", "options", FIELD_TEXT},     {"overlap", "overlap", FIELD_TEXT},
    {"catch_up", "catch up", FIELD_TEXT},   {"catch_up_window_ms", "catch up within", FIELD_LENGTH},
    {"splay_ms", "splay", FIELD_LENGTH},    {"from_ms", "from", FIELD_INSTANT},
    {"until_ms", "until", FIELD_INSTANT},   {"origin", "defined by", FIELD_TEXT},
    {"last_ms", "last", FIELD_INSTANT},     {"next_ms", "next", FIELD_INSTANT},
    {"job", "last job", FIELD_TEXT},        {"runs", "jobs", FIELD_NUMBER},
    {"skipped", "skipped", FIELD_NUMBER},   {"missed", "missed", FIELD_NUMBER},
    {"zones", "time zones of", FIELD_TEXT},
};
const size_t schedule_nfields = sizeof(schedule_fields) / sizeof(schedule_fields[0]);

json_t *schedule_to_json(const struct reply *row)
{
    json_t *line = json_object();
    struct pause pause;

    fields_to_json(schedule_fields, schedule_nfields, row, line);
    if (pause_read(reply_named(row, "paused"), &pause))
        json_put(line, "paused", pause_to_json(&pause));
    return line;
}
