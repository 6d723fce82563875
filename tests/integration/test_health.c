/*
 * Preflight and `later health` with the real programs: a server that jobs are not safe in, work
 * that goes on, and work that does not.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>
#include <jansson.h>

#include "../support/env.h"
#include "../support/shell.h"
#include "base/cleanup.h"
#include "base/mem.h"
#include "fixture.h"
#include "redis/preflight.h"

#define LONG_MS 60000

/* Run later --json health with an option and its value, or NULL. -> its exit status; the caller
 * frees the object */
static int health_with(json_t **ret, const char *option, const char *value)
{
    CLEANUP_FREE char *later = mem_printf("%s/later", test_build_dir());
    char *argv[] = {later,
                    (char *)(uintptr_t) "--redis",
                    redis.url,
                    (char *)(uintptr_t) "--json",
                    (char *)(uintptr_t) "health",
                    (char *)(uintptr_t)option,
                    (char *)(uintptr_t)value,
                    NULL};
    CLEANUP_BUF struct buf said = BUF_INIT;
    int status = proc_run(argv, NULL, 0, &said, NULL);

    *ret = json_loads(buf_str(&said), 0, NULL);
    if (*ret == NULL)
        fail_msg("not JSON: %s", buf_str(&said));
    return status;
}

static int health(json_t **ret)
{
    return health_with(ret, NULL, NULL);
}

/* Whether the list of that name ("causes", "warnings") has this one. */
static bool has(const json_t *object, const char *list, const char *what)
{
    const char *key = strcmp(list, "causes") == 0 ? "cause" : "warning";
    size_t i;
    const json_t *one;

    json_array_foreach(json_object_get(object, list), i, one)
    {
        if (strcmp(json_string_value(json_object_get(one, key)), what) == 0)
            return true;
    }
    return false;
}

static bool is_degraded_by(void *what)
{
    json_t *object;
    bool found = health(&object) == 1 && has(object, "causes", what);

    json_decref(object);
    return found;
}

static bool is_ok(void *arg)
{
    json_t *object;
    bool ok = health(&object) == 0;

    (void)arg;
    json_decref(object);
    return ok;
}

/* The worker has told its room: from then on a due job that waits shows that the worker is ill. */
static bool has_told_room(void *arg)
{
    struct reply *r = test_redis_call(
        &redis, "EVAL",
        "local n = 0 for _, k in ipairs(redis.call('KEYS', 'later:{default}:worker:*')) do "
        "n = n + redis.call('HEXISTS', k, 'room') end return n",
        "0", NULL);
    bool told = reply_int(r) > 0;

    (void)arg;
    reply_free(r);
    return told;
}

/* ---- health */

static void test_health_follows_the_work(void **state)
{
    json_t *object;

    (void)state;
    test_handler(dir, "mail", "true");
    assert_int_equal(health(&object), 1);
    assert_true(has(object, "causes", "no-worker"));
    json_decref(object);
    start_a("concurrency: 2\n");
    assert_int_equal(health(&object), 0);
    assert_int_equal(json_array_size(json_object_get(object, "causes")), 0);
    assert_int_equal(json_array_size(json_object_get(object, "warnings")), 0);
    assert_int_equal(json_integer_value(json_object_get(object, "workers")), 1);
    json_decref(object);
    assert_true(test_until(has_told_room, NULL, LONG_MS));
    /* A worker hangs: a due job waits although the worker has room; later its beats are missed. */
    proc_signal(&a.proc, SIGSTOP);
    reply_free(test_fcall(&redis, "later_add", "mail", "x", NULL));
    assert_true(test_until(is_degraded_by, (void *)(uintptr_t) "due-waiting", LONG_MS));
    assert_true(test_until(is_degraded_by, (void *)(uintptr_t) "worker-silent", LONG_MS));
    proc_signal(&a.proc, SIGCONT);
    assert_true(test_until(is_ok, NULL, LONG_MS));
}

/* SADD or SREM the queue names n<from> to n<to>, which nobody serves. */
static void names(const char *command, const char *from, const char *to)
{
    reply_free(test_redis_call(&redis, "EVAL",
                               "for i = ARGV[2], ARGV[3] do redis.call(ARGV[1], KEYS[1], 'n' .. i) "
                               "end return 1",
                               "1", "later:{default}:names", command, from, to, NULL));
}

