/*
 * What a worker that died leaves running, and processes that laterd ends itself: no other job takes
 * the lock while they run. The referee is a kernel lock (flock(1)) on a file. The holder's command
 * and all processes that it started keep it open, in any session. The next holder takes the lock or
 * writes OVERLAP.
 *
 * The long form repeats each case twenty times. Figures: how many overlapped, and the time from the
 * end of one holder to the start of the next.
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
#include "../support/shell.h"
#include "base/cleanup.h"
#include "base/mem.h"
#include "stage.h"

#define ROUNDS_LONG 20
#define SIGHTS 3
#define AT_ONCE_MS 1000   /* mean time to the next holder if a worker sees the death */
#define SILENCE_MS 19600  /* no worker is reaped for silence before this */
#define GIVEN_UP_MS 32000 /* and every silent worker is by then */

/* ---- a stage, a door and its referee */

static struct stage stage;
static struct proc holder, waiter; /* processes of `later lock` */
static struct proc sights[SIGHTS], sighted[SIGHTS];
static pid_t frozen_guard;
static bool is_begun;

static void begin(void)
{
    CLEANUP_FREE char *later = mem_printf("%s/later", test_build_dir());

    is_begun = true;
    stage_begin(&stage);
    test_redis_start(&stage.redis, NULL);
    test_redis_load(&stage.redis);
    /* hold: stays for 60 s. brief: 17 s. far: stays, with a child in another session. nest: stays,
     * inside `later sem`. next: ends at once, and so does a job that is run again. */
    test_handler(stage.dir, "door",
                 "D=%s; read how; export D\n"
                 "if test \"$how ${LATER_ATTEMPT:-1}\" = 'nest 1'; then exec %s --redis %s sem s "
                 "-- sh -c \"trap '' TERM\n"
                 "exec 9>>$D/referee; flock -n 9 || echo OVERLAP nest >>$D/noted\n"
                 "echo \\$\\$ >>$D/pids; echo nest \\$(date +%%s%%3N) >>$D/noted; sleep 60\"; fi\n"
                 "exec 9>>$D/referee$1; flock -n 9 || echo OVERLAP $how$1 >>$D/noted\n"
                 "test $how = next || test ${LATER_ATTEMPT:-1} = 1 || how=again\n"
                 "echo $$ >>$D/pids; echo $how$1 $(date +%%s%%3N) >>$D/noted\n"
                 "case $how in\n"
                 "hold) exec sleep 60 ;;\n"
                 "brief) exec sleep 17 ;;\n"
                 "far) setsid sleep 60 </dev/null >/dev/null 2>&1 3>&- &\n"
                 "  exec sleep 60 ;;\n"
                 "esac",
                 stage.dir, later, stage.redis.url);
    test_handler(stage.dir, "stream",
                 "D=%s; echo later-stream 1; while read head; do read how\n"
                 "set -- $head; id=${2#id=}; exec 9>>$D/referee\n"
                 "flock -n 9 || echo OVERLAP $how >>$D/noted\n"
                 "case \"$how $head\" in *' attempt=1 '* | next*) ;; *) how=again ;; esac\n"
                 "echo $$ >>$D/pids; echo $how $(date +%%s%%3N) >>$D/noted\n"
                 "if test $how = far; then setsid sleep 60 </dev/null >/dev/null 2>&1 &\n"
                 "sleep 60; fi; exec 9>&-; echo ok $id; done",
                 stage.dir);
    (void)setenv("DIR", stage.dir, 1);
    (void)setenv("LATER", later, 1);
    (void)setenv("LATER_REDIS_URL", stage.redis.url, 1);
    reply_free(test_fcall(&stage.redis, "later_limit_set", "s", "semaphore", "5", NULL));
    assert_int_equal(test_sh("cd $DIR; touch noted pids referee; "
                             "for i in 0 1 2; do touch referee.$i; done; "
                             "chmod 666 noted pids referee*"),
                     0);
}

