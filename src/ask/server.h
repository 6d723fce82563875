/*
 * The server that is meant, the connection to it, and one call. Of a namespace that is cut into
 * shards (ask/shards.h) it is about the present one.
 */
#ifndef LATER_ASK_SERVER_H
#define LATER_ASK_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ask/target.h"
#include "base/err.h"
#include "redis/client.h"

struct ask_server {
    struct target_flags flags;
    struct target target; /* valid after ask_target */
    bool has_target;
    struct client *client; /* NULL until ask_connect; to the present shard, if there are shards */
    struct client *others[SHARDS_MAX]; /* to other shards, on a cluster; see ask/shards.h */
    int shard;                         /* the present one */
    unsigned turn;                     /* which one gets the next job that goes to any */
    bool has_turn;
    bool is_bounded;
    struct mono until;                              /* of ask_within */
    void (*on_target)(const struct target *target); /* it was found; may be NULL */
};

/* Resolve server and namespace into s->target, once. 0, or -1 as target_find. */
int ask_target(struct ask_server *s, struct err *err);
/* Connect, unless connected. 0 or -1. */
int ask_connect(struct ask_server *s, struct err *err);
void ask_disconnect(struct ask_server *s);
/* Is there a connection, and broke? */
bool ask_is_broken(const struct ask_server *s);
/* Close all of them. */
void ask_done(struct ask_server *s);
/* A connection was taken up again: it, too, keeps the time of ask_within. */
void ask_go_on(struct ask_server *s);
/*
 * From now on all calls together have this long: then each fails with UNAVAILABLE. The next such
 * call begins anew. A connection that has ended meanwhile is left: the next call makes a new one.
 */
void ask_within(struct ask_server *s, int64_t ms);
/* Is that time over? */
bool ask_is_late(const struct ask_server *s);

/* Call a function of the library in the present shard. The caller frees the reply; NULL with err.
 */
struct reply *ask_present(struct ask_server *s, const char *function, int argc,
                          const char *const *argv, const size_t *lens, struct err *err);
/* The same with one argument. */
struct reply *ask_present_one(struct ask_server *s, const char *function, const char *word,
                              struct err *err);
/* Does err say that a call found its slot on another node of the cluster, or on the way there? Then
 * nothing was done, and ask_fcall finds the owner. */
bool ask_is_elsewhere(const struct ask_server *s, const struct err *err);
/* Redis names the command, which is always FCALL: say which function was refused to whom. */
void ask_name_refused(const struct ask_server *s, const char *function, struct err *err);

/* Whether err is a refusal by the library with this code ("ELATER_NOJOB"). */
bool ask_is_refusal(const struct err *err, const char *code);

#endif
