/*
 * A connection to a server: bytes below (a socket, or TLS over one), commands out and replies in
 * above. It never blocks after wire_open, so that the loop and a blocking client use the same code.
 * hiredis serves only as reader: its connections abort the process at an answer that
 * nobody asked for, and 0.14 has no TLS.
 *
 * Any thread, one at a time: it may be made on one thread and handed to another. A wire that
 * returned -1 is broken; nothing but wire_close is of use then. All errors have code UNAVAILABLE,
 * but those of the files and certificates of TLS (redis/tls.h).
 */
#ifndef LATER_REDIS_WIRE_H
#define LATER_REDIS_WIRE_H

#include <stddef.h>

#include "base/clock.h"
#include "base/err.h"
#include "redis/reply.h"
#include "redis/url.h"

#define WIRE_READ 1
#define WIRE_WRITE 2

struct wire;

/* Resolve the name, connect, and shake hands if it is TLS. Blocks until the deadline (the resolver
 * has timeouts of its own). NULL with err. */
struct wire *wire_open(const struct url *url, struct mono deadline, struct err *err);
void wire_close(struct wire *w); /* NULL is fine */

/* Append a command to the output. lens may be NULL when every argument is a C string. */
void wire_put(struct wire *w, int argc, const char *const *argv, const size_t *lens);
/* Write as much of the output as the connection takes. 1: all, 0: some is left, -1: broken. */
int wire_send(struct wire *w, struct err *err);

/* Read once. 1: there may be more to read now (call again), 0: no more for now, -1: broken, or the
 * other side closed. */
int wire_receive(struct wire *w, struct err *err);
/* The next whole reply of those received. 1: *ret is the caller's, 0: none, -1: what came is no
 * reply. */
int wire_next(struct wire *w, struct reply **ret, struct err *err);

/* What to wait for on wire_fd before the next wire_send or wire_receive. */
int wire_events(const struct wire *w);
int wire_fd(const struct wire *w);
/* Block until there is something to send or receive. 1: there is, 0: the deadline is over. */
int wire_wait(const struct wire *w, struct mono deadline);

/* The numeric address of the other side ("" for a socket in the file system). */
const char *wire_peer(const struct wire *w);
/* The protocol of TLS that is spoken, or NULL: it is plain. */
const char *wire_tls(const struct wire *w);

#endif
