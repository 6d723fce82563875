#include "server.h"

#include <errno.h>
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "../../support/clock.h"
#include "../../support/redis.h"
#include "base/mem.h"
#include "lua/lua_lib.h"
#include "world.h"

/* jemalloc's background thread waits for times of the wall clock, which stands: a busy loop.
 * Definitions of schedules stay in a list, so that workers read them in the same order each time.
 */
static const char *const server_args[] = {"--enable-debug-command",
                                          "yes",
                                          "--activerehashing",
                                          "no",
                                          "--jemalloc-bg-thread",
                                          "no",
                                          "--hz",
                                          "1",
                                          "--databases",
                                          "2",
                                          "--busy-reply-threshold",
                                          "60000",
                                          "--hash-max-listpack-value",
                                          "1024",
                                          NULL};

static struct test_redis redis;
static struct test_clock *wall;
static int fd = -1;
static struct buf out = BUF_INIT, in = BUF_INIT;
static size_t at; /* how much of `in` was read */
static char *wakes[SERVER_WAKES_MAX];
static size_t nwakes;

static void die(const char *what)
{
    (void)fprintf(stderr, "simulation: redis-server: %s\n", what);
    abort();
}

/* ---- the wire */

static void put(const char *p, size_t n)
{
    buf_printf(&out, "$%zu\r\n", n);
    buf_add(&out, p, n);
    buf_puts(&out, "\r\n");
}

static void send_out(void)
{
    for (size_t sent = 0; sent < out.len;) {
        ssize_t n = write(fd, out.data + sent, out.len - sent);

        if (n < 0 && errno != EINTR)
            die("it is gone");
        sent += n > 0 ? (size_t)n : 0;
    }
    buf_clear(&out);
}

static void read_more(void)
{
    char *p = buf_reserve(&in, 65536);
    ssize_t n = read(fd, p, 65536);

    if (n <= 0)
        die("it is gone");
    in.len += (size_t)n;
}

static char *read_line(void)
{
    char *end;
    char *line;

    while ((end = in.len > at ? memchr(in.data + at, '\n', in.len - at) : NULL) == NULL)
        read_more();
    line = in.data + at;
    end[-1] = '\0';
    at = (size_t)(end + 1 - in.data);
    return line;
}

static redisReply *reply_new(int type)
{
    redisReply *r = mem_new(sizeof(*r));

    r->type = type;
    return r;
}

static redisReply *read_text(int type, const char *p, size_t n)
{
    redisReply *r = reply_new(type);

    r->str = mem_dup(p, n);
    r->len = n;
    return r;
}

static redisReply *read_bulk(size_t n)
{
    redisReply *r;

    while (in.len < at + n + 2)
        read_more();
    r = read_text(REDIS_REPLY_STRING, in.data + at, n);
    at += n + 2;
    return r;
}

static redisReply *read_reply(void);

static redisReply *read_array(size_t n)
{
    redisReply *r = reply_new(REDIS_REPLY_ARRAY);

    r->element = mem_new((n + 1) * sizeof(redisReply *));
    r->elements = n;
    for (size_t i = 0; i < n; i++)
        r->element[i] = read_reply();
    return r;
}

static redisReply *read_reply(void)
{
    char *line = read_line();
    redisReply *r;

    switch (line[0]) {
    case '+':
    case ',':
        return read_text(REDIS_REPLY_STRING, line + 1, strlen(line + 1));
    case '-':
        return read_text(REDIS_REPLY_ERROR, line + 1, strlen(line + 1));
    case ':':
        r = reply_new(REDIS_REPLY_INTEGER);
        r->integer = atoll(line + 1);
        return r;
    case '_':
        return reply_new(REDIS_REPLY_NIL);
    case '$':
        return read_bulk((size_t)atoll(line + 1));
    case '%':
        return read_array(2 * (size_t)atoll(line + 1));
    case '*':
    case '~':
    case '>':
        return read_array((size_t)atoll(line + 1));
    default:
        die("it answers in words that are not known");
        return NULL;
    }
}

