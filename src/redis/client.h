/*
 * A blocking client: for the command line, and for the probe's thread. Never on the loop.
 *
 * Errors: UNAVAILABLE (not there, timed out, broken link: the client is unusable after), DENIED,
 * REFUSED (ELATER_…: err->text starts with the code), DATA (anything else Redis said).
 */
#ifndef LATER_REDIS_CLIENT_H
#define LATER_REDIS_CLIENT_H

#include <stdint.h>

#include "base/err.h"
#include "redis/reply.h"
#include "redis/url.h"

struct client;

/* Connect, log in, select the database. */
struct client *client_open(const struct url *url, int64_t timeout_ms, struct err *err);
void client_close(struct client *c); /* NULL is fine */

/*
 * One command; lens may be NULL when every argument is a C string. NULL with err for an error
 * reply. The reply is the caller's (reply_free).
 */
struct reply *client_call(struct client *c, int argc, const char *const *argv, const size_t *lens,
                          struct err *err);

/*
 * FCALL function 1 later:{ns} args…; loads the library if it is missing and calls again.
 */
struct reply *client_fcall(struct client *c, const char *ns, const char *function, int argc,
                           const char *const *argv, const size_t *lens, struct err *err);

/* The next message on a subscribed connection; NULL with code TEMP when timeout_ms is over. */
struct reply *client_message(struct client *c, int64_t timeout_ms, struct err *err);

/* The numeric address it is connected to, for a second connection ("" for a socket). */
const char *client_peer(const struct client *c);

#endif
