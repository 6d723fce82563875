/* later seen: was this key here before? The Bloom filters of the library. */
#include "cli/cli.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cli/bulk/seen_lines.h"
#include "cli/complain.h"
#include "cli/each_shard.h"
#include "cli/show/json.h"
#include "cli/show/out.h"
#include "cli/show/status.h"
#include "cli/show/table.h"

#define STATUS_SEEN 1
#define STATUS_REFUSED 65

static const char *const option_names[] = {"for", "error", "capacity", NULL};

/* ---- later seen NAME KEY, later seen NAME --lines */

static int ask(struct cli *cli, struct err *err)
{
    struct ask_call call = {.n = 0};
    const char *status;
    struct reply *r;
    bool is_seen;

    ask_call_puts(&call, cli->argv[0]);
    ask_call_puts(&call, cli->argv[1]);
    cli_call_options(&call, cli, option_names);
    r = ask_fcall(&cli->server, "later_seen", &call, err);
    if (r == NULL)
        return -1;
    is_seen = reply_int(reply_at(r, 0)) != 0;
    status = is_seen ? "seen" : "new";
    reply_free(r);
    if (cli->json)
        seen_put_json(cli->argv[0], cli->argv[1], strlen(cli->argv[1]), status);
    else
        out_printf("%s\n", status);
    return is_seen ? STATUS_SEEN : 0;
}

static int ask_lines(struct cli *cli, struct err *err)
{
    struct ask_call options = {.n = 0};

    cli_call_options(&options, cli, option_names);
    return seen_lines(cli, cli->argv[0], &options, "-", err);
}

/* Status 1 says that a key was seen, so a refusal must have another one. */
static int tell_refusal(const struct cli *cli, const struct err *err)
{
    if (complain_status(err) != STATUS_SEEN)
        return -1;
    complain(cli, err);
    return STATUS_REFUSED;
}

/* ---- later seen ls, later seen rm */

/* The elements of a row of later_seen_list. */
enum { NAME, KEYS, BYTES, FOR_MS, ERROR, CAPACITY, UNTIL_MS, EARLY };

static void put_json(const struct reply *row)
{
    static const char *const names[] = {"name",  "keys",     "bytes",    "for_ms",
                                        "error", "capacity", "until_ms", "early"};
    json_t *line = json_object();

    for (size_t i = NAME; i <= EARLY; i++) {
        const struct reply *value = reply_at(row, i);

        if (i == NAME)
            json_put_text(line, names[i], reply_str(value), reply_len(value));
        else if (i == ERROR)
            (void)json_object_set_new(line, names[i], json_real(strtod(reply_str(value), NULL)));
        else
            json_put_int(line, names[i], reply_int(value));
    }
    json_print(line);
}

static void put_row(struct table *table, const struct reply *row, int64_t now_ms)
{
    char bytes[24], lasts[24], until[48];

    table_add(table, reply_str(reply_at(row, NAME)), reply_len(reply_at(row, NAME)));
    table_printf(table, "%lld", (long long)reply_int(reply_at(row, KEYS)));
    table_printf(table, "%s", text_size(reply_int(reply_at(row, BYTES)), bytes));
    table_printf(table, "%s", text_duration(reply_int(reply_at(row, FOR_MS)), lasts));
    table_printf(table, "%s", reply_str(reply_at(row, ERROR)));
    table_printf(table, "%lld", (long long)reply_int(reply_at(row, CAPACITY)));
    table_printf(table, "%s", out_when(reply_int(reply_at(row, UNTIL_MS)), now_ms, until));
    if (reply_int(reply_at(row, EARLY)) > 0)
        table_printf(table, "%lld", (long long)reply_int(reply_at(row, EARLY)));
    else
        table_printf(table, "%s", "");
}

