/*
 * Adopted delay queues under trouble: daemons and Redis killed at any moment, Redis full. Each
 * member that was acknowledged becomes one job, and is never in both places.
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

#include "../support/env.h"
#include "../support/fsck.h"
#include "base/cleanup.h"
#include "base/mem.h"
#include "redis/client.h"
#include "stage.h"

#define MEMBERS_MAX 20000
#define YAML                                                                                       \
    "concurrency: 8\n"                                                                             \
    "queues: { q: { adopt: { zset: foreign, unit: ms, bodies: bodies }, backoff: { first: 0s } } " \
    "}\n"

static struct stage stage;

/* What became of a member: whether Redis has taken it, the job that ran, and other jobs of it. */
static struct member {
    bool is_acked;
    char job[16];
    int others;
} members[MEMBERS_MAX];
static int nmembers;

static int setup(void **state)
{
    /* What it has acknowledged, it has after a kill. */
    static const char *const always[] = {"--appendonly", "yes", "--appendfsync", "always", NULL};

    (void)state;
    stage_begin(&stage);
    test_redis_start(&stage.redis, always);
    test_handler(stage.dir, "q", "echo \"$LATER_KEY $LATER_ID $(cat)\" >> %s\n", stage.out);
    stage_start_plain(&stage, &stage.a, "a", YAML);
    stage_start_plain(&stage, &stage.b, "b", YAML);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    return stage_end(&stage);
}

/* A member and its body, as a pipeline. False: the link broke, or Redis is full. */
static bool add_member(struct client *c)
{
    struct member *m = &members[nmembers];
    CLEANUP_FREE char *name = mem_printf("m%d", nmembers++);
    CLEANUP_FREE char *score =
        mem_printf("%lld", (long long)test_now_ms() + (int)(random() % 40) * 25);
    const char *zadd[] = {"ZADD", "foreign", score, name}, *hset[] = {"HSET", "bodies", name, "x"};
    struct err err = ERR_INIT;
    struct reply *r;

    assert_true(nmembers < MEMBERS_MAX);
    /* The body first: if it is refused, there is no member that would be buried without one. */
    r = client_call(c, 4, hset, NULL, &err);
    if (r == NULL)
        return false;
    reply_free(r);
    r = client_call(c, 4, zadd, NULL, &err);
    m->is_acked = r != NULL;
    reply_free(r);
    return m->is_acked;
}

static void add_for(int ms)
{
    struct err err = ERR_INIT;
    struct client *c = test_redis_client(&stage.redis, &err);
    struct mono begin = mono_now();

    while (c != NULL && test_ms_since(begin) < ms && add_member(c))
        if (nmembers % 10 == 0)
            test_pause(5);
    client_close(c);
}

static bool is_adopted(void *arg)
{
    (void)arg;
    return test_int(&stage.redis, "ZCARD", "foreign") == 0;
}

/* "KEY ID BODY" of each run. */
static void read_runs(void)
{
    CLEANUP_BUF struct buf text = BUF_INIT;
    char *rest, *line;

    test_read(stage.out, &text);
    rest = text.data;
    while ((line = strsep(&rest, "\n")) != NULL) {
        char id[16], body[8];
        int n;

        if (sscanf(line, "m%d %15s %7s", &n, id, body) != 3 || n >= nmembers)
            continue;
        assert_string_equal(body, "x");
        if (members[n].job[0] == '\0')
            (void)snprintf(members[n].job, sizeof(members[n].job), "%s", id);
        members[n].others += strcmp(members[n].job, id) != 0;
    }
}

static void X13_killed_while_adopting(void **state)
{
    int kills = test_is_long() ? 60 : 8, acked = 0;

    (void)state;
    (void)stage_seed();
    for (int i = 0; i < kills; i++) {
        int who = stage_random(0, 2);

        add_for(stage_random(50, 400));
        if (who == 2) {
            test_redis_kill(&stage.redis, SIGKILL);
            test_redis_restart(&stage.redis);
        } else {
            struct test_laterd *d = who == 0 ? &stage.a : &stage.b;

            stage_kill(&stage, d);
            test_laterd_start(d);
        }
        if (stage_random(0, 3) > 0)
            continue;
        reply_free(test_redis_call(&stage.redis, "CONFIG", "SET", "maxmemory", "1", NULL));
        add_for(50);
        test_pause(stage_random(0, 1500));
        reply_free(test_redis_call(&stage.redis, "CONFIG", "SET", "maxmemory", "0", NULL));
    }
    assert_true(test_until(is_adopted, NULL, STAGE_WAIT_MS));
    assert_true(stage_until_drained(&stage, STAGE_WAIT_MS));
    read_runs();
    for (int i = 0; i < nmembers; i++) {
        acked += members[i].is_acked;
        if (members[i].is_acked && members[i].job[0] == '\0')
            fail_msg("m%d was lost", i);
        if (members[i].others > 0)
            fail_msg("m%d became two jobs", i);
    }
    print_message(
        "figure X13: %d kills of daemons and Redis: %d members acknowledged, 0 lost, 0 in "
        "both places\n",
        kills, acked);
}

/* ---- the clock of Redis */

static int setup_clock(void **state)
{
    (void)state;
    nmembers = 0;
    stage_begin(&stage);
    stage_clock(&stage);
    test_redis_start(&stage.redis, NULL);
    stage_plain();
    test_handler(stage.dir, "q", "echo \"$(cat)\" >> %s\n", stage.out);
    stage_start_plain(&stage, &stage.a, "a",
                      "queues: { q: { adopt: { zset: foreign, unit: ms } } }\n");
    return 0;
}

/* A member that is due half a second from now, by Redis' clock, runs then. */
static void assert_is_taken(int64_t offset_ms, const char *member)
{
    CLEANUP_FREE char *score = mem_printf("%lld", (long long)(test_now_ms() + offset_ms + 500));

    reply_free(test_redis_call(&stage.redis, "ZADD", "foreign", score, member, NULL));
    assert_true(test_until_lines(stage.out, member, 1, 5000));
}

static void X17_clock_of_redis_steps(void **state)
{
    static const int64_t steps_ms[] = {0, 3600000, -3600000, -3620000, 0};

    (void)state;
    assert_true(test_laterd_says(&stage.a, "event=registered", STAGE_WAIT_MS));
    for (size_t i = 0; i < sizeof(steps_ms) / sizeof(steps_ms[0]); i++) {
        CLEANUP_FREE char *member = mem_printf("m%zu", i);

        __atomic_store_n(&stage.clock->offset_us, steps_ms[i] * 1000, __ATOMIC_SEQ_CST);
        assert_is_taken(steps_ms[i], member);
    }
    stage.unsound = "beats an hour ahead";
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(X13_killed_while_adopting, setup, teardown),
        cmocka_unit_test_setup_teardown(X17_clock_of_redis_steps, setup_clock, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
