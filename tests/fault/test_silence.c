/*
 * Workers that stand still until others reap them, and then go on: the process alone, or the whole
 * machine with its handlers. They stand still until they are reaped, in the long form for a minute.
 */
#include <dirent.h>
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

#include "../support/env.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/mem.h"
#include "stage.h"

#define FROZEN_MS 60000
#define HANDLERS_MAX 16

static struct stage stage;

/* ---- the scene: a runs four jobs, and b can take them over */

static const char places[] = "concurrency: 4\n";

/* First attempts of `short` end once let_short_end() was called, those of `long` never. */
static void play(void)
{
    test_handler(stage.dir, "short",
                 "echo \"begin$LATER_ATTEMPT $LATER_ID\" >> %s; "
                 "until [ $LATER_ATTEMPT -gt 1 ] || [ -e %s/end ]; do sleep 0.1; done; "
                 "echo \"end$LATER_ATTEMPT $LATER_ID\" >> %s",
                 stage.out, stage.dir, stage.out);
    test_handler(stage.dir, "long",
                 "echo \"begin$LATER_ATTEMPT $LATER_ID\" >> %s; "
                 "[ $LATER_ATTEMPT -gt 1 ] || while sleep 0.1; do [ -d %s ] || exit; done; "
                 "echo \"end$LATER_ATTEMPT $LATER_ID\" >> %s",
                 stage.out, stage.dir, stage.out);
    stage_start_plain(&stage, &stage.a, "a", places);
    for (int i = 0; i < 2; i++) {
        free(stage_add(&stage, "short", NULL, NULL));
        free(stage_add(&stage, "long", NULL, NULL));
    }
    assert_true(test_until_lines(stage.out, "begin1", 4, STAGE_WAIT_MS));
    stage_start_plain(&stage, &stage.b, "b", places);
}

static void let_short_end(void)
{
    CLEANUP_FREE char *path = mem_printf("%s/end", stage.dir);

    assert_int_equal(mkdir(path, 0700), 0);
}

/* Children of the daemon, without its guard. */
static size_t handlers_of(pid_t daemon, pid_t pids[HANDLERS_MAX])
{
    DIR *proc = opendir("/proc");
    size_t n = 0;

    assert_non_null(proc);
    for (struct dirent *e = readdir(proc); e != NULL; e = readdir(proc)) {
        CLEANUP_FREE char *path = mem_printf("/proc/%s/stat", e->d_name);
        CLEANUP_BUF struct buf text = BUF_INIT;
        const char *at;
        char state;
        int parent;

        test_read(path, &text);
        at = strrchr(buf_str(&text), ')');
        if (at != NULL && sscanf(at, ") %c %d", &state, &parent) == 2 && parent == daemon &&
            strstr(buf_str(&text), "(later-guard)") == NULL && n < HANDLERS_MAX)
            pids[n++] = (pid_t)strtol(e->d_name, NULL, 10);
    }
    (void)closedir(proc);
    return n;
}

struct few {
    pid_t daemon;
    size_t most;
};

static bool has_few_handlers(void *few)
{
    const struct few *f = few;
    pid_t pids[HANDLERS_MAX];

    return handlers_of(f->daemon, pids) <= f->most;
}

/* Stopped since begin. Wait until b has run all four jobs, in the long form for a minute. */
static void wait_for_take_over(struct mono begin, const char *line)
{
    double took;

    assert_true(test_until_lines(stage.out, "end2", 4, 45000));
    took = (double)mono_until_us(begin, mono_now()) / 1e6;
    assert_true(stage_until_drained(&stage, STAGE_WAIT_MS));
    if (test_is_long() && took * 1000 < FROZEN_MS)
        test_pause(FROZEN_MS - (int64_t)(took * 1000));
    (void)printf("figure %s: stopped for %.0f s, taken over after %.1f s\n", line,
                 (double)mono_until_us(begin, mono_now()) / 1e6, took);
}

static int done(const char *queue)
{
    CLEANUP_FREE char *field = mem_printf("done:%s", queue);
    struct reply *r = test_redis_call(&stage.redis, "HGET", STAGE_ROOT ":stats", field, NULL);
    int n = (int)reply_int(r);

    reply_free(r);
    return n;
}

