/*
 * The three ways to talk to Redis (calls on the loop, the subscription, the blocking client) beside
 * a server of ours that says anything: true replies with changed bytes, floods, late answers. None
 * may abort, hang or leak. A connection ends, or its answers are right, and the next one works.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "../support/env.h"
#include "../support/laterd.h"
#include "base/log.h"
#include "redis/async.h"
#include "redis/client.h"
#include "redis/sub.h"
#include "redis/tls.h"

#define STREAMS (test_is_long() ? 100000 : 2000)
#define SEED 0x9e3779b97f4a7c15U
#define STREAM_MAX 2000 /* so that an order fits into a pipe at once */
#define ANSWERS_MAX 5
#define LONG_MS 60000

/* ---- the server: serves one connection for each order, then says so */

enum service {
    SERVE_AT_ONCE, /* the bytes, before anything was asked */
    SERVE_SUB,     /* +OK to what is asked first, the bytes to what is asked next */
    SERVE_FLOOD,   /* the bytes again and again */
    SERVE_BRIEFLY, /* the bytes before anything was asked, and hang up */
};

struct order {
    enum service how;
    uint32_t piece; /* bytes in one write */
    uint32_t n;
    char bytes[STREAM_MAX];
};

#define FLOOD_BYTES (512L * 1024 * 1024)
#define BUFFERS_BYTES (2L * 1024 * 1024) /* above what sockets hold */

static struct {
    char dir[64];
    struct url url;
    int listener, orders[2], done[2];
    pthread_t thread;
    long flooded; /* bytes, atomic */
} server;

/* False: nothing came for a minute, so the client hangs. */
static bool hears(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    return poll(&p, 1, LONG_MS) == 1;
}

static bool say(int fd, const char *from, size_t n, size_t piece)
{
    for (size_t at = 0; at < n;) {
        size_t most = n - at < piece ? n - at : piece;
        ssize_t put = send(fd, from + at, most, MSG_NOSIGNAL);

        if (put <= 0)
            return false;
        at += (size_t)put;
    }
    return true;
}

static void flood(int fd, const struct order *o)
{
    static char many[256 * 1024];
    size_t n = 0;

    for (; n + o->n <= sizeof(many); n += o->n)
        memcpy(many + n, o->bytes, o->n);
    while (__atomic_load_n(&server.flooded, __ATOMIC_SEQ_CST) < FLOOD_BYTES && say(fd, many, n, n))
        __atomic_add_fetch(&server.flooded, (long)n, __ATOMIC_SEQ_CST);
}

static char serve(const struct order *o)
{
    int fd = accept(server.listener, NULL, NULL);
    char asked[4096], result = 'k';

    if (o->how == SERVE_SUB) {
        if (!hears(fd) || recv(fd, asked, sizeof(asked), 0) <= 0 || !say(fd, "+OK\r\n", 5, 5))
            result = 'h';
    }
    if (o->how == SERVE_SUB && (!hears(fd) || recv(fd, asked, sizeof(asked), MSG_PEEK) <= 0))
        result = 'h';
    if (o->how == SERVE_FLOOD)
        flood(fd, o);
    else
        (void)say(fd, o->bytes, o->n, o->piece);
    (void)shutdown(fd, SHUT_WR);
    /* Until the client closes. */
    while (o->how != SERVE_BRIEFLY && result == 'k') {
        if (!hears(fd))
            result = 'h';
        else if (recv(fd, asked, sizeof(asked), 0) <= 0)
            break;
    }
    (void)close(fd);
    return result;
}

static void *serve_all(void *arg)
{
    struct order o;

    (void)arg;
    while (read(server.orders[0], &o, sizeof(o)) == (ssize_t)sizeof(o)) {
        char result = serve(&o);

        (void)!write(server.done[1], &result, 1);
    }
    return NULL;
}

static void order(const struct order *o)
{
    assert_int_equal(write(server.orders[1], o, sizeof(*o)), sizeof(*o));
}

static void await_served(void)
{
    char result = 'h';

    assert_int_equal(read(server.done[0], &result, 1), 1);
    assert_int_equal(result, 'k');
}

/* ---- streams: true replies, and what was done to them */

