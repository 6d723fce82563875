/*
 * Torture: in run N the Nth call of one kind of function fails, once or from then on, for N = 1, 2,
 * … until a run meets no failure (the method of SQLite's malloc tests). For every N one of these
 * must hold: nothing happens; a job is put back; laterd ends with a documented status and a new one
 * finishes the work. There must be no crash by a signal, no hang, no lost job, no attempt started
 * twice and no handler left behind.
 *
 * LATER_FULL=1 tries every N. Without it, every N up to 50 for allocations and up to 12 for other
 * kinds, then in steps of a twelfth. If calls fail from N on, in steps of a half.
 */
#include <stddef.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/mem.h"
#include "redis/client.h"

#include "../support/env.h"
#include "../support/laterd.h"
#include "../support/torture.h"

#define ROOT "later:{default}"
#define LONG_MS 60000
#define ALL_N 50        /* the short form tries each N up to this for allocations, */
#define MANY_N 12       /* and up to this for other kinds */
#define SETTLE_MS 60000 /* laterd must recover from one failure within this time */
#define FOR_EVER_MS 700 /* lasting failures are watched for this time */
#define JOBS 7
#define DEAD 1 /* how many of them end dead */

static struct test_redis redis;
static struct client *client;
static struct test_laterd d;
static struct test_torture *torture;
static char dir[64], ledger[96], order[96];
static char *env[3];

/* What the runs of one loop over N met. */
struct line_results {
    const char *name;
    int64_t runs, untouched, exits, restarts, in_library, worst_ms;
};

static int64_t all_runs, all_exits, all_in_library; /* sums over all loops that passed */

/* ---- setup */

static const char *const conf = "concurrency: 4\n"
                                "redis_timeout: 3s\n"
                                "stop_timeout: 2s\n"
                                "defaults:\n"
                                "  keep: 1h\n"
                                "  kill_grace: 1s\n"
                                "  backoff: { first: 1ms, jitter: 0% }";

static void make_handler(void)
{
    test_handler(dir, "work",
                 "read -r kind\n"
                 "echo \"$LATER_ID $LATER_ATTEMPT $LATER_FENCE $$\" >> %s\n"
                 "case $kind$LATER_ATTEMPT in\n"
                 "retry1) exit 75 ;;\n"
                 "slow1) exec sleep 20 ;;\n"
                 "dead*) exit 65 ;;\n"
                 "talk*) echo some output; echo some error >&2 ;;\n"
                 "control1) printf 'progress half\\nlog a line\\nretry-in 1ms\\nresult no\\n' >&3\n"
                 "    exit 1 ;;\n"
                 "big*) exec cat > /dev/null ;;\n"
                 "esac",
                 ledger);
}

static int set_up(void **state)
{
    struct err err = ERR_INIT;
    struct url url;

    (void)state;
    test_redis_start(&redis, NULL);
    test_redis_load(&redis);
    test_folder_make(dir);
    (void)snprintf(ledger, sizeof(ledger), "%s/ledger", dir);
    (void)snprintf(order, sizeof(order), "%s/torture", dir);
    torture = test_torture_make(order);
    env[0] = test_torture_preload();
    env[1] = test_torture_variable(order);
    make_handler();
    test_laterd_conf(&d, dir, "a", redis.url, conf);
    if (url_parse(redis.url, &url, &err) < 0)
        return -1;
    client = client_open(&url, LONG_MS, &err);
    return client != NULL ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    printf(
        "figure L11: laterd: %lld runs, %lld ended with a status (%lld by an abort of hiredis) and "
        "were taken over, 0 jobs lost, 0 attempts started twice\n",
        (long long)all_runs, (long long)all_exits, (long long)all_in_library);
    if (d.runs)
        proc_done(&d.proc);
    client_close(client);
    test_torture_free(torture);
    free(env[0]);
    free(env[1]);
    test_redis_stop(&redis);
    test_folder_remove(dir);
    return 0;
}

static void say(const char *what)
{
    CLEANUP_BUF struct buf log = BUF_INIT;

    test_read(d.log, &log);
    /* Not by cmocka, which would cut it. */
    (void)fprintf(stderr, "%s\n%s call %lld%s of %lld, first failed at %s+0x%llx; the log:\n%s\n",
                  what, test_torture_name((enum test_torture_kind)torture->kind),
                  (long long)torture->nth, torture->for_ever ? " for ever" : "",
                  (long long)torture->calls, torture->module, (unsigned long long)torture->offset,
                  buf_str(&log));
}

#define must(cond)                                                                                 \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            say(#cond);                                                                            \
            assert_true(cond);                                                                     \
        }                                                                                          \
    } while (0)

static struct reply *call(int argc, const char *const *argv)
{
    struct err err = ERR_INIT;
    struct reply *r = client_call(client, argc, argv, NULL, &err);

    if (r == NULL)
        fail_msg("%s: %s", argv[0], err.text);
    return r;
}

#define CALL(...)                                                                                  \
    call((int)(sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *)),                            \
         (const char *[]){__VA_ARGS__})

