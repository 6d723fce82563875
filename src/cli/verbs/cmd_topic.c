/* later topic: which queues get what is published. */
#include "cli/cli.h"

#include <string.h>

#include "cli/args/queue_name.h"
#include "cli/args/subcommands.h"
#include "cli/show/json.h"
#include "cli/show/out.h"
#include "cli/show/table.h"

#define COLUMNS 3

/* A topic, a queue and what `third` names. */
static void put_json(const struct reply *row, const char *third)
{
    const char *const names[COLUMNS] = {"topic", "queue", third};
    json_t *line = json_object();

    for (size_t i = 0; i < COLUMNS; i++)
        json_put_text(line, names[i], reply_str(reply_at(row, i)), reply_len(reply_at(row, i)));
    json_print(line);
}

static int run_ls(struct cli *cli, struct err *err)
{
    static const struct table_column columns[COLUMNS] = {
        {"TOPIC", false, 0}, {"QUEUE", false, 0}, {"ORIGIN", false, 0}};
    const struct cli_call none = {.n = 0};
    struct reply *r = cli_fcall(cli, "later_topics", &none, err);
    struct table table;

    if (r == NULL)
        return -1;
    table_init(&table, columns, COLUMNS);
    for (size_t i = 0; i < reply_count(r); i++) {
        const struct reply *row = reply_at(r, i);

        if (cli->json)
            put_json(row, "origin");
        for (size_t k = 0; k < COLUMNS && !cli->json; k++)
            table_add(&table, reply_str(reply_at(row, k)), reply_len(reply_at(row, k)));
    }
    if (!cli->json)
        table_flush(&table);
    table_done(&table);
    reply_free(r);
    return 0;
}

/* Subscribe or unsubscribe. */
static int change(struct cli *cli, const char *function, struct err *err)
{
    struct cli_call call = {.n = 0};
    struct reply *r;

    cli_call_puts(&call, cli->argv[1]);
    cli_call_puts(&call, cli->argv[2]);
    r = cli_fcall(cli, function, &call, err);
    if (r == NULL)
        return -1;
    if (cli->json) {
        put_json(r, "status");
    } else {
        out_text(reply_str(reply_at(r, 2)), reply_len(reply_at(r, 2)));
        out_printf("\n");
    }
    reply_free(r);
    return 0;
}

static int run_subscribe(struct cli *cli, struct err *err)
{
    int rc = change(cli, "later_subscribe", err);

    if (rc == 0)
        queue_name_warn(cli, cli->argv[2]);
    return rc;
}

static int run_unsubscribe(struct cli *cli, struct err *err)
{
    return change(cli, "later_unsubscribe", err);
}

static const struct subcommand subcommands[] = {
    {"ls", 0, 0, "nothing", (const char *const[]){NULL}, run_ls},
    {"subscribe", 2, 2, "TOPIC QUEUE", (const char *const[]){NULL}, run_subscribe},
    {"unsubscribe", 2, 2, "TOPIC QUEUE", (const char *const[]){NULL}, run_unsubscribe},
    {NULL, 0, 0, NULL, NULL, NULL},
};

static int run(struct cli *cli, struct err *err)
{
    return subcommands_run(cli, subcommands, err);
}

const struct cli_verb cmd_topic = {
    "topic",
    "ls | subscribe TOPIC QUEUE | unsubscribe TOPIC QUEUE",
    "which queues get what is published",
    "A queue that subscribes to a topic gets a job of its own for each `later publish`,\n"
    "also while no worker serves it. TOPIC is order.paid; user.* (all topics that begin\n"
    "with `user.`); or * (all). A queue gets one copy, however many fit.\n"
    "\n"
    "  later topic subscribe 'user.*' welcome\n"
    "\n"
    "The file of a daemon says the same with `topics:` under its queue; what was read last\n"
    "holds. ls: all, and whether a file says so or a call.",
    1,
    3,
    false,
    NULL,
    run,
};
