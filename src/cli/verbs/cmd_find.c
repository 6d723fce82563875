/* later find: names by their first letters. */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "cli/args/recents.h"
#include "cli/each_shard.h"
#include "cli/show/json.h"
#include "cli/show/out.h"
#include "cli/show/table.h"

#define COUNT 100
#define COUNT_MAX 10000 /* of later_find */
#define SOME_MAX 1000   /* where it tells several kinds */
#define COMPLETE_MS 500 /* nobody waits longer for a shell */

static const struct cli_option options[] = {
    {"kind", "batch|gate|job|lock|queue|rate|schedule|sem|topic",
     "only names of this kind; gate: locks, semaphores and rates"},
    {"count", "N", "at most so many of a kind (default: 100)"},
    {"complete", NULL, "for shells: bare names, within half a second or none"},
    {NULL, NULL, NULL},
};

struct find {
    struct cli *cli;
    const char *prefix, *kind; /* kind NULL: all */
    int64_t count;
    bool completes;
    struct table table;
    size_t found, of_kind;
    char last[16]; /* the kind of the last name */
    bool has_more;
};

/* Letters that a shell leaves as they are, or that it can quote. */
static bool is_plain(const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (p[i] <= ' ' || p[i] > '~')
            return false;
    }
    return n > 0;
}

static void show(struct find *f, const char *kind, const char *name, size_t n)
{
    if (strcmp(kind, f->last) != 0) {
        text_copy(f->last, sizeof(f->last), kind);
        f->of_kind = 0;
    }
    if (++f->of_kind > (size_t)f->count) {
        f->has_more = true;
        return;
    }
    f->found++;
    if (f->completes) {
        if (is_plain(name, n))
            out_printf("%.*s\n", (int)n, name);
    } else if (f->cli->json) {
        json_t *line = json_object();

        json_put_text(line, "kind", kind, strlen(kind));
        json_put_bytes(line, "name", name, n);
        json_print(line);
    } else {
        table_add(&f->table, kind, strlen(kind));
        table_add(&f->table, name, n);
    }
}

/* Call a function. A shell that completes does not load the library. */
static struct reply *call_by(struct find *f, const char *function, const struct ask_call *call,
                             struct err *err)
{
    return f->completes ? ask_loaded(&f->cli->server, function, call, err)
                        : ask_fcall(&f->cli->server, function, call, err);
}

/* kind: NULL for all */
static int find_kind(struct find *f, const char *kind, struct err *err)
{
    struct ask_call call = {.n = 0};
    int64_t limit = f->count < COUNT_MAX ? f->count + 1 : f->count;
    struct reply *r;
    char text[24];

    (void)snprintf(text, sizeof(text), "%lld", (long long)limit);
    ask_call_puts(&call, f->prefix);
    ask_call_puts(&call, "limit");
    ask_call_puts(&call, text);
    if (kind != NULL) {
        ask_call_puts(&call, "kind");
        ask_call_puts(&call, kind);
    }
    r = call_by(f, "later_find", &call, err);
    if (r == NULL)
        return -1;
    for (size_t i = 0; i + 1 < reply_count(r); i += 2)
        show(f, reply_str(reply_at(r, i)), reply_str(reply_at(r, i + 1)),
             reply_len(reply_at(r, i + 1)));
    reply_free(r);
    return 0;
}

/* Very many names come kind by kind, so that each call is short. */
static int find_names(struct find *f, struct err *err)
{
    static const char *const all[] = {"batch",    "lock", "queue", "rate",
                                      "schedule", "sem",  "topic", NULL},
                             *const gates[] = {"lock", "rate", "sem", NULL};
    bool are_gates = f->kind != NULL && strcmp(f->kind, "gate") == 0;
    int rc = 0;

    if (f->count < SOME_MAX || (f->kind != NULL && !are_gates))
        return find_kind(f, f->kind, err);
    for (const char *const *kind = are_gates ? gates : all; rc == 0 && *kind != NULL; kind++)
        rc = find_kind(f, *kind, err);
    return rc;
}

/* Of all jobs only those are found that this user added last. */
static int find_jobs(struct find *f, struct err *err)
{
    struct ask_call call = {.n = 0};
    struct reply *r;
    char who[320];

    recents_who(who, sizeof(who));
    ask_call_puts(&call, who);
    r = call_by(f, "later_v1_recents", &call, err);
    if (r == NULL)
        return -1;
    for (size_t i = 0; i < reply_count(r); i++) {
        const char *id = reply_str(reply_at(r, i));

        if (strncmp(id, f->prefix, strlen(f->prefix)) == 0)
            show(f, "job", id, reply_len(reply_at(r, i)));
    }
    reply_free(r);
    return 0;
}

