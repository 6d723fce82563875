#include "redis/client.h"

#include <errno.h>
#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/mem.h"
#include "redis/bound.h"
#include "redis/error_reply.h"
#include "redis/lib.h"

#define ARGS_MAX 1100

struct client {
    redisContext *ctx;
    struct url url;
    int64_t timeout_ms;
    char peer[NI_MAXHOST];
};

static struct timeval to_timeval(int64_t ms)
{
    return (struct timeval){.tv_sec = ms / 1000, .tv_usec = (ms % 1000) * 1000};
}

static int unavailable(struct client *c, struct err *err)
{
    char where[320];
    const char *why = c->ctx == NULL ? "no memory" : c->ctx->errstr;

    if (c->ctx != NULL && c->ctx->err == REDIS_ERR_IO && (errno == EAGAIN || errno == EWOULDBLOCK))
        why = "no answer in time";
    return err_set(err, ERR_UNAVAILABLE, "%s: %s", url_show(&c->url, where), why);
}

static void read_peer(struct client *c)
{
    struct sockaddr_storage addr;
    socklen_t len = sizeof(addr);

    if (getpeername(c->ctx->fd, (struct sockaddr *)&addr, &len) < 0 ||
        getnameinfo((struct sockaddr *)&addr, len, c->peer, sizeof(c->peer), NULL, 0,
                    NI_NUMERICHOST) != 0)
        c->peer[0] = '\0';
}

static int log_in(struct client *c, struct err *err)
{
    char db[16];
    const char *with_user[] = {"AUTH", c->url.user, c->url.password};
    const char *without[] = {"AUTH", c->url.password};
    const char *choose[] = {"SELECT", db};
    struct reply *r;

    /* A user without a password (nopass) needs AUTH too: else it would be the default user. */
    if (c->url.password[0] != '\0' || c->url.user[0] != '\0') {
        r = c->url.user[0] != '\0' ? client_call(c, 3, with_user, NULL, err)
                                   : client_call(c, 2, without, NULL, err);
        if (r == NULL)
            return -1;
        reply_free(r);
    }
    if (c->url.db == 0)
        return 0;
    (void)snprintf(db, sizeof(db), "%d", c->url.db);
    r = client_call(c, 2, choose, NULL, err);
    reply_free(r);
    if (r == NULL && err->code == ERR_DATA)
        return err_wrap(err, "database %d, the last number of the URL (CONFIG GET databases)",
                        c->url.db);
    return r != NULL ? 0 : -1;
}

struct client *client_open(const struct url *url, int64_t timeout_ms, struct err *err)
{
    struct client *c = mem_new(sizeof(*c));

    c->url = *url;
    c->timeout_ms = timeout_ms;
    c->ctx = url->is_unix ? redisConnectUnixWithTimeout(url->host, to_timeval(timeout_ms))
                          : redisConnectWithTimeout(url->host, url->port, to_timeval(timeout_ms));
    if (c->ctx == NULL || c->ctx->err != 0) {
        (void)unavailable(c, err);
        goto fail;
    }
    (void)fcntl(c->ctx->fd, F_SETFD, FD_CLOEXEC);
    bound_reader(c->ctx->reader);
    (void)redisSetTimeout(c->ctx, to_timeval(timeout_ms));
    if (!url->is_unix)
        read_peer(c);
    if (log_in(c, err) < 0)
        goto fail;
    return c;
fail:
    client_close(c);
    return NULL;
}

void client_close(struct client *c)
{
    if (c == NULL)
        return;
    if (c->ctx != NULL)
        redisFree(c->ctx);
    explicit_bzero(c->url.password, sizeof(c->url.password));
    free(c);
}

/* Take what hiredis returned: the reply, or NULL with err for none or an error reply. */
static struct reply *take(struct client *c, redisReply *r, struct err *err)
{
    if (r == NULL) {
        (void)unavailable(c, err);
        return NULL;
    }
    if (r->type == REDIS_REPLY_ERROR) {
        (void)error_reply_err(err, r->str);
        freeReplyObject(r);
        return NULL;
    }
    return (struct reply *)(void *)r;
}

struct reply *client_call(struct client *c, int argc, const char *const *argv, const size_t *lens,
                          struct err *err)
{
    /* hiredis takes non-const pointers and does not write through them. */
    errno = 0;
    return take(c, redisCommandArgv(c->ctx, argc, (const char **)(uintptr_t)argv, lens), err);
}

