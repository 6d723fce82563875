/*
 * The Nth call: for every function of the library, on stages with jobs of every kind, the N-th call
 * to Redis raises, for N = 1, 2, … until the function makes fewer calls. After each run `later
 * fsck` and a ledger check: no job is lost, started twice or held by nobody; an error has handed
 * out nothing; all jobs go on to their end and leave nothing behind.
 *
 *   tests/proofs/nth/test_nth [--right] [--only PATTERN] [--list] [--library FILE]
 *
 * --right: all calls of one command raise, as for a user without the right; for each command.
 * --library: a joined library (laterd.lua) instead of the built-in one. --list: print every
 * finding, the figures of each scenario, and the calls that were not hit.
 *
 * The calls in the library are numbered before it is loaded (wrap.lua). Stages, scenarios and
 * judges are the Lua files in this folder; they are loaded in front of the library. So thousands of
 * runs take seconds.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <fnmatch.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/mem.h"
#include "lua/lua_lib.h"
#include "redis/client.h"
#include "../../support/env.h"
#include "../../support/redis.h"

#define SITES_MAX 4096
#define CALL_MS 300000
#define CHUNK "25"
#define START_US "1790000000000000"

static const char *const parts[] = {"wrap",   "world",   "fsck",     "ledger",    "drain",
                                    "run",    "stages",  "scenario", "syncs",     "calls",
                                    "chains", "batches", "bulks",    "schedules", "topics",
                                    "pinned", "fair",    "seen",     "kept",      "wide"};

/* A call of Redis in the source. */
static struct site {
    char file[48];
    int line;
    bool is_hit;
} sites[SITES_MAX];
static int nsites;

/* Kinds of findings, the worst first: harm to jobs, what is left for ever, what passes by
 * itself. */
static const char *const kinds[] = {"stage",   "lost",     "twice",      "phantom",
                                    "nobody",  "settled",  "no-gate",    "stuck",
                                    "unknown", "no-place", "two-places", "no-record",
                                    "left",    "fsck-end", "fsck",       "error-wrote"};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

static struct {
    const char *mode, *only, *library;
    bool lists;
    long runs, judged, broken, kinds[KINDS];
    struct buf seen; /* findings that were printed */
} fx = {.mode = "once", .only = "*", .seen = BUF_INIT};

static void die(const char *what, const char *why)
{
    (void)fprintf(stderr, "test_nth: %s: %s\n", what, why);
    exit(2);
}

/* ---- the library, with its calls numbered */

static void put_file(struct buf *out, const char *path)
{
    FILE *f = fopen(path, "r");
    char text[4096];
    size_t n;

    if (f == NULL)
        die(path, "cannot be read");
    while ((n = fread(text, 1, sizeof(text), f)) > 0)
        buf_add(out, text, n);
    (void)fclose(f);
}

/* Add a Lua file of this folder, in front of the library. */
static void put_part(struct buf *out, const char *name)
{
    CLEANUP_FREE char *path = mem_printf("%s/tests/proofs/nth/%s.lua", test_source_dir(), name);

    buf_puts(out, "do\n");
    put_file(out, path);
    buf_puts(out, "end\n");
}

/* How a call begins, and its replacement: `is`, the number of the call, `then`. */
static const struct {
    const char *was, *is, *then;
} calls[] = {
    {"redis.call(", "redis.call(", ", "},
    {"redis.pcall(", "redis.pcall(", ", "},
    {"db(", "nth.db(", ", db, "},
};

static bool is_word(char c)
{
    return strchr("_.:0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", c) != NULL;
}

/* Which of `calls` begins here? -1: none. */
static int call_at(const char *line, const char *at)
{
    static const char definition[] = "function ";
    size_t before = (size_t)(at - line), len = strlen(definition);

    if ((before > 0 && is_word(at[-1])) ||
        (before >= len && strncmp(at - len, definition, len) == 0))
        return -1;
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        if (strncmp(at, calls[i].was, strlen(calls[i].was)) == 0)
            return (int)i;
    }
    return -1;
}