static int list(struct cli *cli, struct err *err)
{
    static const struct table_column columns[] = {
        {"NAME", false, true},      {"KEYS", true, false},      {"MEMORY", true, false},
        {"FOR", true, false},       {"ERROR", true, false},     {"CAPACITY", true, false},
        {"FORGOTTEN", false, true}, {"FULL", true, TABLE_SPARE}};
    struct reply *r = ask_words(&cli->server, err, "later_seen_list", NULL);
    struct table table;
    int64_t now_ms;

    if (r == NULL)
        return -1;
    now_ms = cli->json ? 0 : ask_now_ms(&cli->server);
    table_init(&table, columns, sizeof(columns) / sizeof(columns[0]));
    for (size_t i = 0; i < reply_count(r); i++) {
        if (cli->json)
            put_json(reply_at(r, i));
        else
            put_row(&table, reply_at(r, i), now_ms);
    }
    if (!cli->json)
        table_flush(&table);
    table_done(&table);
    reply_free(r);
    return 0;
}

static int forget(struct cli *cli, struct err *err)
{
    struct reply *r;
    bool was_there;

    r = ask_words(&cli->server, err, "later_seen_del", cli->argv[1], NULL);
    if (r == NULL)
        return -1;
    was_there = reply_int(r) != 0;
    reply_free(r);
    return status_deleted(cli, was_there, "Bloom filter", cli->argv[1], "later seen ls", err);
}

/* ---- the verb */

static bool has_options(const struct cli *cli)
{
    for (size_t i = 0; option_names[i] != NULL; i++)
        if (cli_value(cli, option_names[i]) != NULL)
            return true;
    return cli_value(cli, "lines") != NULL;
}

static int run(struct cli *cli, struct err *err)
{
    bool is_ls = strcmp(cli->argv[0], "ls") == 0, is_rm = strcmp(cli->argv[0], "rm") == 0;
    bool has_lines = cli_value(cli, "lines") != NULL;
    int status;

    if ((is_ls || is_rm) && has_options(cli))
        return err_set(err, ERR_USAGE, "later seen %s takes no options", cli->argv[0]);
    if (is_ls && cli->argc == 1)
        return each_shard(cli, list, err);
    if (is_rm && cli->argc == 2)
        return forget(cli, err);
    if (is_ls || is_rm || has_lines != (cli->argc == 1))
        return err_set(err, ERR_USAGE,
                       "write later seen NAME KEY, later seen NAME --lines, later seen ls or "
                       "later seen rm NAME");
    status = has_lines ? ask_lines(cli, err) : ask(cli, err);
    return status < 0 ? tell_refusal(cli, err) : status;
}

static const struct cli_option options[] = {
    {"for", "D", "how long it remembers a key at least (default: 1d)"},
    {"error", "P", "how many of the new keys it may take for seen (default: 0.0001)"},
    {"capacity", "N", "how many keys it is made for within D (default: 1000000)"},
    {"lines", NULL, "a key is a line of standard input: print the new ones"},
    {NULL, NULL, NULL},
};

const struct cli_verb cmd_seen = {
    "seen",
    "NAME KEY | NAME --lines | ls | rm NAME",
    "was this key here before? exit 1 if it was",
    "Print whether KEY is new or was seen before, and remember it under NAME. Exit status:\n"
    "0 new, 1 seen; all others are errors.\n"
    "\n"
    "  later seen orders \"$id\" --for 7d && later add mail \"$order\"\n"
    "  later seen urls --lines <urls >new-urls\n"
    "\n"
    "A key that was told is seen for D after the last time, and forgotten after 2 D at\n"
    "most. The memory is fixed, whatever the keys: it is a Bloom filter, which takes one\n"
    "new key in 10,000 (--error) for one that it has seen. With more than --capacity keys\n"
    "within D it forgets earlier. The first call of a NAME fixes its options; later ones\n"
    "may leave them out.\n"
    "\n"
    "ls: all names. FORGOTTEN: when all is forgotten if no key comes; FULL: how often it\n"
    "had to forget earlier. rm: forget all now. No NAME may be `ls` or `rm` here.",
    1,
    2,
    false,
    options,
    run,
};
