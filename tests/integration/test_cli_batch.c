/* `later batch`, and --batch of `later add`: what they print, refuse and answer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "../support/env.h"
#include "command.h"

static void test_open_fill_seal(void **state)
{
    (void)state;
    assert_int_equal(
        run("batch", "add", "b", "--then", "t", "--on-dead", "d", "--keep", "2h", "the payload"),
        0);
    assert_out("b opened\n");
    assert_int_equal(run("add", "q", "--batch", "b", "x"), 0);
    assert_int_equal(feed("1\n2\n3\n", "add", "q", "--batch", "b", "--from", "-"), 0);
    assert_int_equal(run("batch", "show", "b"), 0);
    assert_says(&out, "state             open\n");
    assert_says(&out, "members           4\n");
    assert_says(&out, "keep              2h\n");
    assert_says(&out, "payload           the payload\n");
    assert_int_equal(run("--json", "batch", "seal", "b"), 0);
    assert_out("{\"batch\":\"b\",\"status\":\"sealed\"}\n");
    assert_int_equal(run("add", "q", "--batch", "b", "x"), 65);
    assert_says(&err, "batch 'b' is sealed: only its members add to it");
    assert_int_equal(run("--json", "batch", "show", "b"), 0);
    assert_says(&out, "\"state\":\"sealed\"");
    assert_says(&out, "\"total\":4,\"live\":4,\"done\":0");
    assert_says(&out, "\"payload\":\"the payload\"");
}

static void test_run_does_all_three(void **state)
{
    (void)state;
    assert_int_equal(
        feed("1\n2\n", "batch", "run", "b", "q", "pay", "--finally", "f", "--from", "-"), 0);
    assert_out("2 jobs added\n");
    assert_int_equal(run("batch", "ls"), 0);
    assert_says(&out, "b      sealed");
    assert_int_equal(run("batch", "seal", "b"), 0);
    assert_out("b is sealed already\n");
    assert_int_equal(run("--json", "batch", "seal", "b"), 0);
    assert_out("{\"batch\":\"b\",\"status\":\"repeated\"}\n");
}

/* A batch that is opened for a file that is not there stays open for nothing. */
static void test_run_opens_nothing_in_vain(void **state)
{
    (void)state;
    assert_int_equal(feed("1\n2\n", "batch", "run", "c", "q/q", "--from", "-"), 65);
    assert_says(&err, "'q/q' is no queue name");
    assert_int_equal(run("batch", "run", "d", "q"), 64);
    assert_says(&err, "--from FILE");
    assert_int_equal(run("batch", "run", "e", "q", "--from", "/nosuch"), 66);
    assert_says(&err, "cannot read /nosuch: No such file or directory");
    assert_int_equal(run("batch", "run", "f", "q", "--from", "/tmp"), 66);
    assert_says(&err, "/tmp is a folder: name a file");
    assert_int_equal(run("batch", "ls"), 0);
    assert_out("BATCH  STATE  OPENED  MEMBERS  LIVE  DONE  DEAD  CANCELLED\n");
    assert_int_equal(feed("1\n2\n", "batch", "run", "g", "q", "--lock", "x", "--from", "-"), 64);
}

static void test_members_and_cancel(void **state)
{
    (void)state;
    assert_int_equal(feed("1\n2\n", "batch", "run", "b", "q", "--from", "-"), 0);
    assert_int_equal(run("--json", "batch", "ls", "b", "--state", "live"), 0);
    assert_int_equal(out.len, strlen("{\"id\":\"j00000000000\",\"state\":\"live\"}\n") * 2);
    assert_int_equal(run("batch", "wait", "b", "--timeout", "10ms"), 75);
    assert_says(&err, "batch b has not ended yet");
    assert_int_equal(run("batch", "cancel", "b"), 0);
    assert_out("2 cancelled, 0 running ones are being ended\n");
    assert_int_equal(run("batch", "wait", "b", "--timeout", "10s"), 1);
    assert_says(&out, "state             ended\n");
    assert_int_equal(run("batch", "ls", "b", "--state", "live"), 0);
    assert_out("ID  STATE\n");
    assert_int_equal(run("--json", "batch", "ls"), 0);
    assert_says(&out, "\"batch\":\"b\",\"state\":\"ended\"");
    assert_says(&out, "\"total\":2,\"live\":0,\"done\":0,\"dead\":0,\"cancelled\":2}");
}

static void test_an_empty_one_is_done(void **state)
{
    (void)state;
    assert_int_equal(run("batch", "add", "b", "--then", "t"), 0);
    assert_int_equal(run("batch", "seal", "b"), 0);
    assert_int_equal(run("batch", "wait", "b"), 0);
    assert_int_equal(count("ZCARD", ROOT ":q:t:5"), 1);
    assert_int_equal(run("ls", "t", "--json"), 0);
    assert_int_equal(run("export", "t"), 0);
    assert_says(&out, "\"callback\":\"b,0,0,0,0\"");
}

