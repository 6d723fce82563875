#include "redis/wire.h"

#include <errno.h>
#include <hiredis/hiredis.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/text.h"
#include "redis/bound.h"
#include "redis/dial.h"
#include "redis/tls.h"

#define CHUNK_BYTES 16384      /* a record of TLS, too */
#define KEPT_BYTES (64 * 1024) /* output memory that is kept for the next command */

struct wire {
    int fd;
    struct tls *tls; /* NULL: plain */
    redisReader *reader;
    struct buf out;
    size_t sent; /* bytes at the front of out that are written */
    bool has_answered;
    char peer[DIAL_PEER_MAX];
};

static int shake_hands(struct wire *w, struct mono deadline, struct err *err)
{
    int done;

    while ((done = tls_handshake(w->tls, err)) == 0)
        if (!wire_wait(w, deadline))
            return err_set(err, ERR_UNAVAILABLE,
                           "no answer to the TLS handshake in time (a server "
                           "without TLS gives none: then write redis:// in "
                           "place of rediss://)");
    return done < 0 ? -1 : 0;
}

struct wire *wire_open(const struct url *url, struct mono deadline, struct err *err)
{
    struct wire *w = mem_new(sizeof(*w));

    w->fd = dial(url, deadline, w->peer, err);
    if (w->fd < 0)
        goto fail;
    if (url->is_tls &&
        ((w->tls = tls_open(w->fd, url, err)) == NULL || shake_hands(w, deadline, err) < 0))
        goto fail;
    w->reader = redisReaderCreate();
    if (w->reader == NULL) {
        (void)err_set(err, ERR_UNAVAILABLE, "no memory");
        goto fail;
    }
    bound_reader(w->reader);
    return w;
fail:
    wire_close(w);
    return NULL;
}

void wire_close(struct wire *w)
{
    if (w == NULL)
        return;
    tls_close(w->tls);
    if (w->fd >= 0)
        (void)close(w->fd);
    if (w->reader != NULL)
        redisReaderFree(w->reader);
    buf_done(&w->out);
    free(w);
}

/* ---- out */

/* "*3" and "$5" of the protocol. Each argument has one, so no snprintf. */
static void put_head(struct wire *w, char type, size_t n)
{
    char head[TEXT_DIGITS_MAX + 3], *at = head + sizeof(head);

    *--at = '\n';
    *--at = '\r';
    at = text_digits(at, n);
    *--at = type;
    buf_add(&w->out, at, (size_t)(head + sizeof(head) - at));
}

void wire_put(struct wire *w, int argc, const char *const *argv, const size_t *lens)
{
    put_head(w, '*', (size_t)argc);
    for (int i = 0; i < argc; i++) {
        size_t n = lens != NULL ? lens[i] : strlen(argv[i]);

        put_head(w, '$', n);
        buf_add(&w->out, argv[i], n);
        buf_add(&w->out, "\r\n", 2);
    }
}

/* Bytes written, 0 when none can be now, -1. */
static long write_some(struct wire *w, const char *from, size_t n, struct err *err)
{
    ssize_t done;

    if (w->tls != NULL)
        return tls_write(w->tls, from, n, err);
    done = send(w->fd, from, n, MSG_NOSIGNAL);
    if (done >= 0)
        return done;
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)
        return 0;
    /* It has hung up. Reading tells what it said before, and then the end. */
    if (errno == EPIPE)
        return (long)n;
    return err_set(err, ERR_UNAVAILABLE, "%s", strerror(errno));
}

int wire_send(struct wire *w, struct err *err)
{
    while (w->sent < w->out.len) {
        long n = write_some(w, w->out.data + w->sent, w->out.len - w->sent, err);

        if (n < 0)
            return -1;
        w->sent += (size_t)n;
        /* Now and then, so that moving the rest costs less than writing it. */
        if (w->sent >= w->out.len / 2) {
            buf_drop(&w->out, w->sent);
            w->sent = 0;
        }
        if (n == 0)
            return 0;
    }
    if (w->out.cap > KEPT_BYTES)
        buf_done(&w->out);
    return 1;
}

/* ---- in */

static int closed(const struct wire *w, const char *how, struct err *err)
{
    bool may_be_tls = !w->has_answered && w->tls == NULL && w->peer[0] != '\0';

    return err_set(err, ERR_UNAVAILABLE, "%s%s", how,
                   may_be_tls ? " before any answer (if it speaks TLS, write rediss:// in place "
                                "of redis://)"
                              : "");
}

/* Bytes read, 0 when there are none now, -1. */
static long read_some(struct wire *w, char *to, size_t n, struct err *err)
{
    ssize_t got;

    if (w->tls != NULL)
        return tls_read(w->tls, to, n, err);
    got = recv(w->fd, to, n, 0);
    if (got > 0)
        return got;
    if (got == 0)
        return closed(w, "Server closed the connection", err);
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)
        return 0;
    return closed(w, strerror(errno), err);
}

int wire_receive(struct wire *w, struct err *err)
{
    char chunk[CHUNK_BYTES];
    long n = read_some(w, chunk, sizeof(chunk), err);

    if (n <= 0)
        return n < 0 ? -1 : 0;
    /* 21: an alert of TLS; no reply begins with it. */
    if (!w->has_answered && w->tls == NULL && chunk[0] == 21)
        return err_set(err, ERR_CONFIG,
                       "this port speaks TLS: write rediss:// in place of redis://");
    w->has_answered = true;
    if (redisReaderFeed(w->reader, chunk, (size_t)n) != REDIS_OK)
        return err_set(err, ERR_UNAVAILABLE, "%s", w->reader->errstr);
    return w->tls != NULL ? tls_has_more(w->tls) : (size_t)n == sizeof(chunk);
}

/* We never ask for RESP3, so no answer has one of its types. */
static bool is_resp2(const redisReply *r)
{
    switch (r->type) {
    case REDIS_REPLY_STRING:
    case REDIS_REPLY_ARRAY:
    case REDIS_REPLY_INTEGER:
    case REDIS_REPLY_NIL:
    case REDIS_REPLY_STATUS:
    case REDIS_REPLY_ERROR:
        return true;
    default:
        return false;
    }
}

int wire_next(struct wire *w, struct reply **ret, struct err *err)
{
    void *got = NULL;

    *ret = NULL;
    if (redisReaderGetReply(w->reader, &got) != REDIS_OK)
        return err_set(err, ERR_UNAVAILABLE, "%s", w->reader->errstr);
    if (got == NULL)
        return 0;
    *ret = got;
    if (is_resp2(got))
        return 1;
    reply_free(*ret);
    *ret = NULL;
    return err_set(err, ERR_UNAVAILABLE,
                   "Protocol error, a reply of a type that was not asked for");
}

/* ---- waiting */

int wire_events(const struct wire *w)
{
    bool has_output = w->sent < w->out.len;

    return WIRE_READ | (has_output || (w->tls != NULL && tls_wants_write(w->tls)) ? WIRE_WRITE : 0);
}

int wire_fd(const struct wire *w)
{
    return w->fd;
}

int wire_wait(const struct wire *w, struct mono deadline)
{
    int events = wire_events(w);

    return dial_wait(w->fd, (short)(POLLIN | (events & WIRE_WRITE ? POLLOUT : 0)), deadline);
}

const char *wire_peer(const struct wire *w)
{
    return w->peer;
}

const char *wire_tls(const struct wire *w)
{
    return w->tls != NULL ? tls_protocol(w->tls) : NULL;
}