static void keep_wake(const redisReply *push)
{
    if (strcmp(push->element[0]->str, "message") != 0)
        return;
    if (nwakes == SERVER_WAKES_MAX)
        die("too many wakes");
    wakes[nwakes++] = mem_strdup(push->element[2]->str);
}

/* The next reply; messages that were pushed before it are kept. */
static redisReply *next_reply(void)
{
    for (;;) {
        redisReply *r;
        bool is_push;

        if (at == in.len)
            read_more();
        is_push = in.data[at] == '>';
        r = read_reply();
        if (!is_push)
            return r;
        keep_wake(r);
        freeReplyObject(r);
    }
}

static void begin(void)
{
    while (nwakes > 0)
        free(wakes[--nwakes]);
    buf_drop(&in, at);
    at = 0;
    __atomic_store_n(&wall->fixed_us, world_wall_us(), __ATOMIC_SEQ_CST);
}

/* ---- calls */

/* What the command publishes may come before or after its reply, but always before the PONG. */
struct reply *server_call(int argc, const char *const *argv, const size_t *lens)
{
    redisReply *r;

    begin();
    buf_printf(&out, "*%d\r\n", argc);
    for (int i = 0; i < argc; i++)
        put(argv[i], lens != NULL ? lens[i] : strlen(argv[i]));
    buf_puts(&out, "*1\r\n$4\r\nPING\r\n");
    send_out();
    r = next_reply();
    freeReplyObject(next_reply());
    return (struct reply *)(void *)r;
}

void server_queue(const char *words)
{
    const char *argv[16];
    size_t lens[16];
    int argc = 0;

    for (const char *p = words; *p != '\0'; p += *p == ' ') {
        argv[argc] = p;
        lens[argc] = strcspn(p, " ");
        p += lens[argc++];
    }
    buf_printf(&out, "*%d\r\n", argc);
    for (int i = 0; i < argc; i++)
        put(argv[i], lens[i]);
}

struct reply *server_answer(void)
{
    if (out.len > 0) {
        begin();
        send_out();
    }
    return (struct reply *)(void *)next_reply();
}

struct reply *server_ask(const char *words)
{
    server_queue(words);
    return server_answer();
}

size_t server_wakes(const char *const **ret)
{
    *ret = (const char *const *)wakes;
    return nwakes;
}

struct reply *server_error(const char *text)
{
    return (struct reply *)(void *)read_text(REDIS_REPLY_ERROR, text, strlen(text));
}

/* ---- data */

static void must(struct reply *r)
{
    if (reply_kind(r) == REPLY_ERROR)
        die(reply_str(r));
    reply_free(r);
}

void server_flush(void)
{
    must(server_ask("FLUSHALL SYNC"));
}

void server_define(const char *words)
{
    must(server_ask(words));
}

/* COPY keeps the order inside small values, as a dump does. */
void server_save(void)
{
    struct reply *keys;

    server_queue("SELECT 1");
    server_queue("FLUSHDB SYNC");
    server_queue("SELECT 0");
    for (int i = 0; i < 3; i++)
        must(server_answer());
    keys = server_ask("KEYS *");
    for (size_t i = 0; i < reply_count(keys); i++) {
        const char *key = reply_str(reply_at(keys, i));
        const char *argv[] = {"COPY", key, key, "DB", "1"}; /* a key may have spaces */

        buf_puts(&out, "*5\r\n");
        for (size_t k = 0; k < 5; k++)
            put(argv[k], strlen(argv[k]));
    }
    for (size_t i = 0; i < reply_count(keys); i++)
        must(server_answer());
    reply_free(keys);
}

void server_lose(void)
{
    must(server_ask("SWAPDB 0 1"));
}

/* ---- start and stop */

/* Replace a text, which must be there exactly once, by a shorter one. */
static void replace(char *text, const char *what, const char *with)
{
    char *found = strstr(text, what);

    if (found == NULL || strstr(found + 1, what) != NULL)
        die("the check to be taken out is not in the library exactly once");
    memcpy(found, with, strlen(with));
    memmove(found + strlen(with), found + strlen(what), strlen(found + strlen(what)) + 1);
}

