/*
 * A real redis-server with the library for the tests of its functions, and short names to talk to
 * it. A command is one format string. Its arguments are split at single spaces: `R:x` becomes the
 * key x of the namespace, `''` an empty argument. The last reply is there as text and as a tree:
 *
 *   fcall("later_add mail in 5m hello")   "[j1mzx… added 1767225600000]", errors as "!ELATER_…"
 *   at(1, -1)                             "added": element 1 of the reply
 *   at(3, 0, 7, -1)                       element 7 of element 0 of element 3
 *
 * Texts live until the test ends. Every test starts on an empty server.
 */
#ifndef LATER_TESTS_LUA_FIXTURE_H
#define LATER_TESTS_LUA_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "redis/client.h"
#include "../support/redis.h"

#define ROOT "later:{t}"
/* What `trace` takes: of the first version, and 256 bytes of a later one. */
#define TRACE "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
#define FX_FIFTY "01234567890123456789012345678901234567890123456789"
#define LONG_TRACE                                                                                 \
    "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-" FX_FIFTY FX_FIFTY FX_FIFTY FX_FIFTY
#define FX_ARGS_MAX 4200
#define FX_KEPT_MAX 65536

#define FX_FMT __attribute__((format(printf, 1, 2)))

static struct {
    struct test_redis redis;
    struct client *client;
    struct reply *last;
    char *kept[FX_KEPT_MAX];
    size_t nkept;
    int workers;
} fx;

/* ---- texts */

static inline const char *keep(char *text)
{
    assert_true(fx.nkept < FX_KEPT_MAX);
    fx.kept[fx.nkept++] = text;
    return text;
}

FX_FMT static inline const char *text(const char *fmt, ...)
{
    char *s = NULL;
    va_list ap;

    va_start(ap, fmt);
    assert_true(vasprintf(&s, fmt, ap) >= 0);
    va_end(ap);
    return keep(s);
}

static inline void render(struct buf *b, const struct reply *r)
{
    switch (reply_kind(r)) {
    case REPLY_NIL:
        buf_puts(b, "nil");
        break;
    case REPLY_INT:
        buf_printf(b, "%lld", (long long)reply_int(r));
        break;
    case REPLY_ERROR:
        buf_puts(b, "!");
        buf_puts(b, reply_str(r));
        break;
    case REPLY_STR:
        for (size_t i = 0; i < reply_len(r); i++) {
            char c = reply_str(r)[i];

            buf_add(b, c == '\n' ? "\\n" : c == '\0' ? "\\0" : &c, c == '\n' || c == '\0' ? 2 : 1);
        }
        break;
    case REPLY_ARRAY:
        buf_puts(b, "[");
        for (size_t i = 0; i < reply_count(r); i++) {
            buf_puts(b, i > 0 ? " " : "");
            render(b, reply_at(r, i));
        }
        buf_puts(b, "]");
        break;
    }
}

static inline const char *shown(const struct reply *r)
{
    struct buf b = BUF_INIT;

    render(&b, r);
    buf_add(&b, NULL, 0);
    return keep(buf_take(&b));
}

/* ---- commands */

static inline const char *send_args(int argc, const char **argv, const size_t *lens)
{
    struct err err = ERR_INIT;

    reply_free(fx.last);
    fx.last = client_call(fx.client, argc, argv, lens, &err);
    return fx.last == NULL ? text("!%s", err.text) : shown(fx.last);
}

static inline const char *send_line(const char *line)
{
    const char *argv[FX_ARGS_MAX];
    char *rest = mem_strdup(line), *word;
    int argc = 0;

    (void)keep(rest);
    while ((word = strsep(&rest, " ")) != NULL) {
        assert_true(argc < FX_ARGS_MAX);
        if (strncmp(word, "R:", 2) == 0)
            argv[argc++] = text(ROOT ":%s", word + 2);
        else
            argv[argc++] = strcmp(word, "''") == 0 ? "" : word;
    }
    return send_args(argc, argv, NULL);
}

#define FX_FORMAT(ret)                                                                             \
    char *ret = NULL;                                                                              \
    va_list ap;                                                                                    \
    va_start(ap, fmt);                                                                             \
    assert_true(vasprintf(&ret, fmt, ap) >= 0);                                                    \
    va_end(ap);                                                                                    \
    (void)keep(ret)

/* Any command of Redis. */
FX_FMT static inline const char *redis(const char *fmt, ...)
{
    FX_FORMAT(line);
    return send_line(line);
}

static inline const char *call_line(const char *line)
{
    const char *rest = strchr(line, ' ');
    int n = (int)(rest == NULL ? strlen(line) : (size_t)(rest - line));

    return send_line(text("FCALL %.*s 1 " ROOT "%s", n, line, rest == NULL ? "" : rest));
}

