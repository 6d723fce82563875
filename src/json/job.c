#include "json/job.h"

#include "json/failures.h"
#include "json/outcome.h"
#include "json/put.h"
#include "json/steps.h"

const struct field job_fields[] = {
    {"id", "id", FIELD_TEXT},
    {"queue", "queue", FIELD_TEXT},
    {"state", "state", FIELD_STATE},
    {"priority", "priority", FIELD_NUMBER},
    {"added_ms", "added", FIELD_INSTANT},
    {"started_ms", "runs since", FIELD_INSTANT},
    {"due_ms", "due", FIELD_INSTANT},
    {"died_ms", "died", FIELD_INSTANT},
    {"until_ms", "kept until", FIELD_INSTANT},
    {"gate", "waits for", FIELD_TEXT},
    {"worker", "worker", FIELD_NUMBER},
    {"progress", "progress", FIELD_TEXT},
    {"cancelling", "cancelling since", FIELD_INSTANT},
    {"checkpoint", "checkpoint", FIELD_TEXT},
    {"attempt", "attempts", FIELD_NUMBER},
    {"attempts_max", "attempts at most", FIELD_NUMBER},
    {"starts", "starts", FIELD_NUMBER},
    {"crashes", "crashes", FIELD_NUMBER},
    {"key", "key", FIELD_TEXT},
    {"timeout_ms", "timeout", FIELD_LENGTH},
    {"expire_ms", "expires after", FIELD_LENGTH},
    {"keep_ms", "keep", FIELD_LENGTH},
    {"trace", "trace", FIELD_TEXT},
    {"lock", "lock", FIELD_TEXT},
    {"sem", "semaphore", FIELD_TEXT},
    {"rate", "rate", FIELD_TEXT},
    {"unique", "unique key", FIELD_TEXT},
    {"unique_until_ms", "key taken until", FIELD_INSTANT},
    {"then", "goes on in", FIELD_TEXT},
    {"on_dead", "death is told to", FIELD_TEXT},
    {"parent", "caused by", FIELD_TEXT},
    {"reason", "since that died", FIELD_TEXT},
    {"batch", "batch", FIELD_TEXT},
    {"callback_of", "callback of batch", FIELD_TEXT},
    {"schedule", "schedule", FIELD_TEXT},
    {"occurrence_ms", "occurrence", FIELD_INSTANT},
    {"caused", "caused", FIELD_TEXT},
};
const size_t job_nfields = sizeof(job_fields) / sizeof(job_fields[0]);

json_t *shown_job_to_json(const struct reply *r)
{
    const struct reply *last = reply_named(r, "outcome");
    json_t *line = json_object(), *failures = failures_to_json(reply_named(r, "failures"));
    json_t *steps = steps_to_json(reply_named(r, "steps"));
    struct outcome outcome;

    fields_to_json(job_fields, job_nfields, r, line);
    if (outcome_parse(reply_str(last), reply_len(last), &outcome) == 0) {
        json_t *object = json_object();

        outcome_to_json(&outcome, object);
        json_put(line, "outcome", object);
    }
    if (steps != NULL)
        json_put(line, "steps", steps);
    if (failures != NULL)
        json_put(line, "failures", failures);
    json_put_int(line, "payload_bytes", (int64_t)reply_len(reply_named(r, "payload")));
    return line;
}
