/* later limits: the definitions of semaphores and rates. later throttle: a rate for a shell. */
#include "cli/cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/mem.h"
#include "base/text.h"
#include "cli/each_shard.h"
#include "cli/show/json.h"
#include "cli/show/out.h"
#include "cli/show/status.h"
#include "cli/show/table.h"

/* ---- later limits */

/* One row of later_limits, parsed. */
struct limit {
    const struct reply *name, *text;
    enum { UNKNOWN, SEMAPHORE, RATE } kind;
    long long n, per_ms, burst;
    char word[16]; /* on_lost or algorithm */
};

/* "semaphore N keep|kill" or "rate ALGORITHM N PER_MS BURST" */
static void parse(struct limit *l)
{
    const char *text = reply_str(l->text);

    if (sscanf(text, "semaphore %18lld %15s", &l->n, l->word) == 2)
        l->kind = SEMAPHORE;
    else if (sscanf(text, "rate %15s %18lld %18lld %18lld", l->word, &l->n, &l->per_ms,
                    &l->burst) == 4)
        l->kind = RATE;
    else
        l->kind = UNKNOWN;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(reply_str(((const struct limit *)a)->name),
                  reply_str(((const struct limit *)b)->name));
}

static void put_row(struct table *table, const struct limit *l)
{
    char per[24];

    table_add(table, reply_str(l->name), reply_len(l->name));
    if (l->kind == UNKNOWN) {
        table_add(table, reply_str(l->text), reply_len(l->text));
        for (int i = 0; i < 5; i++)
            table_printf(table, "%s", "");
        return;
    }
    table_printf(table, "%s", l->kind == RATE ? "rate" : "semaphore");
    table_printf(table, "%lld", l->n);
    table_printf(table, "%s", l->kind == RATE ? text_duration(l->per_ms, per) : "");
    if (l->kind == RATE && strcmp(l->word, "gcra") == 0)
        table_printf(table, "%lld", l->burst);
    else
        table_printf(table, "%s", "");
    table_printf(table, "%s", l->kind == RATE ? l->word : "");
    table_printf(table, "%s", l->kind == SEMAPHORE ? l->word : "");
}

static void put_json(const struct limit *l)
{
    json_t *line = json_object();

    json_put_text(line, "name", reply_str(l->name), reply_len(l->name));
    if (l->kind == UNKNOWN) {
        json_put_text(line, "kind", "unknown", 7);
        json_put_text(line, "definition", reply_str(l->text), reply_len(l->text));
    } else if (l->kind == SEMAPHORE) {
        json_put_text(line, "kind", "semaphore", 9);
        json_put_int(line, "limit", l->n);
        json_put_text(line, "on_lost", l->word, strlen(l->word));
    } else {
        json_put_text(line, "kind", "rate", 4);
        json_put_int(line, "limit", l->n);
        json_put_int(line, "per_ms", l->per_ms);
        json_put_text(line, "algorithm", l->word, strlen(l->word));
        if (strcmp(l->word, "gcra") == 0)
            json_put_int(line, "burst", l->burst);
    }
    json_print(line);
}

static int list(struct cli *cli, struct err *err)
{
    static const struct table_column columns[] = {
        {"NAME", false, true},    {"KIND", false, false}, {"LIMIT", true, false},
        {"PER", true, false},     {"BURST", true, false}, {"ALGORITHM", false, false},
        {"ON LOST", false, false}};
    struct reply *r = ask_words(&cli->server, err, "later_limits", NULL);
    CLEANUP_FREE struct limit *limits = NULL;
    size_t n = reply_count(r) / 2;
    struct table table;

    if (r == NULL)
        return -1;
    limits = mem_new((n + 1) * sizeof(*limits));
    for (size_t i = 0; i < n; i++) {
        limits[i].name = reply_at(r, 2 * i);
        limits[i].text = reply_at(r, 2 * i + 1);
        parse(&limits[i]);
    }
    qsort(limits, n, sizeof(*limits), by_name);
    table_init(&table, columns, sizeof(columns) / sizeof(columns[0]));
    for (size_t i = 0; i < n; i++) {
        if (cli->json)
            put_json(&limits[i]);
        else
            put_row(&table, &limits[i]);
    }
    if (!cli->json)
        table_flush(&table);
    table_done(&table);
    reply_free(r);
    return 0;
}

