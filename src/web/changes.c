#include "web/changes.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/shard.h"
#include "json/put.h"

/* The answer of a function that says [name, status, due_ms], or the status alone. what: of which
 * kind the thing of this address is, as `later --json` calls it; NULL for a new job. */
static json_t *told(struct api_call *call, const char *what, struct reply *r)
{
    bool is_list = reply_count(r) > 0;
    json_t *out;

    if (r == NULL)
        return NULL;
    out = api_object_now(call);
    if (what != NULL)
        json_put_text(out, what, call->name[0], strlen(call->name[0]));
    else
        json_put_reply(out, "id", reply_at(r, 0));
    json_put_reply(out, "status", is_list ? reply_at(r, 1) : r);
    if (reply_count(r) > 2)
        json_put_int(out, "due_ms", reply_int(reply_at(r, 2)));
    reply_free(r);
    return out;
}

static json_t *retry(struct api_call *call)
{
    return told(call, "id", api_ask(call, "later_retry", call->name[0], NULL));
}

static json_t *cancel(struct api_call *call)
{
    return told(call, "id", api_ask(call, "later_cancel", call->name[0], NULL));
}

static json_t *run_now(struct api_call *call)
{
    return told(call, "id", api_ask(call, "later_run_now", call->name[0], NULL));
}

static json_t *reschedule(struct api_call *call)
{
    const char *at = api_text(call, "at");

    if (at == NULL) {
        err_fill(&call->err, ERR_USAGE, "give \"at\": a time, such as \"+10m\" or ms since 1970");
        return NULL;
    }
    return told(call, "id", api_ask(call, "later_reschedule", call->name[0], at, NULL));
}

/* NAME by WHO reason TEXT [for D] */
static json_t *pause_by(struct api_call *call, const char *what, const char *function)
{
    const char *reason = api_text(call, "reason"), *span = api_text(call, "for");

    reason = reason != NULL ? reason : "";
    return told(call, what,
                api_ask(call, function, call->name[0], "by", call->who, "reason", reason,
                        span != NULL ? "for" : NULL, span, NULL));
}

static json_t *pause_queue(struct api_call *call)
{
    return pause_by(call, "queue", "later_pause");
}

static json_t *resume_queue(struct api_call *call)
{
    return told(call, "queue", api_ask(call, "later_resume", call->name[0], NULL));
}

static json_t *pause_schedule(struct api_call *call)
{
    return pause_by(call, "schedule", "later_schedule_pause");
}

static json_t *resume_schedule(struct api_call *call)
{
    return told(call, "schedule", api_ask(call, "later_schedule_resume", call->name[0], NULL));
}

static json_t *run_schedule(struct api_call *call)
{
    return told(call, NULL, api_ask(call, "later_schedule_run", call->name[0], NULL));
}

#define OPTIONS_MAX 8

/* The words of a call, and the numbers among them as texts. */
struct words {
    struct ask_call call;
    char numbers[OPTIONS_MAX][24];
};

/* Append this option and its value. False with call->err: it is no text or whole number. */
static bool put_option(struct api_call *call, struct words *w, const char *name, char number[24])
{
    const json_t *value = json_object_get(call->in, name);
    const char *text = api_text(call, name);

    if (json_is_integer(value)) {
        (void)snprintf(number, 24, "%lld", (long long)json_integer_value(value));
        text = number;
    }
    if (value != NULL && text == NULL) {
        err_fill(&call->err, ERR_USAGE, "\"%s\" is neither a text nor a whole number", name);
        return false;
    }
    if (text != NULL && text[0] != '\0') {
        ask_call_puts(&w->call, name);
        ask_call_puts(&w->call, text);
    }
    return true;
}

/* Append those of the names (NULL-ended, at most OPTIONS_MAX) that were given; an empty one was
 * not. False with call->err. */
static bool put_options(struct api_call *call, struct words *w, const char *const *names)
{
    for (size_t i = 0; names[i] != NULL; i++)
        if (!put_option(call, w, names[i], w->numbers[i]))
            return false;
    return true;
}

