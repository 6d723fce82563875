/*
 * Bulks with real daemons and the command: a few thousand dead jobs go to another queue while the
 * daemon that moves them is killed; one that is aborted; one that was begun without any daemon.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "../support/env.h"
#include "../support/fsck.h"
#include "../support/proc.h"
#include "fixture.h"

#define LONG_MS 60000
#define MANY 3000

static const char yaml[] = "concurrency: 4\n";
static char later[4096];
static struct buf said = BUF_INIT, complained = BUF_INIT;

/* Run later ARGS…; -> its exit status */
static int run(const char *const *argv)
{
    const char *all[16] = {later};

    for (int i = 0; argv[i] != NULL; i++)
        all[i + 1] = argv[i];
    buf_clear(&said);
    buf_clear(&complained);
    return proc_run((char *const *)all, NULL, 0, &said, &complained);
}

#define LATER(...) run((const char *const[]){__VA_ARGS__, NULL})

/* Dead jobs of queue mail, each with its number as its payload. */
static void put_dead(int n)
{
    static const char script[] =
        "local R, now = KEYS[1], redis.call('TIME')[1] * 1000 redis.call('SADD', R .. ':names', "
        "'mail') "
        "for i = 1, tonumber(ARGV[1]) do local id = string.format('j%011d', i) "
        "redis.call('HSET', R .. ':jobs', id, '-mail\\njob ' .. i) "
        "redis.call('HSET', R .. ':tries', id, '1 1 0 1000') "
        "redis.call('ZADD', R .. ':dead:mail', now - i % 7, id) "
        "redis.call('HSET', R .. ':errors', id, 'dead 1 1000 1 no route\\n') end";
    char text[24];

    (void)snprintf(text, sizeof(text), "%d", n);
    reply_free(test_redis_call(&redis, "EVAL", script, "1", ROOT, text, NULL));
    assert_int_equal(test_int(&redis, "ZCARD", ROOT ":dead:mail"), n);
}

/* A field of the bulk; the caller frees it. */
static char *field(const char *id, const char *name)
{
    struct reply *r = test_fcall(&redis, "later_bulk_show", id, NULL);
    char *text = mem_strdup(reply_str(reply_named(r, name)));

    reply_free(r);
    return text;
}

static int number(const char *id, const char *name)
{
    CLEANUP_FREE char *text = field(id, name);

    return atoi(text);
}

struct wanted {
    const char *id;
    int changed;
};

static bool has_changed(void *arg)
{
    const struct wanted *w = arg;

    return number(w->id, "changed") >= w->changed;
}

static bool has_ended(void *arg)
{
    CLEANUP_FREE char *status = field(((const struct wanted *)arg)->id, "status");

    return strcmp(status, "active") != 0;
}

/* Begin one by the command; its id goes to id. */
static void begin(char id[16], const char *rate)
{
    const char *at;

    assert_int_equal(
        LATER("bulk", "retry", "mail", "--to", "web", "--rate", rate, "--why", "outage", "--json"),
        0);
    at = strstr(buf_str(&said), "\"bulk\":\"");
    assert_non_null(at);
    (void)snprintf(id, 16, "%.12s", at + strlen("\"bulk\":\""));
}

/* Kill the daemon that let the bulk go on last. */
static void kill_leader(const char *id)
{
    CLEANUP_FREE char *epoch = field(id, "worker");
    CLEANUP_FREE char *key = mem_printf(ROOT ":worker:%s", epoch);
    struct reply *r = test_redis_call(&redis, "HGET", key, "pid", NULL);
    int pid = atoi(reply_str(r));
    struct test_laterd *leader = pid == (int)a.proc.pid ? &a : &b;

    assert_int_equal(pid, leader->proc.pid);
    reply_free(r);
    test_laterd_kill(leader, SIGKILL);
    (void)test_laterd_wait(leader, LONG_MS);
}

/* The handlers have written each payload once. */
static void assert_each_ran_once(void)
{
    static bool has_run[MANY + 1];
    struct buf lines = BUF_INIT;
    char *rest, *line;

    test_read(out, &lines);
    rest = lines.data;
    while ((line = strsep(&rest, "\n")) != NULL && *line != '\0') {
        int n = strncmp(line, "job ", 4) == 0 ? atoi(line + 4) : 0;

        assert_in_range(n, 1, MANY);
        assert_false(has_run[n]);
        has_run[n] = true;
    }
    buf_done(&lines);
}

