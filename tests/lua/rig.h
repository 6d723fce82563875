/*
 * A redis-server whose clock stands still, with the town (town.h) in it and a connection for each
 * role of etc/users.acl, to see what a call does when a role makes it.
 */
#ifndef LATER_TESTS_LUA_RIG_H
#define LATER_TESTS_LUA_RIG_H

#include "still.h"

#include <ctype.h>

#include "../support/roles.h"
#include "town.h"

#define START_US INT64_C(1767225600000000)
#define WORDS_MAX 128
#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

static struct {
    struct client *all, *role[TEST_ROLES], *ear; /* all: the default user */
    char kept[128][64];
    char *line[TEST_ROLES]; /* its rights in etc/users.acl */
    const char *big;
    int64_t built_us;
} rig;

/* ---- the server and its users */

static void set_user(size_t role)
{
    test_role_set(rig.all, test_roles[role], rig.line[role]);
}

static inline bool has_right(size_t role, const char *command)
{
    char right[40];
    const char *at;

    (void)snprintf(right, sizeof(right), "+%s", command);
    at = strstr(rig.line[role], right);
    return at != NULL && strchr(" ", at[strlen(right)]) != NULL;
}

static struct client *connect_here(void)
{
    struct err err = ERR_INIT;
    struct client *c = NULL;
    struct url url;

    if (url_parse(fx.redis.url, &url, &err) == 0)
        c = client_open(&url, TEST_CALL_MS, &err);
    assert_non_null(c);
    return c;
}

static inline int open_rig(void **state)
{
    static const char *const subscribe[] = {"PSUBSCRIBE", "*"};
    struct err err = ERR_INIT;

    assert_int_equal(still_open(state), 0);
    rig.all = fx.client;
    for (size_t i = 0; i < TEST_ROLES; i++) {
        rig.line[i] = test_role_rights(test_roles[i], "t");
        set_user(i);
        rig.role[i] = connect_here();
        test_role_login(rig.role[i], test_roles[i]);
    }
    rig.ear = connect_here();
    reply_free(client_call(rig.ear, 2, subscribe, NULL, &err));
    return 0;
}

static inline int close_rig(void **state)
{
    for (size_t i = 0; i < TEST_ROLES; i++) {
        client_close(rig.role[i]);
        free(rig.line[i]);
    }
    client_close(rig.ear);
    return still_close(state);
}

/* ---- lines of the town */

/* Expand a word: `~` is a space, $x a kept value, $big the big payload. */
static const char *meant(const char *word)
{
    struct buf b = BUF_INIT;

    for (; *word != '\0'; word++) {
        if (strcmp(word, "$big") == 0) {
            buf_puts(&b, rig.big);
            break;
        } else if (*word == '$') {
            word++;
            assert_true(rig.kept[(int)*word][0] != '\0');
            buf_puts(&b, rig.kept[(int)*word]);
        } else {
            buf_add(&b, *word == '~' ? " " : word, 1);
        }
    }
    buf_add(&b, NULL, 0);
    return keep(buf_take(&b));
}

/* Send argv[0..argc), then the words of a line. -> the reply */
static const char *send_words(const char **argv, int argc, const char *line)
{
    char *rest = mem_strdup(line), *word;

    (void)keep(rest);
    while ((word = strsep(&rest, " ")) != NULL) {
        assert_true(argc < WORDS_MAX);
        if (strncmp(word, "R:", 2) == 0)
            argv[argc++] = meant(text(ROOT ":%s", word + 2));
        else
            argv[argc++] = strcmp(word, "''") == 0 ? "" : meant(word);
    }
    return send_args(argc, argv, NULL);
}

static const char *command(const char *line)
{
    const char *argv[WORDS_MAX];

    return send_words(argv, 0, line);
}

/* Call a function, named without later_, with its arguments, if it has any. -> the reply */
static const char *call(const char *line)
{
    int n = (int)strcspn(line, " ");
    const char *argv[WORDS_MAX] = {"FCALL", text("later_%.*s", n, line), "1", ROOT};

    return line[n] == ' ' ? send_words(argv, 4, line + n + 1) : send_args(4, argv, NULL);
}

static void build_line(const char *line)
{
    const char *got;

    if (line[0] == '+') {
        still_set(still_clock->fixed_us + atoll(line + 1) * 1000);
    } else if (line[0] == '.') {
        got = command(line + 1);
        assert_true(got[0] != '!');
    } else {
        bool is_kept = line[1] == ':';

        got = call(is_kept ? strchr(line, ' ') + 1 : line);
        if (got[0] == '!')
            fail_msg("%s: %s", line, got);
        if (is_kept)
            (void)snprintf(rig.kept[(int)line[0]], sizeof(rig.kept[0]), "%s",
                           shown(reply_at(fx.last, (size_t)(line[2] - '0'))));
    }
}

/* ---- effects */

