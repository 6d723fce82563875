/* later explain: what one job waits for. The library makes the sentence (later_explain). */
#include "cli/cli.h"

#include <string.h>

#include "cli/show/json.h"
#include "cli/show/out.h"

#define HOLDER 4 /* values per holder, and per worker, in their lists */
#define WORKER 6

/* The instants that a reply may have, in the order they are shown. */
static const struct {
    const char *name, *label;
} instants[] = {
    {"added_ms", "added"},
    {"due_ms", "due"},
    {"granted_ms", "let in"},
    {"since_ms", "since"},
    {"held_since_ms", "held since"},
    {"unserved_since_ms", "unserved since"},
    {"beat_ms", "last heartbeat"},
    {"cancelling_ms", "cancelling since"},
    {"died_ms", "died"},
    {"ended_ms", "ended"},
    {"until_ms", "until"},
};

static void put(const struct reply *value)
{
    out_text(reply_str(value), reply_len(value));
}

/* ---- for people */

static void show_instants(const struct reply *r, int64_t now_ms)
{
    char instant[48], when[48];

    for (size_t i = 0; i < sizeof(instants) / sizeof(instants[0]); i++) {
        const struct reply *value = reply_named(r, instants[i].name);

        if (value == NULL)
            continue;
        out_label(instants[i].label);
        out_printf("%s (%s)\n", out_instant(reply_int(value), instant),
                   out_when(reply_int(value), now_ms, when));
    }
}

static void show_holders(const struct reply *list, int64_t now_ms)
{
    char when[48];

    for (size_t i = 0; i + HOLDER <= reply_count(list); i += HOLDER) {
        const struct reply *who = reply_at(list, i), *queue = reply_at(list, i + 1);
        const struct reply *host = reply_at(list, i + 2), *until = reply_at(list, i + 3);
        bool is_caller = reply_str(who)[0] == '=';

        out_label(i == 0 ? "held by" : "");
        out_text(reply_str(who) + is_caller, reply_len(who) - is_caller);
        if (reply_len(queue) > 0) {
            out_printf(" of queue ");
            put(queue);
        }
        if (reply_len(host) > 0) {
            out_printf(" on ");
            put(host);
        }
        if (reply_int(until) > 0)
            out_printf(" until its lease ends, %s", out_when(reply_int(until), now_ms, when));
        out_printf("\n");
    }
}

static void show_workers(const struct reply *list)
{
    for (size_t i = 0; i + WORKER <= reply_count(list); i += WORKER) {
        out_label(i == 0 ? "workers" : "");
        put(reply_at(list, i));
        out_printf(" on ");
        put(reply_at(list, i + 1));
        out_printf(" (pid ");
        put(reply_at(list, i + 2));
        out_printf("): ");
        put(reply_at(list, i + 3));
        out_printf(", %lld of %lld places\n", (long long)reply_int(reply_at(list, i + 4)),
                   (long long)reply_int(reply_at(list, i + 5)));
    }
}

static void show(const struct reply *r)
{
    int64_t now_ms = reply_int(reply_named(r, "now_ms"));

    out_printf("%s", out_style(OUT_BOLD));
    put(reply_named(r, "id"));
    out_printf("%s (", out_style(OUT_PLAIN));
    put(reply_named(r, "queue"));
    out_printf(", ");
    put(reply_named(r, "state"));
    out_printf("): ");
    put(reply_named(r, "text"));
    out_printf("\n");
    show_instants(r, now_ms);
    show_holders(reply_named(r, "holders"), now_ms);
    show_workers(reply_named(r, "workers"));
}

/* ---- for programs */

static json_t *holders_json(const struct reply *list)
{
    json_t *out = json_array();

    for (size_t i = 0; i + HOLDER <= reply_count(list); i += HOLDER) {
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

    for (size_t i = 0; i + WORKER <= reply_count(list); i += WORKER) {
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

static void show_json(const struct reply *r)
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
        else
            json_put_text(line, name, reply_str(value), reply_len(value));
    }
    json_print(line);
}

static int run(struct cli *cli, struct err *err)
{
    struct cli_call call = {.n = 0};
    struct reply *r;

    cli_call_puts(&call, cli->argv[0]);
    r = cli_fcall(cli, "later_explain", &call, err);
    if (r == NULL)
        return -1;
    if (cli->json)
        show_json(r);
    else
        show(r);
    reply_free(r);
    return 0;
}

const struct cli_verb cmd_explain = {
    "explain",
    "ID",
    "why a job does not run: the one thing it waits for",
    "Name the one thing that a job waits for: that it is due, its queue to be resumed, a\n"
    "lock (who holds it, where, since when), a semaphore (how full, who holds it), a rate\n"
    "(when the next one passes), with how many are before it; a worker that serves its\n"
    "queue, or room in one; or its turn. A running job is explained by where it runs, a\n"
    "dead one by what it died of and what `later retry` would do.\n"
    "\n"
    "ID may be QUEUE@UNIQUE. With --json the facts by name: waits_for is one of time pause\n"
    "lock semaphore rate worker room alone turn handler retry nothing (doc/protocol.md).",
    1,
    1,
    false,
    NULL,
    run,
};