/* A limit has one name and one kind: a mistyped one takes it from all who use it. before: as
 * later_limits had it; NULL: not known */
static void warn_of_other_kind(const struct cli *cli, const struct reply *before)
{
    const char *name = cli->argv[1], *kind = cli->argv[2];

    for (size_t i = 0; i + 1 < reply_count(before); i += 2) {
        struct limit l = {.name = reply_at(before, i), .text = reply_at(before, i + 1)};

        if (!reply_is(l.name, name))
            continue;
        parse(&l);
        if (l.kind != UNKNOWN && (l.kind == RATE) != (strcasecmp(kind, "rate") == 0)) {
            CLEANUP_BUF struct buf text = BUF_INIT;

            text_escape(&text, reply_str(l.text), reply_len(l.text));
            (void)fprintf(stderr,
                          "later: %s was a %s until now (%s): who needs it as one waits for ever\n",
                          name, l.kind == RATE ? "rate" : "semaphore", buf_str(&text));
        }
    }
}

static int set(struct cli *cli, struct err *err)
{
    /* The name in this verb, the name in the library. */
    static const char *const names[][2] = {
        {"burst", "burst"}, {"algorithm", "algorithm"}, {"on-lost", "on_lost"}};
    struct ask_call call = {.n = 0}, none = {.n = 0};
    struct reply *r, *before;

    for (int i = 1; i < 4; i++)
        ask_call_puts(&call, cli->argv[i]);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (cli_value(cli, names[i][0]) == NULL)
            continue;
        ask_call_puts(&call, names[i][1]);
        ask_call_puts(&call, cli_value(cli, names[i][0]));
    }
    if (ask_connect(&cli->server, err) < 0)
        return -1;
    before = ask_aside(&cli->server, "later_limits", &none);
    r = ask_fcall(&cli->server, "later_limit_set", &call, err);
    if (r != NULL) {
        status_show(cli, "name", cli->argv[1], reply_str(r));
        (void)out_flush();
        warn_of_other_kind(cli, before);
    }
    reply_free(before);
    reply_free(r);
    return r != NULL ? 0 : -1;
}

static int delete (struct cli *cli, struct err *err)
{
    struct reply *r;
    bool was_there;

    r = ask_words(&cli->server, err, "later_limit_del", cli->argv[1], NULL);
    if (r == NULL)
        return -1;
    was_there = reply_int(r) != 0;
    reply_free(r);
    return status_deleted(cli, was_there, "limit", cli->argv[1], "later limits", err);
}

static bool has_options(const struct cli *cli)
{
    return cli_value(cli, "burst") != NULL || cli_value(cli, "algorithm") != NULL ||
           cli_value(cli, "on-lost") != NULL;
}

static int run_limits(struct cli *cli, struct err *err)
{
    static const char *const words[] = {"set", "delete", NULL};
    const char *word = cli->argc > 0 ? cli->argv[0] : NULL;
    bool is_set = word != NULL && strcmp(word, "set") == 0;
    const char *near;

    if (!is_set && has_options(cli))
        return err_set(err, ERR_USAGE,
                       "--burst, --algorithm and --on-lost belong to later limits set");
    if (word == NULL)
        return list(cli, err);
    if (is_set && cli->argc == 4)
        return set(cli, err);
    if (strcmp(word, "delete") == 0 && cli->argc == 2)
        return delete (cli, err);
    near = is_set || strcmp(word, "delete") == 0 ? NULL : text_nearest(word, words);
    if (near != NULL)
        return err_set(err, ERR_USAGE, "later limits has no such word: did you mean %s?", near);
    return err_set(err, ERR_USAGE,
                   "write later limits, later limits set NAME semaphore N, later limits set NAME "
                   "rate N/D or later limits delete NAME");
}

