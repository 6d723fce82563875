#include "redis/async.h"

#include <fcntl.h>
#include <hiredis/async.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "redis/bound.h"
#include "redis/error_reply.h"

struct async {
    redisAsyncContext *ctx;   /* NULL once hiredis frees it */
    struct loop_timer *timer; /* timeout of the connect, then of the next answer */
    struct async_events events;
    struct url url;
    int64_t timeout_ms;
    unsigned waiting; /* calls without a reply */
    unsigned login;   /* how many of these belong to the login */
    bool is_open;
};

struct call {
    async_reply_f *cb; /* NULL: part of the login */
    void *arg;
};

/* ---- what hiredis needs from an event loop; lives as long as the context */

struct hook {
    redisAsyncContext *ctx;
    struct loop_fd *fd;
    struct loop_hook *send;
    int events;
    bool has_output; /* hiredis has output for the end of this iteration */
    bool is_sending; /* on_send writes; hiredis has not yet said whether that was all */
};

static void on_fd(void *arg, int events)
{
    struct hook *h = arg;
    redisAsyncContext *ctx = h->ctx;

    /* Do only one: reading may free the context and the hook. A write is reported again. */
    if (events & LOOP_READ)
        redisAsyncHandleRead(ctx);
    else if (events & LOOP_WRITE)
        redisAsyncHandleWrite(ctx);
}

static void hook_set(struct hook *h, int events)
{
    if (h->events != events)
        loop_fd_events(h->fd, events);
    h->events = events;
}

static void hook_add_read(void *data)
{
    struct hook *h = data;

    hook_set(h, h->events | LOOP_READ);
}

static void hook_del_read(void *data)
{
    struct hook *h = data;

    hook_set(h, h->events & ~LOOP_READ);
}

/* All output of an iteration of the loop is written together at its end, without asking first
 * whether the socket takes it. LOOP_WRITE is watched only for what did not fit, and before the
 * connection is up: there it tells that it is. */
static void hook_add_write(void *data)
{
    struct hook *h = data;

    if (h->is_sending || (h->ctx->c.flags & REDIS_CONNECTED) == 0)
        hook_set(h, h->events | LOOP_WRITE);
    else if ((h->events & LOOP_WRITE) == 0)
        h->has_output = true;
    h->is_sending = false;
}

static void hook_del_write(void *data)
{
    struct hook *h = data;

    h->is_sending = false;
    hook_set(h, h->events & ~LOOP_WRITE);
}

static void on_send(void *arg)
{
    struct hook *h = arg;

    if (!h->has_output)
        return;
    h->has_output = false;
    h->is_sending = true;
    /* It may free the hook; else it calls hook_add_write or hook_del_write. */
    redisAsyncHandleWrite(h->ctx);
}

static void hook_cleanup(void *data)
{
    struct hook *h = data;

    loop_fd_free(h->fd);
    loop_hook_free(h->send);
    free(h);
}

static void hook_attach(struct loop *loop, redisAsyncContext *ctx)
{
    struct hook *h = mem_new(sizeof(*h));

    h->ctx = ctx;
    h->fd = loop_fd_new(loop, ctx->c.fd, 0, on_fd, h);
    h->send = loop_hook_new(loop, LOOP_HOOK_SEND, on_send, h);
    ctx->ev.addRead = hook_add_read;
    ctx->ev.delRead = hook_del_read;
    ctx->ev.addWrite = hook_add_write;
    ctx->ev.delWrite = hook_del_write;
    ctx->ev.cleanup = hook_cleanup;
    ctx->ev.data = h;
}

/* ---- the end */

/* hiredis frees ctx by itself after this: only drop the pointer, then call the owner. */
static void detach(struct async *a, enum error_class class, const char *text)
{
    char copy[192];

    text_copy(copy, sizeof(copy), text);
    a->ctx->data = NULL;
    a->ctx = NULL;
    a->is_open = false;
    loop_timer_stop(a->timer);
    a->events.closed(a->events.arg, class, copy);
}

static void on_connect(const redisAsyncContext *ctx, int status)
{
    struct async *a = ctx->data;

    if (a != NULL && status != REDIS_OK)
        detach(a, ERROR_CLASS_LINK, ctx->errstr);
}

static void on_disconnect(const redisAsyncContext *ctx, int status)
{
    struct async *a = ctx->data;

    (void)status;
    if (a == NULL)
        return;
    /* An unsolicited error (too many clients, loading) closes the link with its text. */
    if (ctx->err == REDIS_ERR_OTHER)
        detach(a, error_reply_class(ctx->errstr), ctx->errstr);
    else
        detach(a, ERROR_CLASS_LINK, ctx->errstr[0] != '\0' ? ctx->errstr : "connection closed");
}

static void on_timeout(void *arg)
{
    struct async *a = arg;
    redisAsyncContext *ctx = a->ctx;
    bool was_open = a->is_open;

    if (ctx == NULL)
        return;
    ctx->data = NULL;
    a->ctx = NULL;
    a->is_open = false;
    redisAsyncFree(ctx);
    a->events.closed(a->events.arg, ERROR_CLASS_LINK,
                     was_open ? "no answer in time" : "no connection in time");
}

/* ---- calls */