/* a learns that it was reaped, ends all its handlers, registers anew and works. */
static void check_return(int late)
{
    struct few none = {stage.a.proc.pid, 0};

    /* given-up: R:workers still lists it as dead, while its jobs are moved. forgotten: it is
     * gone. */
    assert_true(test_until_lines(stage.a.log, "event=registered", 2, STAGE_WAIT_MS));
    assert_int_equal(
        test_lines(stage.a.log, "event=given-up") + test_lines(stage.a.log, "event=forgotten"), 1);
    assert_true(test_until(has_few_handlers, &none, STAGE_WAIT_MS));
    assert_true(test_until_lines(stage.a.log, "event=late-result-", late, STAGE_WAIT_MS));
    assert_int_equal(test_int(&stage.redis, "HLEN", STAGE_ROOT ":workers"), 2);
    assert_int_equal(stage_stop(&stage, &stage.b), 0);
    free(stage_add(&stage, "short", NULL, NULL));
    assert_true(test_until_lines(stage.out, "begin1", 5, STAGE_WAIT_MS));
    assert_true(stage_until_drained(&stage, STAGE_WAIT_MS));
    assert_int_equal(stage_stop(&stage, &stage.a), 0);
    /* Redis counts each job once: four second attempts, no third. */
    assert_int_equal(done("short") + done("long"), 5);
    assert_int_equal(test_lines(stage.out, "begin2"), 4);
    assert_int_equal(test_lines(stage.out, "begin3"), 0);
    assert_int_equal(test_lines(stage.b.log, "event=reaped"), 1);
    assert_int_equal(test_int(&stage.redis, "HLEN", STAGE_ROOT ":tries"), 0);
}

/* ---- the process alone: its handlers go on */

static void L7_stopped_worker(void **state)
{
    struct few left;
    struct mono begin;

    (void)state;
    play();
    begin = mono_now();
    test_laterd_kill(&stage.a, SIGSTOP);
    let_short_end();
    left = (struct few){stage.a.proc.pid, 4};
    wait_for_take_over(begin, "L7");
    /* The short handlers have ended and are zombies, as nobody reaped them; the long ones still
     * run. */
    assert_int_equal(test_lines(stage.out, "end1"), 2);
    assert_true(has_few_handlers(&left));
    test_laterd_kill(&stage.a, SIGCONT);
    check_return(4);
    assert_int_equal(test_lines(stage.out, "end1"), 3); /* two, and the job added at the end */
    (void)printf(
        "figure L7: 4 of 4 late results refused and logged, 0 handlers left, registered anew\n");
}

/* ---- the machine: its handlers are stopped, too */

static void T4_suspended_machine(void **state)
{
    pid_t pids[HANDLERS_MAX];
    struct mono begin;
    size_t n;

    (void)state;
    play();
    begin = mono_now();
    test_laterd_kill(&stage.a, SIGSTOP);
    n = handlers_of(stage.a.proc.pid, pids);
    assert_int_equal(n, 4);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(kill(-pids[i], SIGSTOP), 0); /* each leads a process group */
    let_short_end();
    wait_for_take_over(begin, "T4");
    assert_int_equal(test_lines(stage.out, "end1"), 0);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(kill(-pids[i], SIGCONT), 0);
    test_laterd_kill(&stage.a, SIGCONT);
    check_return(4);
    /* One line is from the job added at the end. At most the short handlers wrote theirs before
     * they were killed; no long one did. */
    assert_in_range(test_lines(stage.out, "end1"), 1, 3);
    (void)printf("figure T4: 4 of 4 late results refused and logged, 0 handlers left\n");
}

int main(void)
{
#define T(f) cmocka_unit_test_prestate_setup_teardown(f, stage_setup, stage_teardown, &stage)
    const struct CMUnitTest tests[] = {
        T(L7_stopped_worker),
        T(T4_suspended_machine),
    };

    cmocka_set_test_filter(getenv("LATER_ONLY")); /* a name, with * and ? */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
