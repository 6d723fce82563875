/*
 * etc/users.acl in a real redis-server. Each role can do all of its work with the real programs
 * (tests/install/acl/ROLE.sh), needs each of its rights for that (apart from the commands that
 * functions use), and can do nothing that it must not. What each function does for each role is in
 * tests/lua/test_roles.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../support/env.h"
#include "../support/laterd.h"
#include "../support/redis.h"
#include "../support/shell.h"
#include "base/cleanup.h"
#include "base/mem.h"

#define TOKENS_MAX 100
#define SECRET "secret"

static struct test_redis redis;
static char dir[64], port[16], acl_file[128];

/* ---- a role of the file */

struct role {
    char line[4096];
    char *tokens[TOKENS_MAX]; /* after `off`, in line; NULL-ended */
    size_t n;
};

static void read_role(const char *name, struct role *ret)
{
    CLEANUP_FREE char *path = mem_printf("%s/etc/users.acl", test_source_dir());
    CLEANUP_FREE char *start = mem_printf("user %s off ", name);
    FILE *f = fopen(path, "re");
    char *rest = NULL, *token;

    assert_non_null(f);
    ret->n = 0;
    while (rest == NULL && fgets(ret->line, sizeof(ret->line), f) != NULL)
        if (strncmp(ret->line, start, strlen(start)) == 0)
            rest = ret->line + strlen(start);
    (void)fclose(f);
    assert_non_null(rest);
    rest[strcspn(rest, "\n")] = '\0';
    while ((token = strsep(&rest, " ")) != NULL) {
        /* A selector in brackets is one token. */
        while (token[0] == '(' && strchr(token, ')') == NULL) {
            assert_non_null(rest);
            rest[-1] = ' ';
            (void)strsep(&rest, " ");
        }
        assert_true(ret->n + 1 < TOKENS_MAX);
        ret->tokens[ret->n++] = token;
    }
    ret->tokens[ret->n] = NULL;
}

/* Make the user anew with all tokens but this one (NULL: with all). */
static void set_user(const char *name, const struct role *role, const char *without)
{
    CLEANUP_FREE char *line = NULL;
    CLEANUP_BUF struct buf words = BUF_INIT;

    for (size_t i = 0; i < role->n; i++)
        if (role->tokens[i] != without)
            buf_printf(&words, " '%s'", role->tokens[i]);
    line = mem_printf("env -u REDISCLI_AUTH redis-cli -e -s %s ACL SETUSER %s reset on '>%s'%s",
                      redis.sock, name, SECRET, buf_str(&words));
    test_says(line, 0, "OK");
}

static int work(const char *name)
{
    CLEANUP_FREE char *line =
        mem_printf("ROLE=%s; export ROLE; exec sh %s/tests/install/acl/%s.sh 2>&1", name,
                   test_source_dir(), name);
    CLEANUP_BUF struct buf said = BUF_INIT;
    int status = test_sh_out(line, &said);

    if (status != 0 && getenv("LATER_VERBOSE") != NULL)
        print_message("%s\n", buf_str(&said));
    return status;
}

/* ---- tests */

static void works(const char *name)
{
    if (work(name) != 0)
        fail_msg("user %s cannot do its work (LATER_VERBOSE=1 shows it)", name);
}

/* With the users as the server read them from the file. */
static void test_each_role_works(void **state)
{
    (void)state;
    works("producer");
    works("manager");
    works("caller");
    works("worker");
    works("dashboard");
    works("operator");
    works("admin");
}

/* A token that begins like this allows something; `resetchannels` takes rights away. */
static bool is_right(const char *token)
{
    return strchr("+~%&", token[0]) != NULL;
}

/* tests/lua/test_roles.c tests whether the token is needed. Behind sentinels a server is asked for
 * its ROLE (test_sentinel.c), a node of a cluster for its slots (test_cluster.c). */
static bool is_tested_elsewhere(const char *token)
{
    return token[0] == '+' && (test_library_calls(token + 1) || strcmp(token, "+role") == 0 ||
                               strcmp(token, "+cluster|slots") == 0);
}

static void each_is_needed(const char *name)
{
    struct role role;
    int idle = 0;

    read_role(name, &role);
    for (size_t i = 0; i < role.n; i++) {
        if (!is_right(role.tokens[i]) || is_tested_elsewhere(role.tokens[i]))
            continue;
        set_user(name, &role, role.tokens[i]);
        if (work(name) == 0) {
            print_message("user %s does not need %s\n", name, role.tokens[i]);
            idle++;
        }
    }
    set_user(name, &role, NULL);
    assert_int_equal(idle, 0);
    works(name);
}

