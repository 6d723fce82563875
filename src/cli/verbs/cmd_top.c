/* The verb top: which queues or keys failed most, were busy longest, started latest; which tenants
 * of a fair queue had most run time. */
#include "cli/cli.h"

#include <string.h>

#include "base/text.h"
#include "cli/each_shard.h"
#include "cli/show/json.h"
#include "cli/show/out.h"
#include "cli/show/table.h"
#include "redis/reply.h"

enum { ROW_NAME, ROW_N, ROW_FIRST_MS, ROW_IS_MORE };

/* later_v1_tenants: the elements of its reply, and of a row. */
enum { TENANTS_NOW, TENANTS_DUE, TENANTS_RAN, TENANTS_ROWS };
enum { TENANT_NAME, TENANT_RAN, TENANT_DUE, TENANT_FIRST, TENANT_BEFORE };

static void row_json(const struct reply *row, const char *value)
{
    json_t *line = json_object();

    json_put_bytes(line, "name", reply_str(reply_at(row, ROW_NAME)),
                   reply_len(reply_at(row, ROW_NAME)));
    json_put_int(line, value, reply_int(reply_at(row, ROW_N)));
    json_put_int(line, "first_ms", reply_int(reply_at(row, ROW_FIRST_MS)));
    (void)json_object_set_new(line, "at_most",
                              json_boolean(reply_is(reply_at(row, ROW_IS_MORE), "1")));
    json_print(line);
}

static void show(const struct reply *r, bool is_time, bool of_keys)
{
    const struct table_column columns[] = {{"", true, false},
                                           {of_keys ? "KEY" : "QUEUE", false, true},
                                           {is_time ? "TIME" : "FAILED", true, false},
                                           {"FIRST", false, TABLE_SPARE}};
    int64_t now_ms = reply_int(reply_at(r, 0));
    struct table t;
    char text[48];

    table_init(&t, columns, sizeof(columns) / sizeof(columns[0]));
    for (size_t i = 1; i < reply_count(r); i++) {
        const struct reply *row = reply_at(r, i);
        const char *more = reply_is(reply_at(row, ROW_IS_MORE), "1") ? "<= " : "";
        int64_t n = reply_int(reply_at(row, ROW_N));

        table_printf(&t, "%zu", i);
        table_add(&t, reply_str(reply_at(row, ROW_NAME)), reply_len(reply_at(row, ROW_NAME)));
        if (is_time)
            table_printf(&t, "%s%s", more, text_span(n, text));
        else
            table_printf(&t, "%s%lld", more, (long long)n);
        table_printf(&t, "%s", out_when(reply_int(reply_at(row, ROW_FIRST_MS)), now_ms, text));
    }
    table_flush(&t);
    table_done(&t);
}

/* ---- tenants */

static void tenant_json(const struct reply *row)
{
    json_t *line = json_object();

    json_put_bytes(line, "tenant", reply_str(reply_at(row, TENANT_NAME)),
                   reply_len(reply_at(row, TENANT_NAME)));
    json_put_int(line, "ran_ms", reply_int(reply_at(row, TENANT_RAN)));
    json_put_int(line, "due", reply_int(reply_at(row, TENANT_DUE)));
    if (reply_len(reply_at(row, TENANT_FIRST)) > 0 ||
        reply_kind(reply_at(row, TENANT_FIRST)) == REPLY_INT)
        json_put_int(line, "first_due_ms", reply_int(reply_at(row, TENANT_FIRST)));
    if (reply_int(reply_at(row, TENANT_DUE)) > 0)
        json_put_int(line, "before", reply_int(reply_at(row, TENANT_BEFORE)));
    json_print(line);
}

/* A tenant of the table; all: the run time of all. */
static void add_tenant(struct table *t, const struct reply *row, int64_t all, int64_t now_ms)
{
    const struct reply *name = reply_at(row, TENANT_NAME), *first = reply_at(row, TENANT_FIRST);
    int64_t ran = reply_int(reply_at(row, TENANT_RAN)), due = reply_int(reply_at(row, TENANT_DUE));
    char text[48];

    if (reply_len(name) > 0)
        table_add(t, reply_str(name), reply_len(name));
    else
        table_printf(t, "(no key)");
    table_printf(t, "%s", text_span(ran, text));
    table_printf(t, "%lld %%", all > 0 ? (long long)((100 * ran + all / 2) / all) : 0LL);
    table_printf(t, "%lld", (long long)due);
    table_printf(t, "%s",
                 reply_kind(first) == REPLY_INT ? text_span(now_ms - reply_int(first), text) : "");
    if (due > 0)
        table_printf(t, "%lld", (long long)reply_int(reply_at(row, TENANT_BEFORE)));
    else
        table_printf(t, "%s", "");
}

