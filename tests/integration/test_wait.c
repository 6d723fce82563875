/* later wait and later add --wait, beside a real laterd: what they print, how they exit, and what
 * they say of a job whose outcome was not kept. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../support/laterd.h"
#include "base/cleanup.h"
#include "base/mem.h"
#include "command.h"

#define LONG_MS 60000

static char dir[64];
static struct test_laterd worker;

/* ---- helpers */

static int make_all(void **state)
{
    assert_int_equal(start_all(state), 0);
    test_folder_make(dir);
    /* The payload is the exit status; `hold` waits for a file. */
    test_handler(dir, "work",
                 "read -r x; echo \"the output\"; if [ \"$x\" = hold ]; then\n"
                 "  while [ ! -e %s/go ]; do sleep 0.02; done; exit 0; fi\nexit $x",
                 dir);
    test_laterd_conf(&worker, dir, "a", redis.url,
                     "defaults: { attempts: 1 }\nqueues: { later: { keep: 5m } }\n");
    test_handler(dir, "later", "echo kept");
    test_laterd_start(&worker);
    return 0;
}

static int stop_both(void **state)
{
    (void)test_laterd_stop(&worker);
    test_folder_remove(dir);
    return stop_all(state);
}

static void let_go(void)
{
    CLEANUP_FREE char *path = mem_printf("%s/go", dir);
    FILE *f = fopen(path, "we");

    assert_non_null(f);
    (void)fclose(f);
}

/* Add a job with one more option; puts its id in id. */
static void add(char id[13], const char *queue, const char *payload, const char *option,
                const char *value)
{
    assert_int_equal(run("add", queue, payload, option, value), 0);
    assert_int_equal(out.len, 13);
    memcpy(id, out.data, 12);
    id[12] = '\0';
}

static bool is_awaited(void *id)
{
    struct reply *r = test_redis_call(&redis, "HEXISTS", ROOT ":await", id, NULL);
    bool is = reply_int(r) == 1;

    reply_free(r);
    return is;
}

static bool has_no_record(void *id)
{
    return run("show", id) == 66;
}

static bool is_heard(void *channel)
{
    struct reply *r = test_redis_call(&redis, "PUBSUB", "NUMSUB", channel, NULL);
    bool is = reply_int(reply_at(r, 1)) == 1;

    reply_free(r);
    return is;
}

/* Start `later WHAT… ID` and wait until it listens. */
static void start_waiting(struct proc *p, const char *log, char *const *argv, const char *ended)
{
    CLEANUP_FREE char *channel = mem_printf(ROOT ":ended:%s", ended);
    CLEANUP_FREE char *path = mem_printf("%s/%s", dir, log);

    proc_start(p, argv, NULL, path);
    assert_true(test_until(is_heard, channel, LONG_MS));
}

static void cut_all_links(void)
{
    do_redis("CLIENT", "KILL", "TYPE", "pubsub");
    do_redis("CLIENT", "KILL", "TYPE", "normal");
}

/* ---- later wait */

static struct proc of_a_lost_job;

/* Its record goes without an end, as by FLUSHALL. It learns of that when it asks again, after 30 s:
 * the last test looks. */
static void test_a_job_is_lost(void **state)
{
    char id[13];
    char *const argv[] = {later, (char *)"wait", id, NULL};

    (void)state;
    add(id, "idle", "x", "--in", "1h");
    start_waiting(&of_a_lost_job, "lost", argv, id);
    assert_true(test_until(is_awaited, id, LONG_MS));
    do_redis("HDEL", ROOT ":jobs", id);
    do_redis("ZREM", ROOT ":q:idle:5", id);
}

static void test_a_lost_job_has_not_ended(void **state)
{
    (void)state;
    assert_int_equal(proc_wait(&of_a_lost_job, 2 * LONG_MS), 66);
    assert_true(proc_has_logged(&of_a_lost_job, "is gone, and has not ended"));
    proc_done(&of_a_lost_job);
}

/* The wait goes on, says so once, and prints the output. */
static void test_a_lost_link(void **state)
{
    char id[13];
    char *const argv[] = {later, (char *)"wait", id, NULL};
    char *const batch[] = {later, (char *)"batch", (char *)"wait", (char *)"b", NULL};
    CLEANUP_FREE char *log = mem_printf("%s/one", dir);
    struct proc p, of_batch;

    (void)state;
    assert_int_equal(run("add", "work", "0", "--in", "1h", "--keep", "1h"), 0);
    memcpy(id, out.data, 12);
    id[12] = '\0';
    assert_int_equal(run("batch", "add", "b", "x"), 0);
    start_waiting(&p, "one", argv, id);
    start_waiting(&of_batch, "two", batch, "batch:b");
    assert_true(test_until(is_awaited, id, LONG_MS));
    for (int i = 0; i < 2; i++) {
        CLEANUP_FREE char *channel = mem_printf(ROOT ":ended:%s", id);
        CLEANUP_FREE char *of_b = mem_printf(ROOT ":ended:batch:b");

        cut_all_links();
        assert_true(test_until_lines(log, "goes on waiting", 1, LONG_MS));
        assert_true(test_until(is_heard, channel, LONG_MS));
        assert_true(test_until(is_heard, of_b, LONG_MS));
    }
    assert_int_equal(run("run-now", id), 0);
    assert_int_equal(run("batch", "seal", "b"), 0);
    assert_int_equal(proc_wait(&p, LONG_MS), 0);
    assert_true(proc_has_logged(&p, "the output\n"));
    assert_int_equal(proc_wait(&of_batch, LONG_MS), 0);
    proc_done(&p);
    proc_done(&of_batch);
}

