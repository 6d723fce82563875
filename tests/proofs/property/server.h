/*
 * A real redis-server with the library and a clock that stands where the test says, for one
 * namespace; what it answers, holds and publishes, in the words of the model (model.h).
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
/* As redis-cli takes it. */
void args_show(const struct args *a, struct buf *out);

void server_start(struct server *s);
void server_stop(struct server *s);
/* Away with every key and every message that was not read. */
void server_clear(struct server *s);
void server_set_time(struct server *s, int64_t now_us);
/* Keys whose time is over go now, not when somebody happens to look. */
void server_expire(struct server *s);
void server_render(struct buf *out, const struct reply *r);
/* Called as the user of etc/users.acl whose work it is. The reply as the model writes replies, that
 * of a short step as that of a long one (short.h); an error as its first word. */
void server_call(struct server *s, const struct args *a, struct buf *out);
/* Every key and its content, sorted; a key outside the namespace begins with '!'. */
void server_read(struct server *s, struct buf *out);
/* What was published since the last time: "channel message\n". */
void server_heard(struct server *s, struct buf *out);

#endif
