#include "json/job_row.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "json/put.h"

int job_row_outcome(const struct reply *row, struct outcome *ret)
{
    const struct reply *last = reply_at(row, ROW_LAST);

    return reply_len(last) == 0 ? -1 : outcome_parse(reply_str(last), reply_len(last), ret);
}

void job_row_tries(const struct reply *row, long long ret[3])
{
    ret[0] = ret[1] = ret[2] = 0;
    (void)sscanf(reply_str(reply_at(row, ROW_TRIES)), "%18lld %18lld %18lld", &ret[0], &ret[1],
                 &ret[2]);
}

size_t job_row_preview(const struct reply *row)
{
    const struct reply *preview = reply_at(row, ROW_PREVIEW);
    size_t n = reply_len(preview), whole = text_utf8_prefix(reply_str(preview), n);

    return (int64_t)n < reply_int(reply_at(row, ROW_BYTES)) && n - whole < 4 ? whole : n;
}

/* What the score of a job in this state is. */
static const char *score_name(const char *state)
{
    static const char *const names[][2] = {{"due", "due_ms"},
                                           {"running", "worker"},
                                           {"parked", "ticket"},
                                           {"dead", "died_ms"},
                                           {"done", "until_ms"}};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(state, names[i][0]) == 0)
            return names[i][1];
    return "score";
}

static void put_tries(json_t *line, const struct reply *row)
{
    long long tries[3];

    job_row_tries(row, tries);
    json_put_int(line, "starts", tries[0]);
    json_put_int(line, "attempts", tries[1]);
    json_put_int(line, "crashes", tries[2]);
}

static void put_last(json_t *line, const struct reply *row, bool is_running)
{
    struct outcome outcome;
    json_t *object;

    if (is_running) {
        json_put_if(line, "progress", reply_at(row, ROW_LAST));
        return;
    }
    if (job_row_outcome(row, &outcome) < 0)
        return;
    object = json_object();
    outcome_to_json(&outcome, object);
    json_put(line, "outcome", object);
}

json_t *job_row_to_json(const struct reply *row, const char *queue, const char *state)
{
    const struct reply *id = reply_at(row, ROW_ID), *key = reply_at(row, ROW_KEY),
                       *gate = reply_at(row, ROW_GATE);
    json_t *line = json_object();

    queue = queue != NULL ? queue : reply_str(reply_at(row, ROW_QUEUE));
    if (reply_len(id) > 0)
        json_put_reply(line, "id", id);
    else
        json_put(line, "raw", json_true());
    json_put_text(line, "queue", queue, strlen(queue));
    json_put_text(line, "state", state, strlen(state));
    json_put_int(line, score_name(state), reply_int(reply_at(row, ROW_SCORE)));
    json_put_int(line, "priority", reply_int(reply_at(row, ROW_PRIORITY)));
    put_tries(line, row);
    json_put_if(line, "host", reply_at(row, ROW_HOST));
    if (reply_int(reply_at(row, ROW_SINCE)) > 0)
        json_put_int(line, "since_ms", reply_int(reply_at(row, ROW_SINCE)));
    if (reply_int(reply_at(row, ROW_TIMEOUT)) > 0)
        json_put_int(line, "timeout_ms", reply_int(reply_at(row, ROW_TIMEOUT)));
    if (reply_len(key) > 0)
        json_put_bytes(line, "key", reply_str(key), reply_len(key));
    if (reply_len(gate) > 0)
        json_put_bytes(line, "gate", reply_str(gate), reply_len(gate));
    put_last(line, row, strcmp(state, "running") == 0);
    json_put_int(line, "payload_bytes", reply_int(reply_at(row, ROW_BYTES)));
    return line;
}

void job_row_put_start(json_t *line, const struct reply *row)
{
    /* A character that was cut would make it base64. */
    json_put_bytes(line, "payload_start", reply_str(reply_at(row, ROW_PREVIEW)),
                   job_row_preview(row));
}