static void test_nobody_runs_a_broadcast(void **state)
{
    (void)state;
    assert_int_equal(run("broadcast", "nobody", "x", "--wait"), 66);
    assert_says(&err, "no worker serves queue nobody");
    assert_int_equal(run("broadcast", "nobody", "x"), 0);
    assert_says(&err, "no worker serves queue nobody");
}

/* The end is told under the id: who waits for a unique key has to hear of it as well. */
static void test_by_unique_key(void **state)
{
    char name[] = "work@order:1", id[13], log[128];
    char *const argv[] = {later, (char *)"wait", name, NULL};
    struct proc p;

    (void)state;
    add(id, "work", "hold", "--unique", "order:1");
    assert_int_equal(run("wait", name, "--timeout", "50ms"), 75);
    assert_says(&err, id);
    reply_free(test_redis_call(&redis, "DEL", ROOT ":await", NULL));
    (void)snprintf(log, sizeof(log), "%s/wait", dir);
    proc_start(&p, argv, NULL, log);
    assert_true(test_until(is_awaited, id, LONG_MS));
    let_go();
    /* It asks again after 30 s: that is not how it may learn of the end. */
    assert_int_equal(proc_wait(&p, 15000), 0);
    assert_true(proc_has_logged(&p, "the output\n"));
    proc_done(&p);
    assert_int_equal(run("wait", "work@nobody"), 66);
    assert_says(&err, "no job has the unique key");
    assert_int_equal(run("wait", "rubbish"), 66);
    assert_says(&err, "is no job id");
}

/* Forgotten at its end: the command says so, and what would have kept it. */
static void test_not_kept(void **state)
{
    char id[13];

    (void)state;
    add(id, "work", "0", NULL, NULL);
    assert_true(test_until(has_no_record, id, LONG_MS));
    assert_int_equal(run("wait", id), 66);
    assert_says(&err, "has ended and its outcome was not kept, or it was never here");
    assert_says(&err, "--keep D");
    assert_says(&err, "keep: of its queue");
    /* Both keep it. */
    add(id, "work", "0", "--keep", "1h");
    assert_int_equal(run("wait", id, "--timeout", "30s"), 0);
    assert_int_equal(run("wait", id), 0);
    assert_out("the output\n");
    add(id, "later", "0", NULL, NULL);
    assert_int_equal(run("wait", id, "--timeout", "30s"), 0);
    assert_int_equal(run("wait", id), 0);
    assert_out("kept\n");
}

/* ---- later add --wait */

static void test_add_and_wait(void **state)
{
    (void)state;
    /* Often the job has ended before the command listens: the outcome is there all the same. */
    for (int i = 0; i < 20; i++) {
        assert_int_equal(run("add", "work", "0", "--wait", "--wait-timeout", "30s"), 0);
        assert_out("the output\n");
        assert_int_equal(err.len, 0);
    }
    assert_int_equal(run("add", "work", "7", "--wait"), 7);
    assert_out("the output\n");
    assert_says(&err, " is dead: ");
    assert_int_equal(feed("9\n", "add", "work", "--wait", "--keep", "2h"), 9);
    assert_int_equal(run("--json", "add", "work", "0", "--wait"), 0);
    assert_says(&out, "{\"id\":\"j");
    assert_says(&out, "\"state\":\"done\"");
    assert_says(&out, "\"output\":\"the output\\n\"");
    assert_int_equal(run("--json", "add", "work", "3", "--wait"), 3);
    assert_says(&out, "\"state\":\"dead\"");
}

/* The wait ends, the job stays. */
static void test_add_and_wait_in_vain(void **state)
{
    char id[13];

    (void)state;
    assert_int_equal(
        run("add", "work", "0", "--in", "1h", "--wait", "--wait-timeout", "50ms", "--unique", "u"),
        75);
    assert_int_equal(out.len, 0);
    assert_says(&err, "has not ended yet");
    assert_int_equal(run("show", "work@u", "--json"), 0);
    assert_says(&out, "\"keep_ms\":3600000");
    assert_says(&out, "\"state\":\"waiting\"");
    /* The key is taken: it waits for the job that has it. */
    add(id, "work", "0", "--unique", "u");
    assert_int_equal(run("add", "work", "0", "--wait", "--wait-timeout", "50ms", "--unique", "u"),
                     75);
    assert_says(&err, id);
    assert_int_equal(run("cancel", id), 0);
    assert_int_equal(run("wait", id), 130);
}

static void test_add_and_wait_mistakes(void **state)
{
    (void)state;
    assert_int_equal(run("add", "mail", "x", "--wait", "--wait-timeout", "5"), 64);
    assert_says(&err, "--wait-timeout 5 is no duration");
    assert_int_equal(run("add", "mail", "x", "--wait-timeout", "5s"), 64);
    assert_says(&err, "goes with --wait");
    assert_int_equal(run("add", "mail", "--wait", "--from", "/dev/null"), 64);
    assert_says(&err, "--wait is of one job");
    /* Nothing was added. */
    assert_int_equal(run("ls", "mail"), 66);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_lost_link),
                                       cmocka_unit_test(test_a_job_is_lost),
                                       cmocka_unit_test(test_by_unique_key),
                                       cmocka_unit_test(test_not_kept),

                                       cmocka_unit_test(test_nobody_runs_a_broadcast),
                                       cmocka_unit_test(test_add_and_wait),
                                       cmocka_unit_test(test_add_and_wait_in_vain),
                                       cmocka_unit_test(test_add_and_wait_mistakes),
                                       cmocka_unit_test(test_a_lost_job_has_not_ended)};

    cmocka_set_test_filter(getenv("LATER_ONLY")); /* a name, with * and ? */
    return cmocka_run_group_tests(tests, make_all, stop_both);
}