/* Too many names do not shut out a queue that is served, and health warns before that. */
static void test_names_that_nobody_serves(void **state)
{
    json_t *object;

    (void)state;
    names("SADD", "1", "10100"); /* tidying takes ten away each time */
    test_handler(dir, "mail", "true");
    start_a("concurrency: 2\n");
    reply_free(test_fcall(&redis, "later_add", "mail", "x", NULL));
    assert_true(test_laterd_says(&a, "event=end", LONG_MS));
    assert_int_equal(health(&object), 1);
    assert_true(has(object, "causes", "queue-names"));
    json_decref(object);
    names("SREM", "9101", "10100");
    assert_int_equal(health(&object), 0);
    assert_true(has(object, "warnings", "queue-names"));
    json_decref(object);
    names("SREM", "8900", "9100");
    assert_int_equal(health(&object), 0);
    assert_false(has(object, "warnings", "queue-names"));
    json_decref(object);
}

static void test_health_without_redis(void **state)
{
    json_t *object;

    (void)state;
    test_redis_kill(&redis, SIGKILL);
    assert_int_equal(health(&object), 69);
    assert_string_equal(json_string_value(json_object_get(object, "status")), "down");
    assert_true(has(object, "causes", "redis"));
    json_decref(object);
    test_redis_restart(&redis);
}

/* Redis cannot take a result, since the key of kept outcomes has a foreign type. */
static void test_health_tells_of_results(void **state)
{
    (void)state;
    test_handler(dir, "mail", "while [ ! -e %s/go ]; do sleep 0.1; done", dir);
    start_a("concurrency: 2\nlog_level: debug\ndefaults:\n  keep: 1h\n");
    reply_free(test_fcall(&redis, "later_add", "mail", "x", NULL));
    assert_true(test_laterd_says(&a, "event=start job=", LONG_MS));
    reply_free(test_redis_call(&redis, "SET", "later:{default}:done:mail", "x", NULL));
    test_handler(dir, "../go", "true");
    assert_true(test_until(is_degraded_by, (void *)(uintptr_t) "results-waiting", LONG_MS));
    reply_free(test_redis_call(&redis, "DEL", "later:{default}:done:mail", NULL));
    assert_true(test_until(is_ok, NULL, LONG_MS));
}

/* ---- handlers */

/* A warning makes no health degraded. */
static bool has_warning(void *what)
{
    json_t *object;
    bool found = health(&object) == 0 && has(object, "warnings", what);

    json_decref(object);
    return found;
}

static bool has_no_warning(void *what)
{
    json_t *object;
    bool found = health(&object) == 0 && !has(object, "warnings", what);

    json_decref(object);
    return found;
}

/* A handler that cannot run is a warning, and a cause once a job waits for it. */
static void test_health_of_handlers(void **state)
{
    CLEANUP_FREE char *path = mem_printf("%s/handlers/broken", dir);

    (void)state;
    test_handler(dir, "broken", "true");
    test_handler(dir, "mute", "sleep 600");
    assert_int_equal(chmod(path, 0644), 0);
    start_a("queues: { mute: { mode: stream, start_timeout: 500ms } }\n");
    assert_true(test_until(has_warning, (void *)(uintptr_t) "handler", LONG_MS));
    free(test_add(&redis, "mute", NULL, NULL, "x"));
    assert_true(test_until(is_degraded_by, (void *)(uintptr_t) "handler", LONG_MS));
    reply_free(test_fcall(&redis, "later_pause", "mute", NULL));
    assert_true(test_until(is_ok, NULL, LONG_MS));
    free(test_add(&redis, "broken", NULL, NULL, "x"));
    assert_true(test_until(is_degraded_by, (void *)(uintptr_t) "handler", LONG_MS));
}

/* Two files that give one queue different modes: the result depends on who claims the job. */
static void test_health_of_modes(void **state)
{
    (void)state;
    test_handler(dir, "mail", "sleep 600");
    start_a("queues: { mail: { mode: stream } }\n");
    test_laterd_conf(&b, dir, "b", redis.url, "");
    test_laterd_launch(&b);
    assert_true(test_laterd_says(&b, "event=registered", LONG_MS));
    assert_true(test_until(has_warning, (void *)(uintptr_t) "mode-differs", LONG_MS));
    assert_int_equal(test_laterd_stop(&b), 0);
}

