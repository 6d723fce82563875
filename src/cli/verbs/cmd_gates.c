/* later gates: who holds locks, semaphores and rates, and who waits for them. */
#include "cli/cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ask/replies.h"
#include "base/cleanup.h"
#include "base/mem.h"
#include "base/text.h"
#include "cli/each_shard.h"
#include "cli/show/json.h"
#include "cli/show/out.h"
#include "cli/show/table.h"
#include "json/gate.h"

#define SCAN_COUNT "1000"
#define PER_CALL 40 /* gates per call, as doc/gates.md says: see ASK_CALL_MAX */
#define SHOWN 3     /* holders, and waiters, in a row of the table */

static const char *const kinds[] = {"lock:", "sem:", "rate:"};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

struct gates {
    struct cli *cli;
    char **ids; /* kind:NAME */
    size_t n;
    bool is_quiet; /* idle gates are not shown */
    size_t shown;
    int64_t now_ms;
    struct reply *workers; /* later_v1_workers */
    struct table table;
};

static void add(struct gates *g, char *id)
{
    g->ids = mem_grow(g->ids, g->n + 1, sizeof(*g->ids));
    g->ids[g->n++] = id;
}

static bool has_kind(const char *name)
{
    for (size_t i = 0; i < KINDS; i++) {
        if (strncmp(name, kinds[i], strlen(kinds[i])) == 0 && name[strlen(kinds[i])] != '\0')
            return true;
    }
    return false;
}

/* ---- which */

/* rest: a key without its root: lock:NAME, sem:NAME, wait:KIND:NAME, or a key of no gate. */
static void take_key(struct gates *g, const char *rest)
{
    if (strncmp(rest, "wait:", 5) == 0)
        rest += 5;
    else if (strncmp(rest, "rate:", 5) == 0)
        return; /* the counter of a rate outlives its last start by far */
    if (has_kind(rest))
        add(g, mem_strdup(rest));
}

/* Find all gates, a page at a time, so that Redis serves others in between. */
static int find(struct gates *g, struct err *err)
{
    CLEANUP_FREE char *match = mem_printf("later:{%s}:[lsw]*", g->cli->server.target.ns);
    size_t root = strlen(match) - strlen("[lsw]*");
    char cursor[24] = "0";
    const char *argv[] = {"SCAN", cursor, "MATCH", match, "COUNT", SCAN_COUNT};

    do {
        struct reply *r = client_call(g->cli->server.client, 6, argv, NULL, err);

        if (r == NULL)
            return -1;
        for (size_t i = 0; i < reply_count(reply_at(r, 1)); i++) {
            const struct reply *key = reply_at(reply_at(r, 1), i);

            if (reply_len(key) > root)
                take_key(g, reply_str(key) + root);
        }
        text_copy(cursor, sizeof(cursor), reply_str(reply_at(r, 0)));
        reply_free(r);
    } while (strcmp(cursor, "0") != 0 && cursor[0] != '\0');
    g->is_quiet = true;
    return 0;
}