/* ---- jobs and their ends */

static void add(const char *payload, const char *option, const char *value)
{
    reply_free(option != NULL
                   ? CALL("FCALL", "later_add", "1", ROOT, "work", option, value, payload)
                   : CALL("FCALL", "later_add", "1", ROOT, "work", payload));
}

static void add_jobs(void)
{
    static char big[20000] = "big\n";

    memset(big + 4, 'x', sizeof(big) - 5);
    (void)unlink(ledger);
    reply_free(CALL("FLUSHALL"));
    add("talk\n", NULL, NULL);
    add("retry\n", "key", "user:1");
    add("control\n", NULL, NULL);
    add("later\n", "in", "20ms");
    add("slow\n", "timeout", "40ms");
    add("dead\n", NULL, NULL);
    add(big, NULL, NULL);
}

struct counts {
    int64_t done, dead, running, workers;
};

static struct counts count_all(void)
{
    struct reply *r = CALL("EVAL",
                           "return {redis.call('zcard', KEYS[1] .. ':done:work'), "
                           "redis.call('zcard', KEYS[1] .. ':dead:work'), "
                           "redis.call('zcard', KEYS[1] .. ':running'), "
                           "redis.call('hlen', KEYS[1] .. ':workers')}",
                           "1", ROOT);
    struct counts n = {reply_int(reply_at(r, 0)), reply_int(reply_at(r, 1)),
                       reply_int(reply_at(r, 2)), reply_int(reply_at(r, 3))};

    reply_free(r);
    return n;
}

static bool all_ended(void *arg)
{
    struct counts n = count_all();

    (void)arg;
    return n.done == JOBS - DEAD && n.dead == DEAD;
}

static bool ended_or_exited(void *arg)
{
    return proc_wait(&d.proc, 0) >= 0 || all_ended(arg);
}

static bool is_handler_gone(void *arg)
{
    CLEANUP_FREE char *path = mem_printf("/proc/%d/environ", *(const int *)arg);
    CLEANUP_BUF struct buf all = BUF_INIT;

    test_read(path, &all);
    return all.len == 0 || memmem(all.data, all.len, "LATER_FENCE=", 12) == NULL;
}

/* No attempt or fence occurs twice, no job is missing, and no handler still runs. */
static void check_ledger(void)
{
    struct line {
        char id[16];
        int attempt, pid;
        long long fence;
    } seen[256];
    CLEANUP_BUF struct buf all = BUF_INIT;
    char *save = NULL;
    size_t n = 0, ids = 0;

    test_read(ledger, &all);
    must(all.len > 0);
    for (char *l = strtok_r(all.data, "\n", &save); l != NULL; l = strtok_r(NULL, "\n", &save)) {
        struct line *at = &seen[n];
        bool is_new = true;

        must(n < 256);
        must(sscanf(l, "%15s %d %lld %d", at->id, &at->attempt, &at->fence, &at->pid) == 4);
        for (size_t i = 0; i < n; i++) {
            bool is_same = strcmp(seen[i].id, at->id) == 0;

            must(!(is_same && seen[i].attempt == at->attempt));
            must(seen[i].fence != at->fence);
            is_new = is_new && !is_same;
        }
        must(test_until(is_handler_gone, &at->pid, LONG_MS));
        ids += is_new;
        n++;
    }
    must(ids == JOBS);
}

/* ---- one run */

static void launch(char *const *with_env)
{
    CLEANUP_FREE char *program = mem_printf("%s/laterd", test_build_dir());
    char *argv[] = {program, (char *)(uintptr_t) "--config", d.conf, NULL};

    (void)unlink(d.log);
    proc_start(&d.proc, argv, with_env, d.log);
    d.runs = true;
}

/* Its exit status, after a TERM if it still runs. */
static int end(void)
{
    int status = proc_wait(&d.proc, 0);

    if (status < 0) {
        test_laterd_kill(&d, SIGTERM);
        status = proc_wait(&d.proc, LONG_MS);
        must(status >= 0);
    }
    return status;
}

/* Exit statuses of laterd in doc/operations.md. */
static bool is_documented(int status)
{
    return status == 0 || status == 71 || status == 78;
}

static bool is_untouched(const struct counts *n)
{
    return n->done + n->dead + n->running + n->workers == 0 && test_lines(ledger, NULL) == 0;
}

/* All jobs have ended, and the only worker is the one that registered last. */
static bool is_alone(void *arg)
{
    struct counts n = count_all();

    return all_ended(arg) && n.running == 0 && n.workers == 1 &&
           proc_has_logged(&d.proc, "event=registered");
}

/* Let a daemon without torture finish everything that is left. */
static void finish(void)
{
    proc_done(&d.proc);
    launch(NULL);
    must(test_until(is_alone, NULL, LONG_MS));
    must(end() == 0);
}

