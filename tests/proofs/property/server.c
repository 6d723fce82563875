#include "server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "lua/lua_lib.h"
#include "model_gates.h"
#include "short.h"
#include "../../lua/town.h"

#define CALL_MS 300000
#define END MODEL_ROOT ":end"

/*
 * One row for every string, field and member. The model knows when a token expires, but not its
 * fingerprint; calls test that tokens work. Of what is counted it knows the totals
 * (model_series.c). We sort the rows, since Lua sorts by locale.
 */
static const char READ[] =
    "local root, rows = 'later:{p}:', {}\n"
    "local function row(a, b, c)\n"
    /* How far tidying is; locks, which the test declares without the library; what keeps names. */
    "  if string.sub(a, 1, 12) == 'index:state ' then return end\n"
    "  if string.sub(a, 1, 6) == 'index ' and string.sub(b, 1, 5) == 'lock:' then return end\n"
    "  if string.sub(a, 1, 6) == 'index ' and string.sub(b, 1, 4) == 'use:' then return end\n"
    "  rows[#rows + 1] = a .. (c and #b .. ':' .. b .. '=' .. #c .. ':' .. c or #b .. ':' .. b) .. "
    "'\\n'\n"
    "end\n"
    "for _, key in ipairs(redis.call('KEYS', '*')) do\n"
    "  local kind = redis.call('TYPE', key).ok\n"
    "  local name = string.sub(key, 1, #root) == root and string.sub(key, #root + 1) or '!' .. "
    "key\n"
    "  local head = name .. ' ' .. kind .. ' '\n"
    "  local first = string.match(name, '^(%a+):.') or name\n"
    "  if first == 'total' then\n"
    "    local n = redis.call('BITFIELD_RO', key, 'GET', 'i64', '#0', 'GET', 'i64', '#1',\n"
    "                         'GET', 'i64', '#2', 'GET', 'i64', '#3', 'GET', 'i64', '#4')\n"
    "    row(head, string.format('%.0f %.0f %.0f %.0f %.0f @%.0f', n[1], n[2], n[3], n[4], n[5],\n"
    "                            redis.call('PEXPIRETIME', key)))\n"
    "  elseif first == 'm' or first == 'h' or first == 'keys' or first == 'top' or\n"
    "         first == 'series' then\n"
    "    kind = 'counted'\n"
    "  elseif kind == 'hash' or kind == 'zset' then\n"
    "    local all = kind == 'hash' and redis.call('HGETALL', key) or\n"
    "                redis.call('ZRANGE', key, 0, -1, 'WITHSCORES')\n"
    "    for i = 1, #all, 2 do\n"
    /* Redis 7.0 prints a score so, its successors with the fewest digits. */
    "      row(head, all[i], kind == 'hash' and all[i + 1] or\n"
    "          string.format('%.17g', tonumber(all[i + 1])))\n"
    "    end\n"
    "  elseif kind == 'set' then\n"
    "    for _, member in ipairs(redis.call('SMEMBERS', key)) do row(head, member) end\n"
    "  elseif kind == 'string' and string.match(name, '^token:') then\n"
    "    local value, sha = string.match(redis.call('GET', key), '^(%S+ %d+ )(%x+)$')\n"
    "    row(head, #sha == 40 and value .. '@' .. string.format('%.0f',\n"
    "        redis.call('PEXPIRETIME', key)) or 'bad')\n"
    "  elseif kind == 'string' then row(head, redis.call('GET', key))\n"
    "  else row(head, '') end\n"
    "  if first ~= 'token' and first ~= 'total' and kind ~= 'counted' and\n"
    "     redis.call('PTTL', key) ~= -1 then\n"
    "    row('!expires key ', key, string.format('%.0f', redis.call('PEXPIRETIME', key)))\n"
    "  end\n"
    "end\n"
    "return rows";

/* ---- arguments */

void args_clear(struct args *a)
{
    for (int i = 0; i < a->n; i++)
        buf_done(&a->arg[i]);
    a->n = 0;
}

void args_bytes(struct args *a, const char *p, size_t n)
{
    if (a->n == MODEL_JOBS)
        abort();
    a->arg[a->n] = (struct buf)BUF_INIT;
    buf_add(&a->arg[a->n], p, n);
    a->n++;
}

void args_text(struct args *a, const char *s)
{
    args_bytes(a, s, strlen(s));
}

void args_number(struct args *a, int64_t n)
{
    char text[24];

    (void)snprintf(text, sizeof(text), "%lld", (long long)n);
    args_text(a, text);
}

void args_show(const struct args *a, struct buf *out)
{
    for (int i = 0; i < a->n; i++) {
        const struct buf *arg = &a->arg[i];
        bool quoted = arg->len == 0 || strcspn(arg->data, " {\"'*\\<>|&;$") < arg->len;

        buf_puts(out, i > 0 ? " " : "");
        buf_puts(out, quoted ? "\"" : "");
        for (size_t k = 0; k < arg->len && k < 100; k++) {
            unsigned char c = (unsigned char)arg->data[k];

            if (c < 32 || c > 126)
                buf_printf(out, "\\x%02x", c);
            else
                buf_printf(out, c == '"' || c == '\\' ? "\\%c" : "%c", c);
        }
        if (arg->len > 100)
            buf_printf(out, "...[%zu bytes]", arg->len);
        buf_puts(out, quoted ? "\"" : "");
    }
}