/* The daemon goes on with its old file, and its next start would fail. */
static void test_health_of_a_refused_reload(void **state)
{
    struct test_laterd edited;

    (void)state;
    start_a("");
    test_laterd_conf(&edited, dir, "a", redis.url, "concurency: 3");
    test_laterd_kill(&a, SIGHUP);
    assert_true(test_until(has_warning, (void *)(uintptr_t) "reload-refused", LONG_MS));
    test_laterd_conf(&edited, dir, "a", redis.url, "");
    test_laterd_kill(&a, SIGHUP);
    assert_true(test_until(has_no_warning, (void *)(uintptr_t) "reload-refused", LONG_MS));
}

/* A job under which two workers died waits for a worker that runs nothing, and one that runs a job
 * claims nothing meanwhile: that has to be seen. */
static void test_health_of_a_suspect(void **state)
{
    char *id, tries[] = "2 2 2 1767225600000";

    (void)state;
    test_handler(dir, "mail", "sleep 600");
    start_a("concurrency: 2\nlog_level: debug\n");
    free(test_add(&redis, "mail", NULL, NULL, "x"));
    assert_true(test_until_lines(a.log, "event=start job=", 1, LONG_MS));
    id = test_add(&redis, "mail", "in", "1h", "x");
    (void)setenv("URL", redis.url, 1);
    (void)setenv("ID", id, 1);
    reply_free(test_redis_call(&redis, "HSET", "later:{default}:tries", id, tries, NULL));
    reply_free(test_redis_call(&redis, "ZREM", "later:{default}:q:mail:5", id, NULL));
    reply_free(
        test_redis_call(&redis, "ZADD", "later:{default}:solo:mail", "1767225600000", id, NULL));
    reply_free(test_redis_call(&redis, "HSET", "later:{default}:prio", "mail", "s", NULL));
    reply_free(test_redis_call(&redis, "PUBLISH", "later:{default}:wake", "mail", NULL));
    assert_true(test_until(has_warning, (void *)(uintptr_t) "suspect", LONG_MS));
    test_says("$LATER --redis $URL health", 0, id);
    assert_true(test_laterd_says(&a, "event=emptying state=begun job=", LONG_MS));
    assert_true(test_laterd_says(&a, id, LONG_MS));
    assert_true(test_until(has_warning, (void *)(uintptr_t) "emptying", LONG_MS));
    test_says("$LATER --redis $URL cancel $ID", 0, "");
    assert_true(test_until(has_no_warning, (void *)(uintptr_t) "suspect", LONG_MS));
    assert_true(test_laterd_says(&a, "event=emptying state=over", LONG_MS));
    free(id);
}

/* The command reads the new address from the file at once, the daemon after a restart only. */
static void test_health_at_another_server(void **state)
{
    struct test_laterd edited;
    struct test_redis other;
    CLEANUP_FREE char *was = mem_strdup(redis.url);

    (void)state;
    start_a("");
    test_redis_start(&other, NULL);
    test_laterd_conf(&edited, dir, "a", other.url, "");
    test_laterd_kill(&a, SIGHUP);
    assert_true(test_laterd_says(&a, "only a restart applies: redis", LONG_MS));
    assert_true(test_until(has_warning, (void *)(uintptr_t) "restart-needed", LONG_MS));
    (void)setenv("URL", other.url, 1);
    test_says("$LATER --redis $URL setup", 0, "");
    test_says("$LATER --redis $URL health", 1, "is registered at another one");
    test_laterd_conf(&edited, dir, "a", was, "");
    test_laterd_kill(&a, SIGHUP);
    assert_true(test_until(has_no_warning, (void *)(uintptr_t) "restart-needed", LONG_MS));
    test_redis_stop(&other);
}

/* ---- limits */

static bool is_beyond(const char *option, const char *value, const char *cause)
{
    json_t *object;
    int status = health_with(&object, option, value);
    bool found = has(object, "causes", cause);

    assert_int_equal(status, found ? 1 : 0);
    json_decref(object);
    return found;
}

