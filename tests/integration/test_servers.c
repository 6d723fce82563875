/*
 * Servers that lack something, as managed ones do: what laterd can do without is told and jobs run;
 * a server without functions is refused by name.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "../fault/proxy_client.h"
#include "../support/env.h"
#include "../support/shell.h"
#include "base/cleanup.h"
#include "base/mem.h"
#include "fixture.h"
#include "lua/lua_lib.h"

#define LONG_MS 60000
#define JOBS 50

static struct proxy proxy;

static int open_behind_proxy(void **state)
{
    int rc = fx_open(state);

    proxy_start(&proxy, &redis);
    (void)setenv("URL", proxy.url, 1);
    return rc;
}

static int close_behind_proxy(void **state)
{
    proxy_stop(&proxy);
    return fx_close(state);
}

/* The library of this build, on a server where `redis` has no acl_check_cmd. */
static void load_without_acl_check(void)
{
    static const char face[] = "local function real(name) return redis[name] end\n"
                               "local redis = {register_function = redis.register_function}\n"
                               "redis.call = function(...) return real('call')(...) end\n"
                               "redis.pcall = function(...) return real('pcall')(...) end\n"
                               "redis.sha1hex = function(...) return real('sha1hex')(...) end\n";
    const char *behind = strchr(lua_lib_text, '\n') + 1;
    CLEANUP_FREE char *text =
        mem_printf("%.*s%s%s", (int)(behind - lua_lib_text), lua_lib_text, face, behind);

    reply_free(test_redis_call(&redis, "FUNCTION", "LOAD", "REPLACE", text, NULL));
}

/* The names that managed services deny, and keyspace events. */
static void deny(void)
{
    struct reply *r =
        test_redis_call(&redis, "ACL", "SETUSER", "default", "reset", "on", "nopass", "~later:*",
                        "&later:*", "+@all", "-config", "-client", "-latency", "-slowlog", "-multi",
                        "-exec", "-watch", "-discard", "-acl", "-debug", "-eval", "-function",
                        "-info", "-monitor", "-module", "-save", NULL);

    assert_true(reply_is(r, "OK"));
    reply_free(r);
}

/* As a serverless service does: it has to know by the keys which node a call is for. */
static void refuse_calls_without_a_key(void)
{
    const char *refused = proxy_hex("-ERR a call without keys is not allowed here\r\n");

    (void)proxy_tell(&proxy, "on KEYLESS garbage:%s 0", refused);
    (void)proxy_tell(&proxy, "on MULTI garbage:%s 0", refused);
    (void)proxy_tell(&proxy, "on WATCH garbage:%s 0", refused);
    test_says("redis-cli -u $URL FCALL later_stats 0", 0, "call without keys is not allowed");
}

/* The sample of doc/servers.md gives a worker all that it needs. */
static void use_the_rights_of_the_document(void)
{
    CLEANUP_FREE char *line = mem_printf(
        "grep '^    on ~later:' %s/doc/servers.md | xargs redis-cli -e -s %s ACL SETUSER "
        "default reset nopass",
        test_source_dir(), redis.sock);

    test_says(line, 0, "OK");
}

static void table_has(const char *ability, const char *state, const char *cost)
{
    CLEANUP_FREE char *line = mem_printf(
        "$LATER --redis $URL health --server | grep -E '^%s +%s +.*%s'", ability, state, cost);

    test_says(line, 0, "");
}

static bool all_have_ended(void *arg)
{
    (void)arg;
    return test_lines(out, "ran") == JOBS;
}

/* Every way of a job that asks for a right: done, kept, failed, a lock, a large payload, a batch.
 */
static void jobs_run(void)
{
    CLEANUP_FREE char *line = mem_printf(
        "set -e; for i in $(seq %d); do echo $i; done | $LATER --redis $URL add mail --from - "
        "--keep 1h --lock door >&2; $LATER --redis $URL lock hall -- true; "
        "head -c 40000 /dev/zero | tr '\\0' x | $LATER --redis $URL add big --wait -; "
        "$LATER --redis $URL batch run b1 mail2 --from /dev/null >&2 || true; "
        "id=$($LATER --redis $URL add mail2 --in 1h x); $LATER --redis $URL cancel $id",
        JOBS);

    assert_int_equal(test_sh(line), 0);
    assert_true(test_until(all_have_ended, NULL, LONG_MS));
}