/* ---- the server */

static struct client *connect_to(struct server *s)
{
    struct err err = ERR_INIT;
    struct client *c = NULL;
    struct url url;

    if (url_parse(s->redis.url, &url, &err) == 0)
        c = client_open(&url, CALL_MS, &err);
    if (c == NULL) {
        (void)fprintf(stderr, "%s\n", err.text);
        abort();
    }
    return c;
}

static struct reply *must(struct client *c, int argc, const char *const *argv)
{
    struct err err = ERR_INIT;
    struct reply *r = client_call(c, argc, argv, NULL, &err);

    if (r == NULL) {
        (void)fprintf(stderr, "%s: %s\n", argv[0], err.text);
        abort();
    }
    return r;
}

/* The library with a smaller PASSED_OVER_MAX, so that short sequences reach it. */
static void load_impatient(struct server *s)
{
    static const char was[] = "local PASSED_OVER_MAX = 16";
    const char *at = strstr(lua_lib_text, was);
    char *text = at == NULL
                     ? NULL
                     : mem_printf("%.*slocal PASSED_OVER_MAX = %d%s", (int)(at - lua_lib_text),
                                  lua_lib_text, MODEL_PASSED_OVER_MAX, at + strlen(was));
    const char *const load[] = {"FUNCTION", "LOAD", "REPLACE", text};

    if (text == NULL)
        abort();
    reply_free(must(s->client, 4, load));
    free(text);
}

static void log_in(struct server *s)
{
    for (size_t i = 0; i < TEST_ROLES; i++) {
        char *rights = test_role_rights(test_roles[i], "p");

        test_role_set(s->client, test_roles[i], rights);
        free(rights);
        s->role[i] = connect_to(s);
        test_role_login(s->role[i], test_roles[i]);
    }
}

/* Who writes scores: there is one server at a time. */
static struct client *writer;

static void write_score(double score, char text[OUT_SCORE_BYTES])
{
    char number[OUT_SCORE_BYTES];
    const char *call[] = {"EVAL",
                          "redis.call('ZADD', KEYS[1], ARGV[1], '') "
                          "local score = redis.call('ZSCORE', KEYS[1], '') "
                          "redis.call('DEL', KEYS[1]) return score",
                          "1", "score", number};
    struct reply *r;

    (void)snprintf(number, sizeof(number), "%.17g", score);
    r = must(writer, 5, call);
    (void)snprintf(text, OUT_SCORE_BYTES, "%s", reply_str(r));
    reply_free(r);
}

void server_start(struct server *s)
{
    /* jemalloc's background thread would never sleep with a clock that stands. Notes are up to 200
     * bytes long, and the model tells them in the order in which they came. */
    static const char *const extra[] = {"--jemalloc-bg-thread",
                                        "no",
                                        "--hash-max-listpack-value",
                                        "200",
                                        "--enable-debug-command",
                                        "yes",
                                        NULL};
    /* Who looks first removes a key (server_expire). The cycle of Redis 8 removes it one
     * millisecond before any reader would, if it happens to come then. */
    static const char *const still[] = {"DEBUG", "SET-ACTIVE-EXPIRE", "0"};
    static const char *const subscribe[] = {"PSUBSCRIBE", MODEL_ROOT ":*"};
    char path[] = "/tmp/later-test-clock-XXXXXX";
    char *preload = test_clock_preload();
    char *variable;
    int fd = mkstemp(path);

    memset(s, 0, sizeof(*s));
    if (fd < 0)
        abort();
    s->clock = test_clock_make(path);
    variable = test_clock_variable(path);
    (void)putenv(preload);
    (void)putenv(variable);
    test_redis_start(&s->redis, extra);
    (void)unsetenv("LD_PRELOAD");
    (void)unsetenv("LATER_TEST_CLOCK");
    (void)remove(path);
    test_redis_load(&s->redis);
    free(preload);
    free(variable);
    s->client = connect_to(s);
    reply_free(must(s->client, 3, still));
    writer = s->client;
    out_score_text = write_score;
    load_impatient(s);
    log_in(s);
    s->ear = connect_to(s);
    reply_free(must(s->ear, 2, subscribe));
}

void server_stop(struct server *s)
{
    client_close(s->client);
    client_close(s->ear);
    for (size_t i = 0; i < TEST_ROLES; i++)
        client_close(s->role[i]);
    test_redis_stop(&s->redis);
    test_clock_free(s->clock);
}

void server_set_time(struct server *s, int64_t now_us)
{
    __atomic_store_n(&s->clock->fixed_us, now_us, __ATOMIC_SEQ_CST);
}

