/* later topic: which queues get what is published. */
#include "cli/cli.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
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

/* All rows; the replies that have them. */
struct all {
    const struct reply **row;
    size_t n;
    struct reply **page;
    size_t npages;
};

static void all_done(struct all *a)
{
    for (size_t i = 0; i < a->npages; i++)
        reply_free(a->page[i]);
    free((void *)a->page);
    free((void *)a->row);
}

/* The next page. 0 or -1. */
static int read_page(struct cli *cli, const char *cursor, struct all *a, struct err *err)
{
    struct cli_call call = {.n = 0};
    struct reply *r;

    cli_call_puts(&call, cursor);
    r = cli_fcall(cli, "later_topics", &call, err);
    if (r == NULL)
        return -1;
    a->page = mem_grow(a->page, a->npages + 1, sizeof(struct reply *));
    a->page[a->npages++] = r;
    for (size_t i = 1; i < reply_count(r); i++) {
        a->row = mem_grow(a->row, a->n + 1, sizeof(struct reply *));
        a->row[a->n++] = reply_at(r, i);
    }
    return 0;
}

static int by_topic(const void *a, const void *b)
{
    const struct reply *x = *(const struct reply *const *)a, *y = *(const struct reply *const *)b;
    int c = strcmp(reply_str(reply_at(x, 0)), reply_str(reply_at(y, 0)));

    return c != 0 ? c : strcmp(reply_str(reply_at(x, 1)), reply_str(reply_at(y, 1)));
}

static int read_all(struct cli *cli, struct all *a, struct err *err)
{
    const char *cursor = "0";

    do {
        if (read_page(cli, cursor, a, err) < 0)
            return -1;
        cursor = reply_str(reply_at(a->page[a->npages - 1], 0));
    } while (strcmp(cursor, "0") != 0);
    if (a->n > 1)
        qsort((void *)a->row, a->n, sizeof(struct reply *), by_topic);
    return 0;
}

static void show(const struct cli *cli, const struct all *a)
{
    static const struct table_column columns[COLUMNS] = {
        {"TOPIC", false, 0}, {"QUEUE", false, 0}, {"ORIGIN", false, 0}};
    struct table table;

    table_init(&table, columns, COLUMNS);
    for (size_t i = 0; i < a->n; i++) {
        /* A page may bring again what one before it has brought. */
        if (i > 0 && by_topic(&a->row[i - 1], &a->row[i]) == 0)
            continue;
        if (cli->json)
            put_json(a->row[i], "origin");
        for (size_t k = 0; k < COLUMNS && !cli->json; k++)
            table_add(&table, reply_str(reply_at(a->row[i], k)), reply_len(reply_at(a->row[i], k)));
    }
    if (!cli->json)
        table_flush(&table);
    table_done(&table);
}

static int run_ls(struct cli *cli, struct err *err)
{
    struct all all = {NULL, 0, NULL, 0};
    int rc = read_all(cli, &all, err);

    if (rc == 0)
        show(cli, &all);
    all_done(&all);
    return rc;
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