/* In another shard than its key's a job would not meet the others of this key. */
static bool is_its_shard(struct api_call *call)
{
    const char *key =
        api_text(call, "key") != NULL ? api_text(call, "key") : api_text(call, "unique");
    int shards = call->api->shards, shard;

    if (key == NULL || shards == 0)
        return true;
    shard = shard_of(key, strlen(key), shards);
    if (shard != call->api->shard)
        err_fill(&call->err, ERR_USAGE, "key %.80s belongs to shard %d: add the job there", key,
                 shard);
    return shard == call->api->shard;
}

/* Those of later_add that the page has fields for. */
static json_t *add(struct api_call *call)
{
    static const char *const options[] = {"at",     "in",       "priority", "key",
                                          "unique", "attempts", "token",    NULL};
    const char *queue = api_text(call, "queue"), *payload;
    const json_t *body = json_object_get(call->in, "payload");
    struct words words = {.call = {.n = 0}};

    if (queue == NULL || !json_is_string(body)) {
        err_fill(&call->err, ERR_USAGE, "give \"queue\" and \"payload\" as texts");
        return NULL;
    }
    payload = json_string_value(body);
    ask_call_puts(&words.call, queue);
    if (!put_options(call, &words, options) || !is_its_shard(call))
        return NULL;
    ask_call_add(&words.call, payload, json_string_length(body));
    return told(call, NULL, ask_fcall(call->server, "later_add", &words.call, &call->err));
}

/* ---- bulks */

/* Whoever sends it empty did not mean all jobs. */
static bool is_empty(const struct api_call *call, const char *name)
{
    const char *text = api_text(call, name);

    return text != NULL && text[0] == '\0';
}

static json_t *begin_bulk(struct api_call *call)
{
    static const char *const options[] = {"reason", "key",    "to",  "rate",
                                          "at",     "spread", "why", NULL};
    const char *verb = api_text(call, "verb"), *queue = api_text(call, "queue");
    const char *state = api_text(call, "state");
    struct words words = {.call = {.n = 0}};
    struct reply *r;
    json_t *out;

    if (verb == NULL || queue == NULL || state == NULL) {
        err_fill(&call->err, ERR_USAGE, "give \"verb\", \"queue\" and \"state\" as texts");
        return NULL;
    }
    if (is_empty(call, "reason") || is_empty(call, "key")) {
        err_fill(&call->err, ERR_USAGE,
                 "an empty reason or key means no job: leave it out for all");
        return NULL;
    }
    ask_call_puts(&words.call, verb);
    ask_call_puts(&words.call, queue);
    ask_call_puts(&words.call, state);
    ask_call_puts(&words.call, "by");
    ask_call_puts(&words.call, call->who);
    if (!put_options(call, &words, options))
        return NULL;
    r = ask_fcall(call->server, "later_bulk", &words.call, &call->err);
    if (r == NULL)
        return NULL;
    out = api_object_now(call);
    json_put_reply(out, "bulk", reply_at(r, 0));
    json_put_reply(out, "status", reply_at(r, 1));
    json_put_int(out, "total", reply_int(reply_at(r, 2)));
    reply_free(r);
    return out;
}

static json_t *abort_bulk(struct api_call *call)
{
    struct reply *r = api_ask(call, "later_bulk_abort", call->name[0], call->who, NULL);
    json_t *out;

    if (r == NULL)
        return NULL;
    out = api_object_now(call);
    json_put_reply(out, "bulk", reply_at(r, 0));
    json_put_reply(out, "status", reply_at(r, 1));
    json_put_int(out, "left", reply_int(reply_at(r, 2)));
    reply_free(r);
    return out;
}

const struct route write_routes[] = {
    {true, "jobs", add},
    {true, "jobs/*/retry", retry},
    {true, "jobs/*/cancel", cancel},
    {true, "jobs/*/run", run_now},
    {true, "jobs/*/reschedule", reschedule},
    {true, "queues/*/pause", pause_queue},
    {true, "queues/*/resume", resume_queue},
    {true, "schedules/*/pause", pause_schedule},
    {true, "schedules/*/resume", resume_schedule},
    {true, "schedules/*/run", run_schedule},
    {true, "bulks", begin_bulk},
    {true, "bulks/*/abort", abort_bulk},
    {true, NULL, NULL},
};
