#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

#include "ask/shards.h"
#include "base/buf.h"
#include "cli/args/job_state.h"
#include "cli/args/queue_name.h"
#include "cli/bulk/job_json.h"
#include "cli/bulk/meter.h"
#include "cli/each_shard.h"
#include "cli/show/json.h"
#include "cli/show/out.h"

#define PAGE "100"
#define EXPORT "later_v1_export"

/* Elements of a page before its rows. */
enum { SET, SCORE, MEMBER, HOW_MANY, ROWS };

struct export
{
    struct cli *cli;
    const char *queue, *state;
    struct meter meter;
    uint64_t jobs, broken;
};

static void put_call(struct ask_call *call, const struct export *x, const struct reply *behind)
{
    *call = (struct ask_call){.n = 0};
    ask_call_puts(call, x->queue);
    ask_call_puts(call, x->state);
    for (size_t i = SET; i <= MEMBER; i++) {
        const struct reply *word = reply_at(behind, i);

        if (behind != NULL)
            ask_call_add(call, reply_str(word), reply_len(word));
        else
            ask_call_puts(call, i == SET ? "1" : "");
    }
    ask_call_puts(call, PAGE);
}

static bool is_last(const struct reply *page)
{
    return reply_len(reply_at(page, SET)) == 0;
}

static bool is_same_word(const struct reply *a, const struct reply *b)
{
    return reply_len(a) == reply_len(b) && memcmp(reply_str(a), reply_str(b), reply_len(a)) == 0;
}

/* A cursor that stands still would make us ask for ever. */
static int check_page(const struct reply *page, const struct reply *before, struct err *err)
{
    bool is_still = before != NULL && !is_last(page);

    for (size_t i = SET; i <= MEMBER && is_still; i++)
        is_still = is_same_word(reply_at(page, i), reply_at(before, i));
    if (is_still || reply_count(page) < ROWS)
        return err_set(err, ERR_DATA, "the list of jobs came with a bad cursor");
    return 0;
}

/* Of a shard's job its shard is told, too: another one may have a job of this id. */
static void put_line(const struct export *x, json_t *line)
{
    const char *id = json_string_value(json_object_get(line, "id"));
    char full[SHARDS_ID];

    if (id != NULL && x->cli->server.target.shards > 0) {
        (void)shards_show_id(&x->cli->server, id, full);
        json_put_text(line, "id", full, strlen(full));
    }
    json_print(line);
}

static void write_rows(struct export *x, const struct reply *page)
{
    for (size_t i = ROWS; i < reply_count(page); i++) {
        json_t *line = job_to_json(reply_at(page, i), x->queue, x->state);

        if (line != NULL)
            put_line(x, line);
        else
            x->broken++;
        x->jobs++;
    }
    meter_show(&x->meter, x->jobs, x->jobs);
}

/* Have the next page made while we write this one. */
static int send_call(struct export *x, const struct ask_call *call, struct err *err)
{
    struct ask_server *s = &x->cli->server;

    return client_fcall_send(s->client, s->target.ns, EXPORT, call->n, call->argv, call->lens, err);
}

/* The page that was sent for; of a slot that has moved, by its new owner. */
static struct reply *take_page(struct export *x, const struct ask_call *call, struct err *err)
{
    struct ask_server *s = &x->cli->server;
    struct reply *page = client_answer(s->client, err);

    return page == NULL && ask_is_elsewhere(s, err) ? ask_fcall(s, EXPORT, call, err) : page;
}

static int write_state(struct export *x, struct err *err)
{
    struct ask_call call;
    struct reply *page, *before = NULL;
    int result = 0;

    put_call(&call, x, NULL);
    page = ask_fcall(&x->cli->server, EXPORT, &call, err);
    while (page != NULL && result == 0 && !out_has_failed()) {
        bool goes_on = !is_last(page);

        result = check_page(page, before, err);
        put_call(&call, x, page);
        if (result == 0 && goes_on)
            result = send_call(x, &call, err);
        if (result < 0)
            break;
        write_rows(x, page);
        reply_free(before);
        before = page;
        if (!goes_on) {
            reply_free(before);
            return 0;
        }
        page = take_page(x, &call, err);
    }
    result = page != NULL && result == 0 ? 0 : -1;
    reply_free(before);
    reply_free(page);
    return result;
}

/* Count the jobs for the meter only. If we may not ask, it shows no bar. */
static void count(struct export *x)
{
    struct err ignored = ERR_INIT;
    struct ask_call call;
    struct reply *r;

    put_call(&call, x, NULL);
    call.argv[call.n - 1] = "1";
    call.lens[call.n - 1] = 1;
    r = ask_fcall(&x->cli->server, EXPORT, &call, &ignored);
    x->meter.size += (uint64_t)reply_int(reply_at(r, HOW_MANY));
    reply_free(r);
}

static int export(struct cli *cli, struct err *err)
{
    const char *given = cli_value(cli, "state");
    struct export x = {.cli = cli, .queue = cli->argv[0]};
    bool is_wanted[JOB_STATE_MAX];
    int result = 0;

    job_states_of(given != NULL ? given : "due,parked,running", is_wanted);
    if (ask_connect(&cli->server, err) < 0)
        return -1;
    meter_init(&x.meter, !out_is_tty(), 0);
    for (int i = 0; i < JOB_STATE_MAX && x.meter.is_shown; i++) {
        x.state = job_state_name((enum job_state)i);
        if (is_wanted[i])
            count(&x);
    }
    /* Read the states in the order in which jobs pass them: rather a job twice than never. */
    for (int i = 0; i < JOB_STATE_MAX && result == 0; i++) {
        x.state = job_state_name((enum job_state)i);
        if (is_wanted[i])
            result = write_state(&x, err);
    }
    meter_wipe(&x.meter);
    if (result == 0 && x.jobs == 0)
        return queue_name_check(cli, x.queue, err);
    if (result == 0 && x.broken > 0)
        return err_set(err, ERR_DATA,
                       "%llu of the jobs have a broken record: they were left out "
                       "(later fsck)",
                       (unsigned long long)x.broken);
    return result;
}

static int run(struct cli *cli, struct err *err)
{
    return each_shard_plain(cli, export, err);
}

static const struct cli_option options[] = {
    {"state", JOB_STATES_ARG, "which jobs (default: due,parked,running)"},
    {NULL, NULL, NULL},
};

const struct cli_verb cmd_export = {
    "export",
    "QUEUE",
    "write a queue's jobs as JSON Lines",
    "Write the jobs of QUEUE to standard output, a JSON object a line, with everything\n"
    "that `later import` takes to make them anew: due time, priority, payload, options;\n"
    "bytes that are no text as NAME_base64. Also told, for people: id, state, starts,\n"
    "attempts, crashes, the last outcome. Nothing is changed.\n"
    "\n"
    "  later export mail >mail.jsonl\n"
    "  later export mail --state dead | jq -r .payload\n"
    "\n"
    "A job that stays where it is while this runs comes exactly once. One that is started\n"
    "meanwhile may come twice, one that is put back or moved may be missed: pause the queue\n"
    "and let its jobs end for a picture of one instant.",
    1,
    1,
    false,
    options,
    run,
};