static void end(void)
{
    is_begun = false;
    if (frozen_guard > 0)
        (void)kill(frozen_guard, SIGKILL);
    frozen_guard = 0;
    proc_done(&holder);
    proc_done(&waiter);
    for (int i = 0; i < SIGHTS; i++) {
        proc_done(&sights[i]);
        proc_done(&sighted[i]);
    }
    /* For a test that failed. */
    (void)test_sh("for p in $(cat $DIR/pids); do kill -9 -- -$p; done 2>/dev/null");
    (void)test_sh("fuser -s -k $DIR/referee");
    assert_int_equal(stage_end(&stage), 0);
}

/* Clean up after a test that failed. */
static int teardown(void **state)
{
    (void)state;
    if (is_begun)
        end();
    return 0;
}

static char *in_dir(const char *name)
{
    return mem_printf("%s/%s", stage.dir, name);
}

static int lines(const char *text)
{
    CLEANUP_FREE char *noted = in_dir("noted");

    return test_lines(noted, text);
}

/* Wait until it has written its word and the time to the file. */
static void until_in(const char *word, int deadline_ms)
{
    CLEANUP_FREE char *noted = in_dir("noted"), *head = mem_printf("%s 1", word);

    if (!test_until_lines(noted, head, 1, deadline_ms))
        fail_msg("'%s' never came in", word);
}

/* When the last line with this word was written, in ms. */
static int64_t time_of(const char *word)
{
    CLEANUP_FREE char *noted = in_dir("noted"), *head = mem_printf("%s 1", word);
    CLEANUP_BUF struct buf text = BUF_INIT;
    const char *at, *last = NULL;

    test_read(noted, &text);
    for (at = buf_str(&text); (at = strstr(at, head)) != NULL; at++)
        last = at;
    assert_non_null(last);
    return strtoll(last + strlen(word) + 1, NULL, 10);
}

static bool has_waiters(void *arg)
{
    const char *door = arg;
    CLEANUP_FREE char *key = mem_printf(STAGE_ROOT ":wait:lock:%s", door);

    return test_int(&stage.redis, "ZCARD", key) > 0;
}

/* ---- figures */

struct sum {
    int rounds, overlaps;
    int64_t sum_ms, max_ms;
};

static int rounds(void)
{
    return stage_number("LATER_ROUNDS", 1, ROUNDS_LONG);
}

static void count(struct sum *sum, int64_t since_ms)
{
    int64_t ms = time_of("next") - since_ms;

    /* A timeout counts from the start, and the line is written a moment later: not below 0. */
    ms = ms > 0 ? ms : 0;
    sum->rounds++;
    sum->overlaps += lines("OVERLAP") > 0;
    sum->sum_ms += ms;
    sum->max_ms = ms > sum->max_ms ? ms : sum->max_ms;
}

static void judge(const struct sum *sum, const char *what, int64_t mean_ms)
{
    print_message("figure orphans: %s: %d of %d overlapped, passed on after %.3f s (mean), %.3f s "
                  "at most\n",
                  what, sum->overlaps, sum->rounds, (double)sum->sum_ms / sum->rounds / 1000,
                  (double)sum->max_ms / 1000);
    assert_int_equal(sum->overlaps, 0);
    assert_in_range(sum->sum_ms / sum->rounds, 0, mean_ms);
}

/* ---- workers and their guards */

static pid_t guard_of(pid_t worker)
{
    CLEANUP_FREE char *line = mem_printf("pgrep -P %d -x later-guard", (int)worker);
    CLEANUP_BUF struct buf out = BUF_INIT;

    assert_int_equal(test_sh_out(line, &out), 0);
    return (pid_t)strtol(buf_str(&out), NULL, 10);
}

enum guard { LIVES, DIES, STOPS };

/* Returns when it was killed, in ms. Stop the guard first, so that it does nothing between the two
 * kills. */