static int new_site(const char *file, int line)
{
    if (++nsites == SITES_MAX)
        die("the library", "too many calls");
    (void)snprintf(sites[nsites].file, sizeof(sites[0].file), "%s", file);
    sites[nsites].line = line;
    return nsites;
}

/* Add a line of the library; each call in it gets its number. */
static void put_line(struct buf *out, const char *line, size_t n, const char *file, int number)
{
    bool is_comment = false;

    for (const char *at = line; at < line + n;) {
        int form = is_comment ? -1 : call_at(line, at);

        is_comment = is_comment || strncmp(at, "-- ", 3) == 0;
        if (form < 0) {
            buf_add(out, at++, 1);
            continue;
        }
        buf_printf(out, "%s%d%s", calls[form].is, new_site(file, number), calls[form].then);
        at += strlen(calls[form].was);
    }
}

/* Replace the first `was` after the text `after` by `is`. */
static void replace(struct buf *text, const char *after, const char *was, const char *is)
{
    const char *from = strstr(text->data, after);
    const char *at = from != NULL ? strstr(from, was) : NULL;
    struct buf out = BUF_INIT;

    if (at == NULL)
        die("src/lua/core/prelude.lua has not, as it had, after", after);
    buf_add(&out, text->data, (size_t)(at - text->data));
    buf_puts(&out, is);
    buf_puts(&out, at + strlen(was));
    buf_add(&out, "", 1);
    buf_done(text);
    *text = out;
}

/* The library as scripts/join-lua joins it: the name before each file, "do" before all but the
 * first. */
static void make_library(struct buf *out, const char *library)
{
    static const char head[] = "-- ==== ";
    const char *at = library;
    char file[48] = "";
    int number = 0;

    for (const char *end; (end = strchr(at, '\n')) != NULL; at = end + 1) {
        size_t n = (size_t)(end - at) + 1;

        if (at == library) {
            buf_add(out, at, n);
            buf_puts(out, "local nth = {}\n");
            for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
                put_part(out, parts[i]);
            continue;
        }
        if (strncmp(at, head, strlen(head)) == 0) {
            (void)snprintf(file, sizeof(file), "%.*s", (int)(n - 1 - strlen(head)),
                           at + strlen(head));
            number = strcmp(file, "core/prelude.lua") == 0 ? 0 : -1;
        } else {
            number++;
        }
        put_line(out, at, n, file, number);
    }
    buf_add(out, "", 1);
    replace(out, "local function offered()", "return redis,", "return nth.offered(redis),");
    replace(out, "function register_bare(", "redis.register_function{", "nth.register{");
}

/* ---- runs */

static struct reply *must(struct client *c, int argc, const char *const *argv)
{
    struct err err = ERR_INIT;
    struct reply *r = client_call(c, argc, argv, NULL, &err);

    if (r == NULL)
        die(argv[1], err.text);
    return r;
}

static void load(struct client *c)
{
    struct buf text = BUF_INIT, file = BUF_INIT;
    const char *argv[] = {"FUNCTION", "LOAD", "REPLACE", NULL};

    if (fx.library != NULL)
        put_file(&file, fx.library);
    make_library(&text, fx.library != NULL ? buf_str(&file) : lua_lib_text);
    buf_done(&file);
    argv[3] = text.data;
    reply_free(must(c, 4, argv));
    buf_done(&text);
}

/* Print a finding. Without --list, print it once for each call, command, scenario and kind, since
 * many N give the same. */
static void tell(const char *scenario, const struct reply *f)
{
    const struct site *site = &sites[reply_int(reply_at(f, 1))];
    CLEANUP_FREE char *key =
        mem_printf("\n%s:%d %s [%s] %s\n", site->file, site->line, reply_str(reply_at(f, 2)),
                   scenario, reply_str(reply_at(f, 3)));

    if (!fx.lists && strstr(buf_str(&fx.seen), key) != NULL)
        return;
    buf_puts(&fx.seen, key);
    (void)printf("%s:%d %s [%s, call %lld] %s: %s (reply: %s)\n", site->file, site->line,
                 reply_str(reply_at(f, 2)), scenario, (long long)reply_int(reply_at(f, 0)),
                 reply_str(reply_at(f, 3)), reply_str(reply_at(f, 4)), reply_str(reply_at(f, 5)));
}

