/* later publish: a job for each queue that subscribes to a topic. */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

#include "ask/add_call.h"
#include "ask/shards.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "cli/args/payload.h"
#include "cli/args/recents.h"
#include "cli/show/json.h"
#include "cli/show/out.h"

#define TOO_FEW 1 /* exit status */

static const struct cli_option options[] = {
    {"in", "D", "run them after this time: 250ms 10s 5m 1h30m 7d"},
    {"at", "TIME", "run them at: tomorrow 09:00, 18:00, 2030-01-31T09:00:00Z, @SECONDS"},
    {"priority", "P", "0 first ... 9 last (default: 5)"},
    {"key", "K", "what they are about; the handlers get it as LATER_KEY"},
    {"attempts", "N", "starts before one is dead (default: its queue's)"},
    {"timeout", "D", "how long one attempt may run"},
    {"expire", "D", "dead if not started within this time of when it was due"},
    {"keep", "D", "how long the outcome is kept when it is done"},
    {"token", "T", "publish once: the same token within 24 h adds no further copy"},
    {"trace", "T", "a W3C traceparent for the handlers"},
    {"require", "N", "exit 1 if fewer queues can run their copy"},
    {NULL, NULL, NULL},
};

static void show(const struct cli *cli, const struct reply *row, bool is_own_token)
{
    const char *queue = reply_str(reply_at(row, 0)), *status = reply_str(reply_at(row, 2));
    char id[SHARDS_ID];

    (void)shards_show_id(&cli->server, reply_str(reply_at(row, 1)), id);

    /* Our own first call got through. */
    if (is_own_token && strcmp(status, "repeated") == 0)
        status = "added";
    if (cli->json) {
        json_t *line = json_object();

        json_put_text(line, "queue", queue, strlen(queue));
        json_put_text(line, "id", id, strlen(id));
        json_put_text(line, "status", status, strlen(status));
        json_print(line);
        return;
    }
    out_text(id, strlen(id));
    out_printf("  ");
    out_text(queue, strlen(queue));
    out_printf("%s%s\n", out_is_tty() || strcmp(status, "added") != 0 ? "  " : "",
               out_is_tty() || strcmp(status, "added") != 0 ? status : "");
}

static struct reply *publish(struct cli *cli, bool is_own_token, struct err *err)
{
    static const char *const names[] = {"in",       "at",      "priority", "key",
                                        "attempts", "timeout", "expire",   "keep",
                                        "token",    "trace",   NULL};
    CLEANUP_BUF struct buf payload = BUF_INIT;
    struct ask_call call = {.n = 0};
    char token[ADD_TOKEN];

    if (ask_target(&cli->server, err) < 0 || payload_take(cli, 1, &payload, err) < 0)
        return NULL;
    ask_call_puts(&call, cli->argv[0]);
    cli_call_options(&call, cli, names);
    if (is_own_token && add_token(&call, token, err) < 0)
        return NULL;
    ask_call_add(&call, buf_str(&payload), payload.len);
    return add_call(&cli->server, "later_publish", &call, err);
}

/* Tell each copy. Returns how many can run. */
static int64_t show_all(const struct cli *cli, const struct reply *r, bool is_own_token)
{
    int64_t n = 0;

    for (size_t i = 1; i < reply_count(r); i++) {
        show(cli, reply_at(r, i), is_own_token);
        n += !reply_is(reply_at(reply_at(r, i), 2), "buried");
    }
    return n;
}

static int run(struct cli *cli, struct err *err)
{
    bool is_own_token = cli_value(cli, "token") == NULL;
    const char *require = cli_value(cli, "require");
    int64_t least = 0, n;
    struct reply *r;

    if (require != NULL && text_parse_int(require, 0, 100, &least) < 0)
        return err_set(err, ERR_USAGE, "--require %.40s is not a number from 0 to 100", require);
    r = publish(cli, is_own_token, err);
    if (r == NULL)
        return -1;
    n = show_all(cli, r, is_own_token);
    recents_note_rows(cli, r, 1, 1);
    reply_free(r);
    if (n == 0 && !cli->json)
        (void)fprintf(stderr, "later: no queue has got a copy (`later topic ls` lists them)\n");
    if (n >= least)
        return 0;
    (void)fprintf(stderr, "later: only %lld of the required %lld queues can run their copy\n",
                  (long long)n, (long long)least);
    return TOO_FEW;
}

const struct cli_verb cmd_publish = {
    "publish",
    "TOPIC [PAYLOAD|-]",
    "put a job into each queue that subscribes to a topic",
    "Put a job with PAYLOAD into each queue that subscribes to TOPIC, in one call: all or\n"
    "none. PAYLOAD is read as by `later add`.\n"
    "\n"
    "  later publish order.paid --key 42 '{\"order\":42}'\n"
    "\n"
    "It prints a line for each copy: its id, and its queue. A queue that cannot take its\n"
    "copy (its max_payload is smaller, or its gates need a key) has it among its dead,\n"
    "`buried`: it cannot fail the publisher. Who subscribes later gets nothing of it.\n"
    "Handlers find the topic in LATER_TOPIC.",
    1,
    2,
    false,
    options,
    run,
};