static const struct cli_option limits_options[] = {
    {"burst", "N", "of a rate: how many may pass at once (gcra; default: 1)"},
    {"algorithm", "gcra|funnel|sliding|fixed",
     "how a rate is counted (default: gcra, alias funnel)"},
    {"on-lost", "keep|kill", "the holders of a semaphore without Redis (default: keep)"},
    {NULL, NULL, NULL},
};

static int run_limits_each(struct cli *cli, struct err *err)
{
    return each_shard(cli, run_limits, err);
}

const struct cli_verb cmd_limits = {
    "limits",
    "[set NAME semaphore N | set NAME rate N/D | delete NAME]",
    "list, set and delete semaphores and rates",
    "List the limits of the fleet, or define one. A change holds at once for all that\n"
    "wait; who holds a permit keeps it. {key} in NAME makes it a template with permits of\n"
    "its own for every key. 0 closes a gate; without a definition it is closed too.\n"
    "\n"
    "  later limits set smtp semaphore 20\n"
    "  later limits set gateway rate 100/1m --burst 20\n"
    "  later limits set 'export:{key}' semaphore 1\n"
    "\n"
    "A daemon whose configuration says otherwise changes nothing here, but warns.",
    0,
    4,
    false,
    limits_options,
    run_limits_each,
};

/* ---- later throttle */

static int run_throttle(struct cli *cli, struct err *err)
{
    static const char *const names[] = {"limit", "left", "retry_after_ms", "reset_after_ms"};
    static const char *const options[] = {"quota", NULL};
    struct ask_call call = {.n = 0};
    struct reply *r;
    bool is_limited;

    ask_call_puts(&call, cli->argv[0]);
    cli_call_options(&call, cli, options);
    r = ask_fcall(&cli->server, "later_throttle", &call, err);
    if (r == NULL)
        return -1;
    if (reply_count(r) != 5) {
        reply_free(r);
        return err_set(err, ERR_DATA, "the library answered in a shape that is not known");
    }
    is_limited = reply_int(reply_at(r, 0)) != 0;
    if (cli->json) {
        json_t *line = json_object();

        (void)json_object_set_new(line, "limited", json_boolean(is_limited));
        for (size_t i = 0; i < 4; i++)
            json_put_int(line, names[i], reply_int(reply_at(r, i + 1)));
        json_print(line);
    } else {
        out_printf("%d", is_limited);
        for (size_t i = 1; i < 5; i++)
            out_printf(" %lld", (long long)reply_int(reply_at(r, i)));
        out_printf("\n");
    }
    reply_free(r);
    return is_limited ? 1 : 0;
}

static const struct cli_option throttle_options[] = {
    {"quota", "N", "count N starts, all or none (default: 1)"},
    {NULL, NULL, NULL},
};

const struct cli_verb cmd_throttle = {
    "throttle",
    "NAME",
    "count a start against a rate; exit 1 when it is used up",
    "Count a start against the rate NAME, which later limits or the configuration of a\n"
    "daemon defines, and print five numbers:\n"
    "\n"
    "  LIMITED         0 it passed and was counted, 1 it did not: the exit status, too\n"
    "  LIMIT           how many can pass at once\n"
    "  LEFT            how many could now\n"
    "  RETRY_AFTER_MS  when it would pass; -1 when it did, or never will\n"
    "  RESET_AFTER_MS  when all is as if nothing had been counted\n"
    "\n"
    "  later throttle gateway >/dev/null && curl https://gateway.example/\n"
    "\n"
    "Jobs that wait for the rate come first.",
    1,
    1,
    false,
    throttle_options,
    run_throttle,
};