/* A job keeps its batch when it moves. */
static void test_export_and_import(void **state)
{
    CLEANUP_FREE char *lines = NULL;

    (void)state;
    (void)run("batch", "add", "b");
    (void)run("add", "q", "--batch", "b", "x");
    assert_int_equal(run("export", "q"), 0);
    assert_says(&out, "\"batch\":\"b\"");
    lines = mem_strdup(buf_str(&out));
    do_redis("FLUSHALL");
    assert_int_equal(feed(lines, "import", "q", "-"), 66);
    assert_says(&err, "there is no batch 'b'");
    (void)run("batch", "add", "b");
    assert_int_equal(feed(lines, "import", "q", "-"), 0);
    assert_int_equal(count("ZCARD", ROOT ":members:b"), 1);
}

static void test_refusals(void **state)
{
    static const struct {
        const char *argv[8];
        int status;
        const char *says;
    } rows[] = {
        {{"batch", NULL}, 64, "batch"},
        {{"batch", "ad", "b", NULL}, 64, "did you mean add?"},
        {{"batch", "nonsense", NULL}, 64, "write later batch add, seal, run, show, ls, cancel or"},
        {{"batch", "seal", NULL}, 64, "later batch seal takes one NAME"},
        {{"batch", "seal", "b", "c", NULL}, 64, "later batch seal takes one NAME"},
        {{"batch", "seal", "b", "--then", "q", NULL}, 64, "--then does not belong to"},
        {{"batch", "ls", "--state", "live", NULL}, 64, "later batch ls NAME --state"},
        {{"batch", "ls", "b", "--state", "x", NULL}, 64, "--state"},
        {{"batch", "show", "nosuch", NULL}, 66, "there is no batch 'nosuch'"},
        {{"batch", "seal", "nosuch", NULL}, 66, "there is no batch 'nosuch'"},
        {{"batch", "cancel", "nosuch", NULL}, 66, "there is no batch 'nosuch'"},
        {{"batch", "wait", "nosuch", NULL}, 66, "there is no batch 'nosuch'"},
        {{"batch", "add", "a b", NULL}, 65, "is no name of a batch"},
        {{"batch", "add", "b", "--keep", "soon", NULL}, 65, "is no duration"},
        {{"batch", "add", "b", "--then", "a/b", NULL}, 65, "is no queue name"},
        {{"add", "q", "--batch", "nosuch", "x", NULL}, 66, "later batch add opens it"},
        {{"add", "q", "--batch", "b", "--unique", "k", "x", NULL}, 65, "do not go together"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *const *a = rows[i].argv;
        int status = run_in(NULL, 0, a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], NULL);

        if (status != rows[i].status)
            fail_msg("row %zu: exit %d, %s", i, status, buf_str(&err));
        assert_says(&err, rows[i].says);
    }
    assert_int_equal(count("EXISTS", ROOT ":batches"), 0);
}

/* Health tells of a batch that nobody seals; the metrics count batches. */
static void test_health_and_metrics(void **state)
{
    char now[32];

    (void)state;
    (void)run("batch", "add", "b");
    do_redis("HSET", ROOT ":batches", "b", "created_ms=1700000000000 keep_ms=1000\n");
    do_redis("ZADD", ROOT ":batch:open", "1700000000000", "b");
    (void)run("health");
    assert_says(&out, "batch b is not sealed, and nothing has joined it for");
    assert_int_equal(run("batch", "seal", "b"), 0);
    (void)run("health");
    assert_null(memmem(out.data, out.len, "is not sealed", 13));
    assert_int_equal(run("stats", "--prometheus"), 0);
    assert_says(&out, "laterd_batches{namespace=\"default\",state=\"open\"} 0\n");
    assert_says(&out, "state=\"ended\"} 1\n");
    (void)snprintf(now, sizeof(now), "%lld000", (long long)time(NULL));
    do_redis("HSET", ROOT ":notes", "bad-batch:c its definition is corrupt", now);
    do_redis("HSET", ROOT ":notes", "bad-queue:mail key 'x' has a foreign type", now);
    (void)run("health");
    assert_says(&out,
                "degraded: bad-batch: batch c: its definition is corrupt: its callbacks wait");
    assert_says(&out, "bad-queue: queue mail: its jobs wait: key 'x' has a foreign type");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_open_fill_seal, flush_all),
        cmocka_unit_test_setup(test_run_does_all_three, flush_all),
        cmocka_unit_test_setup(test_run_opens_nothing_in_vain, flush_all),
        cmocka_unit_test_setup(test_members_and_cancel, flush_all),
        cmocka_unit_test_setup(test_an_empty_one_is_done, flush_all),
        cmocka_unit_test_setup(test_export_and_import, flush_all),
        cmocka_unit_test_setup(test_refusals, flush_all),
        cmocka_unit_test_setup(test_health_and_metrics, flush_all),
    };

    return cmocka_run_group_tests(tests, start_all, stop_all);
}
