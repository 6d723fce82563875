/*
 * For tests of the command `later`: a redis-server with the library, the command, and the output of
 * its last run. The environment names that server.
 */
#ifndef LATER_TESTS_INTEGRATION_COMMAND_H
#define LATER_TESTS_INTEGRATION_COMMAND_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../support/env.h"
#include "../support/laterd.h"
#include "../support/proc.h"
#include "../support/redis.h"
#include "base/buf.h"

#define ROOT "later:{default}"
#define ARGS_MAX 32

static struct test_redis redis;
static char later[4096];    /* the command */
static struct buf out, err; /* of the last run */

/* Run any command with these bytes on its standard input. -> its exit status */
static inline int run_argv(char *const *argv, const char *in, size_t n)
{
    buf_clear(&out);
    buf_clear(&err);
    return proc_run(argv, in, n, &out, &err);
}

/* Run later ARGS…; the texts end with NULL. -> its exit status */
static inline int run_in(const char *in, size_t n, const char *first, ...)
{
    const char *argv[ARGS_MAX] = {later, first};
    va_list ap;

    va_start(ap, first);
    for (int i = 2; i < ARGS_MAX && first != NULL; i++)
        if ((argv[i] = va_arg(ap, const char *)) == NULL)
            break;
    va_end(ap);
    return run_argv((char *const *)argv, in, n);
}

#define run(...) run_in(NULL, 0, __VA_ARGS__, NULL)
#define feed(text, ...) run_in(text, strlen(text), __VA_ARGS__, NULL)

static inline void assert_says(const struct buf *b, const char *text)
{
    if (b->len == 0 || memmem(b->data, b->len, text, strlen(text)) == NULL)
        fail_msg("'%s' is not in: %s", text, b->len > 0 ? b->data : "(nothing)");
}

static inline void assert_out(const char *text)
{
    assert_string_equal(buf_str(&out), text);
}

/* Run a command of Redis whose answer does not matter. */
#define do_redis(...) reply_free(test_redis_call(&redis, __VA_ARGS__, NULL))
/* The number that this command answers of this key. */
#define count(command, key) test_int(&redis, command, key)

static inline int flush_all(void **state)
{
    (void)state;
    do_redis("FLUSHALL");
    return 0;
}

/* Register a worker that serves the queues; puts its epoch in epoch. */
static inline void register_worker(const char *queues, char epoch[24])
{
    struct reply *r = test_redis_call(&redis, "FCALL", "later_v1_register", "1", ROOT, "0", "inst",
                                      "1", "0", "1", "queues", queues, "0", "0", NULL);

    (void)snprintf(epoch, 24, "%lld", (long long)reply_int(reply_at(r, 1)));
    reply_free(r);
}

static inline int start_all(void **state)
{
    (void)state;
    (void)snprintf(later, sizeof(later), "%s/later", test_build_dir());
    test_redis_start(&redis, NULL);
    test_redis_load(&redis);
    (void)setenv("LATER_REDIS_URL", redis.url, 1);
    (void)setenv("HOME", redis.dir, 1);
    (void)unsetenv("LATER_NAMESPACE");
    (void)unsetenv("REDISCLI_AUTH");
    (void)unsetenv("LATERD_CONFIG");
    return 0;
}

static inline int stop_all(void **state)
{
    (void)state;
    test_redis_stop(&redis);
    buf_done(&out);
    buf_done(&err);
    return 0;
}

#endif