static void take_findings(const char *scenario, const struct reply *findings)
{
    int64_t last = -1;

    for (size_t i = 0; i < reply_count(findings); i++) {
        const struct reply *f = reply_at(findings, i);

        for (size_t k = 0; k < KINDS; k++)
            fx.kinds[k] += reply_is(reply_at(f, 3), kinds[k]);
        fx.broken += reply_int(reply_at(f, 0)) != last;
        last = reply_int(reply_at(f, 0));
        tell(scenario, f);
    }
}

static void run(struct client *c, size_t number, const char *scenario)
{
    char which[24], from[24] = "0";
    const char *argv[] = {"FCALL", "nth_run", "0", which, from, CHUNK, fx.mode, START_US};
    int64_t next = 0;
    long runs = fx.runs, judged = fx.judged, broken = fx.broken;

    (void)snprintf(which, sizeof(which), "%zu", number);
    while (next >= 0) {
        struct reply *r;

        (void)snprintf(from, sizeof(from), "%lld", (long long)next);
        r = must(c, 8, argv);
        next = reply_int(reply_at(r, 0));
        fx.runs += (long)reply_int(reply_at(r, 1));
        fx.judged += (long)reply_int(reply_at(r, 2));
        for (size_t i = 0; i < reply_count(reply_at(r, 3)); i++)
            sites[reply_int(reply_at(reply_at(r, 3), i))].is_hit = true;
        take_findings(scenario, reply_at(r, 4));
        reply_free(r);
    }
    if (fx.lists)
        (void)printf("# %s: %ld runs, %ld judged, %ld broken\n", scenario, fx.runs - runs,
                     fx.judged - judged, fx.broken - broken);
}

/* Print how many findings there are of each kind. */
static void tell_kinds(void)
{
    for (size_t k = 0; k < KINDS; k++) {
        if (fx.kinds[k] > 0)
            (void)printf("# %s %ld\n", kinds[k], fx.kinds[k]);
    }
}

static int sum_up(void)
{
    int hit = 0;

    for (int i = 1; i <= nsites; i++) {
        hit += sites[i].is_hit;
        if (fx.lists && !sites[i].is_hit)
            (void)printf("# not hit: %s:%d\n", sites[i].file, sites[i].line);
    }
    tell_kinds();
    (void)printf("%d calls in the source, %d of them hit, %ld runs (%ld different), %ld broken\n",
                 nsites, hit, fx.runs, fx.judged, fx.broken);
    return fx.broken > 0;
}

static void read_options(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--right") == 0)
            fx.mode = "right";
        else if (strcmp(argv[i], "--list") == 0)
            fx.lists = true;
        else if (strcmp(argv[i], "--only") == 0 && i + 1 < argc)
            fx.only = argv[++i];
        else if (strcmp(argv[i], "--library") == 0 && i + 1 < argc)
            fx.library = argv[++i];
        else
            die(argv[i], "usage: test_nth [--right] [--only PATTERN] [--list] [--library FILE]");
    }
}

int main(int argc, char **argv)
{
    static const char *const list[] = {"FCALL", "nth_list", "0"};
    struct test_redis redis;
    struct err err = ERR_INIT;
    struct client *c = NULL;
    struct reply *names;
    struct url url;
    int status;

    read_options(argc, argv);
    test_redis_start(&redis, NULL);
    if (url_parse(redis.url, &url, &err) == 0)
        c = client_open(&url, CALL_MS, &err);
    if (c == NULL)
        die("no connection", err.text);
    load(c);
    names = must(c, 3, list);
    for (size_t i = 0; i < reply_count(names); i++) {
        if (fnmatch(fx.only, reply_str(reply_at(names, i)), 0) == 0)
            run(c, i + 1, reply_str(reply_at(names, i)));
    }
    status = sum_up();
    reply_free(names);
    buf_done(&fx.seen);
    client_close(c);
    test_redis_stop(&redis);
    return status;
}
