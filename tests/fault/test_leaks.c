/*
 * After very many jobs, descriptors, threads, memory and keys are as before.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/mem.h"
#include "stage.h"
#include "usage.h"

#define BACKLOG 2500
/* Pages that the allocator keeps may be more than 2 % of so little memory. The peak of jobs that
 * wait for a place is reached late; 5,000, 25,000 and 60,000 jobs leave 272 to 420 KiB. */
#define SLACK_KB 512

static struct stage stage;

struct figures {
    int fds, threads, children;
    long rss_kb;
    int64_t keys, rows; /* keys that do not expire, and the rows of all of them together */
};

static int64_t rows_of(const char *key)
{
    struct reply *r = test_redis_call(&stage.redis, "TYPE", key, NULL);
    const char *command = reply_is(r, "hash")   ? "HLEN"
                          : reply_is(r, "zset") ? "ZCARD"
                          : reply_is(r, "set")  ? "SCARD"
                                                : "EXISTS";

    reply_free(r);
    return test_int(&stage.redis, command, key);
}

static void measure(struct figures *f)
{
    pid_t pid = stage.a.proc.pid;
    struct reply *keys = test_redis_call(&stage.redis, "KEYS", "*", NULL);

    memset(f, 0, sizeof(*f));
    f->fds = usage_fds(pid);
    f->threads = usage_threads(pid);
    f->children = usage_children(pid, false);
    f->rss_kb = usage_kib(pid, "VmRSS");
    for (size_t i = 0; i < reply_count(keys); i++) {
        const char *key = reply_str(reply_at(keys, i));

        if (test_int(&stage.redis, "PTTL", key) >= 0)
            continue;
        f->keys++;
        f->rows += rows_of(key);
    }
    reply_free(keys);
}

static bool has_room(void *arg)
{
    (void)arg;
    return test_int(&stage.redis, "HLEN", STAGE_ROOT ":jobs") < BACKLOG;
}

/* Print why no more jobs are added. */
static void explain(void)
{
    static const char *const keys[][2] = {{"HLEN", STAGE_ROOT ":jobs"},
                                          {"ZCARD", STAGE_ROOT ":q:void:5"},
                                          {"ZCARD", STAGE_ROOT ":running"},
                                          {"HLEN", STAGE_ROOT ":workers"}};
    CLEANUP_BUF struct buf log = BUF_INIT;

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        (void)fprintf(stderr, "%s %s: %lld\n", keys[i][0], keys[i][1],
                      (long long)test_int(&stage.redis, keys[i][0], keys[i][1]));
    test_read(stage.a.log, &log);
    (void)fprintf(stderr, "laterd %s:\n%s\n", proc_wait(&stage.a.proc, 0) < 0 ? "runs" : "ended",
                  buf_str(&log) + (log.len > 4000 ? log.len - 4000 : 0));
}

/* Returns how many adds were acknowledged: all, unless the machine stands still. */
static int do_jobs(int n)
{
    int acked = 0;

    for (int part; n > 0; n -= part) {
        part = n < BACKLOG ? n : BACKLOG;
        if (!test_until(has_room, NULL, 5 * STAGE_WAIT_MS)) {
            explain();
            fail();
        }
        acked += ledger_add(&stage.ledger, &stage.redis, "void", part, 0);
    }
    assert_true(stage_until_drained(&stage, 5 * STAGE_WAIT_MS));
    /* After a look, a beat and a tidy everything is as it will stay, and no probe runs. */
    test_pause(12000);
    return acked;
}

static void print(const char *when, const struct figures *f)
{
    (void)printf("%s: %d descriptors, %d threads, %d children, %ld KiB, %lld keys, %lld rows\n",
                 when, f->fds, f->threads, f->children, f->rss_kb, (long long)f->keys,
                 (long long)f->rows);
    (void)fflush(stdout);
}

static void I10_a_million_jobs(void **state)
{
    int jobs = stage_number("LATER_JOBS", 5000, 1000000), warm = jobs / 50 + 500, acked;
    struct figures before, after;
    struct mono begin;
    struct reply *done;
    double took;
    long grown;

    (void)state;
    stage_start_plain(&stage, &stage.a, "a",
                      "concurrency: 16\nlog_level: notice\n"
                      "queues: { void: { handler: [/bin/true] } }\n");
    acked = do_jobs(warm);
    measure(&before);
    print("before", &before);
    begin = mono_now();
    acked += do_jobs(jobs);
    took = (double)mono_until_us(begin, mono_now()) / 1e6 - 12;
    measure(&after);
    print("after", &after);
    done = test_redis_call(&stage.redis, "HGET", STAGE_ROOT ":stats", "done:void", NULL);
    assert_in_range(reply_int(done), acked, warm + jobs);
    reply_free(done);
    assert_int_equal(after.fds, before.fds);
    assert_int_equal(after.threads, before.threads);
    assert_int_equal(after.children, 0);
    assert_int_equal(after.keys, before.keys);
    assert_int_equal(after.rows, before.rows);
    grown = after.rss_kb - before.rss_kb;
    assert_true(grown <= before.rss_kb / 50 || grown <= SLACK_KB);
    (void)printf("figure I10: %d jobs in %.0f s; descriptors %d to %d, threads %d to %d, keys %lld "
                 "to %lld, RSS %ld to %ld KiB\n",
                 jobs, took, before.fds, after.fds, before.threads, after.threads,
                 (long long)before.keys, (long long)after.keys, before.rss_kb, after.rss_kb);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate_setup_teardown(I10_a_million_jobs, stage_setup, stage_teardown,
                                                 &stage),
    };

    cmocka_set_test_filter(getenv("LATER_ONLY")); /* a name, with * and ? */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