static void test_producer_needs_each(void **state)
{
    (void)state;
    each_is_needed("producer");
}

static void test_manager_needs_each(void **state)
{
    (void)state;
    each_is_needed("manager");
}

static void test_caller_needs_each(void **state)
{
    (void)state;
    each_is_needed("caller");
}

static void test_worker_needs_each(void **state)
{
    (void)state;
    each_is_needed("worker");
}

static void test_dashboard_needs_each(void **state)
{
    (void)state;
    each_is_needed("dashboard");
}

static void test_operator_needs_each(void **state)
{
    (void)state;
    each_is_needed("operator");
}

static void test_admin_needs_each(void **state)
{
    (void)state;
    each_is_needed("admin");
}

/* May the role run this command? Its words are split at spaces. */
static bool may(const char *name, const char *command)
{
    CLEANUP_FREE char *line =
        mem_printf("redis-cli -e -p %s --user %s %s 2>&1", port, name, command);
    CLEANUP_BUF struct buf said = BUF_INIT;

    (void)test_sh_out(line, &said);
    return strstr(buf_str(&said), "NOPERM") == NULL &&
           strstr(buf_str(&said), "can't run this command") == NULL &&
           strstr(buf_str(&said), "ACL failure in script") == NULL && /* Redis 7.2 and later */
           strstr(buf_str(&said), "command not allowed") == NULL; /* DEBUG and MODULE: to nobody */
}

static void must_not(const char *name, const char *const *commands)
{
    for (; *commands != NULL; commands++)
        if (may(name, *commands))
            fail_msg("user %s may: %s", name, *commands);
}

#define R "'later:{default}"

/* Commands that nobody may run, */
static const char *const denied_to_all[] = {"FLUSHALL",
                                            "FLUSHDB",
                                            "CONFIG GET '*'",
                                            "CONFIG SET maxmemory 1",
                                            "DEBUG SLEEP 0",
                                            "EVAL 'return 1' 0",
                                            "EVAL_RO 'return 1' 0",
                                            "EVALSHA x 0",
                                            "SCRIPT FLUSH",
                                            "SCRIPT LOAD 'return 1'",
                                            "FUNCTION FLUSH",
                                            "FUNCTION DELETE laterd",
                                            "FUNCTION RESTORE x",
                                            "FUNCTION KILL",
                                            "FUNCTION DUMP",
                                            "SHUTDOWN NOSAVE",
                                            "SAVE",
                                            "BGSAVE",
                                            "REPLICAOF NO ONE",
                                            "MONITOR",
                                            "CLIENT KILL ID 1",
                                            "CLIENT LIST",
                                            "CLIENT NO-EVICT on",
                                            "ACL LIST",
                                            "ACL SETUSER x",
                                            "ACL WHOAMI",
                                            "KEYS '*'",
                                            "SWAPDB 0 1",
                                            "RENAME a b",
                                            "MIGRATE h 1 k 0 1",
                                            "RESTORE " R ":x' 0 x",
                                            "SORT " R ":jobs'",
                                            "MODULE LIST",
                                            "SYNC",
                                            "CLUSTER INFO",
                                            "GET other",
                                            "GET 'later:{other}:clock'",
                                            "GET 'later:{defaults}:clock'",
                                            "HGETALL 'later:{other}:jobs'",
                                            "SET other x",
                                            "ZADD 'later:{other}:due:mail' 1 x",
                                            "PUBLISH 'later:{other}:wake' x",
                                            "PUBLISH other x",
                                            "SUBSCRIBE 'later:{other}:wake'",
                                            "PSUBSCRIBE '*'",
                                            "FCALL later_stats 1 'later:{other}'",
                                            NULL};

/* and those that some role may not. */
static const char *const denied_to_dashboard[] = {"SET " R ":clock' 1",
                                                  "HSET " R ":jobs' j x",
                                                  "DEL " R ":jobs'",
                                                  "ZADD " R ":due:mail' 1 x",
                                                  "FCALL later_add 1 " R "' mail x",
                                                  "FCALL later_pause 1 " R "' mail",
                                                  "FCALL later_limit_set 1 " R "' x semaphore 1",
                                                  "FUNCTION LOAD x",
                                                  NULL};

static const char *const denied_to_producer[] = {"FCALL later_stats 1 " R "'",
                                                 "FCALL later_show 1 " R "' j00000000000",
                                                 "FCALL later_cancel 1 " R "' j00000000000",
                                                 "FCALL later_pause 1 " R "' mail",
                                                 "FCALL later_lock 1 " R "' x me",
                                                 "FCALL later_v1_sync 1 " R "' 1 1 0 1 0 0 0",
                                                 "HGETALL " R ":jobs'",
                                                 "SUBSCRIBE " R ":wake'",
                                                 "SCAN 0",
                                                 "FUNCTION LOAD x",
                                                 NULL};

