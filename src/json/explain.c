#include "json/explain.h"

#include <stdbool.h>
#include <string.h>

#include "json/put.h"

static json_t *holders_json(const struct reply *list)
{
    json_t *out = json_array();

    for (size_t i = 0; i + EXPLAIN_HOLDER <= reply_count(list); i += EXPLAIN_HOLDER) {
        const struct reply *who = reply_at(list, i), *queue = reply_at(list, i + 1);
        const struct reply *host = reply_at(list, i + 2), *until = reply_at(list, i + 3);
        char kind = reply_str(who)[0];
        bool has_prefix = kind == '@' || kind == '=';
        json_t *one = json_object();

        json_put_text(one,
                      kind == '@'   ? "program"
                      : kind == '=' ? "caller"
                                    : "job",
                      reply_str(who) + has_prefix, reply_len(who) - has_prefix);
        if (reply_len(queue) > 0)
            json_put_text(one, "queue", reply_str(queue), reply_len(queue));
        if (reply_len(host) > 0)
            json_put_text(one, "host", reply_str(host), reply_len(host));
        if (reply_int(until) > 0)
            json_put_int(one, "until_ms", reply_int(until));
        (void)json_array_append_new(out, one);
    }
    return out;
}

static json_t *workers_json(const struct reply *list)
{
    json_t *out = json_array();

    for (size_t i = 0; i + EXPLAIN_WORKER <= reply_count(list); i += EXPLAIN_WORKER) {
        const struct reply *host = reply_at(list, i + 1), *why = reply_at(list, i + 3);
        json_t *one = json_object();

        json_put_int(one, "worker", reply_int(reply_at(list, i)));
        json_put_text(one, "host", reply_str(host), reply_len(host));
        json_put_int(one, "pid", reply_int(reply_at(list, i + 2)));
        json_put_text(one, "why", reply_str(why), reply_len(why));
        json_put_int(one, "held", reply_int(reply_at(list, i + 4)));
        json_put_int(one, "places", reply_int(reply_at(list, i + 5)));
        (void)json_array_append_new(out, one);
    }
    return out;
}

/* Whether a value is a number. A semaphore's limit is one, a rate's limit is its definition. */
static bool is_number(const char *name, bool is_rate)
{
    static const char *const numbers[] = {"ahead", "ahead_queue", "held",   "workers_live", "aside",
                                          "code",  "pid",         "worker", "limit",        NULL};
    size_t n = strlen(name);

    if (n > 3 && strcmp(name + n - 3, "_ms") == 0)
        return true;
    for (size_t i = 0; numbers[i] != NULL; i++)
        if (strcmp(name, numbers[i]) == 0)
            return !(is_rate && strcmp(name, "limit") == 0);
    return false;
}

json_t *explain_to_json(const struct reply *r)
{
    bool is_rate = reply_is(reply_named(r, "waits_for"), "rate");
    json_t *line = json_object();

    for (size_t i = 0; i + 1 < reply_count(r); i += 2) {
        const char *name = reply_str(reply_at(r, i));
        const struct reply *value = reply_at(r, i + 1);

        if (strcmp(name, "holders") == 0)
            (void)json_object_set_new(line, name, holders_json(value));
        else if (strcmp(name, "workers") == 0)
            (void)json_object_set_new(line, name, workers_json(value));
        else if (is_number(name, is_rate))
            json_put_int(line, name, reply_int(value));
        else if (strcmp(name, "gate") == 0)
            json_put_bytes(line, name, reply_str(value), reply_len(value));
        else
            json_put_text(line, name, reply_str(value), reply_len(value));
    }
    return line;
}