#define SYNC_LINK_END                                                                              \
    " then\n    status = 'link'\n  end\n  if status ~= 'ok' then\n    return {now_us = now_us, "   \
    "status = status}\n"

/* Each check as it is in the library, and what replaces it. A check may be there several times:
 * there is a fence for jobs that simply end, and one for all other results. */
static const struct {
    const char *name, *text, *instead;
} checks[] = {
    {"fence",
     " or not tries[i] or\n"
     "         string.sub(tries[i], 1, #begin) ~= begin then",
     " then"},
    {"fence", " or\n       string.match(tries[i], '^(%d+) %d+ %d+ %d+$') ~= r.start then", " then"},
    {"gate", "return kinds.lock_holder(ledger, g) and 0 or 1", "return 1"},
    {"turn", "if has_tenant(R, job, tries) then\n    tenants.put",
     "if false then\n    tenants.put"},
    /* The sync's check; what follows it tells it from the reconcile's. */
    {"link", "current ~= q.link" SYNC_LINK_END, "false" SYNC_LINK_END},
    /* A job that was granted counts when it starts. */
    {"rate", "      gate.take(ledger, g, job, fence)\n      gate.touch(ledger, id)\n",
     "      gate.touch(ledger, id)\n"},
    /* Two workers fire the same occurrence. */
    {"cursor", "or item.next ~= known then", "then"},
    /* A member stays where it is. */
    {"take", "  foreign.remove_foreign(item.key, members, item.hash, fields)\n", ""},
    /* Any worker claims the jobs of a broadcast. */
    {"target",
     "for _, target in ipairs(own_targets(R, ctx)) do\n"
     "    local its_head = waiting.take_ids(pins.key_of(R, queue, target)",
     "for _, t in ipairs(pins.targets(R, queue)) do\n"
     "    local its_head = waiting.take_ids(pins.key_of(R, queue, t)"},
    {"cursor", "c.last and c.revision == s.revision and at <= c.last", "false"},
};

static void load_library(const char *without)
{
    const char *argv[] = {"FUNCTION", "LOAD", NULL};
    char *text = mem_strdup(lua_lib_text);

    /* Smaller, so that reaping takes more than one call and its victim may wake in between. */
    replace(text, "local REAP_MAX = 128", "local REAP_MAX = 1");
    for (size_t i = 0; without != NULL && i < sizeof(checks) / sizeof(checks[0]); i++)
        if (strcmp(without, checks[i].name) == 0)
            replace(text, checks[i].text, checks[i].instead);
    argv[2] = text;
    must(server_call(3, argv, NULL));
    free(text);
}

static void connect_to_it(void)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};

    (void)snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", redis.sock);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0)
        die("no connection");
}

static void check_clock(void)
{
    struct reply *r = server_ask("TIME");
    int64_t us = reply_int(reply_at(r, 0)) * SECOND + reply_int(reply_at(r, 1));

    if (us != world_wall_us())
        die("its clock is not ours: is tests/support/preload/clock.so built?");
    reply_free(r);
}

void server_start(const char *without)
{
    char path[] = "/tmp/later-clock-XXXXXX";
    int file = mkstemp(path);
    char *preload = test_clock_preload(), *variable;

    if (file < 0)
        die("no file for its clock");
    (void)close(file);
    wall = test_clock_make(path);
    variable = test_clock_variable(path);
    (void)putenv(variable);
    (void)putenv(preload);
    test_redis_start(&redis, server_args);
    (void)unsetenv("LD_PRELOAD");
    (void)unsetenv("LATER_TEST_CLOCK");
    free(preload);
    free(variable);
    (void)unlink(path);
    connect_to_it();
    must(server_ask("HELLO 3"));
    server_queue("SUBSCRIBE " SERVER_ROOT ":wake");
    must(server_ask("PING"));
    must(server_ask("DEBUG SET-ACTIVE-EXPIRE 0"));
    check_clock();
    load_library(without);
}

void server_stop(void)
{
    (void)close(fd);
    test_redis_stop(&redis);
    test_clock_free(wall);
    while (nwakes > 0)
        free(wakes[--nwakes]);
    buf_done(&in);
    buf_done(&out);
}