static void show_tenants(const struct reply *r)
{
    static const struct table_column columns[] = {
        {"TENANT", false, true}, {"RAN", true, false},   {"SHARE", true, false},
        {"DUE", true, false},    {"WAITS", true, false}, {"BEFORE", true, TABLE_SPARE}};
    int64_t all = reply_int(reply_at(r, TENANTS_RAN)), now_ms = reply_int(reply_at(r, TENANTS_NOW));
    struct table t;

    table_init(&t, columns, sizeof(columns) / sizeof(columns[0]));
    for (size_t i = TENANTS_ROWS; i < reply_count(r); i++)
        add_tenant(&t, reply_at(r, i), all, now_ms);
    table_flush(&t);
    table_done(&t);
    out_printf("%lld tenants have due jobs\n", (long long)reply_int(reply_at(r, TENANTS_DUE)));
}

static int run_tenants(struct cli *cli, struct err *err)
{
    const char *count = cli_value(cli, "count");
    struct reply *r;

    if (cli->argc < 2)
        return err_set(err, ERR_USAGE, "give the queue: later top tenants QUEUE");
    if (cli_value(cli, "by") != NULL || cli_value(cli, "days") != NULL)
        return err_set(err, ERR_USAGE,
                       "tenants take neither --by nor --days: their run time is that "
                       "of the last minute");
    r = ask_words(&cli->server, err, "later_v1_tenants", cli->argv[1], count != NULL ? count : "20",
                  NULL);
    if (r == NULL)
        return -1;
    for (size_t i = TENANTS_ROWS; cli->json && i < reply_count(r); i++)
        tenant_json(reply_at(r, i));
    if (!cli->json)
        show_tenants(r);
    reply_free(r);
    return 0;
}

/* ---- boards */

static int run_top(struct cli *cli, struct err *err)
{
    const char *of = cli->argc > 0 ? cli->argv[0] : "queues";
    const char *by = cli_value(cli, "by") != NULL ? cli_value(cli, "by") : "failed";
    bool is_time = strcmp(by, "failed") != 0, of_keys = strcmp(of, "keys") == 0;
    struct ask_call call = {.n = 0};
    struct reply *r;

    if (strcmp(of, "tenants") == 0)
        return run_tenants(cli, err);
    if (!of_keys && strcmp(of, "queues") != 0)
        return err_set(err, ERR_USAGE, "give queues, keys or tenants, not '%s'", of);
    if (cli->argc > 1)
        return err_set(err, ERR_USAGE, "only tenants take a queue");
    ask_call_puts(&call, by);
    ask_call_puts(&call, of);
    cli_call_options(&call, cli, (const char *const[]){"days", "count", NULL});
    r = ask_fcall(&cli->server, "later_top", &call, err);
    if (r == NULL)
        return -1;
    for (size_t i = 1; cli->json && i < reply_count(r); i++)
        row_json(reply_at(r, i), is_time ? "ms" : "failed");
    if (!cli->json && reply_count(r) > 1)
        show(r, is_time, of_keys);
    else if (!cli->json)
        out_printf("nothing was counted in this time\n");
    reply_free(r);
    return 0;
}

static const struct cli_option top_options[] = {
    {"by", "failed|busy|late",
     "failed attempts (default), time of all runs, lateness of all starts"},
    {"days", "N", "today (in UTC) and the days before it, 1 to 8 (default: 1)"},
    {"count", "N", "so many lines, of tenants at most 100 (default: 20)"},
    {NULL, NULL, NULL},
};

static int run_top_each(struct cli *cli, struct err *err)
{
    return each_shard(cli, run_top, err);
}

const struct cli_verb cmd_top = {
    "top",
    "[queues|keys|tenants QUEUE]",
    "show which queues, keys of jobs or tenants fail or work most",
    "Show the queues, or the keys of jobs, that had most failed attempts, ran longest, or\n"
    "started latest, all runs or starts together. Of equal ones the one that came first is "
    "first.\n"
    "A day keeps 512 names. A name that came to a full list is shown with \"<=\": it may have "
    "less.\n"
    "Workers tell what they counted every ten seconds.\n"
    "Of a fair queue it shows the tenants that had most run time in the last minute, how many of "
    "their\n"
    "jobs are due, how long the first has waited, and how many tenants go first.",
    0,
    2,
    false,
    top_options,
    run_top_each,
};