static bool is_late(void *value)
{
    return is_beyond("--late", value, "late");
}

static bool is_parked(void *value)
{
    return is_beyond("--parked", value, "parked");
}

static bool is_paused(void *value)
{
    return is_beyond("--paused", value, "paused");
}

/* A fleet that is only busy is well; whoever wants to know how late it is says from when on. */
static void test_health_with_limits(void **state)
{
    (void)state;
    test_handler(dir, "slow", "sleep 60");
    test_handler(dir, "bad", "exit 65");
    start_a("concurrency: 2\nqueues:\n  slow: { concurrency: 1 }\n");
    free(test_add(&redis, "slow", NULL, NULL, "x"));
    free(test_add(&redis, "slow", NULL, NULL, "y"));
    assert_true(test_until(is_late, (void *)(uintptr_t) "1s", LONG_MS));
    assert_false(is_late((void *)(uintptr_t) "1h30m"));
    reply_free(test_fcall(&redis, "later_pause", "slow", NULL));
    assert_false(is_late((void *)(uintptr_t) "1s"));
    assert_true(test_until(is_paused, (void *)(uintptr_t) "0s", LONG_MS));
    assert_false(is_paused((void *)(uintptr_t) "1h"));
    free(test_add(&redis, "bad", NULL, NULL, "x"));
    assert_true(test_laterd_says(&a, "outcome=dead", LONG_MS));
    assert_true(test_until(is_ok, NULL, LONG_MS));
    assert_true(is_beyond("--dead", "0", "dead-jobs"));
    assert_false(is_beyond("--dead", "1", "dead-jobs"));
    (void)setenv("URL", redis.url, 1);
    reply_free(test_fcall(&redis, "later_pause", "slow", "by", "eve", "reason", "smtp", NULL));
    reply_free(test_fcall(&redis, "later_schedule_set", "tick", "every", "1h", "queue", "slow", "x",
                          NULL));
    reply_free(test_fcall(&redis, "later_schedule_pause", "tick", "by", "bob", NULL));
    assert_true(test_until(is_paused, (void *)(uintptr_t) "0s", LONG_MS));
    test_says("$LATER --redis $URL health --paused 0s", 1, "queue slow has been paused for");
    test_says("$LATER --redis $URL health --paused 0s", 1, "by eve: smtp");
    test_says("$LATER --redis $URL health --paused 0s", 1, "schedule tick has been paused for");
    test_says("$LATER --redis $URL health --late soon", 64, "soon");
    test_says("$LATER --redis $URL health --dead -1", 64, "no number");
    test_says("$LATER --redis $URL health --live --dead 1", 64, "go without --live");
}

static void test_health_of_parked(void **state)
{
    (void)state;
    test_handler(dir, "mail", "sleep 60");
    start_a("concurrency: 2\n");
    for (int i = 0; i < 2; i++)
        free(test_add(&redis, "mail", "lock", "L", "x"));
    assert_true(test_until(is_parked, (void *)(uintptr_t) "1s", LONG_MS));
    assert_false(is_parked((void *)(uintptr_t) "1h"));
}

/* ---- preflight */

static void refused_with(const char *text)
{
    test_laterd_conf(&a, dir, "a", redis.url, "strict: true\n");
    test_laterd_launch(&a);
    assert_int_equal(test_laterd_wait(&a, LONG_MS), 78);
    assert_int_equal(test_lines(a.log, text), 1);
    assert_int_equal(test_lines(a.log, "event=registered"), 0);
    a.runs = false;
    proc_done(&a.proc);
}

static void config(const char *name, const char *value)
{
    reply_free(test_redis_call(&redis, "CONFIG", "SET", name, value, NULL));
}

static void test_strict_refuses(void **state)
{
    (void)state;
    config("maxmemory-policy", "allkeys-lru");
    refused_with("strict: eviction: maxmemory-policy is allkeys-lru");
    config("maxmemory-policy", "noeviction");
    config("appendonly", "no");
    refused_with("strict: persistence: ");
    config("appendonly", "yes");
    reply_free(test_redis_call(&redis, "ACL", "SETUSER", "default", "-zadd", NULL));
    refused_with("strict: rights: this user may not: ZADD");
    reply_free(test_redis_call(&redis, "ACL", "SETUSER", "default", "+zadd", NULL));
    reply_free(test_redis_call(&redis, "REPLICAOF", "127.0.0.1", "1", NULL));
    refused_with("strict: ");
    reply_free(test_redis_call(&redis, "REPLICAOF", "NO", "ONE", NULL));
    test_handler(dir, "mail", "true");
    start_a("strict: true\n");
}

