/* later run: run a handler once, without a daemon and without Redis. */
#include "cli/cli.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "base/text.h"
#include "cli/args/payload.h"
#include "cli/local_run.h"
#include "cli/show/json.h"
#include "cli/show/out.h"

#define ID "j00000000000" /* of no job */
#define NUMBER_MAX 1000000

/* What would become of the job. A cancelled run is none of laterd's ends. */
static const char *outcome(const struct verdict *v)
{
    if (v->verb == STORE_DONE)
        return "done";
    if (v->verb == STORE_RETRY)
        return "retry";
    return v->verb == STORE_BURY ? "dead" : "cancelled";
}

static int status_of(const struct local_run *r)
{
    const struct verdict *v = &r->verdict;

    if (v->verb == STORE_DONE)
        return 0;
    if (r->signal != 0)
        return 128 + r->signal;
    return v->code != 0 ? v->code : 1;
}

/* ---- the children */

typedef void child_f(void *arg, const char *const *words, const size_t *lens, size_t n);

static void each_child(const struct children *c, child_f *f, void *arg)
{
    const char *at = c->bytes.data, *words[CHILDREN_WORDS_MAX + 1] = {NULL};
    const size_t *lens = c->lens;

    for (size_t i = 0; i < c->n; i++) {
        for (size_t k = 0; k < c->counts[i]; k++) {
            words[k] = at;
            at += lens[k];
        }
        f(arg, words, lens, c->counts[i]);
        lens += c->counts[i];
    }
}

static void put_child(void *arg, const char *const *words, const size_t *lens, size_t n)
{
    (void)arg;
    out_label("adds");
    for (size_t k = 0; k < n; k++) {
        if (k > 0)
            out_printf(" ");
        out_text(words[k], lens[k]);
    }
    out_printf("\n");
}

static void child_to_json(void *arg, const char *const *words, const size_t *lens, size_t n)
{
    json_t *child = json_object(), *options = json_object();

    json_put_bytes(child, "queue", words[0], lens[0]);
    for (size_t k = 1; k + 2 < n; k += 2) {
        CLEANUP_FREE char *name = mem_printf("%.*s", (int)lens[k], words[k]);

        json_put_bytes(options, name, words[k + 1], lens[k + 1]);
    }
    json_put(child, "options", options);
    json_put_bytes(child, "payload", words[n - 1], lens[n - 1]);
    (void)json_array_append_new(arg, child);
}

/* ---- what came of it */

static void put_bytes(const char *label, const void *p, size_t n)
{
    if (n == 0)
        return;
    out_label(label);
    out_text(p, n);
    out_printf("\n");
}

static void show(const struct local_run *r)
{
    const struct verdict *v = &r->verdict;
    char shown[24];

    out_label("outcome");
    out_printf("%s", outcome(v));
    if (v->verb == STORE_RETRY)
        out_printf(" in %s", text_duration(v->amount, shown));
    out_printf("\n");
    put_bytes("reason", v->reason, strlen(v->reason));
    out_label("ran");
    out_printf("%s\n", text_duration(r->report.duration_us / 1000, shown));
    put_bytes("progress", r->progress.data, r->progress.len);
    put_bytes("checkpoint", r->checkpoint.data, r->checkpoint.len);
    put_bytes("result", r->report.result.data, r->report.result.len);
    if (v->verb == STORE_DONE)
        each_child(&r->report.children, put_child, NULL);
}

static void put_if(json_t *to, const char *name, const struct buf *b)
{
    if (b->len > 0)
        json_put_bytes(to, name, b->data, b->len);
}

static void show_json(const struct local_run *r)
{
    const struct verdict *v = &r->verdict;
    json_t *o = json_object(), *adds = json_array();

    json_put(o, "outcome", json_string(outcome(v)));
    json_put_int(o, "code", v->code);
    json_put_text(o, "reason", v->reason, strlen(v->reason));
    if (v->verb == STORE_RETRY)
        json_put_int(o, "retry_in_ms", v->amount);
    json_put_int(o, "run_ms", r->report.duration_us / 1000);
    put_if(o, "progress", &r->progress);
    put_if(o, "checkpoint", &r->checkpoint);
    put_if(o, "result", &r->report.result);
    if (v->verb == STORE_DONE)
        each_child(&r->report.children, child_to_json, adds);
    json_put(o, "adds", adds);
    json_put_int(o, "output_bytes", r->report.output_bytes);
    put_if(o, "output", &r->report.output);
    json_print(o);
}

/* ---- the call */

/* Store one text of the job, of at most size - 1 bytes. */
static int take_text(const struct cli *cli, const char *option, char *to, size_t size,
                     struct err *err)
{
    const char *text = cli_value(cli, option);

    if (text != NULL && strlen(text) >= size)
        return err_set(err, ERR_USAGE, "--%s: at most %zu bytes", option, size - 1);
    text_copy(to, size, text != NULL ? text : "");
    return 0;
}