/* shown: as `show` writes the reply. */
static const struct {
    const char *raw, *shown;
} corpus[] = {
    {"+OK\r\n", "OK"},
    {"$-1\r\n", "-"},
    {":1763000000123\r\n", "1763000000123"},
    {"-ELATER_TYPE later:{default}:jobs holds a string\r\n",
     "!ELATER_TYPE later:{default}:jobs holds a string"},
    {"-LOADING Redis is loading the dataset in memory\r\n",
     "!LOADING Redis is loading the dataset in memory"},
    {"*0\r\n", "[]"},
    {"*-1\r\n", "-"},
    {"$5\r\nhe\r\no\r\n", "he\r\no"},
    {"*3\r\n:28\r\n:5\r\n$4\r\n7.0c\r\n", "[28,5,7.0c,]"},
    {"*2\r\n*2\r\n$26\r\n01K9XW3V6Z8QJ5T2N4M7R0ABCD\r\n$4\r\nmail\r\n*2\r\n$1\r\nx\r\n*0\r\n",
     "[[01K9XW3V6Z8QJ5T2N4M7R0ABCD,mail,],[x,[],],]"},
    {"*4\r\n$5\r\njobs:\r\n:-3\r\n$0\r\n\r\n*1\r\n*1\r\n*1\r\n+PONG\r\n",
     "[jobs:,-3,,[[[PONG,],],],]"},
    {"$40\r\n# Server\r\nredis_version:7.0.15\r\nos:x\r\n\r\n\r\n",
     "# Server\r\nredis_version:7.0.15\r\nos:x\r\n\r\n"},
};
#define CORPUS (sizeof(corpus) / sizeof(corpus[0]))
#define SUBSCRIBED "*3\r\n$9\r\nsubscribe\r\n$20\r\nlater:{default}:wake\r\n:1\r\n"
#define PSUBSCRIBED "*3\r\n$10\r\npsubscribe\r\n$3\r\nany\r\n:2\r\n"
#define WAKE "*3\r\n$7\r\nmessage\r\n$20\r\nlater:{default}:wake\r\n$4\r\nmail\r\n"
#define PUSH                                                                                       \
    "*4\r\n$8\r\npmessage\r\n$3\r\nany\r\n$37\r\n__keyspace@0__:later:{default}:due:ab\r\n$4\r\n"  \
    "zadd\r\n"

static uint64_t state;

static size_t below(size_t n)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (size_t)(state % n);
}

static void append(struct order *o, const char *text)
{
    size_t n = strlen(text);

    assert_true(o->n + n <= sizeof(o->bytes));
    memcpy(o->bytes + o->n, text, n);
    o->n += (uint32_t)n;
}

/* Put n bytes in the place of `gone` bytes; what does not fit is left out. */
static void splice(struct order *o, size_t at, size_t gone, const char *from, size_t n)
{
    char copy[STREAM_MAX];

    if (o->n - gone + n > sizeof(o->bytes))
        return;
    memcpy(copy, from, n);
    memmove(o->bytes + at + n, o->bytes + at + gone, o->n - at - gone);
    memcpy(o->bytes + at, copy, n);
    o->n = (uint32_t)(o->n - gone + n);
}

static void change(struct order *o)
{
    static const char telling[] = "*$+-:\r\n0123456789,_#%~>(!=|";
    size_t at = below(o->n + 1), rest = o->n - at, n = rest > 0 ? 1 + below(rest) : 0;
    const char *reply = corpus[below(CORPUS)].raw;
    char byte = telling[below(sizeof(telling) - 1)], any = (char)below(256);

    switch (below(8)) {
    case 0:
        splice(o, at, rest > 0, &byte, 1);
        break;
    case 1:
        splice(o, at, rest > 0, &any, 1);
        break;
    case 2:
        splice(o, at, 0, &byte, 1);
        break;
    case 3:
        splice(o, at, n, "", 0);
        break;
    case 4:
        splice(o, below(o->n + 1), 0, o->bytes + at, n);
        break;
    case 5: /* an answer that nobody asked for, in the middle of another */
        splice(o, at, 0, reply, strlen(reply));
        break;
    case 6: /* … and behind the last one */
        splice(o, o->n, 0, reply, strlen(reply));
        break;
    default:
        o->n = (uint32_t)at;
        break;
    }
}

/* True: some bytes were changed. One stream in eight is as it should be. */
static bool change_some(struct order *o)
{
    size_t n = below(8);

    o->piece = below(2) == 0 ? STREAM_MAX : 1 + (uint32_t)below(64);
    for (size_t i = 0; i < n; i++)
        change(o);
    return n > 0;
}