static void take_names(struct gates *g)
{
    for (int i = 0; i < g->cli->argc; i++) {
        const char *name = g->cli->argv[i];

        if (has_kind(name)) {
            add(g, mem_strdup(name));
            continue;
        }
        g->is_quiet = true;
        for (size_t k = 0; k < KINDS; k++)
            add(g, mem_printf("%s%s", kinds[k], name));
    }
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Sort, and drop duplicates: SCAN may return a key twice, and a gate may have two keys. */
static void sort(struct gates *g)
{
    size_t kept = 0;

    if (g->n == 0)
        return;
    qsort(g->ids, g->n, sizeof(*g->ids), by_text);
    for (size_t i = 0; i < g->n; i++) {
        if (kept > 0 && strcmp(g->ids[kept - 1], g->ids[i]) == 0)
            free(g->ids[i]);
        else
            g->ids[kept++] = g->ids[i];
    }
    g->n = kept;
}

/* ---- who */

static void put_who(const struct gates *g, struct buf *out, const char *who)
{
    const struct reply *w = who[0] == '@' ? gate_worker(g->workers, who) : NULL;

    if (w != NULL)
        buf_printf(out, "%s (pid %s on %s)", who, reply_str(reply_at(w, WORKER_PID)),
                   reply_str(reply_at(w, WORKER_HOST)));
    else
        buf_puts(out, who[0] == '=' ? who + 1 : who);
}

/* ---- showing */

/* Write "semaphore N on_lost" or "rate algorithm N per_ms burst" for people; 1 for a lock. */
static void put_limit(struct buf *out, const char *id, const char *text)
{
    long long n, per_ms;
    char span[24];

    if (strncmp(id, "lock:", 5) == 0)
        buf_puts(out, "1");
    else if (sscanf(text, "semaphore %18lld", &n) == 1)
        buf_printf(out, "%lld", n);
    else if (sscanf(text, "rate %*15s %18lld %18lld", &n, &per_ms) == 2)
        buf_printf(out, "%lld/%s", n, text_duration(per_ms, span));
    else
        buf_puts(out, "undefined");
}

static void add_cell(struct table *t, struct buf *cell)
{
    table_add(t, buf_str(cell), cell->len);
    buf_clear(cell);
}

static void put_people(const struct gates *g, struct buf *cell, const struct reply *list,
                       size_t width, int64_t all)
{
    size_t n = reply_count(list) / width;

    for (size_t i = 0; i < n && i < SHOWN; i++) {
        buf_puts(cell, i > 0 ? ", " : "");
        put_who(g, cell, reply_str(reply_at(list, i * width)));
    }
    if (all > SHOWN && n > SHOWN)
        buf_puts(cell, ", ...");
}

static void show(struct gates *g, const struct reply *row)
{
    CLEANUP_BUF struct buf cell = BUF_INIT;
    const char *id = reply_str(reply_at(row, GATE)), *name = strchr(id, ':') + 1;
    int64_t since = reply_int(reply_at(reply_at(row, LIST), 1));
    int64_t opens = reply_int(reply_at(row, OPENS));
    char when[48];

    buf_add(&cell, id, (size_t)(name - id) - 1);
    add_cell(&g->table, &cell);
    table_add(&g->table, name, strlen(name));
    put_limit(&cell, id, reply_str(reply_at(row, LIMIT)));
    add_cell(&g->table, &cell);
    if (strncmp(id, "rate:", 5) != 0)
        buf_printf(&cell, "%lld", (long long)reply_int(reply_at(row, HOLDERS)));
    add_cell(&g->table, &cell);
    put_people(g, &cell, reply_at(row, LIST), HOLDER, reply_int(reply_at(row, HOLDERS)));
    add_cell(&g->table, &cell);
    table_printf(&g->table, "%s", since > 0 ? out_when(since, g->now_ms, when) : "");
    table_printf(&g->table, "%lld", (long long)reply_int(reply_at(row, WAITING)));
    put_people(g, &cell, reply_at(row, WAITERS), WAITER,
               (int64_t)(reply_count(reply_at(row, WAITERS)) / WAITER));
    add_cell(&g->table, &cell);
    since = reply_int(reply_at(reply_at(row, WAITERS), 2));
    table_printf(&g->table, "%s", since > 0 ? out_when(since, g->now_ms, when) : "");
    table_printf(&g->table, "%s", opens > 0 ? out_when(opens, g->now_ms, when) : "");
}

/* A lock that was named may be free. Of a semaphore or a rate that nothing defines, uses or waits
 * for nothing is known: its name was misspelt. */
static bool is_unknown(const struct gates *g, const struct reply *row)
{
    bool is_lock = strncmp(reply_str(reply_at(row, GATE)), "lock:", 5) == 0;

    return gate_is_idle(row) && reply_len(reply_at(row, LIMIT)) == 0 &&
           (g->is_quiet || (g->cli->argc > 0 && !is_lock));
}

static int query(struct gates *g, size_t from, struct err *err)
{
    struct ask_call call = {.n = 0};
    struct reply *r;

    for (size_t i = from; i < g->n && i < from + PER_CALL; i++)
        ask_call_puts(&call, g->ids[i]);
    r = ask_fcall(&g->cli->server, "later_v1_gates", &call, err);
    if (r == NULL)
        return -1;
    for (size_t i = 0; i < reply_count(r); i++) {
        const struct reply *row = reply_at(r, i);
        bool is_idle_one = g->is_quiet && g->cli->argc == 0 && gate_is_idle(row);

        if (strchr(reply_str(reply_at(row, GATE)), ':') == NULL || is_idle_one ||
            is_unknown(g, row))
            continue;
        g->shown++;
        if (g->cli->json)
            json_print(gate_to_json(row, g->workers));
        else
            show(g, row);
    }
    reply_free(r);
    return 0;
}

static int query_all(struct gates *g, struct err *err)
{
    if (g->cli->argc > 0)
        take_names(g);
    else if (find(g, err) < 0)
        return -1;
    sort(g);
    g->workers = ask_words(&g->cli->server, err, "later_v1_workers", NULL);
    if (g->workers == NULL)
        return -1;
    g->now_ms = reply_int(reply_at(g->workers, 0));
    for (size_t i = 0; i < g->n && !out_has_failed(); i += PER_CALL) {
        if (query(g, i, err) < 0)
            return -1;
        if (!g->cli->json && (g->shown > 0 || g->cli->argc == 0))
            table_flush(&g->table);
    }
    if (g->shown == 0 && g->cli->argc > 0)
        return err_set(err, ERR_INPUT,
                       "nobody holds such a gate or waits for it, and no limit "
                       "defines it");
    return 0;
}

static int run(struct cli *cli, struct err *err)
{
    static const struct table_column columns[] = {
        {"KIND", false, false},        {"NAME", false, true},
        {"LIMIT", true, false},        {"HELD", true, false},
        {"BY", false, true},           {"SINCE", false, TABLE_SPARE},
        {"WAIT", true, false},         {"FIRST WAITING", false, true},
        {"SINCE", false, TABLE_SPARE}, {"OPENS", false, TABLE_SPARE}};
    struct gates g = {.cli = cli};
    int status;

    if (ask_connect(&cli->server, err) < 0)
        return -1;
    table_init(&g.table, columns, sizeof(columns) / sizeof(columns[0]));
    status = query_all(&g, err);
    table_done(&g.table);
    for (size_t i = 0; i < g.n; i++)
        free(g.ids[i]);
    free(g.ids);
    reply_free(g.workers);
    return status;
}

static int run_each(struct cli *cli, struct err *err)
{
    return each_shard(cli, run, err);
}

const struct cli_verb cmd_gates = {
    "gates",
    "[NAME...]",
    "who holds locks, semaphores and rates, and who waits",
    "Show the gates that are held or waited for, or those named: NAME for the lock, the\n"
    "semaphore and the rate of that name, lock:NAME, sem:NAME or rate:NAME for one.\n"
    "\n"
    "Held by: jobs by their ids, programs under later lock and later sem as @EPOCH with pid\n"
    "and host, callers of later_lock by the name they gave. Waiting: queues, programs and\n"
    "callers. OPENS: when a rate lets the next start pass, or a caller's lease ends.\n"
    "\n"
    "With --json one object a gate. Exit status: 66 nothing is known of the\n"
    "gates that were named (lock:NAME is known: it is free).",
    0,
    CLI_MANY,
    false,
    NULL,
    run_each,
};