/* With room for a twentieth more than it uses now, which changes. */
static bool warns_of_memory(void *arg)
{
    CLEANUP_FREE char *most = NULL;
    struct reply *r = test_redis_call(&redis, "INFO", "memory", NULL);
    char used[24];

    preflight_value(reply_str(r), "used_memory", used, sizeof(used));
    reply_free(r);
    most = mem_printf("%lld", atoll(used) * 105 / 100);
    config("maxmemory", most);
    return has_warning(arg);
}

/* Jobs go on, but nobody can add one. */
static void test_health_tells_of_refused_adds(void **state)
{
    (void)state;
    test_handler(dir, "mail", "true");
    start_a("");
    config("maxmemory", "1mb");
    assert_null(test_fcall(&redis, "later_add", "mail", "x", NULL));
    assert_true(is_degraded_by((void *)(uintptr_t) "adds-refused"));
    assert_true(test_until(warns_of_memory, (void *)(uintptr_t) "memory", LONG_MS));
    config("maxmemory", "0");
    config("min-replicas-to-write", "1");
    assert_true(is_degraded_by((void *)(uintptr_t) "adds-refused"));
    config("min-replicas-to-write", "0");
    assert_true(is_ok(NULL));
}

/* ---- a right is withdrawn, or a command was renamed */

static bool cause_says(void *text)
{
    json_t *object;
    bool found = health(&object) == 1;
    char *causes = json_dumps(json_object_get(object, "causes"), 0);

    found = found && strstr(causes, text) != NULL;
    free(causes);
    json_decref(object);
    return found;
}

/* The worker has said that it has room. */
static bool has_told_its_room(void *arg)
{
    struct reply *keys = test_redis_call(&redis, "KEYS", ROOT ":worker:*", NULL);
    struct reply *room =
        reply_count(keys) == 0
            ? NULL
            : test_redis_call(&redis, "HGET", reply_str(reply_at(keys, 0)), "room", NULL);
    bool has = reply_len(room) > 0;

    (void)arg;
    reply_free(room);
    reply_free(keys);
    return has;
}

static void test_health_names_a_missing_right(void **state)
{
    CLEANUP_FREE char *url = mem_printf("unix:worker@%s", redis.sock);

    (void)state;
    /* One that was missing a minute ago is no cause. */
    reply_free(
        test_redis_call(&redis, "HSET", ROOT ":notes", "missing-right:host 1 text", "1", NULL));
    reply_free(test_redis_call(&redis, "ACL", "SETUSER", "worker", "on", "nopass", "~*", "&*",
                               "+@all", NULL));
    test_handler(dir, "mail", "true");
    test_laterd_conf(&a, dir, "a", url, "");
    test_laterd_start(&a);
    assert_true(test_until(has_told_its_room, NULL, LONG_MS));
    assert_true(test_until(is_ok, NULL, LONG_MS));
    reply_free(test_redis_call(&redis, "ACL", "SETUSER", "worker", "-zrem", NULL));
    reply_free(test_fcall(&redis, "later_add", "mail", "x", NULL));
    assert_true(test_until(cause_says, (void *)(uintptr_t) "this user may not: ZREM", LONG_MS));
    assert_true(test_until(cause_says, (void *)(uintptr_t) "is not allowed to start it", LONG_MS));
    assert_false(cause_says((void *)(uintptr_t) "has room for it"));
    reply_free(test_redis_call(&redis, "ACL", "SETUSER", "worker", "+zrem", NULL));
}

static int fx_open_renamed(void **state)
{
    static const char *const args[] = {"--appendonly", "yes", "--rename-command", "SCAN", "", NULL};

    (void)state;
    return fx_open_with(args);
}

