/*
 * The connection of a blocking client to one server, and calls on it (redis/client.h). Never on the
 * loop.
 *
 * Errors: UNAVAILABLE (not there, timed out, broken link; an error reply such as LOADING or OOM),
 * DENIED, REFUSED (ELATER_…: err->text starts with the code; WRONGTYPE), DATA (any other error
 * reply), CONFIG (of TLS: redis/tls.h). A client whose link broke is unusable (client_is_broken).
 */
#ifndef LATER_REDIS_CLIENT_CONN_H
#define LATER_REDIS_CLIENT_CONN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "redis/reply.h"
#include "redis/url.h"
#include "redis/wire.h"

struct client;

/* Connect to the server and log in, whatever sentinels and database the URL names. NULL with err on
 * failure. */
struct client *client_connect(const struct url *url, int64_t timeout_ms, struct err *err);
void client_close(struct client *c); /* NULL is fine */
/* Close the client, but hand out its connection, for the loop. NULL with err when an answer that
 * nobody asked for has come. */
struct wire *client_take_wire(struct client *c, struct err *err);

/*
 * One command; lens may be NULL when every argument is a C string. NULL with err for an error
 * reply. The reply is the caller's (reply_free).
 */
struct reply *client_call(struct client *c, int argc, const char *const *argv, const size_t *lens,
                          struct err *err);

/* The same without waiting for its answer (client_answer). 0 or -1. */
int client_send(struct client *c, int argc, const char *const *argv, const size_t *lens,
                struct err *err);
/* The next answer, as client_call returns it. */
struct reply *client_answer(struct client *c, struct err *err);
/* After an error. True: the link broke, and calls without an answer may have been done or not.
 * False: the error is an answer. */
bool client_is_broken(const struct client *c);

/* From here on no answer is awaited for longer. */
void client_set_timeout(struct client *c, int64_t timeout_ms);

/* Nor beyond this instant, however the server spreads its bytes; MONO_NEVER at first. */
void client_set_until(struct client *c, struct mono until);
/* Between calls: has the other side closed? Does not wait. */
bool client_has_ended(struct client *c);

/* The next message on a subscribed connection, or that it is subscribed to a channel more; NULL
 * with code TEMP when timeout_ms is over. */
struct reply *client_message(struct client *c, int64_t timeout_ms, struct err *err);

/* Where it is connected, for a second connection to the same server: the numeric address, the user
 * and the password with which it logged in, no sentinels. */
void client_get_url(const struct client *c, struct url *ret);

/* The numeric address it is connected to ("" for a socket). */
const char *client_peer(const struct client *c);
/* The protocol of TLS that is spoken, or NULL: it is plain. */
const char *client_tls(const struct client *c);

#endif
