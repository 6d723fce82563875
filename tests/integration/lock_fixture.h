/*
 * For tests of `later lock` and `later once`: a redis-server, a folder, and commands that run
 * beside the test. The shell finds them as $LATER, $SOCK and $DIR.
 */
#ifndef LATER_TESTS_INTEGRATION_LOCK_FIXTURE_H
#define LATER_TESTS_INTEGRATION_LOCK_FIXTURE_H

#include <stdlib.h>
#include <string.h>

#include "../support/env.h"
#include "../support/laterd.h"
#include "../support/shell.h"
#include "base/cleanup.h"
#include "base/mem.h"

#define ROOT "later:{default}"
#define LONG_MS 60000
#define PROCS_MAX 50

static struct test_redis redis;
static char dir[64];
static char *later; /* the program */
static struct proc procs[PROCS_MAX];

static inline int setup_with(const char *const *redis_args)
{
    test_redis_start(&redis, redis_args);
    test_folder_make(dir);
    later = mem_printf("%s/later", test_build_dir());
    (void)setenv("LATER_REDIS_URL", redis.url, 1);
    (void)setenv("LATER", later, 1);
    (void)setenv("SOCK", redis.sock, 1);
    (void)setenv("DIR", dir, 1);
    memset(procs, 0, sizeof(procs));
    return 0;
}

static inline int setup(void **state)
{
    (void)state;
    return setup_with(NULL);
}

static inline int teardown(void **state)
{
    (void)state;
    for (size_t i = 0; i < PROCS_MAX; i++)
        if (procs[i].pid > 0)
            proc_done(&procs[i]);
    test_redis_stop(&redis);
    test_folder_remove(dir);
    free(later);
    return 0;
}

static inline void until_lines(const char *name, int n, int deadline_ms)
{
    CLEANUP_FREE char *path = mem_printf("%s/%s", dir, name);

    if (!test_until_lines(path, NULL, n, deadline_ms))
        fail_msg("%s never has %d lines", name, n);
}

#endif