static void show(struct buf *to, const struct reply *r)
{
    switch (reply_kind(r)) {
    case REPLY_ARRAY:
        buf_puts(to, "[");
        for (size_t i = 0; i < reply_count(r); i++) {
            show(to, reply_at(r, i));
            buf_puts(to, ",");
        }
        buf_puts(to, "]");
        break;
    case REPLY_INT:
        buf_printf(to, "%lld", (long long)reply_int(r));
        break;
    case REPLY_NIL:
        buf_puts(to, "-");
        break;
    case REPLY_STR:
    case REPLY_ERROR:
        buf_puts(to, reply_kind(r) == REPLY_ERROR ? "!" : "");
        buf_add(to, reply_str(r), reply_len(r));
        break;
    }
}

/* A stream of answers. Returns how many there are; expected: as they are shown, if none is changed.
 */
static size_t make_answers(struct order *o, struct buf *expected, bool *is_changed)
{
    size_t n = 1 + below(ANSWERS_MAX);

    *o = (struct order){.how = SERVE_AT_ONCE};
    for (size_t i = 0; i < n; i++) {
        size_t which = below(CORPUS);

        append(o, corpus[which].raw);
        buf_puts(expected, corpus[which].shown);
        buf_puts(expected, "\n");
    }
    *is_changed = change_some(o);
    return n;
}

/* ---- calls on the loop */

struct calls {
    struct loop *loop;
    struct async *async;
    struct buf shown;
    size_t asked, answered, ended, messages;
    size_t turn, longest; /* messages in a turn of the loop */
};

static void on_closed(void *arg, enum error_class class, const char *text)
{
    struct calls *c = arg;

    assert_true(text[0] != '\0');
    c->ended++;
    (void)class;
    async_close(c->async);
    c->async = NULL;
    loop_stop(c->loop);
}

static void on_answer(void *arg, const struct reply *reply)
{
    struct calls *c = arg;

    assert_int_equal(c->ended, 0);
    show(&c->shown, reply);
    buf_puts(&c->shown, "\n");
    c->answered++;
}

static void on_hang(void *arg)
{
    (void)arg;
    fail_msg("the loop does not hear of the end");
}

static struct async *connect_async(struct calls *c, int64_t timeout_ms,
                                   void (*message)(void *, const struct reply *))
{
    struct async_events events = {on_closed, message, c};
    struct err err = ERR_INIT;
    struct wire *w = wire_open(&server.url, mono_add_ms(mono_now(), LONG_MS), &err);

    assert_non_null(w);
    return async_new(c->loop, w, timeout_ms, &events);
}

static void test_changed_bytes_to_calls(void **unused)
{
    static const char *const ping[] = {"PING"};
    struct loop *loop = loop_new();
    struct loop_timer *hang = loop_timer_new(loop, on_hang, NULL);
    size_t right = 0;

    (void)unused;
    state = SEED;
    for (int i = 0; i < STREAMS; i++) {
        CLEANUP_BUF struct buf expected = BUF_INIT;
        struct calls c = {.loop = loop};
        struct order o;
        bool is_changed;

        c.asked = make_answers(&o, &expected, &is_changed);
        order(&o);
        c.async = connect_async(&c, LONG_MS, NULL);
        for (size_t n = 0; n < c.asked; n++)
            assert_int_equal(async_call(c.async, 1, ping, NULL, on_answer, &c), 0);
        loop_timer_set(hang, LONG_MS);
        loop_run(loop);
        await_served();
        assert_int_equal(c.ended, 1);
        assert_true(c.answered <= c.asked);
        if (!is_changed)
            assert_string_equal(buf_str(&c.shown), buf_str(&expected));
        right += !is_changed;
        buf_done(&c.shown);
    }
    assert_true(right > (size_t)STREAMS / 16);
    loop_timer_free(hang);
    loop_free(loop);
}

/* ---- the subscription */

struct subscription {
    struct loop *loop;
    unsigned subscribed, wakes;
    bool is_served;
};

static void on_subscribed(void *arg)
{
    ((struct subscription *)arg)->subscribed++;
}

static void on_wake(void *arg, const char *text, size_t n)
{
    struct subscription *s = arg;

    assert_int_equal(text[n], '\0');
    if (strcmp(text, "mail") == 0 || strcmp(text, "ab") == 0)
        s->wakes++;
}

static void on_changed(void *arg, const char *key)
{
    (void)arg;
    assert_non_null(key);
}