static int64_t kill_worker(struct proc *worker, enum guard guard)
{
    pid_t g = guard_of(worker->pid);
    int64_t now_ms;

    if (guard != LIVES)
        (void)kill(g, SIGSTOP);
    now_ms = test_now_ms();
    proc_signal(worker, SIGKILL);
    if (guard == DIES)
        (void)kill(g, SIGKILL);
    frozen_guard = guard == STOPS ? g : 0;
    assert_int_equal(proc_wait(worker, STAGE_WAIT_MS), 128 + SIGKILL);
    return now_ms;
}

static void start_daemon(struct test_laterd *d, const char *name)
{
    stage_start_plain(&stage, d, name,
                      "concurrency: 4\nstop_timeout: 0s\ndefaults: {kill_grace: 500ms}\n"
                      "queues: {stream: {mode: stream}}\n");
}

/* Wait until the job runs and a second one is parked. Returns the id of the first, to be freed. */
static char *hold(const char *queue, const char *how, const char *timeout)
{
    char *id = NULL;
    struct reply *r =
        test_fcall(&stage.redis, "later_add", queue, "lock", "door", "timeout", timeout, how, NULL);

    assert_non_null(r);
    id = mem_strdup(reply_str(reply_at(r, 0)));
    reply_free(r);
    until_in(how, STAGE_WAIT_MS);
    free(test_add(&stage.redis, "door", "lock", "door", "next"));
    assert_true(test_until(has_waiters, (void *)(uintptr_t) "door", STAGE_WAIT_MS));
    return id;
}

/* ---- the worker dies, and another starts at once on its host */

struct death {
    const char *what, *queue, *how;
    enum guard guard;
    bool has_its_folder;
};

static void die(struct sum *sum, const struct death *d)
{
    CLEANUP_FREE char *id = NULL;
    int64_t since_ms;

    start_daemon(&stage.a, "a");
    id = hold(d->queue, d->how, "1h");
    since_ms = kill_worker(&stage.a.proc, d->guard);
    stage.a.runs = false;
    start_daemon(&stage.b, d->has_its_folder ? "a" : "b");
    until_in("next", GIVEN_UP_MS);
    count(sum, since_ms);
}

static void of_deaths(const struct death *deaths, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct sum sum = {0, 0, 0, 0};

        for (int round = 0; round < rounds(); round++) {
            begin();
            die(&sum, &deaths[i]);
            end();
        }
        judge(&sum, deaths[i].what, AT_ONCE_MS);
    }
}

static void L18_a_worker_dies(void **state)
{
    static const struct death deaths[] = {
        {"kill -9 of a worker", "door", "hold", LIVES, false},
        {"the same, a child in a session of its own", "door", "far", LIVES, false},
        {"kill -9 of a worker and its guard", "door", "hold", DIES, false},
        {"the same, a child in a session of its own", "door", "far", DIES, false},
        {"the same, started again in its state folder", "door", "far", DIES, true},
        {"the same, a stream process", "stream", "far", DIES, false},
        {"kill -9 of a worker, its guard stands still", "door", "hold", STOPS, false},
        {"kill -9 of a worker, later sem in its handler", "door", "nest", LIVES, false},
        {"kill -9 of a worker and its guard, later sem in its handler", "door", "nest", DIES,
         false},
    };

    (void)state;
    of_deaths(deaths, sizeof(deaths) / sizeof(deaths[0]));
}

/* ---- the same with `later lock` */

static void start_command(struct proc *p, const char *how)
{
    CLEANUP_FREE char *line =
        mem_printf("$LATER lock -w 60 door -- sh -c 'echo %s | exec $DIR/handlers/door'", how);

    test_sh_start(p, line);
}

static void die_as_command(struct sum *sum, const char *how, enum guard guard)
{
    int64_t since_ms;

    start_command(&holder, how);
    until_in(how, STAGE_WAIT_MS);
    since_ms = kill_worker(&holder, guard);
    start_command(&waiter, "next");
    until_in("next", GIVEN_UP_MS);
    count(sum, since_ms);
    assert_int_equal(proc_wait(&waiter, STAGE_WAIT_MS), 0);
}