/* False if N was beyond the last call, so that nothing failed. */
static bool run(enum test_torture_kind kind, int64_t nth, bool for_ever, struct line_results *t)
{
    struct mono from = mono_now();
    struct counts n;
    int64_t took;
    int status;

    add_jobs();
    test_torture_set(torture, kind, nth, for_ever);
    launch(env);
    if (!test_until(ended_or_exited, NULL, for_ever ? FOR_EVER_MS : SETTLE_MS))
        must(for_ever);
    status = end();
    must(is_documented(status) || test_torture_in_hiredis(torture, status));
    n = count_all();
    t->runs++;
    t->exits += status != 0;
    t->in_library += test_torture_in_hiredis(torture, status);
    if (test_torture_in_hiredis(torture, status))
        print_message("torture MALLOC call %lld: signal %d at %s+0x%llx\n", (long long)nth,
                      status - 128, torture->module, (unsigned long long)torture->offset);
    if (status == 0 && all_ended(NULL) && n.running == 0 && n.workers == 0) {
        t->untouched++;
    } else if (nth > 1 && status != 0 && is_untouched(&n)) {
        /* It ended before it touched anything: a new daemon would do the same as the first one. */
        proc_done(&d.proc);
        return true;
    } else {
        t->restarts++;
        finish();
    }
    n = count_all();
    must(n.running == 0 && n.workers == 0);
    check_ledger();
    proc_done(&d.proc);
    d.runs = false;
    took = test_ms_since(from);
    t->worst_ms = took > t->worst_ms ? took : t->worst_ms;
    return torture->failed > 0;
}

/* Runs with lasting failures take long and differ little, so they use fewer N. */
static int64_t next(enum test_torture_kind kind, int64_t nth, bool for_ever)
{
    if (test_is_long())
        return nth + 1;
    if (for_ever)
        return nth + 1 + nth / 2;
    return nth < (kind == TORTURE_MALLOC ? ALL_N : MANY_N) ? nth + 1 : nth + nth / 12;
}

static void loop(enum test_torture_kind kind, bool for_ever)
{
    struct line_results t = {.name = test_torture_name(kind)};
    struct mono from = mono_now();
    /* LATER_TORTURE_FROM starts at one N, to examine it again. */
    int64_t nth = getenv("LATER_TORTURE_FROM") != NULL ? atoll(getenv("LATER_TORTURE_FROM")) : 1;

    /* A failed test before this one may have left its daemon. */
    if (d.runs)
        proc_done(&d.proc);
    while (run(kind, nth, for_ever, &t))
        nth = next(kind, nth, for_ever);
    /* If no call ever failed, the loop has shown nothing. */
    assert_true(t.runs > 1);
    all_runs += t.runs;
    all_exits += t.exits;
    all_in_library += t.in_library;
    printf("torture %s %s: %lld runs up to call %lld, nothing seen in %lld, ended with a status in "
           "%lld (%lld of them inside hiredis), finished by a fresh one in %lld; longest %lld ms, "
           "all %lld s\n",
           t.name, for_ever ? "for ever" : "once", (long long)t.runs, (long long)nth,
           (long long)t.untouched, (long long)t.exits, (long long)t.in_library,
           (long long)t.restarts, (long long)t.worst_ms,
           (long long)(mono_until_us(from, mono_now()) / 1000000));
    (void)fflush(stdout);
}

#define TORTURE(name, kind)                                                                        \
    static void name(void **state)                                                                 \
    {                                                                                              \
        (void)state;                                                                               \
        loop(TORTURE_##kind, false);                                                               \
        loop(TORTURE_##kind, true);                                                                \
    }

TORTURE(L11_allocation_fails, MALLOC)
TORTURE(L11_write_fails, WRITE)
TORTURE(L11_read_fails, READ)
TORTURE(L11_pipe_fails, PIPE)
TORTURE(L11_spawn_fails, SPAWN)
TORTURE(L12_thread_fails, THREAD)
TORTURE(L11_open_fails, OPEN)
TORTURE(L11_socket_fails, SOCKET)
TORTURE(L11_connect_fails, CONNECT)
TORTURE(L11_epoll_fails, EPOLL)
TORTURE(L11_event_descriptor_fails, EVENT)
TORTURE(L11_timer_descriptor_fails, TIMER)
TORTURE(L11_pidfd_fails, PIDFD)
TORTURE(L11_mapping_fails, MAP)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(L11_timer_descriptor_fails),
        cmocka_unit_test(L11_mapping_fails),
        cmocka_unit_test(L11_event_descriptor_fails),
        cmocka_unit_test(L12_thread_fails),
        cmocka_unit_test(L11_pidfd_fails),
        cmocka_unit_test(L11_spawn_fails),
        cmocka_unit_test(L11_pipe_fails),
        cmocka_unit_test(L11_socket_fails),
        cmocka_unit_test(L11_connect_fails),
        cmocka_unit_test(L11_epoll_fails),
        cmocka_unit_test(L11_open_fails),
        cmocka_unit_test(L11_read_fails),
        cmocka_unit_test(L11_write_fails),
        cmocka_unit_test(L11_allocation_fails),
    };

    cmocka_set_test_filter(getenv("LATER_ONLY"));
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