/* Could these be the first letters of an id, and not only of a name? */
static bool is_of_id(const char *prefix)
{
    return prefix[0] == 'j' && prefix[1] >= '0' && prefix[1] <= '9' && strlen(prefix) <= 12;
}

static int find_all(struct find *f, struct err *err)
{
    bool is_job = f->kind != NULL && strcmp(f->kind, "job") == 0;

    if (ask_target(&f->cli->server, err) < 0)
        return -1;
    if (f->completes && f->cli->server.target.timeout_ms > COMPLETE_MS)
        f->cli->server.target.timeout_ms = COMPLETE_MS;
    if (ask_connect(&f->cli->server, err) < 0)
        return -1;
    if (!is_job && find_names(f, err) < 0)
        return -1;
    return is_job || (f->kind == NULL && is_of_id(f->prefix)) ? find_jobs(f, err) : 0;
}

static int not_found(const struct find *f, struct err *err)
{
    CLEANUP_BUF struct buf safe = BUF_INIT;

    if (f->prefix[0] == '\0')
        return err_set(err, ERR_INPUT, "there are no names%s%s", f->kind != NULL ? " of kind " : "",
                       f->kind != NULL ? f->kind : "");
    text_escape(&safe, f->prefix, strlen(f->prefix));
    text_cut(&safe, 64);
    return err_set(err, ERR_INPUT, "no name%s%s begins with '%s'",
                   f->kind != NULL ? " of kind " : "", f->kind != NULL ? f->kind : "",
                   buf_str(&safe));
}

static int find_here(struct cli *cli, struct err *err)
{
    static const struct table_column columns[] = {{"KIND", false, TABLE_WHOLE},
                                                  {"NAME", false, TABLE_WHOLE}};
    struct find f = {.cli = cli,
                     .prefix = cli->argc > 0 ? cli->argv[0] : "",
                     .kind = cli_value(cli, "kind"),
                     .count = COUNT,
                     .completes = cli_value(cli, "complete") != NULL};
    const char *count = cli_value(cli, "count");
    int rc;

    if (count != NULL && text_parse_int(count, 1, COUNT_MAX, &f.count) < 0)
        return err_set(err, ERR_USAGE, "--count %.40s is not a number from 1 to %d", count,
                       COUNT_MAX);
    table_init(&f.table, columns, sizeof(columns) / sizeof(columns[0]));
    rc = find_all(&f, err);
    if (rc == 0 && !cli->json && f.found > 0 && !f.completes)
        table_flush(&f.table);
    table_done(&f.table);
    if (f.completes)
        return 0;
    if (rc == 0 && f.found == 0)
        return not_found(&f, err);
    if (rc == 0 && f.has_more)
        (void)fprintf(stderr, "later: there are more: %s--count N\n",
                      f.kind != NULL && strcmp(f.kind, "job") == 0 ? ""
                                                                   : "write more letters, or ");
    return rc;
}

/* The jobs that were added last are remembered here, not in Redis. */
static int run(struct cli *cli, struct err *err)
{
    const char *kind = cli_value(cli, "kind");

    if (kind != NULL && strcmp(kind, "job") == 0)
        return find_here(cli, err);
    return cli_value(cli, "complete") != NULL ? each_shard_plain(cli, find_here, err)
                                              : each_shard(cli, find_here, err);
}

const struct cli_verb cmd_find = {
    "find",
    "[PREFIX]",
    "find queues, gates, schedules, batches and topics by their first letters",
    "List the names that begin with PREFIX, with their kind; without PREFIX all. A queue has\n"
    "a name once it is used or served; a lock, if a queue declares it; a semaphore or rate,\n"
    "if it has a limit; a topic, if a queue subscribes to it.\n"
    "\n"
    "  later find ma\n"
    "  later find --kind batch import- --count 1000\n"
    "\n"
    "--kind job lists the jobs that you added last, the newest first (up to 100, for 30\n"
    "days). Verbs that take an ID also take @ for the newest of them, @2 for the one before,\n"
    "and so on:\n"
    "\n"
    "  later add mail --in 5m hello\n"
    "  later show @\n"
    "\n"
    "The completion of bash and zsh asks this verb. Exit status: 66 nothing was found.",
    0,
    1,
    false,
    options,
    run,
};
