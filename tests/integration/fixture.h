/*
 * For tests of the built laterd: a redis-server, a folder, and up to two daemons. A daemon that
 * does not stop cleanly at the end fails the test.
 */
#ifndef LATER_TESTS_INTEGRATION_FIXTURE_H
#define LATER_TESTS_INTEGRATION_FIXTURE_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "../support/laterd.h"

#define ROOT "later:{default}"

static struct test_redis redis;
static char dir[64];
static char out[96]; /* for handlers to write lines to */
static struct test_laterd a, b;

static inline void start(struct test_laterd *d, const char *name, const char *yaml)
{
    test_laterd_conf(d, dir, name, redis.url, yaml);
    test_laterd_start(d);
}

static inline void start_a(const char *yaml)
{
    start(&a, "a", yaml);
}

/* No job waits, runs or is dead; for test_until. */
static inline bool no_job_is_left(void *arg)
{
    (void)arg;
    return test_int(&redis, "HLEN", ROOT ":jobs") == 0;
}

/* ---- cmocka */

/* The folder, and no daemon yet. */
static inline void fx_make_folder(void)
{
    test_folder_make(dir);
    (void)snprintf(out, sizeof(out), "%s/out", dir);
    memset(&a, 0, sizeof(a));
    memset(&b, 0, sizeof(b));
}

static inline int fx_open_with(const char *const *redis_args)
{
    test_redis_start(&redis, redis_args);
    fx_make_folder();
    return 0;
}

static inline int fx_open(void **state)
{
    (void)state;
    return fx_open_with(NULL);
}

/* What was answered outlives the death of Redis. With everysec a slow disk may lose two seconds. */
static inline int fx_open_aof(void **state)
{
    static const char *const aof[] = {"--appendonly", "yes", "--appendfsync", "always", NULL};

    (void)state;
    return fx_open_with(aof);
}

static inline int fx_close(void **state)
{
    int status = test_laterd_stop(&a) + test_laterd_stop(&b);

    (void)state;
    test_redis_stop(&redis);
    test_folder_remove(dir);
    return status;
}

#endif