static const char *const denied_to_manager[] = {"FCALL later_stats 1 " R "'",
                                                "FCALL later_explain 1 " R "' j00000000000",
                                                "FCALL later_pause 1 " R "' mail",
                                                "FCALL later_retry 1 " R "' j00000000000",
                                                "FCALL later_lock 1 " R "' x me",
                                                "FCALL later_limit_set 1 " R "' x semaphore 1",
                                                "FCALL later_v1_sync 1 " R "' 1 1 0 1 0 0 0",
                                                "FCALL later_v1_purge 1 " R "' mail due 100",
                                                "FCALL_RO later_explain 1 " R "' j00000000000",
                                                "HGETALL " R ":jobs'",
                                                "SUBSCRIBE other",
                                                "PSUBSCRIBE " R ":ended:*'",
                                                "SCAN 0",
                                                "FUNCTION LOAD x",
                                                NULL};

static const char *const denied_to_caller[] = {"FCALL later_add 1 " R "' mail x",
                                               "FCALL later_limit_set 1 " R "' x semaphore 1",
                                               "HGETALL " R ":jobs'", "FUNCTION LOAD x", NULL};

static const char *const denied_to_worker[] = {"FUNCTION LOAD x", "SET later:library x", "MULTI",
                                               "WATCH x", NULL};

/* It writes what the page writes; the page reads as another user. */
static const char *const denied_to_operator[] = {"FCALL later_stats 1 " R "'",
                                                 "FCALL later_show 1 " R "' j00000000000",
                                                 "FCALL later_explain 1 " R "' j00000000000",
                                                 "FCALL later_bulk_show 1 " R "'",
                                                 "FCALL later_v1_list 1 " R "' mail due '' 1",
                                                 "FCALL later_add_many 1 " R "' mail x",
                                                 "FCALL later_lock 1 " R "' x me",
                                                 "FCALL later_limit_set 1 " R "' x semaphore 1",
                                                 "FCALL later_schedule_del 1 " R "' x",
                                                 "FCALL later_v1_sync 1 " R "' 1 1 0 1 0 0 0",
                                                 "FCALL later_v1_purge 1 " R "' mail due 100",
                                                 "FCALL later_v1_repair 1 " R "' running '' 1",
                                                 "FCALL_RO later_stats 1 " R "'",
                                                 "HGETALL " R ":jobs'",
                                                 "SUBSCRIBE " R ":wake'",
                                                 "SCAN 0",
                                                 "FUNCTION LOAD x",
                                                 NULL};

static void test_denied(void **state)
{
    static const char *const roles[] = {"producer",  "manager",  "caller", "worker",
                                        "dashboard", "operator", "admin"};

    (void)state;
    test_redis_load(&redis);
    for (size_t i = 0; i < sizeof(roles) / sizeof(roles[0]); i++)
        must_not(roles[i], denied_to_all);
    must_not("dashboard", denied_to_dashboard);
    must_not("producer", denied_to_producer);
    must_not("manager", denied_to_manager);
    must_not("caller", denied_to_caller);
    must_not("worker", denied_to_worker);
    must_not("operator", denied_to_operator);
}

/* No user of the file can log in before an operator gives it a password. */
static void test_off_until_given_a_password(void **state)
{
    CLEANUP_FREE char *line = mem_printf("grep -v -E '^$|^user [a-z]+ off resetchannels ' "
                                         "%s/etc/users.acl",
                                         test_source_dir());

    (void)state;
    test_says(line, 1, "");
}

/* ---- a server without the library */

static void says_setup(const char *name, const char *command)
{
    CLEANUP_FREE char *line =
        mem_printf("%s --redis unix:%s@%s %s 2>&1", getenv("LATER"), name, redis.sock, command);

    test_says(line, 77, "run `later setup` once as an administrator");
}

