/*
 * Batches, with the real programs: what callbacks are told, growth from inside, ends of every kind
 * under kills against a ledger of our own, and a cancel. LATER_TEST_BATCH: how many members.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/mem.h"
#include "../support/env.h"
#include "../support/fsck.h"
#include "fixture.h"

#define LONG_MS 60000

/* A function of the library, whose answer does not matter. */
#define call(...) reply_free(test_fcall(&redis, __VA_ARGS__, NULL))

static int members(void)
{
    const char *n = getenv("LATER_TEST_BATCH");

    return n != NULL ? atoi(n) : 400;
}

/* A handler that writes its queue, the batch, the counts and its payload. */
static void make_callback(const char *name)
{
    test_handler(dir, name,
                 "echo \"$LATER_QUEUE $LATER_BATCH $LATER_BATCH_TOTAL $LATER_BATCH_DONE "
                 "$LATER_BATCH_DEAD $LATER_BATCH_CANCELLED $(cat)\" >> %s.told\n",
                 out);
}

static int told(const char *line)
{
    CLEANUP_FREE char *path = mem_printf("%s.told", out);

    return test_lines(path, line);
}

static bool until_told(const char *line)
{
    CLEANUP_FREE char *path = mem_printf("%s.told", out);

    return test_until_lines(path, line, 1, LONG_MS);
}

static int64_t count_of(const char *batch, const char *name)
{
    struct reply *r = test_fcall(&redis, "later_batch_show", batch, NULL);
    int64_t n = reply_int(reply_named(r, name));

    reply_free(r);
    return n;
}

/* 1 job adds 10, and each of them 10: 111 members, one callback. */
static void test_a_tree(void **state)
{
    (void)state;
    make_callback("told");
    test_handler(dir, "tree",
                 "n=$(cat)\n"
                 "for i in 1 2 3 4 5 6 7 8 9 10; do\n"
                 "    [ $n = 1 ] || echo \"add tree batch $LATER_BATCH -- $((n / 10))\" >&3\n"
                 "done\n");
    start_a("concurrency: 8\n");
    call("later_batch", "t", "then", "told", "the payload");
    call("later_add", "tree", "batch", "t", "100");
    call("later_batch_seal", "t");
    assert_true(until_told("told t 111 111 0 0 the payload"));
    assert_true(test_until(no_job_is_left, NULL, LONG_MS));
    assert_int_equal(told(NULL), 1);
}

/* Streams are told the same. */
static void test_a_stream_is_told(void **state)
{
    (void)state;
    test_handler(dir, "s",
                 "echo later-stream 1\n"
                 "while read -r h; do\n"
                 "    len=${h##*len=}; [ $len = 0 ] || head -c $len > /dev/null; read -r _\n"
                 "    echo \"$h\" >> %s.told; set -- $h; echo \"ok ${2#id=}\"\n"
                 "done\n",
                 out);
    start_a("queues: { s: { mode: stream } }\n");
    call("later_batch", "b", "finally", "s");
    call("later_add", "s", "batch", "b", "x");
    assert_true(test_until(no_job_is_left, NULL, LONG_MS));
    call("later_batch_seal", "b");
    assert_true(test_until(no_job_is_left, NULL, LONG_MS));
    {
        CLEANUP_FREE char *path = mem_printf("%s.told", out);
        CLEANUP_BUF struct buf text = BUF_INIT;

        test_read(path, &text);
        assert_non_null(strstr(buf_str(&text), " batch=b len=1\n"));
        assert_non_null(strstr(buf_str(&text), " batch=b batch_total=1 batch_done=1 batch_dead=0 "
                                               "batch_cancelled=0 len=0\n"));
    }
}

static void test_an_empty_batch_is_quick(void **state)
{
    struct mono from;

    (void)state;
    make_callback("told");
    start_a("");
    call("later_batch", "e", "finally", "told", "x");
    from = mono_now();
    call("later_batch_seal", "e");
    assert_true(until_told("told e 0 0 0 0 x"));
    printf("figure: callback of an empty batch written after %lld ms\n",
           (long long)mono_until_us(from, mono_now()) / 1000);
}

static void install_example(const char *name)
{
    CLEANUP_FREE char *command =
        mem_printf("install -m 755 '%s/handlers/examples/import/%s' %s/handlers/",
                   test_source_dir(), name, dir);

    assert_int_equal(system(command), 0);
}

/* An import that fans out and reports at the end. */
static void test_the_example(void **state)
{
    (void)state;
    install_example("import.sh");
    install_example("row.py");
    install_example("summary.sh");
    start_a("");
    call("later_batch", "monday", "finally", "summary");
    call("later_add", "import", "batch", "monday", "1\n2\nthree\n4\n");
    call("later_batch_seal", "monday");
    assert_true(test_laterd_says(&a, "msg=\"import monday: 4 rows, 3 done, 1 dead\"", LONG_MS));
    assert_true(test_laterd_says(&a, "reason=\"'three' is no number\"", LONG_MS));
}

/* ---- a ledger */

/* What the members of each kind are to come to. */
struct ledger {
    int done, dead, cancelled;
};