/* A handler in the folder of handlers serves the queue that has its name, without the extension. */
static int take_queue(const struct cli *cli, struct job *job, struct err *err)
{
    const char *given = cli_value(cli, "queue"), *handler = cli->argv[0];
    const char *slash = strrchr(handler, '/'), *name = slash != NULL ? slash + 1 : handler;
    const char *dot = strrchr(name, '.');
    size_t n = dot != NULL ? (size_t)(dot - name) : strlen(name);

    if (given != NULL) {
        name = given;
        n = strlen(given);
    }
    if (!text_is_queue_name(name, n))
        return err_set(err, ERR_USAGE,
                       "'%.*s' is no name of a queue ([A-Za-z0-9][A-Za-z0-9_-]{0,63}): write "
                       "--queue NAME",
                       n < 80 ? (int)n : 80, name);
    memcpy(job->queue, name, n);
    return 0;
}

static int take_number(const struct cli *cli, const char *option, int64_t *ret, struct err *err)
{
    const char *text = cli_value(cli, option);

    if (text != NULL && text_parse_int(text, 1, NUMBER_MAX, ret) < 0)
        return err_set(err, ERR_USAGE, "--%s %.40s: write a number from 1 to %d", option, text,
                       NUMBER_MAX);
    return 0;
}

static int take_checkpoint(const struct cli *cli, struct job *job, struct err *err)
{
    const char *text = cli_value(cli, "checkpoint");

    if (text == NULL)
        return 0;
    if (strlen(text) > RUN_CHECKPOINT_BYTES || text[0] == '\0' || strchr(text, '\n') != NULL)
        return err_set(err, ERR_USAGE, "--checkpoint: one line of 1 to %d bytes",
                       RUN_CHECKPOINT_BYTES);
    job->checkpoint = mem_strdup(text);
    return 0;
}

/* A terminal is no payload: it is empty then. */
static int take_payload(const struct cli *cli, struct job *job, struct err *err)
{
    CLEANUP_BUF struct buf payload = BUF_INIT;

    if (!isatty(STDIN_FILENO) && payload_take(cli, cli->argc, &payload, err) < 0)
        return -1;
    job->payload_len = payload.len;
    job->payload = mem_dup(buf_str(&payload), payload.len + 1);
    return 0;
}

static int take_job(const struct cli *cli, struct job *job, struct err *err)
{
    text_copy(job->id, sizeof(job->id), ID);
    job->start = job->attempt = 1;
    job->priority = JOB_PRIORITY;
    job->due.ms = wall_skew_ms(0);
    job->keep_ms = -1;
    if (take_queue(cli, job, err) < 0 ||
        take_text(cli, "key", job->key, sizeof(job->key), err) < 0 ||
        take_number(cli, "attempt", &job->attempt, err) < 0 ||
        take_number(cli, "attempts", &job->attempts_max, err) < 0 ||
        cli_duration(cli, "timeout", &job->timeout_ms, err) < 0 ||
        take_checkpoint(cli, job, err) < 0)
        return -1;
    if (cli_value(cli, "timeout") != NULL && job->timeout_ms == 0)
        return err_set(err, ERR_USAGE, "--timeout 0: write a time limit: 250ms 10s 5m");
    return take_payload(cli, job, err);
}

static int run(struct cli *cli, struct err *err)
{
    const struct target_flags *flags = &cli->server.flags;
    const char *config = flags->config != NULL ? flags->config : getenv("LATERD_CONFIG");
    const char *ns = flags->ns != NULL ? flags->ns : getenv("LATER_NAMESPACE");
    struct local_run r = {.argv = cli->argv, .config = config, .ns = ns};
    int status = -1;

    if (take_job(cli, &r.job, err) == 0 && local_run(&r, err) == 0) {
        if (cli->json)
            show_json(&r);
        else
            show(&r);
        status = status_of(&r);
    }
    local_run_done(&r);
    return status;
}

static const struct cli_option options[] = {
    {"queue", "QUEUE", "LATER_QUEUE (default: the name of the file)"},
    {"key", "KEY", "LATER_KEY"},
    {"attempt", "N", "LATER_ATTEMPT (default: 1)"},
    {"attempts", "N", "so many it may have"},
    {"timeout", "D", "its time limit: 250ms 10s 5m"},
    {"checkpoint", "TEXT", "what an attempt before told: LATER_CHECKPOINT"},
    {NULL, NULL, NULL},
};

const struct cli_verb cmd_run = {
    "run",
    "HANDLER [--] [ARG]...",
    "run a handler once here, without a daemon and without Redis",
    "For tests of a handler. It gets the payload from standard input (none from a terminal)\n"
    "and the environment of a job, and may write to descriptor 3 as under laterd. Standard\n"
    "error has what laterd would log. When the handler has ended, what laterd would make of\n"
    "the job is printed: its outcome, the reason, what the handler told, and the jobs that it\n"
    "would add, which Redis would check then.\n"
    "\n"
    "The settings of the queue are those of --config or LATERD_CONFIG, without them the\n"
    "built-in ones; but it runs as you, without isolation, filters and the arguments that\n"
    "`handler` has there. `later step` runs its command and keeps nothing. Of a stream process\n"
    "see stream-check.\n"
    "\n"
    "Exit status: 0 if the job is done, else that of the handler, 128+N for signal N, 124\n"
    "after its timeout, 127 if it cannot be started; 65 if a job that it adds is refused.\n"
    "\n"
    "  printf 'good morning' | later run handlers/shout\n"
    "  later run --json --attempt 3 ./import --full <orders.csv | jq .outcome\n",
    1,
    CLI_COMMAND,
    false,
    options,
    run,
};
