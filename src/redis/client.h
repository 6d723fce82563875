/*
 * A blocking client: for the command line, and for the probe's thread. Never on the loop.
 * client_conn.h has what it does once it is connected.
 */
#ifndef LATER_REDIS_CLIENT_H
#define LATER_REDIS_CLIENT_H

#include "redis/client_conn.h"

/* Ask the sentinels if there are any, connect, log in, select the database. NULL with err on
 * failure. */
struct client *client_open(const struct url *url, int64_t timeout_ms, struct err *err);

/*
 * FCALL function 1 later:{ns} args…; loads the library if it is missing and calls again. More than
 * 1,096 arguments: USAGE.
 */
struct reply *client_fcall(struct client *c, const char *ns, const char *function, int argc,
                           const char *const *argv, const size_t *lens, struct err *err);

/*
 * The same without waiting: client_answer takes the answers, in the order of the calls. There must
 * be no other call between the two, and the caller must bound how many are under way. A missing
 * library is not loaded here, so the first call of a program should be client_fcall. 0 or -1.
 */
int client_fcall_send(struct client *c, const char *ns, const char *function, int argc,
                      const char *const *argv, const size_t *lens, struct err *err);

#endif