static void make_workers(void)
{
    make_callback("then");
    make_callback("finally");
    make_callback("died");
    test_handler(dir, "work",
                 "p=$(cat)\n"
                 "case $p in\n"
                 "flaky*) [ $LATER_ATTEMPT -gt 1 ] || exit 1 ;;\n"
                 "dead*) [ -e %s.mended ] || exit 65 ;;\n"
                 "esac\n"
                 "sleep 0.0$(($$ %% 3))\n",
                 out);
    test_handler(dir, "late", "exit 0\n");
}

/* Add n members: most are done at once or at the second attempt, some die, and some, in queues
 * where they wait, are expired, cancelled or purged. */
static struct ledger add_members(const char *batch, int n, bool all_ways)
{
    struct ledger want = {0};

    call("later_pause", "late");
    for (int i = 0; i < n; i++) {
        CLEANUP_FREE char *payload = mem_printf("%s%d",
                                                i % 10 == 1   ? "dead"
                                                : i % 10 == 2 ? "flaky"
                                                              : "ok",
                                                i);
        struct reply *r;

        if (!all_ways || i % 10 < 7) {
            call("later_add", "work", "batch", batch, payload);
            want.dead += i % 10 == 1;
            want.done += i % 10 != 1;
        } else if (i % 10 == 7) {
            call("later_add", "late", "batch", batch, "expire", "1ms", payload);
            want.dead++;
        } else if (i % 10 == 8) {
            r = test_fcall(&redis, "later_add", "waits", "batch", batch, payload, NULL);
            call("later_cancel", reply_str(reply_at(r, 0)));
            reply_free(r);
            want.cancelled++;
        } else {
            call("later_add", "purged", "batch", batch, payload);
            want.cancelled++;
        }
    }
    while (all_ways && test_int(&redis, "EXISTS", ROOT ":q:purged:5") > 0)
        call("later_v1_purge", "purged", "due", "100");
    call("later_resume", "late");
    return want;
}

static int kill_them(int n, const char *yaml)
{
    for (int i = 0; i < n; i++) {
        struct test_laterd *d = i % 2 == 0 ? &a : &b;

        (void)usleep(200000 + (useconds_t)random() % 200000);
        test_laterd_kill(d, SIGKILL);
        (void)test_laterd_wait(d, LONG_MS);
        start(d, i % 2 == 0 ? "a" : "b", yaml);
    }
    return n;
}

static void test_ends_of_every_kind(void **state)
{
    static const char yaml[] =
        "concurrency: 8\n"
        "defaults: { attempts: 1000, crashes: 1000, backoff: { first: 10ms, max: 10ms } }\n";
    int n = members(), kills;
    struct ledger want;

    (void)state;
    make_workers();
    start_a(yaml);
    start(&b, "b", yaml);
    call("later_batch", "l", "then", "then", "finally", "finally", "on_dead", "died", "p");
    want = add_members("l", n, true);
    call("later_batch_seal", "l");
    kills = kill_them(n / 50, yaml);
    {
        CLEANUP_FREE char *line =
            mem_printf("finally l %d %d %d %d p", n, want.done, want.dead, want.cancelled);

        assert_true(until_told(line));
    }
    assert_int_equal(told(NULL), 2);
    assert_int_equal(count_of("l", "live"), 0);
    printf("figure: %d members, %d kills: %d done, %d dead, %d cancelled, as the ledger says\n", n,
           kills, want.done, want.dead, want.cancelled);
}

/* `then` comes once, when the dead ones were retried and done. */
static void test_then_comes_after_retries(void **state)
{
    static const char yaml[] =
        "concurrency: 8\ndefaults: { attempts: 2, backoff: { first: 10ms } }\n";
    CLEANUP_FREE char *mended = mem_printf("%s.mended", out);
    CLEANUP_FREE char *touch = mem_printf("touch %s", mended);
    int n = members() / 10;
    struct ledger want;
    struct reply *dead;

    (void)state;
    make_workers();
    start_a(yaml);
    call("later_batch", "l", "then", "then", "finally", "finally", "p");
    want = add_members("l", n, false);
    call("later_batch_seal", "l");
    {
        CLEANUP_FREE char *line = mem_printf("finally l %d %d %d 0 p", n, want.done, want.dead);

        assert_true(until_told(line));
    }
    assert_int_equal(told(NULL), 1);
    assert_int_equal(system(touch), 0);
    dead = test_redis_call(&redis, "ZRANGE", ROOT ":dead:work", "0", "-1", NULL);
    assert_int_equal(reply_count(dead), want.dead);
    for (size_t i = 0; i < reply_count(dead); i++) {
        assert_int_equal(told(NULL), 1);
        call("later_retry", reply_str(reply_at(dead, i)));
    }
    reply_free(dead);
    {
        CLEANUP_FREE char *line = mem_printf("then l %d %d 0 0 p", n, n);

        assert_true(until_told(line));
    }
    assert_true(test_until(no_job_is_left, NULL, LONG_MS));
    assert_int_equal(told(NULL), 2);
}

/* ---- trouble of Redis in the middle */