/* A function of the library. */
FX_FMT static inline const char *fcall(const char *fmt, ...)
{
    FX_FORMAT(line);
    return call_line(line);
}

/* As fcall, with n bytes as the last argument. */
static inline const char *fcall_bytes(const char *line, const char *bytes, size_t n)
{
    const char *argv[64] = {"FCALL", NULL, "1", ROOT};
    size_t lens[64] = {5, 0, 1, sizeof(ROOT) - 1};
    char *rest = mem_strdup(line), *word;
    int argc = 4;

    (void)keep(rest);
    argv[1] = strsep(&rest, " ");
    lens[1] = strlen(argv[1]);
    while ((word = strsep(&rest, " ")) != NULL) {
        lens[argc] = strlen(word);
        argv[argc++] = word;
    }
    lens[argc] = n;
    argv[argc++] = bytes;
    return send_args(argc, argv, lens);
}

/* ---- the last reply */

/* The element at a path of indexes that -1 ends. */
static inline const struct reply *node(int first, ...)
{
    const struct reply *r = fx.last;
    va_list ap;

    va_start(ap, first);
    for (int i = first; i >= 0; i = va_arg(ap, int))
        r = reply_at(r, (size_t)i);
    va_end(ap);
    return r;
}

#define at(...) shown(node(__VA_ARGS__))
#define int_at(...) reply_int(node(__VA_ARGS__))
#define len_at(...) ((int)reply_count(node(__VA_ARGS__)))

/* The value after name in a flat array; "nil": it is not there. */
static inline const char *named(const char *name)
{
    return shown(reply_named(fx.last, name));
}

/* ---- syncs */

/* A later_v1_sync without ended jobs: its arguments up to the queues. */
FX_FMT static inline const char *fcall_sync(const char *fmt, ...)
{
    char *args = NULL;
    va_list ap;

    va_start(ap, fmt);
    assert_true(vasprintf(&args, fmt, ap) >= 0);
    va_end(ap);
    return fcall("later_v1_sync %s 0", keep(args));
}

/* The fields of a claim: those that its group has in common, and its own. */
#define GROUP_COMMON 6
#define GROUP_EACH 3
enum claim_field {
    CLAIM_QUEUE,
    CLAIM_FENCE,
    CLAIM_START,
    CLAIM_ATTEMPT,
    CLAIM_CRASHES,
    CLAIM_GATED,
    CLAIM_ID,
    CLAIM_DUE,
    CLAIM_RECORD
};

/* How many claims the last sync brought. */
static inline int count_claimed(void)
{
    int n = 0;

    for (int g = 0; g < len_at(3, -1); g++)
        n += (len_at(3, g, -1) - GROUP_COMMON) / GROUP_EACH;
    return n;
}

/* A field of the i-th claim of the last sync; of the fence, that of the first claim of its group.
 */
static inline const struct reply *claimed_node(int i, enum claim_field field)
{
    int g = 0, n;

    for (; g < len_at(3, -1); g++) {
        n = (len_at(3, g, -1) - GROUP_COMMON) / GROUP_EACH;
        if (i < n)
            break;
        i -= n;
    }
    return node(3, g, (int)field < GROUP_COMMON ? (int)field : (int)field + GROUP_EACH * i, -1);
}

/* The same as text; "nil": there are fewer claims. */
static inline const char *claimed(int i, enum claim_field field)
{
    return shown(claimed_node(i, field));
}

/* ---- helpers */

static inline int64_t time_us(void)
{
    (void)redis("TIME");
    return int_at(0, -1) * 1000000 + int_at(1, -1);
}

static inline int64_t now_ms(void)
{
    return time_us() / 1000;
}

/* The time is at least `least` and at most `most` ms from now; below 0: before now. */
static inline void assert_time(int64_t ms, int64_t least, int64_t most)
{
    int64_t now = now_ms();

    if (ms < now + least || ms > now + most)
        fail_msg("%lld is %+lld ms from now", (long long)ms, (long long)(ms - now));
}

static inline void assert_starts(const char *got, const char *want)
{
    if (strncmp(got, want, strlen(want)) != 0)
        fail_msg("got \"%s\", want \"%s…\"", got, want);
}

/* A hash of every key and value. */
static inline const char *snapshot(void)
{
    return redis("DEBUG DIGEST");
}

static inline void assert_refused_line(const char *code, const char *line)
{
    const char *before = snapshot();
    const char *got = call_line(line);
    size_t n = strlen(code);

    if (strncmp(got, "!", 1) != 0 || strncmp(got + 1, code, n) != 0 || got[n + 1] != ' ')
        fail_msg("%.200s: got \"%s\", want %s", line, got, code);
    if (strcmp(before, snapshot()) != 0)
        fail_msg("%.200s: refused, and yet it wrote", line);
}