static void on_denied(void *arg, const char *text)
{
    (void)arg;
    assert_non_null(text);
}

static void on_served(void *arg, int events)
{
    (void)events;
    await_served();
    loop_stop(((struct subscription *)arg)->loop);
}

static void test_changed_bytes_to_the_subscription(void **unused)
{
    struct subscription seen = {.loop = loop_new()};
    struct sub_events events = {on_subscribed, on_wake, on_changed, on_denied, &seen};
    struct sub *s = sub_new(seen.loop, "default", LONG_MS, &events);
    struct loop_timer *hang = loop_timer_new(seen.loop, on_hang, NULL);
    struct loop_fd *served = loop_fd_new(seen.loop, server.done[0], LOOP_READ, on_served, &seen);

    (void)unused;
    state = SEED;
    for (int i = 0; i < STREAMS; i++) {
        struct order o = {.how = SERVE_SUB};
        bool is_changed;

        append(&o, SUBSCRIBED PSUBSCRIBED);
        for (size_t n = below(ANSWERS_MAX); n > 0; n--)
            append(&o, below(2) == 0 ? WAKE : PUSH);
        append(&o, WAKE PUSH);
        is_changed = change_some(&o);
        seen.subscribed = seen.wakes = 0;
        order(&o);
        sub_start(s, &server.url);
        loop_timer_set(hang, LONG_MS);
        loop_run(seen.loop);
        if (!is_changed) {
            assert_int_equal(seen.subscribed, 1);
            assert_true(seen.wakes >= 2);
        }
    }
    sub_free(s);
    loop_fd_free(served);
    loop_timer_free(hang);
    loop_free(seen.loop);
}

/* ---- the blocking client */

/* Call until the link breaks, and show the answers. */
static size_t call_all(struct client *c, size_t n, struct buf *shown)
{
    static const char *const ping[] = {"PING"};
    size_t answered = 0;

    while (answered <= n) {
        struct err err = ERR_INIT;
        struct reply *r = client_call(c, 1, ping, NULL, &err);

        if (r == NULL && client_is_broken(c))
            break;
        /* An error's text has its cure behind it. */
        if (r != NULL)
            show(shown, r);
        else
            buf_printf(shown, "!%s", err.text);
        buf_puts(shown, "\n");
        reply_free(r);
        answered++;
    }
    return answered;
}

static void test_changed_bytes_to_the_client(void **unused)
{
    (void)unused;
    state = SEED;
    for (int i = 0; i < STREAMS; i++) {
        CLEANUP_BUF struct buf expected = BUF_INIT, shown = BUF_INIT;
        struct err err = ERR_INIT;
        struct client *c;
        struct order o;
        bool is_changed;
        size_t asked = make_answers(&o, &expected, &is_changed), answered;

        order(&o);
        c = client_open(&server.url, LONG_MS, &err);
        assert_non_null(c);
        answered = call_all(c, STREAM_MAX, &shown);
        assert_true(client_is_broken(c));
        assert_null(client_message(c, 1, &err));
        client_close(c);
        await_served();
        if (is_changed)
            continue;
        assert_int_equal(answered, asked);
        if (strchr(buf_str(&expected), '!') == NULL)
            assert_string_equal(buf_str(&shown), buf_str(&expected));
    }
}

static void test_changed_bytes_to_a_client_that_waits_for_messages(void **unused)
{
    (void)unused;
    state = SEED;
    for (int i = 0; i < STREAMS; i++) {
        struct order o = {.how = SERVE_AT_ONCE};
        struct err err = ERR_INIT;
        size_t asked = 1 + below(ANSWERS_MAX), answered = 0;
        struct client *c;
        struct reply *r;
        bool is_changed;

        for (size_t n = 0; n < asked; n++)
            append(&o, below(2) == 0 ? WAKE : PUSH);
        is_changed = change_some(&o);
        order(&o);
        c = client_open(&server.url, LONG_MS, &err);
        assert_non_null(c);
        while ((r = client_message(c, LONG_MS, &err)) != NULL) {
            answered++;
            reply_free(r);
        }
        assert_true(client_is_broken(c));
        client_close(c);
        await_served();
        if (!is_changed)
            assert_int_equal(answered, asked);
    }
}

/* ---- floods and late answers */

static void on_tick(void *arg)
{
    struct calls *c = arg;

    async_close(c->async);
    c->async = NULL;
    loop_stop(c->loop);
}

