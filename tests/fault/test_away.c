/*
 * A Redis that is absent, starts late, does not answer writes, or comes back with less data (R1,
 * R2, R5, R6, R7, R9).
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

#include "../support/env.h"
#include "../support/fsck.h"
#include "../support/shell.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/mem.h"
#include "network.h"

#define RESUME_MS 3000 /* 2 s are promised; one more for a slow machine */

/* Sync each write, so that only the end of the AOF that the test cuts off is missing. With everysec
 * a write may wait for a slow disk. */
static int setup_always(void **state)
{
    static const char *const always[] = {"--appendonly", "yes", "--appendfsync", "always", NULL};

    (void)state;
    return network_setup_with(always);
}

/* Debian's default: snapshots only. */
static int setup_snapshots(void **state)
{
    static const char *const snapshots[] = {"--save", "3600 1 300 100 60 10000", NULL};

    (void)state;
    return network_setup_with(snapshots);
}

static int setup_slow_load(void **state)
{
    static const char *const slow[] = {"--enable-debug-command",
                                       "yes",
                                       "--key-load-delay",
                                       "300",
                                       "--loading-process-events-interval-bytes",
                                       "1024",
                                       NULL};

    (void)state;
    return network_setup_with(slow);
}

/* ---- absent */

static void R1_absent_at_start(void **state)
{
    int64_t connects;

    (void)state;
    network_proxy();
    test_redis_kill(&net.s.redis, SIGKILL);
    network_launch(0, NULL, "concurrency: 2");
    assert_true(test_laterd_says(&net.d[0], "state=down", STAGE_WAIT_MS));
    test_pause(1500); /* after the first, short waits between tries */
    connects = network_is_calm(0, 6000, 1);
    assert_in_range(connects, 3, 20); /* full jitter up to 1.2 s: 10 are likely */
    test_redis_restart(&net.s.redis);
    print_message("figure R1: %lld tries in 6 s; work %lld ms after Redis came\n",
                  (long long)connects, (long long)network_works(RESUME_MS));
    network_drained(0);
}

static void R2_killed_while_idle(void **state)
{
    int64_t worst = 0;

    (void)state;
    network_daemon(0, NULL, "concurrency: 2");
    for (int i = 0; i < 3; i++) {
        int64_t ms;

        (void)network_works(RESUME_MS);
        test_redis_kill(&net.s.redis, SIGKILL);
        test_pause(1000);
        test_redis_restart(&net.s.redis);
        ms = network_works(RESUME_MS);
        worst = ms > worst ? ms : worst;
    }
    /* The library was still there: it was loaded once only. */
    assert_int_equal(test_lines(net.d[0].log, "loaded=1"), 1);
    network_drained(0);
    print_message("figure R2: killed 3 times, work again after %lld ms at most\n",
                  (long long)worst);
}

/* ---- back with less data */

static void R5_back_from_an_older_snapshot(void **state)
{
    struct ledger_sum sum;
    int lost;

    (void)state;
    network_daemon(0, NULL, "concurrency: 4");
    assert_true(test_laterd_says(&net.d[0], "event=preflight check=persistence", STAGE_WAIT_MS));
    network_add("slow", 12);
    assert_true(ledger_until(&net.s.ledger, " start", 4, STAGE_WAIT_MS));
    network_redis("SAVE", NULL);
    assert_true(ledger_until(&net.s.ledger, " end", 4, STAGE_WAIT_MS));
    network_add("slow", 20);
    test_redis_kill(&net.s.redis, SIGKILL);
    test_pause(1500);
    test_redis_restart(&net.s.redis);
    lost = ledger_lost_by_redis(&net.s.ledger, &net.s.redis, 0);
    assert_in_range(lost, 16, 20); /* added since the snapshot and not started */
    (void)network_works(20000);
    assert_true(network_is_drained(STAGE_WAIT_MS));
    ledger_sum(&net.s.ledger, &sum);
    assert_int_equal(sum.lost + sum.unexpected + sum.twins, 0);
    /* A job that had ended since the snapshot runs again, once. */
    assert_in_range(sum.duplicates, 0, 8);
    /* Worker and Redis agree on the held jobs. */
    test_pause(6000); /* at least one beat */
    assert_int_equal(test_lines(net.d[0].log, "event=count-differs"), 0);
    assert_int_equal(test_int(&net.s.redis, "ZCARD", STAGE_ROOT ":running"), 0);
    print_message("figure R5: %d jobs lost by Redis (since its snapshot), 0 by laterd, %d run "
                  "again\n",
                  lost, sum.duplicates);
}

/* Does not wait for an empty R:jobs. When the AOF ends inside a transaction, Redis 7.0 cuts off the
 * torn command but leaves the transaction open, and the next load applies its first half. Half an
 * add leaves a record that is in no queue, until an fsck buries it. Half a claim leaves the job's
 * member in its queue; when the job has ended, the next claim buries that member. */
