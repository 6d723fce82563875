/* What the INFO of a Redis tells: whether jobs are safe in it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "redis/preflight.h"

#define GOOD                                                                                       \
    "# Server\r\nredis_version:7.0.15\r\n# Memory\r\nmaxmemory_policy:noeviction\r\n"              \
    "# Persistence\r\naof_enabled:1\r\naof_last_write_status:ok\r\n"                               \
    "# Replication\r\nrole:master\r\n# Cluster\r\ncluster_enabled:0\r\n"

static void assert_finds(const char *info, const char *check, const char *word)
{
    struct preflight p = {.n = 0};

    preflight_server(&p, info, &(struct url){.port = 6379});
    assert_int_equal(p.n, 1);
    assert_string_equal(p.at[0].check, check);
    assert_non_null(strstr(p.at[0].text, word));
    /* The text names a cure at its end, so it must not be cut off. */
    assert_true(strlen(p.at[0].text) < sizeof(p.at[0].text) - 1);
}

static void test_good(void **state)
{
    struct preflight p = {.n = 0};

    (void)state;
    preflight_read(&p, GOOD);
    assert_int_equal(p.n, 0);
    preflight_read(&p, "used_memory:7\nmaxmemory:0\n");
    preflight_read(&p, "used_memory:990\nmem_not_counted_for_evict:90\nmaxmemory:1000\n");
    assert_int_equal(p.n, 0);
    preflight_read(&p, ""); /* an ACL may shorten INFO: a missing field is no finding */
    assert_int_equal(p.n, 0);
}

static void test_findings(void **state)
{
    (void)state;
    assert_finds("maxmemory_policy:allkeys-lru\r\n", "eviction", "throws jobs away");
    assert_finds("maxmemory_policy:volatile-ttl\r\n", "eviction", "tokens");
    assert_finds("aof_enabled:0\n", "persistence", "appendonly yes");
    assert_finds("aof_last_write_status:err\r\n", "disk", "disk");
    assert_finds("role:slave\r\n", "replica", "master");
    assert_finds("cluster_enabled:1\r\n", "cluster", "Cluster");
    assert_finds("maxmemory:1000\r\nused_memory:901\r\n", "memory", "every add is refused");
    /* A field whose name only ends like this is another field. */
    assert_finds("xaof_enabled:1\r\naof_enabled:0\r\n", "persistence", "");
}

static void test_value(void **state)
{
    char value[8];

    (void)state;
    preflight_value(GOOD, "redis_version", value, sizeof(value));
    assert_string_equal(value, "7.0.15");
    preflight_value(GOOD, "maxmemory_policy", value, sizeof(value));
    assert_string_equal(value, "noevict");
    preflight_value(GOOD, "redis_vers", value, sizeof(value));
    assert_string_equal(value, "");
    preflight_value("a", "a", value, sizeof(value));
    assert_string_equal(value, "");
}

static void test_equal(void **state)
{
    struct preflight a = {.n = 0}, b = {.n = 0};

    (void)state;
    preflight_read(&a, "aof_enabled:0\n");
    assert_false(preflight_equal(&a, &b));
    preflight_read(&b, "aof_enabled:0\n");
    assert_true(preflight_equal(&a, &b));
    b.n = 0;
    preflight_read(&b, "role:slave\n");
    assert_false(preflight_equal(&a, &b));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),
        cmocka_unit_test(test_findings),
        cmocka_unit_test(test_value),
        cmocka_unit_test(test_equal),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