static int fx_open_five_renamed(void **state)
{
    static const char *const args[] = {"--rename-command",
                                       "SCAN",
                                       "",
                                       "--rename-command",
                                       "EXISTS",
                                       "",
                                       "--rename-command",
                                       "SUBSCRIBE",
                                       "",
                                       "--rename-command",
                                       "TIME",
                                       "x-time",
                                       "--rename-command",
                                       "ZADD",
                                       "",
                                       NULL};

    (void)state;
    return fx_open_with(args);
}

static void says(const char *line, int status, const char *text)
{
    CLEANUP_FREE char *later = mem_printf("%s/later", test_build_dir());

    (void)setenv("LATER", later, 1);
    (void)setenv("LATER_REDIS_URL", redis.url, 1);
    (void)setenv("DIR", dir, 1);
    test_says(line, status, text);
}

static void test_a_renamed_command_is_named(void **state)
{
    (void)state;
    test_handler(dir, "mail", "echo ran >> %s", out);
    start_a("");
    assert_int_equal(test_lines(a.log, "check=commands"), 1);
    assert_int_equal(test_lines(a.log, "renamed or disabled: SCAN;"), 1);
    reply_free(test_fcall(&redis, "later_add", "mail", "x", NULL));
    assert_true(test_until_lines(out, "ran", 1, LONG_MS));
    says("$LATER setup", 0, "renamed or disabled: SCAN;");
}

static void test_five_renamed_commands_are_named(void **state)
{
    (void)state;
    test_handler(dir, "mail", "true");
    test_laterd_conf(&a, dir, "a", redis.url, "");
    test_laterd_launch(&a);
    assert_true(test_until_lines(a.log, "renamed or disabled: EXISTS ZADD SUBSCRIBE TIME SCAN;", 1,
                                 LONG_MS));
    says("$LATER add mail x", 77, "later setup names it");
    says("$LATER setup", 0, "EXISTS ZADD SUBSCRIBE TIME SCAN;");
}

/* Without strict a finding is logged once, and the daemon works. */
static void test_preflight_warns(void **state)
{
    json_t *object;

    (void)state;
    config("maxmemory-policy", "allkeys-lru");
    config("appendonly", "no");
    test_handler(dir, "mail", "echo ran >> %s", out);
    start_a("redis_timeout: 1s\n");
    assert_int_equal(test_lines(a.log, "event=preflight check=eviction"), 1);
    assert_int_equal(test_lines(a.log, "event=preflight check=persistence"), 1);
    reply_free(test_redis_call(&redis, "CLIENT", "KILL", "TYPE", "normal", NULL));
    assert_true(test_until_lines(a.log, "state=up", 2, LONG_MS));
    assert_int_equal(test_lines(a.log, "event=preflight"), 2);
    reply_free(test_fcall(&redis, "later_add", "mail", "x", NULL));
    assert_true(test_until_lines(out, "ran", 1, LONG_MS));
    assert_int_equal(health(&object), 0);
    assert_true(has(object, "warnings", "eviction"));
    assert_true(has(object, "warnings", "persistence"));
    json_decref(object);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, fx_open_aof, fx_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_health_follows_the_work),
        TEST(test_names_that_nobody_serves),
        TEST(test_health_without_redis),
        TEST(test_health_tells_of_results),
        TEST(test_health_of_handlers),
        TEST(test_health_of_modes),
        TEST(test_health_of_a_refused_reload),
        TEST(test_health_at_another_server),
        TEST(test_health_of_a_suspect),
        TEST(test_health_with_limits),
        TEST(test_health_of_parked),
        TEST(test_strict_refuses),
        TEST(test_preflight_warns),
        TEST(test_health_tells_of_refused_adds),
        TEST(test_health_names_a_missing_right),
        cmocka_unit_test_setup_teardown(test_a_renamed_command_is_named, fx_open_renamed, fx_close),
        cmocka_unit_test_setup_teardown(test_five_renamed_commands_are_named, fx_open_five_renamed,
                                        fx_close),
    };

    CLEANUP_FREE char *later = mem_printf("%s/later", test_build_dir());

    (void)setenv("LATER", later, 1);
    if (getenv("LATER_ONLY") != NULL)
        cmocka_set_test_filter(getenv("LATER_ONLY"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
