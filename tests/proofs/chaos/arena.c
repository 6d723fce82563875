#include "arena.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "lua/lua_lib.h"
#include "names.h"
#include "redis/client.h"
#include "../../support/clock.h"
#include "../../support/env.h"
#include "../../support/redis.h"

#define CALL_MS 300000

static const char *const role_names[ROLES] = {"", "producer", "caller", "worker", "admin"};

static struct {
    struct test_redis redis;
    struct test_clock *clock;
    struct client *client[ROLES][SPACES];
    char *library;
} arena;

static void die(const char *what, const char *why)
{
    (void)fprintf(stderr, "chaos: %s: %s\n", what, why);
    abort();
}

static struct client *connect_to(void)
{
    struct err err = ERR_INIT;
    struct client *c = NULL;
    struct url url;

    if (url_parse(arena.redis.url, &url, &err) == 0)
        c = client_open(&url, CALL_MS, &err);
    if (c == NULL)
        die("connect", err.text);
    return c;
}

struct reply *arena_ask(enum role role, int space, const struct call *c, struct err *err)
{
    static const char *argv[CALL_ARGS];
    struct client *client = arena.client[role][space];

    for (int i = 0; i < c->n; i++)
        argv[i] = call_word(c, i);
    return client_call(client, c->n, argv, c->len, err);
}

struct reply *arena_must(const struct call *c)
{
    struct err err = ERR_INIT;
    struct reply *r = arena_ask(ROLE_ALL, 0, c, &err);

    if (r == NULL)
        die(call_word(c, 0), err.text);
    return r;
}

static void must_words(const char *const *words, int n)
{
    struct call c = {BUF_INIT, {0}, {0}, 0};

    call_begin(&c, words[0]);
    for (int i = 1; i < n; i++)
        call_text(&c, words[i]);
    reply_free(arena_must(&c));
    call_done(&c);
}

/* ---- users */

/* Add a token of the ACL file, with this namespace instead of default. */
static void put_token(struct call *c, const char *token, const char *space)
{
    const char *at = strstr(token, "later:{default}");

    if (at == NULL)
        call_text(c, token);
    else
        call_printf(c, "%.*s%s%s", (int)(at - token), token, space, at + strlen("later:{default}"));
}

static void make_user(char *line, int space)
{
    struct call c = {BUF_INIT, {0}, {0}, 0};
    char *rest = line, *name, *token;

    (void)strsep(&rest, " ");
    name = strsep(&rest, " ");
    (void)strsep(&rest, " "); /* skip `off` */
    call_begin(&c, "ACL");
    call_text(&c, "SETUSER");
    call_printf(&c, "%s%d", name, space);
    call_text(&c, "on");
    call_printf(&c, ">%s%d", name, space);
    while ((token = strsep(&rest, " \n")) != NULL)
        if (token[0] != '\0')
            put_token(&c, token, names_space[space]);
    reply_free(arena_must(&c));
    call_done(&c);
}

static void make_users(void)
{
    CLEANUP_FREE char *path = mem_printf("%s/etc/users.acl", test_source_dir());
    FILE *f = fopen(path, "re");
    char line[4096];

    if (f == NULL)
        die(path, "cannot be opened");
    while (fgets(line, sizeof(line), f) != NULL)
        for (int s = 0; s < SPACES && strncmp(line, "user ", 5) == 0; s++) {
            CLEANUP_FREE char *copy = mem_strdup(line);

            make_user(copy, s);
        }
    (void)fclose(f);
}

static void log_in(enum role role, int space)
{
    char name[32];
    struct err err = ERR_INIT;
    const char *const auth[] = {"AUTH", name, name};
    struct reply *r;

    (void)snprintf(name, sizeof(name), "%s%d", role_names[role], space);
    arena.client[role][space] = connect_to();
    r = role == ROLE_ALL ? NULL : client_call(arena.client[role][space], 3, auth, NULL, &err);
    if (role != ROLE_ALL && r == NULL)
        die(name, err.text);
    reply_free(r);
}

/* ---- the server */

static void start_server(void)
{
    /* jemalloc's background thread would never sleep with a clock that stands. Keys expire only
     * when they are read, never in the background, so that a run can be repeated. */
    static const char *const extra[] = {"--jemalloc-bg-thread", "no", "--enable-debug-command",
                                        "yes", NULL};
    static const char *const quiet[] = {"DEBUG", "SET-ACTIVE-EXPIRE", "0"};
    char path[] = "/tmp/later-test-clock-XXXXXX";
    CLEANUP_FREE char *preload = test_clock_preload();
    CLEANUP_FREE char *variable = NULL;
    int fd = mkstemp(path);

    if (fd < 0)
        die(path, "cannot be made");
    arena.clock = test_clock_make(path);
    variable = test_clock_variable(path);
    (void)putenv(preload);
    (void)putenv(variable);
    test_redis_start(&arena.redis, extra);
    (void)unsetenv("LD_PRELOAD");
    (void)unsetenv("LATER_TEST_CLOCK");
    (void)close(fd);
    (void)remove(path);
    arena.client[ROLE_ALL][0] = connect_to();
    must_words(quiet, 3);
}

static char *read_file(const char *path)
{
    struct buf text = BUF_INIT;
    FILE *f = fopen(path, "re");
    size_t n = 1;

    if (f == NULL)
        die(path, "cannot be opened");
    while (n > 0) {
        n = fread(buf_reserve(&text, 65536), 1, 65536, f);
        text.len += n;
    }
    (void)fclose(f);
    buf_add(&text, "", 0);
    return buf_take(&text);
}

void arena_start(const char *library)
{
    start_server();
    arena.library = library != NULL ? read_file(library) : mem_strdup(lua_lib_text);
    make_users();
    for (int role = 0; role < ROLES; role++)
        for (int s = 0; s < SPACES; s++)
            if (arena.client[role][s] == NULL)
                log_in((enum role)role, s);
}

void arena_stop(void)
{
    for (int role = 0; role < ROLES; role++)
        for (int s = 0; s < SPACES; s++)
            client_close(arena.client[role][s]);
    test_redis_stop(&arena.redis);
    test_clock_free(arena.clock);
    free(arena.library);
}

void arena_clear(int passes)
{
    static const char was[] = "local PASSED_OVER_MAX = 16";
    static const char *const flush[] = {"FLUSHALL"};
    const char *at = strstr(arena.library, was);
    CLEANUP_FREE char *text =
        at == NULL ? NULL
                   : mem_printf("%.*slocal PASSED_OVER_MAX = %d%s", (int)(at - arena.library),
                                arena.library, passes, at + strlen(was));
    const char *const load[] = {"FUNCTION", "LOAD", "REPLACE", text};

    if (text == NULL)
        die("the library", "it has no PASSED_OVER_MAX");
    must_words(flush, 1);
    must_words(load, 4);
}

void arena_set_time(int64_t now_us)
{
    __atomic_store_n(&arena.clock->fixed_us, now_us, __ATOMIC_SEQ_CST);
}
