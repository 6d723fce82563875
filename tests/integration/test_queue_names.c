/* Names of queues that do not exist, with the command and a real redis-server. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "../support/laterd.h"
#include "command.h"

/* A worker that serves the queue, as Redis sees it. */
static void serve(const char *queue)
{
    char epoch[24];

    register_worker(queue, epoch);
}

static void test_a_misspelt_name_is_refused(void **state)
{
    static const char *const verbs[][4] = {
        {"retry", "fife", "--all", NULL},    {"pause", "fife", NULL, NULL},
        {"resume", "fife", NULL, NULL},      {"ls", "fife", NULL, NULL},
        {"ls", "fife", "--state=all", NULL}, {"export", "fife", NULL, NULL},
        {"stats", "fife", NULL, NULL},       {"purge", "fife", "--state=dead", NULL},
        {"purge", "fife", "--forget", NULL},
    };

    (void)state;
    assert_int_equal(run("add", "file", "x"), 0);
    for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
        const char *argv[] = {later, verbs[i][0], verbs[i][1], verbs[i][2], verbs[i][3], NULL};

        assert_int_equal(run_argv((char *const *)(uintptr_t)argv, NULL, 0), 66);
        assert_says(&err, "there is no queue fife: did you mean file?");
        assert_out("");
    }
    assert_int_equal(run("ls", "otherwise"), 66);
    assert_says(&err, "there is no queue otherwise: it never had a job, and no worker serves it");
    assert_int_equal(test_int(&redis, "SCARD", ROOT ":names"), 1);
    assert_int_equal(test_int(&redis, "EXISTS", ROOT ":paused"), 0);
}

/* tail may be there before the queue is. */
static void test_tail_tells_of_a_name(void **state)
{
    const char *const argv[] = {"timeout", "2", later, "tail", "fife", NULL};

    (void)state;
    assert_int_equal(run("add", "file", "x"), 0);
    assert_int_equal(run_argv((char *const *)(uintptr_t)argv, NULL, 0), 124);
    assert_says(&err, "there is no queue fife: did you mean file?");
}

static void test_a_queue_without_jobs_is_none(void **state)
{
    (void)state;
    serve("idle");
    assert_int_equal(run("ls", "idle"), 0);
    assert_int_equal(run("retry", "idle", "--all"), 0);
    assert_out("0 jobs retried\n");
    assert_int_equal(run("pause", "idle"), 0);
    assert_int_equal(run("pause", "planned", "--new"), 0);
    assert_out("planned paused\n");
    assert_int_equal(run("resume", "planned"), 0);
}

static void test_an_add_tells_that_nobody_serves_it(void **state)
{
    (void)state;
    serve("mail");
    assert_int_equal(run("add", "mail", "x"), 0);
    assert_int_equal(err.len, 0);
    assert_int_equal(run("add", "mial", "x"), 0);
    assert_int_equal(out.len, 13);
    assert_says(&err, "no running worker serves queue mial: the job waits until one does; did "
                      "you mean mail?\n");
    assert_int_equal(run("add", "reports", "x"), 0);
    assert_says(&err, "queue reports: the job waits until one does\n");
}

/* So does every other command that adds jobs to a queue, or will. */
static void test_what_adds_tells_that_nobody_serves_it(void **state)
{
    (void)state;
    serve("mail");
    assert_int_equal(feed("a\nb\n", "add", "mial", "--from", "-"), 0);
    assert_says(&err, "queue mial: the jobs wait until one does; did you mean mail?\n");
    assert_int_equal(feed("{\"payload\":\"a\"}\n", "import", "mial"), 0);
    assert_says(&err, "queue mial: the jobs wait until one does; did you mean mail?\n");
    do_redis("ZADD", "old", "1795000000", "a");
    assert_int_equal(run("import", "mial", "--zset", "old", "--unit", "s"), 0);
    assert_says(&err, "queue mial: the jobs wait until one does; did you mean mail?\n");
    assert_int_equal(run("schedule", "add", "mial", "every", "1h", "x"), 0);
    assert_says(&err, "queue mial: its jobs wait until one does; did you mean mail?\n");
    assert_int_equal(run("schedule", "add", "s", "every", "1h", "x", "--queue", "mial"), 0);
    assert_says(&err, "queue mial: its jobs wait until one does; did you mean mail?\n");
    assert_int_equal(feed("CRON_TZ=UTC\n@daily x\n", "schedule", "import", "-", "--queue", "mial"),
                     0);
    assert_says(&err, "queue mial: the jobs wait until one does; did you mean mail?\n");
    /* Where it is served, or nothing was added, there is nothing to tell. */
    assert_int_equal(feed("a\nb\n", "add", "mail", "--from", "-"), 0);
    assert_int_equal(err.len, 0);
    assert_int_equal(run("schedule", "add", "s", "every", "1h", "x", "--queue", "mail"), 0);
    assert_int_equal(err.len, 0);
    assert_int_equal(run("schedule", "add", "s", "every", "1x", "x", "--queue", "mial"), 65);
    assert_null(strstr(buf_str(&err), "no running worker"));
}