void server_expire(struct server *s)
{
    static const char *const scan[] = {"SCAN", "0", "COUNT", "1000000"};

    reply_free(must(s->client, 4, scan));
}

/* Make the library write what it has counted in its memory. */
static void forget_counts(struct server *s)
{
    const char *enter[] = {
        "FCALL", "later_v1_register", "1", MODEL_ROOT, "0", "i0", "1", "0", "0", "0", "0"};
    struct reply *r = must(s->client, 11, enter);
    const char *tidy[] = {"FCALL",    "later_v1_tidy",           "1",
                          MODEL_ROOT, reply_str(reply_at(r, 1)), "0"};

    for (int i = 0; i < 4; i++) /* each writes a hundred rows or so */
        reply_free(must(s->client, 6, tidy));
    reply_free(r);
}

void server_clear(struct server *s)
{
    static const char *const flush[] = {"FLUSHDB"};
    struct buf none = BUF_INIT;

    reply_free(must(s->client, 1, flush));
    forget_counts(s);
    reply_free(must(s->client, 1, flush));
    server_heard(s, &none);
    buf_done(&none);
}

/* ---- replies */

void server_render(struct buf *out, const struct reply *r)
{
    switch (reply_kind(r)) {
    case REPLY_NIL:
        buf_puts(out, "nil ");
        break;
    case REPLY_INT:
        out_int(out, reply_int(r));
        break;
    case REPLY_ERROR:
    case REPLY_STR:
        /* The text behind the code of an error is not compared. */
        out_bytes(out, reply_str(r),
                  strncmp(reply_str(r), "ELATER_", 7) == 0 ? strcspn(reply_str(r), " ")
                                                           : reply_len(r));
        break;
    case REPLY_ARRAY:
        buf_puts(out, "[ ");
        for (size_t i = 0; i < reply_count(r); i++)
            server_render(out, reply_at(r, i));
        buf_puts(out, "] ");
        break;
    }
}

/* The first role that may make this call, by the town of tests/lua/test_roles.c. */
static struct client *client_for(struct server *s, const char *const *argv)
{
    char letter = strcmp(argv[0], "FCALL") == 0 ? town_role(argv[1] + strlen("later_")) : '\0';

    for (size_t i = 0; i < TEST_ROLES; i++)
        if (test_roles[i][0] == letter)
            return s->role[i];
    return s->client;
}

void server_call(struct server *s, const struct args *a, struct buf *out)
{
    static const char *argv[MODEL_JOBS];
    static size_t lens[MODEL_JOBS];
    struct err err = ERR_INIT;
    struct reply *r;

    for (int i = 0; i < a->n; i++) {
        argv[i] = a->arg[i].data != NULL ? a->arg[i].data : "";
        lens[i] = a->arg[i].len;
    }
    r = client_call(client_for(s, argv), a->n, argv, lens, &err);
    if (r != NULL)
        short_render(a, r, out);
    else if (strncmp(err.text, "ELATER_", 7) == 0 && strncmp(err.text, "ELATER_BUG", 10) != 0)
        buf_printf(out, "!%.*s ", (int)strcspn(err.text, " "), err.text);
    else
        buf_printf(out, "!%s ", err.text);
    reply_free(r);
}

static int by_bytes(const void *a, const void *b)
{
    const struct reply *x = *(const struct reply *const *)a, *y = *(const struct reply *const *)b;
    size_t nx = reply_len(x), ny = reply_len(y);
    int c = memcmp(reply_str(x), reply_str(y), nx < ny ? nx : ny);

    return c != 0 ? c : nx < ny ? -1 : nx > ny;
}

void server_read(struct server *s, struct buf *out)
{
    static const char *const read[] = {"EVAL_RO", READ, "0"};
    static const struct reply *row[65536];
    struct reply *r = must(s->client, 3, read);
    size_t n = reply_count(r);

    if (n > sizeof(row) / sizeof(row[0]))
        abort();
    for (size_t i = 0; i < n; i++)
        row[i] = reply_at(r, i);
    if (n > 1)
        qsort(row, n, sizeof(row[0]), by_bytes);
    for (size_t i = 0; i < n; i++)
        buf_add(out, reply_str(row[i]), reply_len(row[i]));
    reply_free(r);
}

void server_heard(struct server *s, struct buf *out)
{
    static const char *const end[] = {"PUBLISH", END, "."};
    bool more = true;

    reply_free(must(s->client, 3, end));
    while (more) {
        struct err err = ERR_INIT;
        struct reply *r = client_message(s->ear, CALL_MS, &err);

        if (r == NULL) {
            (void)fprintf(stderr, "%s\n", err.text);
            abort();
        }
        more = !reply_is(reply_at(r, 2), END);
        if (more) {
            buf_printf(out, "%s ", reply_str(reply_at(r, 2)));
            buf_add(out, reply_str(reply_at(r, 3)), reply_len(reply_at(r, 3)));
            buf_puts(out, "\n");
        }
        reply_free(r);
    }
}