static void test_a_server_that_denies_much(void **state)
{
    (void)state;
    load_without_acl_check();
    test_handler(dir, "mail", "echo ran >>%s", out);
    test_handler(dir, "big", "[ $(wc -c) -eq 40000 ] && echo 'result ok' >&3");
    test_handler(dir, "mail2", "true");
    deny();
    refuse_calls_without_a_key();
    test_laterd_conf(&a, dir, "a", proxy.url, "concurrency: 4\n");
    test_laterd_start(&a);
    jobs_run();
    test_says("$LATER --redis $URL health", 0, "ok");
    table_has("INFO", "denied", "look yourself");
    table_has("CONFIG", "denied", "keyspace events may be on or off");
    table_has("keyspace events", "not told", "up to a second late");
    table_has("channels of keyspace", "denied", "up to a second late");
    table_has("CLIENT SETNAME", "denied", "without a name");
    table_has("FUNCTION LOAD", "denied", "administrator runs later setup");
    table_has("acl_check_cmd", "missing", "shows when a job needs it");
    table_has("persistence", "not told", "loses jobs is not known");
    table_has("version", "not told", "");
    table_has("channels", "ok", "");
    assert_true(test_laterd_says(&a, "check=info", LONG_MS));
    assert_true(test_laterd_says(&a, "check=acl", LONG_MS));
    assert_int_equal(proxy_tell(&proxy, "fired"), 1); /* the call of this test */
}

#define OLD "# Server\r\nredis_version:6.2.6\r\n"

/* A number alone refuses nobody. */
static void test_a_server_that_says_6_2(void **state)
{
    CLEANUP_FREE char *info = mem_printf("$%zu\r\n%s\r\n", strlen(OLD), OLD);

    (void)state;
    use_the_rights_of_the_document();
    (void)proxy_tell(&proxy, "on INFO garbage:%s 0", proxy_hex(info));
    test_handler(dir, "mail", "echo ran >>%s", out);
    test_handler(dir, "big", "true");
    test_laterd_conf(&a, dir, "a", proxy.url, "concurrency: 4\nstrict: true\n");
    test_laterd_start(&a);
    jobs_run();
    assert_true(test_laterd_says(&a, "version=6.2.6", LONG_MS));
    table_has("version", "6[.]2[.]6", "CVE-2025-49844 .mended in 6.2.20.");
    table_has("functions", "library [0-9]+, protocol 1", "");
    table_has("eviction", "not told", "not known");
    table_has("channels of keyspace", "ok", "$");
    table_has("acl_check_cmd", "ok", "$");
    table_has("FUNCTION LOAD", "ok", "$");
    table_has("SCAN", "ok", "$");
}

static int open_without_functions(void **state)
{
    static const char *const args[] = {
        "--rename-command", "FCALL", "",  "--rename-command", "FCALL_RO", "", "--rename-command",
        "FUNCTION",         "",      NULL};

    (void)state;
    (void)fx_open_with(args);
    (void)setenv("URL", redis.url, 1);
    return 0;
}

static void test_without_functions_it_is_refused(void **state)
{
    static const char *const why = "this server has no functions";
    CLEANUP_BUF struct buf log = BUF_INIT;

    (void)state;
    test_laterd_conf(&a, dir, "a", redis.url, "");
    test_laterd_launch(&a);
    assert_int_equal(test_laterd_wait(&a, LONG_MS), 78);
    test_read(a.log, &log);
    assert_non_null(strstr(buf_str(&log), why));
    test_says("$LATER --redis $URL health --server", 78, why);
    test_says("$LATER --redis $URL setup", 78, why);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_server_that_denies_much, open_behind_proxy,
                                        close_behind_proxy),
        cmocka_unit_test_setup_teardown(test_a_server_that_says_6_2, open_behind_proxy,
                                        close_behind_proxy),
        cmocka_unit_test_setup_teardown(test_without_functions_it_is_refused,
                                        open_without_functions, fx_close),
    };

    CLEANUP_FREE char *later = mem_printf("%s/later", test_build_dir());

    (void)setenv("LATER", later, 1);
    if (getenv("LATER_ONLY") != NULL)
        cmocka_set_test_filter(getenv("LATER_ONLY"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
