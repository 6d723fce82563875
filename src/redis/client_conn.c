#include "redis/client_conn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/text.h"
#include "redis/error_reply.h"

struct client {
    struct wire *wire;
    struct url url;
    int64_t timeout_ms;
    struct mono until;
    bool has_more; /* there may be more to read without waiting */
    bool is_broken;
};

/* The link is of no use any more: say so, with the server's name before what the wire said. */
static int broke(struct client *c, struct err *err)
{
    char where[320];

    c->is_broken = true;
    return err != NULL ? err_wrap(err, "%s", url_show(&c->url, where)) : -1;
}

static int broke_by(struct client *c, const char *why, struct err *err)
{
    (void)err_set(err, ERR_UNAVAILABLE, "%s", why);
    return broke(c, err);
}

static int authenticate(struct client *c, struct err *err)
{
    const char *auth[3];
    int n = url_login(&c->url, auth);
    struct reply *r = n > 0 ? client_call(c, n, auth, NULL, err) : NULL;

    reply_free(r);
    return n == 0 || r != NULL ? 0 : -1;
}

struct client *client_connect(const struct url *url, int64_t timeout_ms, struct err *err)
{
    struct client *c = mem_new(sizeof(*c));

    c->url = *url;
    c->timeout_ms = timeout_ms;
    c->until = MONO_NEVER;
    c->wire = wire_open(&c->url, mono_add_ms(mono_now(), timeout_ms), err);
    if (c->wire == NULL)
        (void)broke(c, err);
    else if (authenticate(c, err) == 0)
        return c;
    client_close(c);
    return NULL;
}

void client_close(struct client *c)
{
    if (c == NULL)
        return;
    wire_close(c->wire);
    explicit_bzero(c->url.password, sizeof(c->url.password));
    free(c);
}

struct wire *client_take_wire(struct client *c, struct err *err)
{
    struct wire *wire = c->wire;
    struct reply *unasked = NULL;

    if (wire_next(wire, &unasked, err) == 0) {
        c->wire = NULL;
    } else {
        reply_free(unasked);
        (void)broke_by(c, "Protocol error, an answer that nobody asked for", err);
        wire = NULL;
    }
    client_close(c);
    return wire;
}

/* ---- sending and receiving; each wait for the server is at most timeout_ms */

/* Receive once, so that what came is handed out before more is read: somebody may send without a
 * pause. 1, 0: nothing came for this long, -1: the link broke. */
static int receive(struct client *c, int64_t ms, struct err *err)
{
    struct mono now = mono_now(), until = mono_add_ms(now, ms);
    int more;

    if (!mono_before(now, c->until))
        return 0;
    if (mono_before(c->until, until))
        until = c->until;
    if (!c->has_more && !wire_wait(c->wire, until))
        return 0;
    more = wire_receive(c->wire, err);
    c->has_more = more == 1;
    return more < 0 ? broke(c, err) : 1;
}

/* Also reads what comes meanwhile: a server that cannot get rid of its answers takes no calls. */
static int send_all(struct client *c, struct err *err)
{
    int all;

    while ((all = wire_send(c->wire, err)) == 0) {
        int got = receive(c, c->timeout_ms, err);

        if (got <= 0)
            return got < 0 ? -1 : broke_by(c, "no answer in time", err);
    }
    return all < 0 ? broke(c, err) : 0;
}

/* The next reply, as it is. 1: there is one, 0: nothing came for this long, -1: the link broke. */
static int await_reply(struct client *c, int64_t ms, struct reply **ret, struct err *err)
{
    for (;;) {
        int got = wire_next(c->wire, ret, err);

        if (got != 0)
            return got > 0 ? 1 : broke(c, err);
        got = receive(c, ms, err);
        if (got <= 0)
            return got;
    }
}

struct reply *client_answer(struct client *c, struct err *err)
{
    struct reply *r = NULL;
    int got = await_reply(c, c->timeout_ms, &r, err);

    if (got == 0)
        (void)broke_by(c, "no answer in time", err);
    if (got <= 0 || reply_kind(r) != REPLY_ERROR)
        return r;
    (void)error_reply_err(err, reply_str(r));
    reply_free(r);
    return NULL;
}

int client_send(struct client *c, int argc, const char *const *argv, const size_t *lens,
                struct err *err)
{
    if (c->is_broken)
        return broke_by(c, "the link is broken", err);
    wire_put(c->wire, argc, argv, lens);
    return send_all(c, err);
}

struct reply *client_call(struct client *c, int argc, const char *const *argv, const size_t *lens,
                          struct err *err)
{
    return client_send(c, argc, argv, lens, err) == 0 ? client_answer(c, err) : NULL;
}

bool client_is_broken(const struct client *c)
{
    return c->is_broken;
}

void client_set_timeout(struct client *c, int64_t timeout_ms)
{
    c->timeout_ms = timeout_ms;
}

void client_set_until(struct client *c, struct mono until)
{
    c->until = until;
}

bool client_has_ended(struct client *c)
{
    return c->is_broken || (wire_wait(c->wire, mono_now()) && wire_receive(c->wire, NULL) < 0);
}

struct reply *client_message(struct client *c, int64_t timeout_ms, struct err *err)
{
    struct reply *r = NULL;
    int got = await_reply(c, timeout_ms > 0 ? timeout_ms : 1, &r, err);
    const struct reply *kind = reply_at(r, 0);

    if (got == 0)
        (void)err_set(err, ERR_TEMP, "no message in time");
    if (got <= 0 || reply_is(kind, "message") || reply_is(kind, "pmessage") ||
        reply_is(kind, "subscribe"))
        return r;
    reply_free(r);
    (void)broke_by(c, "Protocol error, what came is no message", err);
    return NULL;
}

void client_get_url(const struct client *c, struct url *ret)
{
    *ret = c->url;
    if (client_peer(c)[0] != '\0')
        text_copy(ret->host, sizeof(ret->host), client_peer(c));
}

const char *client_peer(const struct client *c)
{
    return wire_peer(c->wire);
}

const char *client_tls(const struct client *c)
{
    return wire_tls(c->wire);
}