static void login_reply(struct async *a, const struct reply *reply)
{
    redisAsyncContext *ctx = a->ctx;

    a->login--;
    if (reply_kind(reply) == REPLY_ERROR) {
        char text[192];

        text_copy(text, sizeof(text), reply_str(reply));
        ctx->data = NULL;
        a->ctx = NULL;
        loop_timer_stop(a->timer);
        redisAsyncFree(ctx);
        a->events.closed(a->events.arg, error_reply_class(text), text);
        return;
    }
    if (a->login == 0) {
        a->is_open = true;
        a->events.opened(a->events.arg);
    }
}

static void on_reply(redisAsyncContext *ctx, void *reply, void *privdata)
{
    struct call call = *(struct call *)privdata;
    struct async *a = ctx->data;

    free(privdata);
    if (reply == NULL || a == NULL)
        return;
    if (--a->waiting > 0)
        loop_timer_set(a->timer, a->timeout_ms);
    else
        loop_timer_stop(a->timer);
    if (call.cb == NULL)
        login_reply(a, reply);
    else
        call.cb(call.arg, reply);
}

static int send_command(struct async *a, const struct call *call, int argc, const char *const *argv,
                        const size_t *lens)
{
    struct call *copy = mem_new(sizeof(*copy));

    *copy = *call;
    if (redisAsyncCommandArgv(a->ctx, on_reply, copy, argc, (const char **)(uintptr_t)argv, lens) !=
        REDIS_OK) {
        free(copy);
        return -1;
    }
    if (a->waiting++ == 0)
        loop_timer_set(a->timer, a->timeout_ms);
    return 0;
}

static int login_send(struct async *a, int argc, const char *const *argv)
{
    static const struct call login = {NULL, NULL};

    if (send_command(a, &login, argc, argv, NULL) < 0)
        return -1;
    a->login++;
    return 0;
}

/* Queued before the connection is up. CLIENT LIST shows the name. */
static int log_in(struct async *a)
{
    char db[16];
    const char *with_user[] = {"AUTH", a->url.user, a->url.password};
    const char *without[] = {"AUTH", a->url.password};
    const char *choose[] = {"SELECT", db};
    static const char *const name[] = {"CLIENT", "SETNAME", "laterd"};

    if (a->url.user[0] != '\0') {
        if (login_send(a, 3, with_user) < 0)
            return -1;
    } else if (a->url.password[0] != '\0' && login_send(a, 2, without) < 0) {
        return -1;
    }
    (void)snprintf(db, sizeof(db), "%d", a->url.db);
    if (a->url.db != 0 && login_send(a, 2, choose) < 0)
        return -1;
    return login_send(a, 3, name);
}

struct async *async_open(struct loop *loop, const struct url *url, int64_t timeout_ms,
                         const struct async_events *events)
{
    redisAsyncContext *ctx =
        url->is_unix ? redisAsyncConnectUnix(url->host) : redisAsyncConnect(url->host, url->port);
    struct async *a;

    if (ctx == NULL)
        return NULL;
    if (ctx->err != 0) {
        redisAsyncFree(ctx);
        return NULL;
    }
    /* hiredis 0.14 opens the socket without it. (A new process gets no such descriptor anyway.) */
    (void)fcntl(ctx->c.fd, F_SETFD, FD_CLOEXEC);
    bound_reader(ctx->c.reader);
    a = mem_new(sizeof(*a));
    a->ctx = ctx;
    a->events = *events;
    a->url = *url;
    a->timeout_ms = timeout_ms;
    a->timer = loop_timer_new(loop, on_timeout, a);
    ctx->data = a;
    hook_attach(loop, ctx);
    (void)redisAsyncSetConnectCallback(ctx, on_connect);
    (void)redisAsyncSetDisconnectCallback(ctx, on_disconnect);
    /* If part of the login were missing, `opened` would never be called. */
    if (log_in(a) < 0) {
        async_close(a);
        return NULL;
    }
    return a;
}

void async_close(struct async *a)
{
    redisAsyncContext *ctx;

    if (a == NULL)
        return;
    ctx = a->ctx;
    if (ctx != NULL) {
        ctx->data = NULL;
        redisAsyncFree(ctx);
    }
    loop_timer_free(a->timer);
    explicit_bzero(a->url.password, sizeof(a->url.password));
    free(a);
}

int async_call(struct async *a, int argc, const char *const *argv, const size_t *lens,
               async_reply_f *cb, void *arg)
{
    struct call call = {cb, arg};

    if (a == NULL || !a->is_open)
        return -1;
    return send_command(a, &call, argc, argv, lens);
}

/* Confirmations and messages. privdata is not used: a connection has one owner. */
static void on_push(redisAsyncContext *ctx, void *reply, void *privdata)
{
    struct async *a = ctx->data;

    (void)privdata;
    if (reply != NULL && a != NULL && a->events.push != NULL)
        a->events.push(a->events.arg, reply);
}

int async_subscribe(struct async *a, const char *verb, const char *channel)
{
    const char *argv[] = {verb, channel};

    if (a == NULL || !a->is_open)
        return -1;
    return redisAsyncCommandArgv(a->ctx, on_push, NULL, 2, argv, NULL) == REDIS_OK ? 0 : -1;
}