static const char TROUBLED[] = "concurrency: 4\nqueues: { work: {}, finally: {} }\n";

/* A batch with n members that take a while, sealed; some have ended. */
static void start_a_batch(int n)
{
    make_callback("finally");
    test_handler(dir, "work", "sleep 0.05; echo $(cat) >> %s\n", out);
    start_a(TROUBLED);
    call("later_batch", "b", "finally", "finally", "p");
    for (int i = 0; i < n; i++) {
        CLEANUP_FREE char *payload = mem_printf("%d", i);

        call("later_add", "work", "batch", "b", payload);
    }
    call("later_batch_seal", "b");
    assert_true(test_until_lines(out, NULL, n / 4, LONG_MS));
}

/* Adds are refused, the members end, and the callback is added all the same. */
static void test_redis_is_full(void **state)
{
    (void)state;
    start_a_batch(40);
    reply_free(test_redis_call(&redis, "CONFIG", "SET", "maxmemory", "1", NULL));
    assert_true(until_told("finally b 40 40 0 0 p"));
    assert_null(test_fcall(&redis, "later_add", "work", "x", NULL));
    reply_free(test_redis_call(&redis, "CONFIG", "SET", "maxmemory", "0", NULL));
    assert_int_equal(test_fsck(&redis), 0);
}

/* Redis comes back from a snapshot that was made in the middle: the batch goes on from there, with
 * the members that it had then. */
static void test_an_older_snapshot(void **state)
{
    (void)state;
    start_a_batch(80);
    reply_free(test_redis_call(&redis, "SAVE", NULL));
    assert_true(test_until_lines(out, NULL, 50, LONG_MS));
    test_redis_kill(&redis, SIGKILL);
    test_redis_restart(&redis);
    assert_true(until_told("finally b 80 80 0 0 p"));
    assert_true(test_until(no_job_is_left, NULL, LONG_MS));
    assert_int_equal(told(NULL), 1);
    assert_int_equal(test_fsck(&redis), 0);
}

/* All is gone, also the batch: nothing calls back, and a new batch of that name works. */
static void test_redis_is_emptied(void **state)
{
    (void)state;
    start_a_batch(40);
    reply_free(test_redis_call(&redis, "FLUSHALL", NULL));
    assert_null(test_fcall(&redis, "later_batch_show", "b", NULL));
    assert_true(test_laterd_says(&a, "event=registered", LONG_MS));
    assert_true(test_until(no_job_is_left, NULL, LONG_MS));
    call("later_batch", "b", "finally", "finally", "q");
    call("later_add", "work", "batch", "b", "new");
    call("later_batch_seal", "b");
    assert_true(until_told("finally b 1 1 0 0 q"));
    assert_int_equal(told(NULL), 1);
    assert_int_equal(test_fsck(&redis), 0);
}

/* ---- cancel */

static void test_a_cancel(void **state)
{
    char after[16] = "";
    int n = members(), started;

    (void)state;
    make_callback("told");
    test_handler(dir, "slow",
                 "trap 'echo term >> %s; kill $s; exit 1' TERM\n"
                 "echo start >> %s\n"
                 "sleep 60 & s=$!\n"
                 "wait\n",
                 out, out);
    start_a("concurrency: 4\n");
    call("later_batch", "c", "finally", "told", "x");
    for (int i = 0; i < n; i++)
        call("later_add", "slow", "batch", "c", "x");
    assert_true(test_until_lines(out, "start", 4, LONG_MS));
    do {
        struct reply *r = test_fcall(&redis, "later_batch_cancel", "c", after, NULL);

        (void)snprintf(after, sizeof(after), "%s", reply_str(reply_at(r, 2)));
        reply_free(r);
    } while (after[0] != '\0');
    started = test_lines(out, "start");
    {
        CLEANUP_FREE char *line = mem_printf("told c %d 0 0 %d x", n, n);

        assert_true(until_told(line));
    }
    /* Those that were on their way when it was cancelled may have started, no others. */
    assert_in_range(test_lines(out, "start"), started, started + 4);
    assert_int_equal(test_lines(out, "term"), test_lines(out, "start"));
    printf("figure: %d members cancelled, %d had started\n", n, started);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_tree, fx_open, fx_close),
        cmocka_unit_test_setup_teardown(test_a_stream_is_told, fx_open, fx_close),
        cmocka_unit_test_setup_teardown(test_an_empty_batch_is_quick, fx_open, fx_close),
        cmocka_unit_test_setup_teardown(test_the_example, fx_open, fx_close),
        cmocka_unit_test_setup_teardown(test_ends_of_every_kind, fx_open, fx_close),
        cmocka_unit_test_setup_teardown(test_then_comes_after_retries, fx_open, fx_close),
        cmocka_unit_test_setup_teardown(test_redis_is_full, fx_open, fx_close),
        cmocka_unit_test_setup_teardown(test_an_older_snapshot, fx_open, fx_close),
        cmocka_unit_test_setup_teardown(test_redis_is_emptied, fx_open, fx_close),
        cmocka_unit_test_setup_teardown(test_a_cancel, fx_open, fx_close)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
