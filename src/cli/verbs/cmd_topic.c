/* later topic: which queues get what is published. */
#include "cli/cli.h"

#include "ask/topics.h"
#include "cli/args/queue_name.h"
#include "cli/args/subcommands.h"
#include "cli/each_shard.h"
#include "cli/show/json.h"
#include "cli/show/out.h"
#include "cli/show/table.h"

#define COLUMNS 4

/* A row of a reply as an object with these names, as many as it has. */
static void put_json(const struct reply *row, const char *const names[COLUMNS])
{
    json_t *line = json_object();

    for (size_t i = 0; i < COLUMNS && i < reply_count(row); i++) {
        const struct reply *value = reply_at(row, i);

        if (reply_kind(value) == REPLY_INT)
            json_put_int(line, names[i], reply_int(value));
        else
            json_put_text(line, names[i], reply_str(value), reply_len(value));
    }
    json_print(line);
}

static void put_row(struct table *table, const struct reply *row)
{
    for (size_t i = 0; i < TOPICS_PUBLISHED; i++)
        table_add(table, reply_str(reply_at(row, i)), reply_len(reply_at(row, i)));
    table_printf(table, "%lld", (long long)reply_int(reply_at(row, TOPICS_PUBLISHED)));
}

static void show(const struct cli *cli, const struct topics *t)
{
    static const char *const names[COLUMNS] = {"topic", "queue", "origin", "published"};
    static const struct table_column columns[COLUMNS] = {
        {"TOPIC", false, 0}, {"QUEUE", false, 0}, {"ORIGIN", false, 0}, {"PUBLISHED", true, 0}};
    struct table table;

    table_init(&table, columns, COLUMNS);
    for (size_t i = 0; i < t->n; i++) {
        if (cli->json)
            put_json(t->row[i], names);
        else
            put_row(&table, t->row[i]);
    }
    if (!cli->json)
        table_flush(&table);
    table_done(&table);
}

static int run_ls(struct cli *cli, struct err *err)
{
    struct topics all;
    int rc = topics_read(&all, &cli->server, err);

    if (rc == 0)
        show(cli, &all);
    topics_done(&all);
    return rc;
}

/* Subscribe or unsubscribe. again: how people are told that it was so already. */
static int change(struct cli *cli, const char *function, const char *again, struct err *err)
{
    static const char *const names[COLUMNS] = {"topic", "queue", "status", ""};
    struct reply *r = ask_words(&cli->server, err, function, cli->argv[1], cli->argv[2], NULL);

    if (r == NULL)
        return -1;
    if (cli->json) {
        put_json(r, names);
    } else {
        out_printf("%s\n",
                   reply_is(reply_at(r, 2), "repeated") ? again : reply_str(reply_at(r, 2)));
    }
    reply_free(r);
    return 0;
}

static int run_subscribe(struct cli *cli, struct err *err)
{
    int rc = change(cli, "later_subscribe", "subscribed already", err);

    if (rc == 0)
        queue_name_warn(cli, cli->argv[2], "copies wait");
    return rc;
}

static int run_unsubscribe(struct cli *cli, struct err *err)
{
    return change(cli, "later_unsubscribe", "was not subscribed", err);
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

static int run_each(struct cli *cli, struct err *err)
{
    return each_shard(cli, run, err);
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
    "holds. ls: all, whether a file says so or a call, and how often something was\n"
    "published that fits.",
    1,
    3,
    false,
    NULL,
    run_each,
};