/* The call is refused with this code and has changed nothing. */
__attribute__((format(printf, 2, 3))) static inline void assert_refused(const char *code,
                                                                        const char *fmt, ...)
{
    FX_FORMAT(line);
    assert_refused_line(code, line);
}

/* A job by later_add; -> its id. */
FX_FMT static inline const char *add(const char *fmt, ...)
{
    FX_FORMAT(line);
    assert_starts(call_line(text("later_add %s", line)), "[j");
    return at(0, -1);
}

/* A worker that has just registered; -> its epoch. */
static inline const char *worker(void)
{
    assert_starts(fcall("later_v1_register 0 i%d 1 0 0 0 0", ++fx.workers), "[");
    return at(1, -1);
}

/* A worker that says which queues it serves and how many places it has; -> its epoch. */
static inline const char *serving(const char *queues, int places)
{
    const char *w = worker();

    (void)redis("HSET R:worker:%s host web1 pid 77 queues %s places %d room %d", w, queues, places,
                places);
    return w;
}

/* An idle worker takes up to n jobs of a queue; -> the id of the first, "nil" for none. */
static inline const char *claim(const char *w, const char *queue, int n)
{
    assert_starts(fcall_sync("%s 1 0 %d 0 1 %s %d 1048576", w, n, queue, n), "[");
    assert_string_equal(at(1, -1), "ok");
    return claimed(0, CLAIM_ID);
}

/* One result of a job of queue mail, code 7, text T, tail O; -> the answer. */
static inline const char *settle(const char *w, const char *id, int start, const char *verb,
                                 int64_t amount)
{
    assert_starts(
        fcall_sync("%s 1 0 0 1 %s %d %s mail %lld 7 T O 0", w, id, start, verb, (long long)amount),
        "[");
    return at(2, 0, -1);
}

/* ---- a subscriber */

static inline struct client *listen_to(const char *channel)
{
    const char *argv[] = {"SUBSCRIBE", channel};
    struct err err = ERR_INIT;
    struct url url;
    struct client *c;

    assert_int_equal(url_parse(fx.redis.url, &url, &err), 0);
    c = client_open(&url, TEST_CALL_MS, &err);
    assert_non_null(c);
    reply_free(client_call(c, 2, argv, NULL, &err));
    return c;
}

/* What was published since the last time, joined by commas. */
static inline const char *heard(struct client *c, const char *channel)
{
    struct buf b = BUF_INIT;
    bool more = true;

    (void)redis("PUBLISH %s .", channel);
    while (more) {
        struct err err = ERR_INIT;
        struct reply *r = client_message(c, 5000, &err);

        assert_non_null(r);
        more = !reply_is(reply_at(r, 2), ".");
        if (more)
            buf_printf(&b, "%s%s", b.len > 0 ? "," : "", reply_str(reply_at(r, 2)));
        reply_free(r);
    }
    buf_add(&b, NULL, 0);
    return keep(buf_take(&b));
}

/* ---- helpers about jobs */

/* How `later show` names the state of this job; "gone" where there is none. */
static inline const char *state_of(const char *id)
{
    return fcall("later_show %s", id)[0] == '!' ? "gone" : named("state");
}

/* A sync of an idle worker without results, with this room in mail; -> the ids of its claims. */
static inline const char *claims(const char *w, int room)
{
    struct buf b = BUF_INIT;

    assert_starts(fcall_sync("%s 1 0 128 0 1 mail %d 1048576", w, room), "[");
    assert_string_equal(at(1, -1), "ok");
    for (int i = 0; i < count_claimed(); i++)
        buf_printf(&b, "%s%s", i > 0 ? " " : "", claimed(i, CLAIM_ID));
    buf_add(&b, NULL, 0);
    return keep(buf_take(&b));
}

/* ---- cmocka */

static inline int fx_open(void **state)
{
    static const char *const extra[] = {"--enable-debug-command", "yes", NULL};
    struct err err = ERR_INIT;
    struct url url;

    (void)state;
    test_redis_start(&fx.redis, extra);
    test_redis_load(&fx.redis);
    if (url_parse(fx.redis.url, &url, &err) == 0)
        fx.client = client_open(&url, TEST_CALL_MS, &err);
    return fx.client != NULL ? 0 : -1;
}

static inline int fx_close(void **state)
{
    (void)state;
    client_close(fx.client);
    test_redis_stop(&fx.redis);
    return 0;
}

static inline int fx_clear(void **state)
{
    (void)state;
    (void)redis("FLUSHALL");
    return 0;
}

static inline int fx_forget(void **state)
{
    (void)state;
    reply_free(fx.last);
    fx.last = NULL;
    while (fx.nkept > 0)
        free(fx.kept[--fx.nkept]);
    return 0;
}

#define FX_TEST(f) cmocka_unit_test_setup_teardown(f, fx_clear, fx_forget)

#endif
