#include "cli/cli.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/text.h"
#include "cli/show/failures.h"
#include "cli/show/json.h"
#include "cli/show/out.h"
#include "cli/show/outcome.h"

#define PAYLOAD_SHOWN 1024

enum field_kind { TEXT, NUMBER, INSTANT, LENGTH, STATE };

/* The fields that later_show may return, in the order they are shown. */
static const struct field {
    const char *name;
    const char *label;
    enum field_kind kind;
} fields[] = {
    {"id", "id", TEXT},
    {"queue", "queue", TEXT},
    {"state", "state", STATE},
    {"priority", "priority", NUMBER},
    {"added_ms", "added", INSTANT},
    {"started_ms", "runs since", INSTANT},
    {"due_ms", "due", INSTANT},
    {"died_ms", "died", INSTANT},
    {"until_ms", "kept until", INSTANT},
    {"gate", "waits for", TEXT},
    {"worker", "worker", NUMBER},
    {"progress", "progress", TEXT},
    {"cancelling", "cancelling since", INSTANT},
    {"attempt", "attempts", NUMBER},
    {"attempts_max", "attempts at most", NUMBER},
    {"starts", "starts", NUMBER},
    {"crashes", "crashes", NUMBER},
    {"key", "key", TEXT},
    {"timeout_ms", "timeout", LENGTH},
    {"expire_ms", "expires after", LENGTH},
    {"keep_ms", "keep", LENGTH},
    {"trace", "trace", TEXT},
    {"lock", "lock", TEXT},
    {"sem", "semaphore", TEXT},
    {"rate", "rate", TEXT},
    {"unique", "unique key", TEXT},
    {"unique_until_ms", "key taken until", INSTANT},
    {"then", "goes on in", TEXT},
    {"on_dead", "death is told to", TEXT},
    {"parent", "caused by", TEXT},
    {"reason", "since that died", TEXT},
};

static void put_instant(int64_t ms, int64_t now_ms)
{
    char instant[48], when[48];

    out_printf("%s", out_instant(ms, instant));
    if (now_ms != 0)
        out_printf(" (%s)", out_when(ms, now_ms, when));
}

static void put_value(const struct field *f, const struct reply *value, int64_t now_ms)
{
    char length[24];
    bool is_dead = f->kind == STATE && reply_is(value, "dead");
    bool is_done = f->kind == STATE && reply_is(value, "done");

    switch (f->kind) {
    case INSTANT:
        put_instant(reply_int(value), now_ms);
        break;
    case LENGTH:
        out_printf("%s", text_duration(reply_int(value), length));
        break;
    case STATE:
        out_printf("%s", out_style(is_dead ? OUT_BAD : is_done ? OUT_GOOD : OUT_PLAIN));
        out_text(reply_str(value), reply_len(value));
        out_printf("%s", out_style(OUT_PLAIN));
        break;
    case TEXT:
    case NUMBER:
        out_text(reply_str(value), reply_len(value));
        break;
    }
    out_printf("\n");
}

static void put_outcome(const struct outcome *o, int64_t now_ms)
{
    out_label("last outcome");
    out_text(o->state, strlen(o->state));
    if (o->code != 0)
        out_printf(", exit status %lld", (long long)o->code);
    out_printf(", start %lld, ", (long long)o->start);
    put_instant(o->when_ms, now_ms);
    if (o->text_len > 0) {
        out_printf("\n");
        out_label("");
        out_text(o->text, o->text_len);
    }
    out_printf("\n");
    if (o->output_len == 0)
        return;
    out_label("output");
    out_printf("\n");
    out_lines(o->output, o->output_len);
}

static void put_payload(const char *id, const struct reply *payload)
{
    size_t n = reply_len(payload);

    out_label("payload");
    out_printf("%zu %s\n", n, n == 1 ? "byte" : "bytes");
    if (n == 0)
        return;
    out_text(reply_str(payload), n < PAYLOAD_SHOWN ? n : PAYLOAD_SHOWN);
    out_printf("\n");
    if (n > PAYLOAD_SHOWN) {
        out_printf("... (the first %d bytes; later show ", PAYLOAD_SHOWN);
        out_text(id, strlen(id));
        out_printf(" --payload has them all)\n");
    }
}

static void show(struct cli *cli, const struct reply *r)
{
    const struct reply *last = reply_named(r, "outcome");
    int64_t now_ms = cli_now_ms(cli);
    struct outcome outcome;

    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        const struct reply *value = reply_named(r, fields[i].name);

        if (value == NULL)
            continue;
        out_label(fields[i].label);
        put_value(&fields[i], value, now_ms);
    }
    if (outcome_parse(reply_str(last), reply_len(last), &outcome) == 0)
        put_outcome(&outcome, now_ms);
    failures_show(reply_named(r, "failures"), now_ms);
    put_payload(cli->argv[0], reply_named(r, "payload"));
}

static void show_json(const struct reply *r)
{
    const struct reply *last = reply_named(r, "outcome");
    const struct reply *payload = reply_named(r, "payload");
    json_t *line = json_object(), *failures;
    struct outcome outcome;

    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        const struct reply *value = reply_named(r, fields[i].name);

        if (value == NULL)
            continue;
        if (fields[i].kind == TEXT || fields[i].kind == STATE)
            json_put_text(line, fields[i].name, reply_str(value), reply_len(value));
        else
            json_put_int(line, fields[i].name, reply_int(value));
    }
    if (outcome_parse(reply_str(last), reply_len(last), &outcome) == 0) {
        json_t *object = json_object();

        outcome_to_json(&outcome, object);
        (void)json_object_set_new(line, "outcome", object);
    }
    failures = failures_to_json(reply_named(r, "failures"));
    if (failures != NULL)
        (void)json_object_set_new(line, "failures", failures);
    json_put_int(line, "payload_bytes", (int64_t)reply_len(payload));
    json_put_bytes(line, "payload", reply_str(payload), reply_len(payload));
    json_print(line);
}

static int run(struct cli *cli, struct err *err)
{
    struct cli_call call = {.n = 0};
    struct reply *r;

    cli_call_puts(&call, cli->argv[0]);
    r = cli_fcall(cli, "later_show", &call, err);
    if (r == NULL)
        return -1;
    if (cli_value(cli, "payload") != NULL)
        out_bytes(reply_str(reply_named(r, "payload")), reply_len(reply_named(r, "payload")));
    else if (cli->json)
        show_json(r);
    else
        show(cli, r);
    reply_free(r);
    return 0;
}

static const struct cli_option options[] = {
    {"payload", NULL, "only the payload, as it is, byte for byte"},
    {NULL, NULL, NULL},
};

const struct cli_verb cmd_show = {
    "show",
    "ID",
    "show one job",
    "Show a job: its state, when it was added, started and is due, its attempts, how the\n"
    "last one ended, the last five that failed, and its payload (escaped, the first KiB). A done "
    "job is known as long as its queue or\n"
    "its own keep says; by default it is forgotten at once. A parked job waits for a\n"
    "gate (a lock, semaphore or rate), or was let in and is about to start. Its queue's\n"
    "own gates are not shown: they are not part of the job.",
    1,
    1,
    false,
    options,
    run,
};