/* Call; if the library is missing, load it and call again. */
static struct reply *call_library(struct client *c, int argc, const char *const *argv,
                                  const size_t *lens, struct err *err)
{
    struct err first = ERR_INIT;
    struct lib_state state;
    struct reply *r = client_call(c, argc, argv, lens, &first);

    if (r != NULL || first.code != ERR_UNAVAILABLE ||
        error_reply_class(first.text) != ERROR_CLASS_LIBRARY) {
        if (r == NULL && err != NULL)
            *err = first;
        return r;
    }
    if (lib_ensure(c, LIB_ENSURE, &state, err) < 0) {
        /* This user may not even look which library is there. */
        if (err != NULL && err->code == ERR_DENIED && strstr(err->text, "later setup") == NULL)
            (void)err_set(err, ERR_DENIED,
                          "the function library is not on the server, or is too old, and this user "
                          "may not load it: run `later setup` once as an administrator (user admin "
                          "of etc/users.acl)");
        return NULL;
    }
    return client_call(c, argc, argv, lens, err);
}

/* FCALL and its arguments. */
struct blocking_fcall {
    const char *argv[ARGS_MAX];
    size_t lens[ARGS_MAX];
    char root[80];
    int argc;
};

static int fcall_make(struct blocking_fcall *f, const char *ns, const char *function, int argc,
                      const char *const *argv, const size_t *lens, struct err *err)
{
    if (argc + 4 > ARGS_MAX)
        return err_set(err, ERR_USAGE, "too many arguments");
    (void)snprintf(f->root, sizeof(f->root), "later:{%s}", ns);
    f->argc = argc + 4;
    f->argv[0] = "FCALL";
    f->argv[1] = function;
    f->argv[2] = "1";
    f->argv[3] = f->root;
    for (int i = 0; i < argc; i++)
        f->argv[4 + i] = argv[i];
    for (int i = 0; i < f->argc; i++)
        f->lens[i] = i >= 4 && lens != NULL ? lens[i - 4] : strlen(f->argv[i]);
    return 0;
}

struct reply *client_fcall(struct client *c, const char *ns, const char *function, int argc,
                           const char *const *argv, const size_t *lens, struct err *err)
{
    struct blocking_fcall f;

    if (fcall_make(&f, ns, function, argc, argv, lens, err) < 0)
        return NULL;
    return call_library(c, f.argc, f.argv, f.lens, err);
}

int client_fcall_send(struct client *c, const char *ns, const char *function, int argc,
                      const char *const *argv, const size_t *lens, struct err *err)
{
    struct blocking_fcall f;
    int is_written = 0;

    if (fcall_make(&f, ns, function, argc, argv, lens, err) < 0)
        return -1;
    if (redisAppendCommandArgv(c->ctx, f.argc, f.argv, f.lens) != REDIS_OK)
        return unavailable(c, err);
    while (!is_written) {
        errno = 0;
        if (redisBufferWrite(c->ctx, &is_written) != REDIS_OK)
            return unavailable(c, err);
    }
    return 0;
}

struct reply *client_answer(struct client *c, struct err *err)
{
    void *r = NULL;

    errno = 0;
    if (redisGetReply(c->ctx, &r) != REDIS_OK)
        r = NULL;
    return take(c, r, err);
}

bool client_is_broken(const struct client *c)
{
    return c->ctx->err != 0;
}

void client_set_timeout(struct client *c, int64_t timeout_ms)
{
    (void)redisSetTimeout(c->ctx, to_timeval(timeout_ms));
}

struct reply *client_message(struct client *c, int64_t timeout_ms, struct err *err)
{
    void *r = NULL;

    (void)redisSetTimeout(c->ctx, to_timeval(timeout_ms > 0 ? timeout_ms : 1));
    errno = 0;
    if (redisGetReply(c->ctx, &r) == REDIS_OK)
        return r;
    if (c->ctx->err == REDIS_ERR_IO && (errno == EAGAIN || errno == EWOULDBLOCK)) {
        /* To hiredis the context is broken now, but nothing was lost: no byte had come. */
        c->ctx->err = 0;
        c->ctx->errstr[0] = '\0';
        (void)err_set(err, ERR_TEMP, "no message in time");
        return NULL;
    }
    (void)unavailable(c, err);
    return NULL;
}

const char *client_peer(const struct client *c)
{
    return c->peer;
}
