/* `later health --server`: a table of what the server can do for the user that asks, its state, and
 * what it costs where it cannot. Nothing is written there. Also what `later health` says of it. */
#include "cli/health_server.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "cli/show/json.h"
#include "cli/show/out.h"
#include "cli/show/table.h"
#include "redis/error_reply.h"
#include "redis/lib.h"
#include "redis/preflight.h"

#define NOT_TOLD "not told"

/* Releases of Redis with a known hole, most of them in Lua. `fixed` is the first good one of its
 * branch. */
static const struct hole {
    int major, minor, fixed;
    const char *name;
} holes[] = {
    {6, 2, 20, "CVE-2025-49844"}, {7, 2, 11, "CVE-2025-49844"}, {7, 4, 6, "CVE-2025-49844"},
    {8, 0, 4, "CVE-2025-49844"},  {8, 2, 2, "CVE-2025-49844"},  {8, 6, 3, "CVE-2026-23631"},
    {8, 8, 2, "CVE-2026-81934"},
};
#define EVERY_BRANCH 4 /* this row: every branch before it that is not listed has its hole */

struct asking {
    struct cli *cli;
    json_t *rows;
    char *info;   /* "": not told */
    long library; /* its number, 0: none */
    struct preflight found;
};

static void tell(struct asking *a, const char *ability, const char *state, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* fmt: what the state costs, "" for nothing. */
static void tell(struct asking *a, const char *ability, const char *state, const char *fmt, ...)
{
    json_t *row = json_object();
    char cost[320];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(cost, sizeof(cost), fmt, ap);
    va_end(ap);
    json_put_text(row, "ability", ability, strlen(ability));
    json_put_text(row, "state", state, strlen(state));
    json_put_text(row, "cost", cost, strlen(cost));
    (void)json_array_append_new(a->rows, row);
}

/* The text of a finding of this check, "" if there is none. */
static const char *finding(const struct asking *a, const char *check)
{
    for (size_t i = 0; i < a->found.n; i++) {
        if (strcmp(a->found.at[i].check, check) == 0)
            return a->found.at[i].text;
    }
    return "";
}

/* Does the server answer this command? *ret_why: its error. */
static bool is_answered(struct asking *a, int argc, const char *const *argv, struct err *ret_why)
{
    struct reply *r = client_call(a->cli->server.client, argc, argv, NULL, ret_why);

    reply_free(r);
    return r != NULL;
}

static const char *denied_or_missing(const struct err *why)
{
    return why->code == ERR_DENIED ? "denied" : "missing";
}

/* ---- the rows */

static const struct hole *hole_of(const char *version)
{
    int major, minor, patch;

    if (sscanf(version, "%d.%d.%d", &major, &minor, &patch) != 3)
        return NULL;
    for (size_t i = 0; i < sizeof(holes) / sizeof(holes[0]); i++) {
        if (holes[i].major == major && holes[i].minor == minor)
            return patch < holes[i].fixed ? &holes[i] : NULL;
    }
    return major < holes[EVERY_BRANCH].major ||
                   (major == holes[EVERY_BRANCH].major && minor < holes[EVERY_BRANCH].minor)
               ? &holes[EVERY_BRANCH]
               : NULL;
}

/* Valkey says a redis_version, too, for old clients. */
static void tell_version(struct asking *a)
{
    char redis[32], valkey[32], state[80];
    const struct hole *hole;

    preflight_value(a->info, "redis_version", redis, sizeof(redis));
    preflight_value(a->info, "valkey_version", valkey, sizeof(valkey));
    (void)snprintf(state, sizeof(state), "%s%s", valkey[0] != '\0' ? "Valkey " : redis, valkey);
    hole = valkey[0] == '\0' ? hole_of(redis) : NULL;
    if (hole != NULL)
        tell(a, "version", state,
             "by its number it has the hole %s (mended in %d.%d.%d): upgrade, unless your "
             "distribution has mended this one",
             hole->name, hole->major, hole->minor, hole->fixed);
    else
        tell(a, "version", state[0] != '\0' ? state : NOT_TOLD, "%s",
             state[0] != '\0' ? "" : "whether it has known holes is not known");
}

static int tell_functions(struct asking *a, struct err *err)
{
    static const char *const load[] = {"FUNCTION", "LOAD", "-"}; /* no library: nothing is loaded */
    struct lib_state lib;
    struct err why = ERR_INIT;
    char state[96];

    if (lib_look(a->cli->server.client, a->cli->server.target.ns, &lib, err) < 0)
        return -1;
    a->library = lib.number;
    (void)snprintf(state, sizeof(state), "library %ld, protocol %ld%s", lib.number, lib.protocol,
                   lib.pinned ? ", pinned" : "");
    if (lib.number == 0)
        tell(a, "functions", "no library yet", "no job can be added: later setup loads it");
    else
        tell(a, "functions", state, "%s",
             lib.pinned ? "no newer library takes its place: later setup --force does" : "");
    if (is_answered(a, 3, load, &why) || why.code != ERR_DENIED)
        tell(a, "FUNCTION LOAD", "ok", "%s", "");
    else
        tell(a, "FUNCTION LOAD", "denied",
             "an administrator runs later setup once, and after each upgrade of laterd");
    return 0;
}

static void tell_tls(struct asking *a)
{
    const char *tls = client_tls(a->cli->server.client);
    bool is_socket = client_peer(a->cli->server.client)[0] == '\0';

    tell(a, "TLS",
         tls != NULL ? tls
         : is_socket ? "a socket of this host"
                     : "plain",
         "%s",
         tls == NULL && !is_socket
             ? "who can read the network reads passwords and payloads (doc/tls.md)"
             : "");
}

/* Asking a library that lacks the function would load one. */
static void tell_rights(struct asking *a)
{
    struct err why = ERR_INIT;

    if (a->library < LIB_LEAST)
        tell(a, "acl_check_cmd", NOT_TOLD, "the library that asks it is not there");
    else if (preflight_rights(&a->found, a->cli->server.client, a->cli->server.target.ns, &why) < 0)
        tell(a, "acl_check_cmd", NOT_TOLD, "the library cannot be asked for rights: %.200s",
             why.text);
    else if (finding(a, "acl")[0] != '\0')
        tell(a, "acl_check_cmd", "missing", "%s", finding(a, "acl"));
    else
        tell(a, "acl_check_cmd", "ok", "%s%s%s", finding(a, "rights"),
             finding(a, "commands")[0] != '\0' ? " " : "", finding(a, "commands"));
}

/* What INFO tells of the settings by which a server can lose jobs. */
static void tell_settings(struct asking *a)
{
    static const struct {
        const char *check, *field, *no, *yes, *unknown; /* no, yes: for 0 and 1; NULL: the value */
    } settings[] = {
        {"eviction", "maxmemory_policy", NULL, NULL,
         "whether a full server throws jobs away is not known"},
        {"persistence", "aof_enabled", "appendonly no", "appendonly yes",
         "whether a crash of the server loses jobs is not known"},
        {"disk", "aof_last_write_status", NULL, NULL, "a disk that is full shows when adds fail"},
        {"memory", "maxmemory", "unbounded", NULL, "nobody warns before it is full"},
        {"replica", "role", NULL, NULL, "a replica is noticed when it refuses a write"},
        {"cluster", "cluster_enabled", "no", "yes", "a cluster is noticed when it refuses a call"},
    };

    for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
        char value[48];
        const char *state = value;

        preflight_value(a->info, settings[i].field, value, sizeof(value));
        if (strcmp(value, "0") == 0 && settings[i].no != NULL)
            state = settings[i].no;
        else if (strcmp(value, "1") == 0 && settings[i].yes != NULL)
            state = settings[i].yes;
        tell(a, settings[i].check, value[0] != '\0' ? state : NOT_TOLD, "%s",
             value[0] != '\0' ? finding(a, settings[i].check) : settings[i].unknown);
    }
}

