/*
 * A question to Redis, in the shard that it is about (ask/shards.h) by its connection
 * (ask/server.h). Nothing here or in another file of this folder prints, or knows the command line:
 * an answer is a reply or a struct, a failure is an err. One thread.
 */
#ifndef LATER_ASK_ASK_H
#define LATER_ASK_ASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ask/server.h"
#include "base/err.h"
#include "redis/client.h"

#define ASK_CALL_MAX 80 /* arguments of one call: all options with values, and a few more */

/* The arguments of one call. They are not copied: keep them valid until the call. */
struct ask_call {
    const char *argv[ASK_CALL_MAX];
    size_t lens[ASK_CALL_MAX];
    int n;
};
void ask_call_add(struct ask_call *call, const char *p, size_t n);
void ask_call_puts(struct ask_call *call, const char *s);

/* Call a function of the library in the namespace: of shards, in that which ask/shards.h tells, and
 * the next calls go there, too. The caller frees the reply; NULL with err. */
struct reply *ask_fcall(struct ask_server *s, const char *function, const struct ask_call *call,
                        struct err *err);
/* The same with any number of arguments. */
struct reply *ask_many(struct ask_server *s, const char *function, int argc,
                       const char *const *argv, const size_t *lens, struct err *err);
/* The same as ask_fcall; its arguments are the words up to the first NULL. */
struct reply *ask_words(struct ask_server *s, struct err *err, const char *function, ...)
    __attribute__((sentinel));

/* The same as ask_fcall, but a function that the server does not have is an error: no library is
 * loaded. */
struct reply *ask_loaded(struct ask_server *s, const char *function, const struct ask_call *call,
                         struct err *err);
/* Is err that error? */
bool ask_lacks_function(const struct err *err);
/*
 * The same of what is not part of the answer, on the present connection. Nobody waits for long: if
 * the server stands still, the connection is closed, and the next call makes a new one. NULL: there
 * is no answer, or no connection.
 */
struct reply *ask_aside(struct ask_server *s, const char *function, const struct ask_call *call);

/* A second connection, subscribed to R:<channel>. The caller closes it. NULL with err. */
struct client *ask_subscribe(struct ask_server *s, const char *channel, struct err *err);
/* The same to that channel of all shards; a cluster carries a message to each of its nodes. The
 * confirmations of all but the first one come as messages. */
struct client *ask_subscribe_all(struct ask_server *s, const char *channel, struct err *err);

/* Redis TIME in ms. 0 or -1. */
int ask_time(struct ask_server *s, int64_t *ret_ms, struct err *err);
/* The same; 0 if Redis cannot or may not be asked. */
int64_t ask_now_ms(struct ask_server *s);

#endif