static void on_message(void *arg, const struct reply *message)
{
    (void)message;
    ((struct calls *)arg)->turn++;
}

static void on_turn(void *arg)
{
    struct calls *c = arg;

    c->messages += c->turn;
    c->longest = c->turn > c->longest ? c->turn : c->longest;
    c->turn = 0;
}

static void order_flood(void)
{
    struct order o = {.how = SERVE_FLOOD};

    append(&o, WAKE);
    __atomic_store_n(&server.flooded, 0, __ATOMIC_SEQ_CST);
    order(&o);
}

/* The loop has more to do than to read what one connection sends. */
static void test_a_flood_leaves_the_loop_its_turns(void **unused)
{
    struct calls c = {.loop = loop_new()};
    struct loop_timer *tick = loop_timer_new(c.loop, on_tick, &c);
    struct loop_hook *turn = loop_hook_new(c.loop, LOOP_HOOK_SEND, on_turn, &c);

    (void)unused;
    order_flood();
    c.async = connect_async(&c, LONG_MS, on_message);
    loop_timer_set(tick, 100);
    loop_run(c.loop);
    await_served();
    assert_true(c.messages > 0);
    assert_true(c.longest < BUFFERS_BYTES / strlen(WAKE));
    loop_hook_free(turn);
    loop_timer_free(tick);
    loop_free(c.loop);
}

/* A message is handed out when it is there, not when there is a pause behind it. */
static void test_a_flood_is_handed_out_message_by_message(void **unused)
{
    struct err err = ERR_INIT;
    struct client *c;

    (void)unused;
    order_flood();
    c = client_open(&server.url, LONG_MS, &err);
    assert_non_null(c);
    reply_free(client_message(c, LONG_MS, &err));
    assert_false(client_is_broken(c));
    assert_true(__atomic_load_n(&server.flooded, __ATOMIC_SEQ_CST) < BUFFERS_BYTES);
    client_close(c);
    await_served();
}

static void on_late(void *arg, const struct reply *reply)
{
    struct calls *c = arg;

    on_answer(c, reply);
    async_close(c->async);
    c->async = NULL;
    loop_stop(c->loop);
}

/* A process that was stopped for longer than the timeout finds the answer, and its link whole. */
static void test_an_answer_that_waits_for_us_is_in_time(void **unused)
{
    static const char *const ping[] = {"PING"};
    struct calls c = {.loop = loop_new()};
    struct order o = {.how = SERVE_AT_ONCE, .piece = STREAM_MAX};

    (void)unused;
    append(&o, "+PONG\r\n");
    order(&o);
    c.async = connect_async(&c, 20, NULL);
    assert_int_equal(async_call(c.async, 1, ping, NULL, on_late, &c), 0);
    (void)poll(NULL, 0, 100);
    loop_run(c.loop);
    await_served();
    assert_int_equal(c.ended, 0);
    assert_string_equal(buf_str(&c.shown), "PONG\n");
    buf_done(&c.shown);
    loop_free(c.loop);
}

/* ---- a server that has no place for us */

/* It says so and hangs up, maybe before we have asked: what it said counts, not the broken pipe. */
static void test_the_last_words_are_heard(void **unused)
{
    static const char *const ping[] = {"PING"};
    struct order o = {.how = SERVE_BRIEFLY, .piece = STREAM_MAX};
    struct calls calls = {.loop = loop_new()};
    struct err err = ERR_INIT;
    struct client *c;

    (void)unused;
    append(&o, "-ERR max number of clients reached\r\n");
    order(&o);
    c = client_open(&server.url, LONG_MS, &err);
    assert_non_null(c);
    await_served();
    assert_null(client_call(c, 1, ping, NULL, &err));
    assert_non_null(strstr(err.text, "raise maxclients"));
    client_close(c);

    order(&o);
    calls.async = connect_async(&calls, LONG_MS, NULL);
    await_served();
    assert_int_equal(async_call(calls.async, 1, ping, NULL, on_answer, &calls), 0);
    loop_run(calls.loop);
    assert_int_equal(calls.ended, 1);
    assert_string_equal(buf_str(&calls.shown), "!ERR max number of clients reached\n");
    buf_done(&calls.shown);
    loop_free(calls.loop);
}

/* ---- a server that is slow to accept */

static void *accept_late(void *arg)
{
    (void)poll(NULL, 0, 100);
    for (;;) {
        int fd = accept(*(int *)arg, NULL, NULL);

        if (fd < 0)
            return NULL;
        (void)close(fd);
    }
}