static void tell_info(struct asking *a)
{
    static const char *const info[] = {"INFO"};
    struct err why = ERR_INIT;
    struct reply *r = client_call(a->cli->server.client, 1, info, NULL, &why);

    if (r != NULL)
        preflight_server(&a->found, reply_str(r), &a->cli->server.target.url);
    a->info = mem_strdup(reply_str(r));
    reply_free(r);
    tell(a, "INFO", r != NULL ? "ok" : denied_or_missing(&why), "%s",
         r != NULL ? ""
                   : "what can lose jobs on this server is not known to laterd: look yourself");
}

#define RAW_IS_LATE "a raw ZADD without PUBLISH starts up to a second late; nothing else waits"

/* CONFIG is only asked for this: laterd changes no setting. */
static void tell_keyspace_events(struct asking *a)
{
    static const char *const get[] = {"CONFIG", "GET", "notify-keyspace-events"};
    struct err why = ERR_INIT;
    struct reply *r = client_call(a->cli->server.client, 3, get, NULL, &why);
    const char *flags = reply_str(reply_at(r, 1));
    bool are_on = strchr(flags, 'K') != NULL && strpbrk(flags, "zA") != NULL;

    tell(a, "CONFIG", r != NULL ? "ok" : denied_or_missing(&why), "%s",
         r != NULL ? "" : "only this table asks it: keyspace events may be on or off");
    if (r != NULL)
        tell(a, "keyspace events", are_on ? "on" : "off", "%s",
             are_on ? "" : RAW_IS_LATE " (notify-keyspace-events Kz)");
    else
        tell(a, "keyspace events", NOT_TOLD, "%s", "if they are off: " RAW_IS_LATE);
    reply_free(r);
}