static void L18_a_holder_dies(void **state)
{
    static const struct {
        const char *what, *how;
        enum guard guard;
    } deaths[] = {
        {"kill -9 of later lock", "far", LIVES},
        {"kill -9 of later lock and its guard", "far", DIES},
        {"kill -9 of later lock, its guard stands still", "far", STOPS},
        {"kill -9 of later lock around later sem", "nest", LIVES},
        {"kill -9 of later lock around later sem, and its guard", "nest", DIES},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(deaths) / sizeof(deaths[0]); i++) {
        struct sum sum = {0, 0, 0, 0};

        for (int round = 0; round < rounds(); round++) {
            begin();
            die_as_command(&sum, deaths[i].how, deaths[i].guard);
            end();
        }
        judge(&sum, deaths[i].what, AT_ONCE_MS);
    }
}

/* ---- invisible or stopped workers: others wait for the full silence */

static pid_t pid_of(const char *pattern)
{
    CLEANUP_FREE char *line = mem_printf("pgrep -f '%s'", pattern);
    CLEANUP_BUF struct buf out = BUF_INIT;

    assert_int_equal(test_sh_out(line, &out), 0);
    return (pid_t)strtol(buf_str(&out), NULL, 10);
}

static void hold_in(int i, const char *wrap, const char *how)
{
    CLEANUP_FREE char *line = mem_printf(
        "%s $LATER lock door.%d -- sh -c 'echo %s | exec $DIR/handlers/door .%d'", wrap, i, how, i);
    CLEANUP_FREE char *word = mem_printf("%s.%d", how, i);

    test_sh_start(&sights[i], line);
    until_in(word, STAGE_WAIT_MS);
}

/* Signal the worker and its guard. The worker is found by its command line. */
static void signal_in(int i, int sig)
{
    CLEANUP_FREE char *pattern = mem_printf("^[^ ]*later lock door.%d", i);
    pid_t worker = pid_of(pattern), guard = guard_of(worker);

    (void)kill(guard, SIGSTOP);
    (void)kill(worker, sig);
    if (sig == SIGKILL)
        (void)kill(guard, SIGKILL);
    else
        frozen_guard = guard;
}

static void pass_on_in(int i, const char *what, int64_t since_ms)
{
    CLEANUP_FREE char *word = mem_printf("next.%d", i), *over = mem_printf("OVERLAP next.%d", i);
    int64_t ms;

    until_in(word, 2 * GIVEN_UP_MS);
    ms = time_of(word) - since_ms;
    print_message("figure orphans: %s: %d of 1 overlapped, passed on after %.1f s\n", what,
                  lines(over), (double)ms / 1000);
    assert_int_equal(lines(over), 0);
    assert_in_range(ms, SILENCE_MS - 5000, GIVEN_UP_MS);
}

/* One worker of another user, one in another pid namespace, and one stopped with its guard. */
static void L18_out_of_sight(void **state)
{
    static const char *const what[] = {
        "kill -9 of another user's later lock and its guard",
        "kill -9 of a later lock in another pid namespace and its guard",
        "SIGSTOP of a later lock and its guard",
    };
    int64_t since_ms;

    (void)state;
    begin();
    if (geteuid() != 0 || test_sh("unshare -p -f true") != 0)
        skip();
    assert_int_equal(test_sh("chmod 755 ${LATER_REDIS_URL#unix:}/.. 2>/dev/null; "
                             "chmod 755 $(dirname ${LATER_REDIS_URL#unix:}); "
                             "chmod 777 ${LATER_REDIS_URL#unix:}"),
                     0);
    hold_in(0, "setpriv --reuid 65534 --regid 65534 --clear-groups", "brief");
    hold_in(1, "unshare -p -f sh -c '\"$@\" & wait; sleep 60' sh", "brief");
    hold_in(2, "", "hold");
    for (int i = 0; i < SIGHTS; i++)
        signal_in(i, i < 2 ? SIGKILL : SIGSTOP);
    since_ms = test_now_ms();
    for (int i = 0; i < SIGHTS; i++) {
        CLEANUP_FREE char *line = mem_printf(
            "$LATER lock -w 60 door.%d -- sh -c 'echo next | exec $DIR/handlers/door .%d'", i, i);

        test_sh_start(&sighted[i], line);
    }
    for (int i = 0; i < SIGHTS; i++)
        pass_on_in(i, what[i], since_ms);
    end();
}

