#include "json/bulk.h"

const struct field bulk_fields[] = {
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
const size_t bulk_nfields = sizeof(bulk_fields) / sizeof(bulk_fields[0]);

json_t *bulk_to_json(const struct reply *r)
{
    json_t *object = json_object();

    fields_to_json(bulk_fields, bulk_nfields, r, object);
    return object;
}