/* A full queue is no reason to give up before the deadline; connect(2) does not wait for it. */
static void test_a_full_queue_of_a_socket_is_waited_for(void **unused)
{
    int listener = socket(AF_UNIX, SOCK_STREAM, 0), queued[3];
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    struct url url = server.url;
    struct err err = ERR_INIT;
    pthread_t thread;
    struct wire *w;

    (void)unused;
    (void)snprintf(at.sun_path, sizeof(at.sun_path), "%s/late", server.dir);
    (void)snprintf(url.host, sizeof(url.host), "%s", at.sun_path);
    assert_int_equal(bind(listener, (struct sockaddr *)&at, sizeof(at)), 0);
    assert_int_equal(listen(listener, 0), 0);
    for (size_t i = 0; i < 3; i++) {
        queued[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
        (void)connect(queued[i], (struct sockaddr *)&at, sizeof(at));
    }
    assert_int_equal(pthread_create(&thread, NULL, accept_late, &listener), 0);
    w = wire_open(&url, mono_add_ms(mono_now(), LONG_MS), &err);
    (void)shutdown(listener, SHUT_RD);
    (void)pthread_join(thread, NULL);
    for (size_t i = 0; i < 3; i++)
        (void)close(queued[i]);
    (void)close(listener);
    assert_non_null(w);
    wire_close(w);
}

/* ---- the end of the process */

static void *open_tls(void *arg)
{
    for (;;) {
        struct err err = ERR_INIT;
        struct tls *t = tls_open(STDIN_FILENO, arg, &err);

        tls_close(t);
    }
    return NULL;
}

/* The probe's thread is not awaited at the end; OpenSSL may not fall apart under it. */
static void test_a_process_ends_while_a_thread_connects(void **unused)
{
    struct err err = ERR_INIT;
    struct url url;

    (void)unused;
    assert_int_equal(url_parse("rediss://localhost", &url, &err), 0);
    for (int i = 0; i < 40; i++) {
        pid_t pid = fork();
        pthread_t thread;
        int status;

        if (pid == 0) {
            (void)pthread_create(&thread, NULL, open_tls, &url);
            (void)pthread_detach(thread);
            (void)poll(NULL, 0, 5 + i);
            exit(0);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
    }
}

/* ---- */

static int setup(void **unused)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    struct err err = ERR_INIT;
    char url[128];

    (void)unused;
    log_init(LOG_LEVEL_ERR);
    test_folder_make(server.dir);
    (void)snprintf(at.sun_path, sizeof(at.sun_path), "%s/s", server.dir);
    (void)snprintf(url, sizeof(url), "unix:%s", at.sun_path);
    assert_int_equal(url_parse(url, &server.url, &err), 0);
    server.listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(server.listener, (struct sockaddr *)&at, sizeof(at)), 0);
    assert_int_equal(listen(server.listener, 16), 0);
    assert_int_equal(pipe(server.orders), 0);
    assert_int_equal(pipe(server.done), 0);
    return pthread_create(&server.thread, NULL, serve_all, NULL);
}

static int teardown(void **unused)
{
    (void)unused;
    (void)close(server.orders[1]);
    (void)pthread_join(server.thread, NULL);
    (void)close(server.orders[0]);
    (void)close(server.done[0]);
    (void)close(server.done[1]);
    (void)close(server.listener);
    test_folder_remove(server.dir);
    return 0;
}

int main(void)
{
    /* By itself, before there are threads: it forks. */
    const struct CMUnitTest ends[] = {
        cmocka_unit_test(test_a_process_ends_while_a_thread_connects),
    };
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_changed_bytes_to_calls),
        cmocka_unit_test(test_changed_bytes_to_the_subscription),
        cmocka_unit_test(test_changed_bytes_to_the_client),
        cmocka_unit_test(test_changed_bytes_to_a_client_that_waits_for_messages),
        cmocka_unit_test(test_a_flood_leaves_the_loop_its_turns),
        cmocka_unit_test(test_a_flood_is_handed_out_message_by_message),
        cmocka_unit_test(test_an_answer_that_waits_for_us_is_in_time),
        cmocka_unit_test(test_the_last_words_are_heard),
        cmocka_unit_test(test_a_full_queue_of_a_socket_is_waited_for),
    };

    return cmocka_run_group_tests(ends, NULL, NULL) +
           cmocka_run_group_tests(tests, setup, teardown);
}
