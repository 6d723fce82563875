/*
 * A real redis-server (or $LATER_SERVER: a path, or valkey) for a test, on a unix socket in a
 * folder of its own, without a TCP port. It has persistence only if extra_args ask for it
 * ("--appendonly", "yes"): then its data is in the folder and outlives test_redis_restart. It dies
 * with the test program. Failures end the test program.
 *
 * With $LATER_TEST_TLS, a folder with server.crt and server.key, it has a port with TLS besides,
 * and its url is that one (scripts/over-tls).
 */
#ifndef LATER_TESTS_SUPPORT_REDIS_H
#define LATER_TESTS_SUPPORT_REDIS_H

#include <stdbool.h>
#include <sys/types.h>

#include "redis/reply.h"
#include "proc.h"

/* How long a call may take: a generous deadline, since a slow machine runs the tests, too. */
#define TEST_CALL_MS 60000

struct client;
struct err;

struct test_redis {
    char dir[64];
    char sock[96];
    char url[112]; /* unix:SOCK, or rediss://localhost:PORT */
    int tls_port;  /* 0: none */
    pid_t pid;     /* 0 while it does not run */
    struct proc proc;
    const char *const *extra_args;
};

/* extra_args: NULL-ended or NULL; valid until test_redis_stop. Returns when Redis answers. */
void test_redis_start(struct test_redis *r, const char *const *extra_args);
/* The same with the users of etc/users.acl, whose password is `secret`, and the library. dir: a
 * folder of the test, where their file is written. One server of a program at a time. */
void test_redis_start_with_users(struct test_redis *r, const char *dir);
/* TERM, after 30 s KILL, reap, remove the folder. */
void test_redis_stop(struct test_redis *r);
/* Only the signal; one that ends it (KILL, TERM) is followed by test_redis_restart or _stop. */
void test_redis_kill(struct test_redis *r, int sig);
/* Reap the old one (killing it if need be) and start it on the same folder and socket. */
void test_redis_restart(struct test_redis *r);
/* The same without waiting until it answers. */
void test_redis_launch(struct test_redis *r);

/* Collect the garbage of the library, which Redis 8 counts among the memory that is used. */
void test_redis_sweep(struct test_redis *r);

/*
 * One command of C strings, NULL-ended, on a connection of its own. NULL for an error reply, which
 * is printed. The reply is the caller's (reply_free).
 */
struct reply *test_redis_call(struct test_redis *r, ...) __attribute__((sentinel));
/* A connection with a timeout of 20 s, the caller's (client_close). NULL with the reason in err. */
struct client *test_redis_client(const struct test_redis *r, struct err *err);
/* A port of 127.0.0.1 that nobody has now, and that no other test gets while this program runs. */
int test_free_port(void);
/* Load the built-in library. */
void test_redis_load(struct test_redis *r);
/* Does a function of the library use this command of Redis, in lower case? */
bool test_library_calls(const char *command);

#endif
