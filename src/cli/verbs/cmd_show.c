#include "cli/cli.h"

#include <stdlib.h>
#include <string.h>

#include "cli/show/failures.h"
#include "cli/show/fields.h"
#include "cli/show/json.h"
#include "cli/show/out.h"
#include "json/job.h"
#include "json/outcome.h"
#include "json/steps.h"

#define PAYLOAD_SHOWN 1024

/* The title of bytes that follow. */
static void put_bytes(const char *label, size_t n)
{
    out_label(label);
    out_printf("%zu %s\n", n, n == 1 ? "byte" : "bytes");
}

static void put_outcome(const struct outcome *o, int64_t now_ms)
{
    out_label("last outcome");
    out_text(o->state, strlen(o->state));
    if (o->code != 0)
        out_printf(", exit status %lld", (long long)o->code);
    out_printf(", start %lld, ", (long long)o->start);
    fields_put_instant(o->when_ms, now_ms);
    if (o->reason_len > 0) {
        out_printf("\n");
        out_label("");
        out_text(o->reason, o->reason_len);
    }
    out_printf("\n");
    if (o->output_len == 0)
        return;
    put_bytes("output", o->output_len);
    out_lines(o->output, o->output_len);
}

static void put_steps(const struct reply *steps)
{
    struct kept_step s;

    for (size_t at = 0, n = 0; steps_next(steps, &at, &s); n++) {
        out_label(n == 0 ? "steps kept" : "");
        out_text(s.name, s.name_len);
        out_printf(", %zu %s\n", s.output_len, s.output_len == 1 ? "byte" : "bytes");
    }
}

static void put_payload(const char *id, const struct reply *payload)
{
    size_t n = reply_len(payload);

    put_bytes("payload", n);
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
    int64_t now_ms = ask_now_ms(&cli->server);
    struct outcome outcome;

    fields_show(job_fields, job_nfields, r, now_ms);
    put_steps(reply_named(r, "steps"));
    if (outcome_parse(reply_str(last), reply_len(last), &outcome) == 0)
        put_outcome(&outcome, now_ms);
    failures_show(reply_named(r, "failures"), now_ms);
    put_payload(cli->argv[0], reply_named(r, "payload"));
}

static void show_json(const struct reply *r)
{
    const struct reply *payload = reply_named(r, "payload");
    json_t *line = shown_job_to_json(r);

    json_put_bytes(line, "payload", reply_str(payload), reply_len(payload));
    json_print(line);
}

static int run(struct cli *cli, struct err *err)
{
    struct reply *r = ask_words(&cli->server, err, "later_show", cli->argv[0], NULL);

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