static bool has_run_what_is_left(void *lost)
{
    struct ledger_sum sum;

    ledger_sum(&net.s.ledger, &sum);
    return sum.lost == 0 && test_int(&net.s.redis, "ZCARD", STAGE_ROOT ":running") == 0 &&
           test_int(&net.s.redis, "HLEN", STAGE_ROOT ":jobs") -
                   test_int(&net.s.redis, "ZCARD", STAGE_ROOT ":dead:work") <=
               *(int *)lost;
}

static void R6_end_of_the_aof_torn(void **state)
{
    CLEANUP_FREE char *tear = mem_printf(
        "for f in %s/appendonlydir/*.incr.aof; do truncate -s -100 $f; done", net.s.redis.dir);
    int rounds = test_is_long() ? 30 : 3, lost = 0, halves, buried;
    struct ledger_sum sum;

    (void)state;
    network_daemon(0, NULL, "concurrency: 4");
    for (int i = 0; i < rounds; i++) {
        int ends = ledger_lines(&net.s.ledger, " end");

        network_add("work", 100);
        assert_true(ledger_until(&net.s.ledger, " end", ends + 20 + 11 * (i % 5), STAGE_WAIT_MS));
        test_redis_kill(&net.s.redis, SIGKILL);
        assert_int_equal(test_sh(tear), 0);
        test_redis_restart(&net.s.redis);
        lost += ledger_lost_by_redis(&net.s.ledger, &net.s.redis, 0);
    }
    assert_true(test_until(has_run_what_is_left, &lost, 2 * STAGE_WAIT_MS));
    ledger_sum(&net.s.ledger, &sum);
    assert_int_equal(sum.lost + sum.unexpected + sum.twins, 0);
    /* 100 bytes are at most one write: four ends and four claims. */
    assert_in_range(lost, 0, rounds);
    assert_in_range(sum.duplicates, 0, 8 * rounds);
    buried = (int)test_int(&net.s.redis, "ZCARD", STAGE_ROOT ":dead:work");
    assert_in_range(buried, 0, rounds);
    /* Only these half-written jobs are wrong, and the repair buries each. */
    halves = (int)test_int(&net.s.redis, "HLEN", STAGE_ROOT ":jobs");
    assert_int_equal(test_fsck(&net.s.redis), halves);
    assert_int_equal(test_fsck_repair(&net.s.redis), 0);
    assert_int_equal(test_int(&net.s.redis, "ZCARD", STAGE_ROOT ":dead:work"), halves);
    print_message("figure R6: torn %d times by 100 bytes: %d adds lost with them (%d left half an "
                  "add, which fsck found and buried), 0 by laterd, %d half a claim, %d jobs run "
                  "again\n",
                  rounds, lost, halves - buried, buried, sum.duplicates);
}

/* ---- R6 by hand: a claim of which only the first commands were written */

#define TORN_WAITING 8
#define TORN_CLAIMED "4"

/* Claim with this epoch. Returns how many jobs were claimed. */
static int claim_by_hand(const char *epoch)
{
    struct reply *r =
        test_redis_call(&net.s.redis, "FCALL", "later_v1_sync", "1", STAGE_ROOT, epoch, "1", "0",
                        TORN_CLAIMED, "0", "1", "work", TORN_CLAIMED, "1048576", "0", NULL);
    const struct reply *group = reply_at(reply_at(r, 3), 0);
    int n = (int)(reply_count(group) - 6) / 3;

    assert_string_equal(reply_str(reply_at(r, 1)), "ok");
    reply_free(r);
    return n;
}

static char *enter_by_hand(void)
{
    struct reply *r = test_redis_call(&net.s.redis, "FCALL", "later_v1_register", "1", STAGE_ROOT,
                                      "0", "hand", "1", "0", "0", "0", "0", NULL);
    char *epoch = mem_printf("%lld", (long long)reply_int(reply_at(r, 1)));

    reply_free(r);
    return epoch;
}