/* ---- jobs and commands that laterd or later ends itself */

static void time_out(struct sum *sum, const char *queue, const char *how)
{
    CLEANUP_FREE char *id = NULL;

    start_daemon(&stage.a, "a");
    id = hold(queue, how, "1s");
    until_in("next", STAGE_WAIT_MS);
    count(sum, time_of(how) + 1000);
}

static void cancel(struct sum *sum, const char *queue, const char *how)
{
    CLEANUP_FREE char *id = NULL;
    int64_t since_ms;

    start_daemon(&stage.a, "a");
    id = hold(queue, how, "1h");
    since_ms = test_now_ms();
    reply_free(test_fcall(&stage.redis, "later_cancel", id, NULL));
    until_in("next", STAGE_WAIT_MS);
    count(sum, since_ms);
}

static void stop(struct sum *sum, const char *queue, const char *how)
{
    CLEANUP_FREE char *id = NULL;
    int64_t since_ms;

    start_daemon(&stage.a, "a");
    id = hold(queue, how, "1h");
    since_ms = test_now_ms();
    test_laterd_kill(&stage.a, SIGTERM);
    start_daemon(&stage.b, "b");
    until_in("next", STAGE_WAIT_MS);
    count(sum, since_ms);
}

/* A command that exceeds its --ttl. */
static void overrun(struct sum *sum, const char *queue, const char *how)
{
    CLEANUP_FREE char *line =
        mem_printf("$LATER lock --ttl 1s door -- sh -c 'echo %s | exec $DIR/handlers/door'", how);

    (void)queue;
    test_sh_start(&holder, line);
    until_in(how, STAGE_WAIT_MS);
    start_command(&waiter, "next");
    until_in("next", STAGE_WAIT_MS);
    count(sum, time_of(how) + 1000);
    assert_int_equal(proc_wait(&holder, STAGE_WAIT_MS), 124);
}

static void H31_ended_with_all_it_started(void **state)
{
    static const struct {
        const char *what, *queue, *how;
        void (*end)(struct sum *sum, const char *queue, const char *how);
    } ends[] = {
        {"a timeout", "door", "far", time_out},
        {"a timeout of a stream's job", "stream", "far", time_out},
        {"a timeout, later sem in the handler", "door", "nest", time_out},
        {"a cancel", "door", "far", cancel},
        {"a cancel, later sem in the handler", "door", "nest", cancel},
        {"a stop", "door", "far", stop},
        {"--ttl of later lock", NULL, "far", overrun},
        {"--ttl of later lock around later sem", NULL, "nest", overrun},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        struct sum sum = {0, 0, 0, 0};

        for (int round = 0; round < rounds(); round++) {
            begin();
            ends[i].end(&sum, ends[i].queue, ends[i].how);
            end();
        }
        judge(&sum, ends[i].what, 2 * AT_ONCE_MS);
    }
}

int main(void)
{
#define T(f) cmocka_unit_test_teardown(f, teardown)
    const struct CMUnitTest tests[] = {
        T(L18_a_worker_dies),
        T(L18_a_holder_dies),
        T(L18_out_of_sight),
        T(H31_ended_with_all_it_started),
    };

    cmocka_set_test_filter(getenv("LATER_ONLY")); /* a name, with * and ? */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