/* Each job once, with its own payload. */
static void test_a_daemon_is_killed(void **state)
{
    struct wanted some = {NULL, MANY / 5};
    struct test_laterd c = {.runs = false};
    char id[16];

    (void)state;
    test_handler(dir, "mail", "exit 0\n");
    start_a(yaml);
    start(&b, "b", yaml);
    put_dead(MANY);
    begin(id, "2000/s");
    some.id = id;
    assert_true(test_until(has_changed, &some, LONG_MS));
    kill_leader(id);
    assert_true(test_until(has_ended, &some, LONG_MS));
    assert_int_equal(number(id, "changed"), MANY);
    assert_int_equal(number(id, "seen"), MANY);
    assert_int_equal(number(id, "failed"), 0);
    assert_int_equal(test_int(&redis, "ZCARD", ROOT ":dead:mail"), 0);
    assert_int_equal(test_int(&redis, "ZCARD", ROOT ":q:web:5"), MANY);
    assert_int_equal(test_laterd_stop(&a) + test_laterd_stop(&b), 0);
    /* They run where they are now, each once. */
    test_handler(dir, "web", "read -r line || true\necho \"$line\" >> %s\n", out);
    start(&c, "c", yaml);
    assert_true(test_until(no_job_is_left, NULL, 2 * LONG_MS));
    assert_int_equal(test_laterd_stop(&c), 0);
    assert_int_equal(test_lines(out, NULL), MANY);
    assert_each_ran_once();
    assert_int_equal(test_fsck(&redis), 0);
}

static void test_what_is_left_stays(void **state)
{
    struct wanted some = {NULL, 50};
    char id[16];
    int changed;

    (void)state;
    test_handler(dir, "mail", "exit 0\n");
    put_dead(MANY);
    begin(id, "200/s");
    some.id = id;
    assert_int_equal(number(id, "changed"), 0);
    start_a(yaml); /* none was there to be woken */
    assert_true(test_until(has_changed, &some, LONG_MS));
    assert_int_equal(LATER("bulk", "ls"), 0);
    assert_non_null(strstr(buf_str(&said), id));
    assert_int_equal(LATER("bulk", "abort", id), 0);
    changed = number(id, "changed");
    assert_int_equal(LATER("bulk", "show", id), 0);
    assert_non_null(strstr(buf_str(&said), "aborted"));
    assert_true(changed < MANY);
    assert_int_equal(test_int(&redis, "ZCARD", ROOT ":dead:mail"), MANY - changed);
    assert_int_equal(test_int(&redis, "ZCARD", ROOT ":q:web:5"), changed);
    assert_int_equal(LATER("bulk", "abort", id), 1);
    assert_int_equal(LATER("bulk", "abort", "b00000000000"), 66);
    /* The rest, by one that the daemon hears of. */
    begin(id, "20000/s");
    assert_true(test_until(has_ended, &some, LONG_MS));
    assert_int_equal(test_int(&redis, "ZCARD", ROOT ":q:web:5"), MANY);
    assert_int_equal(test_fsck(&redis), 0);
}

static void test_the_command(void **state)
{
    (void)state;
    test_redis_load(&redis);
    put_dead(5);
    assert_int_equal(LATER("bulk", "retry", "mail", "--reason", "no *"), 0);
    assert_non_null(strstr(buf_str(&said), " done: 5 of 5 changed, 0 failed\n"));
    assert_int_equal(LATER("bulk", "cancel", "mail"), 64);
    assert_non_null(strstr(buf_str(&complained), "--state due or parked"));
    assert_int_equal(LATER("bulk", "cancel", "mail", "--state", "due"), 64);
    assert_non_null(strstr(buf_str(&complained), "--yes cancels 5 due jobs of queue mail"));
    assert_int_equal(LATER("bulk", "reschedule", "mail", "--state", "due"), 64);
    assert_int_equal(LATER("bulk", "reschedule", "mail", "--state", "due", "--in", "1h"), 0);
    assert_int_equal(
        LATER("bulk", "cancel", "mail", "--state", "due", "--rate", "5/s", "--to", "web", "--yes"),
        64);
    assert_int_equal(LATER("bulk", "cancel", "mail", "--state", "due", "--yes", "--by", "me"), 0);
    assert_int_equal(test_int(&redis, "HLEN", ROOT ":jobs"), 0);
    assert_int_equal(LATER("bulk", "retry", "nosuch"), 66);
    assert_int_equal(LATER("bulk", "ls", "--json"), 0);
    assert_non_null(strstr(buf_str(&said), "\"by\":\"me\""));
    assert_int_equal(LATER("bulk", "show", "x"), 66);
    assert_int_equal(LATER("bulk", "retry", "mail", "--rate", "fast"), 65);
}

static int open_all(void **state)
{
    int rc = fx_open(state);

    (void)setenv("LATER_REDIS_URL", redis.url, 1);
    (void)setenv("HOME", redis.dir, 1);
    return rc;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_daemon_is_killed, open_all, fx_close),
        cmocka_unit_test_setup_teardown(test_what_is_left_stays, open_all, fx_close),
        cmocka_unit_test_setup_teardown(test_the_command, open_all, fx_close),
    };

    (void)snprintf(later, sizeof(later), "%s/later", test_build_dir());
    return cmocka_run_group_tests(tests, NULL, NULL);
}