/* No right of the user is missing: who may load it does so once. */
static void test_without_the_library(void **state)
{
    CLEANUP_FREE char *daemon = mem_printf(
        "mkdir -p $DIR/none; echo secret >$DIR/password; chmod 600 $DIR/password\n"
        "printf '%%s\\n' 'redis: unix:worker@%s' \"redis_password_file: $DIR/password\" "
        "'state_dir: none' \"handlers_dir: $DIR/none\" >$DIR/none.yaml\n"
        "{ timeout 20 $LATERD --config $DIR/none.yaml 2>&1 & echo $! >$DIR/none.pid; wait; } | "
        "{ grep -m 1 administrator; status=$?; kill $(cat $DIR/none.pid); exit $status; }",
        redis.sock);

    (void)state;
    reply_free(test_redis_call(&redis, "FUNCTION", "FLUSH", NULL));
    says_setup("producer", "add mail x");
    says_setup("manager", "cancel j00000000000");
    says_setup("worker", "wait j00000000000");
    says_setup("worker", "setup");
    says_setup("dashboard", "stats");
    test_says(daemon, 0,
              "the function library is not on the server, and this user may not load it");
    says_setup("worker", "setup");
    test_redis_load(&redis);
    test_says("exec $LATER --redis unix:producer@$SOCK show j00000000000 2>&1", 77,
              "user producer, function later_show: NOPERM");
    /* Redis names the command that is no function, Redis 8 and Valkey the user, too. */
    test_says("exec $LATER --redis unix:producer@$SOCK wait j00000000000 2>&1", 77,
              "user producer: NOPERM ");
    test_says("exec $LATER --redis unix:producer@$SOCK wait j00000000000 2>&1", 77,
              " has no permissions to run the 'subscribe' command");
    test_says("exec $LATER --redis unix:caller@$SOCK gates 2>&1", 77, "user caller: NOPERM");
    test_says("exec $LATER --redis unix:caller@$SOCK lock a -- true 2>&1", 77,
              "user caller: looking for the function library: NOPERM");
    test_says("REDISCLI_AUTH=wrong exec $LATER --redis unix:caller@$SOCK gates 2>&1", 77,
              "user caller: WRONGPASS");
    test_says("exec $LATER --redis unix:worker@$SOCK stats 2>&1", 77,
              "user worker, function later_stats: ERR ");
}

/* ---- a user at the socket */

/* The one form of an address with a user and a socket, wherever an address may stand. */
static void test_user_at_the_socket(void **state)
{
    CLEANUP_FREE char *script =
        mem_printf("exec sh %s/tests/install/acl/socket.sh 2>&1", test_source_dir());
    CLEANUP_BUF struct buf said = BUF_INIT;

    (void)state;
    if (test_sh_out(script, &said) == 0)
        return;
    (void)fputs(buf_str(&said), stderr); /* fail_msg would cut it off */
    fail();
}

/* ---- cmocka */

static void make_acl_file(void)
{
    CLEANUP_FREE char *line =
        mem_printf("sed 's/^\\(user [a-z]*\\) off/\\1 on >%s/' %s/etc/users.acl >%s", SECRET,
                   test_source_dir(), acl_file);

    assert_int_equal(test_sh(line), 0);
}

static int setup(void **state)
{
    static const char *args[] = {"--appendonly", "yes",    "--port", port,
                                 "--aclfile",    acl_file, NULL};
    CLEANUP_FREE char *later = mem_printf("%s/later", test_build_dir());
    CLEANUP_FREE char *laterd = mem_printf("%s/laterd", test_build_dir());

    (void)state;
    test_folder_make(dir);
    (void)snprintf(port, sizeof(port), "%d", test_free_port());
    (void)snprintf(acl_file, sizeof(acl_file), "%s/users.acl", dir);
    make_acl_file();
    test_redis_start(&redis, args);
    (void)setenv("LATER", later, 1);
    (void)setenv("LATERD", laterd, 1);
    (void)setenv("PORT", port, 1);
    (void)setenv("SOCK", redis.sock, 1);
    (void)setenv("DIR", dir, 1);
    (void)setenv("REDISCLI_AUTH", SECRET, 1);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    (void)unsetenv("REDISCLI_AUTH");
    test_redis_stop(&redis);
    test_folder_remove(dir);
    return 0;
}

#define T(f) cmocka_unit_test(f)

int main(void)
{
    const struct CMUnitTest tests[] = {T(test_each_role_works),
                                       T(test_denied),
                                       T(test_off_until_given_a_password),
                                       T(test_user_at_the_socket),
                                       T(test_without_the_library),
                                       T(test_producer_needs_each),
                                       T(test_manager_needs_each),
                                       T(test_caller_needs_each),
                                       T(test_worker_needs_each),
                                       T(test_dashboard_needs_each),
                                       T(test_operator_needs_each),
                                       T(test_admin_needs_each)};

    cmocka_set_test_filter(getenv("LATER_ONLY")); /* a name, with * and ? */
    return cmocka_run_group_tests(tests, setup, teardown);
}