/* Append every field and member, and when each key expires. */
static void put_rows(struct buf *out)
{
    static const char script[] =
        "local rows = {}\n"
        "local function short(s)\n"
        "  return #s > 200 and redis.sha1hex(s) or (string.gsub(s, '\\n', '|'))\n"
        "end\n"
        "for _, key in ipairs(redis.call('KEYS', '*')) do\n"
        "  local kind, step, all = redis.call('TYPE', key).ok, 1, nil\n"
        "  if kind == 'hash' then step, all = 2, redis.call('HGETALL', key)\n"
        "  elseif kind == 'zset' then step, all = 2, redis.call('ZRANGE', key, 0, -1, "
        "'WITHSCORES')\n"
        "  elseif kind == 'set' then all = redis.call('SMEMBERS', key)\n"
        "  elseif kind == 'list' then all = redis.call('LRANGE', key, 0, -1)\n"
        "  else all = {redis.call('GET', key)} end\n"
        "  for i = 1, #all, step do\n"
        "    rows[#rows + 1] = key .. ' ' .. kind .. ' ' .. short(all[i]) ..\n"
        "                      (step == 2 and ' = ' .. short(all[i + 1]) or '')\n"
        "  end\n"
        "  rows[#rows + 1] = key .. string.format(' until %.0f', redis.call('PEXPIRETIME', key))\n"
        "end\n"
        "table.sort(rows)\n"
        "return table.concat(rows, '\\n')";
    const char *argv[] = {"EVAL", script, "0"};
    struct err err = ERR_INIT;
    struct reply *r = client_call(rig.all, 3, argv, NULL, &err);

    assert_non_null(r);
    buf_add(out, reply_str(r), reply_len(r));
    buf_puts(out, "\n");
    reply_free(r);
}

static void put_heard(struct buf *out)
{
    bool more = true;

    (void)redis("PUBLISH end .");
    while (more) {
        struct err err = ERR_INIT;
        struct reply *r = client_message(rig.ear, 20000, &err);

        assert_non_null(r);
        more = !reply_is(reply_at(r, 2), "end");
        if (more)
            buf_printf(out, "said on %s: %s\n", reply_str(reply_at(r, 2)),
                       reply_str(reply_at(r, 3)));
        reply_free(r);
    }
}

/* Copy all keys of one database into another. */
#define COPY_ALL                                                                                   \
    "redis.call('SELECT', ARGV[1])\n"                                                              \
    "for _, key in ipairs(redis.call('KEYS', '*')) do\n"                                           \
    "  redis.call('COPY', key, key, 'DB', ARGV[2])\n"                                              \
    "end"

/* What a call does, in lines. The reply is apart: a refused call has one, and leaves the rest as if
 * it had not been made. */
struct effect {
    struct buf reply, rest;
    char *used; /* INFO commandstats: the commands that it used */
};

static inline void effect_done(struct effect *e)
{
    buf_done(&e->reply);
    buf_done(&e->rest);
    free(e->used);
}

/* Build the town, and keep a copy in another database. */
static inline void build(void)
{
    static const char *const copy[] = {"EVAL", COPY_ALL, "0", "0", "1"};
    struct buf none = BUF_INIT;

    still_set(START_US);
    rig.big = text("%020000d", 1);
    for (size_t i = 0; i < COUNT(town); i++)
        build_line(town[i]);
    rig.built_us = still_clock->fixed_us;
    assert_string_equal(send_args(COUNT(copy), (const char **)(uintptr_t)copy, NULL), "nil");
    put_heard(&none);
    buf_done(&none);
}

/* Make a call in a fresh copy of the town, at the same instant each time. c: the caller; NULL: do
 * not make the call. The result is freed with effect_done. */
static inline struct effect play(struct client *c, const char *line)
{
    static const char *const copy[] = {"EVAL", COPY_ALL, "0", "1", "0"};
    struct effect e = {BUF_INIT, BUF_INIT, NULL};

    (void)fx_forget(NULL);
    rig.big = text("%020000d", 1);
    /* A tidy writes what the library has counted in its memory, for calls before this one. */
    for (int i = 0; i < 2; i++) {
        (void)redis("FLUSHDB");
        (void)send_args(COUNT(copy), (const char **)(uintptr_t)copy, NULL);
        still_set(rig.built_us);
        if (i == 0)
            (void)call("v1_tidy $w 0");
    }
    for (size_t n; n = strcspn(line, ";"), line[n] == ';'; line += n + 1)
        build_line(text("%.*s", (int)n, line));
    (void)redis("CONFIG RESETSTAT");
    fx.client = c;
    buf_puts(&e.reply, c != NULL ? call(line) : "");
    fx.client = rig.all;
    e.used = mem_strdup(redis("INFO commandstats"));
    put_rows(&e.rest);
    put_heard(&e.rest);
    return e;
}

static inline bool is_same(struct buf *a, struct buf *b)
{
    return strcmp(buf_str(a), buf_str(b)) == 0;
}

#endif