/* On connections of their own: one that is subscribed takes no other command. */
static void tell_channels(struct asking *a)
{
    struct cli *cli = a->cli;
    CLEANUP_FREE char *pattern = mem_printf("__keyspace@%d__:later:{%s}:due:*",
                                            cli->server.target.url.db, cli->server.target.ns);
    const char *events[] = {"PSUBSCRIBE", pattern};
    struct err why = ERR_INIT;
    struct client *c = ask_subscribe(&cli->server, "wake", &why);

    tell(a, "channels", c != NULL ? "ok" : "denied", "%s",
         c != NULL ? ""
                   : "a job that is due at once starts up to a second late (ACL: &later:...:wake)");
    client_close(c);
    c = ask_subscribe(&cli->server, "events", &why);
    tell(a, "channel of events", c != NULL ? "ok" : "denied", "%s",
         c != NULL ? "" : "later tail shows nothing (ACL: &later:...:events)");
    client_close(c);
    c = client_open(&cli->server.target.url, cli->server.target.timeout_ms, &why);
    if (c != NULL) {
        struct reply *r = client_call(c, 2, events, NULL, &why);

        tell(a, "channels of keyspace", r != NULL ? "ok" : "denied", "%s",
             r != NULL ? "" : RAW_IS_LATE);
        reply_free(r);
    }
    client_close(c);
}

static void tell_commands(struct asking *a)
{
    static const char *const name[] = {"CLIENT", "SETNAME", "later"};
    static const char *const scan[] = {"SCAN", "0", "COUNT", "1"};
    struct err why = ERR_INIT;
    bool is_ok = is_answered(a, 3, name, &why);

    tell(a, "CLIENT SETNAME", is_ok ? "ok" : denied_or_missing(&why), "%s",
         is_ok ? "" : "CLIENT LIST shows the connections of laterd without a name");
    is_ok = is_answered(a, 4, scan, &why);
    tell(a, "SCAN", is_ok ? "ok" : denied_or_missing(&why), "%s",
         is_ok ? "" : "keys with a misspelt name are not noticed; no later fsck, gates, purge");
}

static void tell_database(struct asking *a)
{
    char state[16];

    (void)snprintf(state, sizeof(state), "%d", a->cli->server.target.url.db);
    tell(a, "database", state, "%s", "");
}

/* ---- showing it */

static void show(const struct cli *cli, json_t *rows)
{
    static const struct table_column columns[] = {
        {"ABILITY", false, false}, {"STATE", false, false}, {"WHAT IT COSTS", false, false}};
    static const char *const cells[] = {"ability", "state", "cost"};
    struct table t;

    if (cli->json) {
        json_t *line = json_object();

        (void)json_object_set_new(line, "abilities", rows);
        json_print(line);
        return;
    }
    table_init(&t, columns, 3);
    for (size_t i = 0; i < json_array_size(rows); i++) {
        for (size_t k = 0; k < 3; k++) {
            const char *cell =
                json_string_value(json_object_get(json_array_get(rows, i), cells[k]));

            table_add(&t, cell, strlen(cell));
        }
    }
    table_flush(&t);
    table_done(&t);
    json_decref(rows);
}

int health_server(struct cli *cli, struct err *err)
{
    struct asking a = {.cli = cli, .rows = json_array()};
    int rc = ask_connect(&cli->server, err);

    if (rc == 0)
        rc = tell_functions(&a, err);
    if (rc < 0) {
        json_decref(a.rows);
        return -1;
    }
    tell_info(&a);
    tell_version(&a);
    tell_tls(&a);
    tell_rights(&a);
    tell_settings(&a);
    tell_keyspace_events(&a);
    tell_channels(&a);
    tell_commands(&a);
    tell_database(&a);
    free(a.info);
    show(cli, a.rows);
    return 0;
}
