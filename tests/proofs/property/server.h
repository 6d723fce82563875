/*
 * A real redis-server with the library and a clock that shows what the test sets, for one
 * namespace. Its replies, keys and messages are given in the form that the model uses (model.h).
 */
#ifndef LATER_TESTS_PROPERTY_SERVER_H
#define LATER_TESTS_PROPERTY_SERVER_H

#include <stdint.h>

#include "redis/client.h"
#include "../../support/clock.h"
#include "../../support/redis.h"
#include "../../support/roles.h"
#include "model.h"

struct server {
    struct test_redis redis;
    struct test_clock *clock;
    struct client *client, *ear, *role[TEST_ROLES];
};

/* The arguments of one command, copied. */
struct args {
    struct buf arg[MODEL_JOBS];
    int n;
};

void args_clear(struct args *a);
void args_bytes(struct args *a, const char *p, size_t n);
void args_text(struct args *a, const char *s);
void args_number(struct args *a, int64_t n);
/* Append the command as redis-cli takes it. */
void args_show(const struct args *a, struct buf *out);

void server_start(struct server *s);
void server_stop(struct server *s);
/* Remove every key and every unread message. */
void server_clear(struct server *s);
void server_set_time(struct server *s, int64_t now_us);
/* Remove expired keys now, instead of when they are next read. */
void server_expire(struct server *s);
void server_render(struct buf *out, const struct reply *r);
/* Call as the user of etc/users.acl that the function is for. Appends the reply in the form of the
 * model: a short sync's reply is expanded (short.h), an error is its first word. */
void server_call(struct server *s, const struct args *a, struct buf *out);
/* Append every key and its content, sorted; a key outside the namespace begins with '!'. */
void server_read(struct server *s, struct buf *out);
/* Append what was published since the last call: "channel message\n". */
void server_heard(struct server *s, struct buf *out);

#endif