/* The id that is printed is that of a job that has ended. */
static void test_an_add_tells_of_a_key_that_is_held(void **state)
{
    char epoch[24];

    (void)state;
    register_worker("mail", epoch);
    assert_int_equal(run("add", "mail", "--unique", "k", "--unique-for", "1h", "x"), 0);
    assert_int_equal(run("add", "mail", "--unique", "k", "x"), 0);
    assert_int_equal(err.len, 0);
    do_redis("FCALL", "later_v1_sync", "1", ROOT, epoch, "1", "0", "1", "0", "1", "mail", "1",
             "9999", "0");
    assert_int_equal(out.len, 13);
    out.data[12] = '\0';
    do_redis("FCALL", "later_v1_sync", "1", ROOT, epoch, "1", "0", "0", "1", out.data, "1", "done",
             "mail", "0", "0", "", "", "0", "0");
    assert_int_equal(run("add", "mail", "--unique", "k", "x"), 0);
    assert_says(&err, "nothing was added: job j");
    assert_says(&err, "later cancel mail@k");
    assert_int_equal(run("cancel", "mail@k"), 0);
    assert_out("mail@k freed\n");
}

static void test_an_add_that_adds_nothing_waits_for_nobody(void **state)
{
    (void)state;
    assert_int_equal(run("add", "mail", "--unique", "k", "--unique-for", "1h", "x"), 0);
    assert_int_equal(run("purge", "mail", "--state", "due", "--yes"), 0);
    assert_int_equal(run("add", "mail", "--unique", "k", "x"), 0);
    assert_says(&err, "nothing was added: job j");
    assert_null(strstr(buf_str(&err), "no running worker"));
}

/* A worker that was told a moment ago may have sent a claim before. */
static void test_quiet_trusts_no_worker_that_was_not_heard(void **state)
{
    (void)state;
    serve("mail");
    assert_int_equal(run("quiet", "--all", "--wait", "--timeout", "100ms"), 75);
    assert_out("1 worker told to start no more jobs\n");
    assert_says(&err, "not all of them were heard of since");
}

static void test_a_queue_is_forgotten(void **state)
{
    (void)state;
    assert_int_equal(run("pause", "fife", "--new", "--reason", "a slip"), 0);
    assert_int_equal(run("purge", "fife", "--forget", "--state", "due"), 64);
    assert_int_equal(run("purge", "fife", "--forget"), 0);
    assert_out("fife forgotten\n");
    assert_int_equal(run("stats", "fife"), 66);
    assert_int_equal(run("add", "fife", "x"), 0);
    assert_int_equal(run("purge", "fife", "--forget", "--json"), 1);
    assert_says(&err, "queue fife has jobs [ELATER_STATE]");
    assert_int_equal(run("purge", "fife", "--state", "due", "--yes"), 0);
    assert_int_equal(run("purge", "fife", "--forget", "--json"), 0);
    assert_out("{\"queue\":\"fife\",\"status\":\"forgotten\"}\n");
    serve("fife");
    assert_int_equal(run("purge", "fife", "--forget"), 1);
    assert_says(&err, "a worker serves queue fife");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_a_misspelt_name_is_refused, flush_all),
        cmocka_unit_test_setup(test_tail_tells_of_a_name, flush_all),
        cmocka_unit_test_setup(test_a_queue_without_jobs_is_none, flush_all),
        cmocka_unit_test_setup(test_an_add_tells_that_nobody_serves_it, flush_all),
        cmocka_unit_test_setup(test_what_adds_tells_that_nobody_serves_it, flush_all),
        cmocka_unit_test_setup(test_an_add_tells_of_a_key_that_is_held, flush_all),
        cmocka_unit_test_setup(test_an_add_that_adds_nothing_waits_for_nobody, flush_all),
        cmocka_unit_test_setup(test_quiet_trusts_no_worker_that_was_not_heard, flush_all),
        cmocka_unit_test_setup(test_a_queue_is_forgotten, flush_all),
    };

    return cmocka_run_group_tests(tests, start_all, stop_all);
}