/* Restart Redis with an AOF of only the first n bytes of log. */
static void restart_with(const char *path, const struct buf *log, size_t n)
{
    FILE *f;

    test_redis_kill(&net.s.redis, SIGKILL);
    f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(log->data, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
    test_redis_restart(&net.s.redis);
}

/*
 * Redis 7.0 leaves a transaction open when the AOF ends inside one of its commands. The next load
 * then applies its first half after all that was written in its place. So this test tears a claim
 * in each of its commands, claims again and restarts Redis once more: no waiting job may be lost.
 */
static void R6_claim_torn_in_each_command(void **state)
{
    CLEANUP_FREE char *path =
        mem_printf("%s/appendonlydir/appendonly.aof.1.incr.aof", net.s.redis.dir);
    CLEANUP_FREE char *epoch = NULL;
    CLEANUP_BUF struct buf log = BUF_INIT;
    size_t begin, at;
    int torn = 0;

    (void)state;
    test_redis_load(&net.s.redis);
    epoch = enter_by_hand();
    network_add("work", TORN_WAITING + 2 * atoi(TORN_CLAIMED));
    test_read(path, &log);
    begin = log.len;
    assert_int_equal(claim_by_hand(epoch), atoi(TORN_CLAIMED));
    test_read(path, &log);
    for (at = begin + 1; at < log.len; at++) {
        if (buf_str(&log)[at] != '*' || buf_str(&log)[at - 1] != '\n')
            continue;
        restart_with(path, &log, at + 3);
        assert_int_equal(claim_by_hand(epoch), atoi(TORN_CLAIMED));
        test_redis_kill(&net.s.redis, SIGKILL);
        test_redis_restart(&net.s.redis);
        assert_int_equal(test_int(&net.s.redis, "ZCARD", STAGE_ROOT ":running"),
                         atoi(TORN_CLAIMED));
        assert_int_equal(test_int(&net.s.redis, "ZCARD", STAGE_ROOT ":q:work:5"),
                         TORN_WAITING + atoi(TORN_CLAIMED));
        torn++;
    }
    assert_in_range(torn, 5, 20);
    print_message("figure R6: a claim torn in each of its %d commands, 0 jobs lost\n", torn);
}

/* Is PING answered with this text: "" for PONG, else the start of an error? */
static bool answers(void *text)
{
    static const char *const ping[] = {"PING"};
    struct client *c = network_client();
    struct err err = ERR_INIT;
    struct reply *r = c != NULL ? client_call(c, 1, ping, NULL, &err) : NULL;
    const char *want = text;
    bool is;

    is = *want == '\0' ? reply_is(r, "PONG")
                       : r == NULL && strncmp(err.text, want, strlen(want)) == 0;
    reply_free(r);
    client_close(c);
    return is;
}

static void R7_loading(void **state)
{
    int starts;
    int64_t ms;

    (void)state;
    network_daemon(0, NULL, "concurrency: 4");
    network_redis("DEBUG", "POPULATE", test_is_long() ? "100000" : "25000", "foreign", NULL);
    network_add("slow", 12);
    assert_true(ledger_until(&net.s.ledger, " start", 4, STAGE_WAIT_MS));
    network_redis("SAVE", NULL);
    test_redis_kill(&net.s.redis, SIGKILL);
    test_redis_launch(&net.s.redis);
    assert_true(test_until(answers, (void *)(uintptr_t) "LOADING", STAGE_WAIT_MS));
    /* Running jobs end, and no job is claimed. */
    assert_true(ledger_until(&net.s.ledger, " end", 4, STAGE_WAIT_MS));
    starts = ledger_lines(&net.s.ledger, " start");
    (void)network_is_calm(0, 3000, 3);
    if (!answers((void *)(uintptr_t) "LOADING"))
        fail_msg("it was loaded too soon to tell anything");
    assert_int_equal(ledger_lines(&net.s.ledger, " start"), starts);
    assert_true(test_until(answers, (void *)(uintptr_t) "", 2 * STAGE_WAIT_MS));
    ms = network_works(RESUME_MS + 3000); /* it waits for the slow jobs */
    network_drained(0);
    print_message("figure R7: work %lld ms after the data was loaded\n", (long long)ms);
}

/* ---- half there */

static void R9_writes_paused(void **state)
{
    (void)state;
    network_daemon(0, NULL, "concurrency: 4");
    network_add("slow", 8);
    assert_true(ledger_until(&net.s.ledger, " start", 4, STAGE_WAIT_MS));
    network_redis("CLIENT", "PAUSE", "60000", "WRITE", NULL);
    assert_true(ledger_until(&net.s.ledger, " end", 4, STAGE_WAIT_MS));
    /* Each connection comes up, since reads work, and gets no answer to its first write. */
    (void)network_is_calm(0, 8000, 16);
    assert_int_equal(ledger_lines(&net.s.ledger, " start"), 4);
    network_redis("CLIENT", "UNPAUSE", NULL);
    (void)network_works(RESUME_MS + 3000);
    network_drained(0);
}

int main(void)
{
#define T_WITH(f, setup) cmocka_unit_test_setup_teardown(f, setup, network_teardown)
#define T(f) T_WITH(f, network_setup)
    const struct CMUnitTest tests[] = {
        T(R1_absent_at_start),
        T_WITH(R2_killed_while_idle, network_setup_aof),
        T_WITH(R5_back_from_an_older_snapshot, setup_snapshots),
        T_WITH(R6_end_of_the_aof_torn, setup_always),
        T_WITH(R6_claim_torn_in_each_command, setup_always),
        T_WITH(R7_loading, setup_slow_load),
        T(R9_writes_paused),
    };

    cmocka_set_test_filter(getenv("LATER_ONLY")); /* a name, with * and ? */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
