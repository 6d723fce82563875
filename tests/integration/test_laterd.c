/*
 * What laterd is for, with the real programs: laterd on a real redis-server, with real handlers.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "../support/env.h"
#include "../support/shell.h"
#include "base/cleanup.h"
#include "base/mem.h"
#include "fixture.h"
#include "redis/client.h"
#include "run/process/pidstat.h"

#define LONG_MS 60000

/* Add a job; the caller frees the id. */
static char *add(const char *queue, const char *name, const char *value, const char *payload)
{
    char *id = test_add(&redis, queue, name, value, payload);

    assert_non_null(id);
    return id;
}

static void add_free(const char *queue, const char *name, const char *value, const char *payload)
{
    free(add(queue, name, value, payload));
}

static bool state_is(const char *id, const char *state)
{
    return test_state_is(&redis, id, state);
}

static bool until_state(const char *id, const char *state)
{
    return test_until_state(&redis, id, state, LONG_MS);
}

static int compare_lines(const void *x, const void *y)
{
    return strcmp(*(char *const *)x, *(char *const *)y);
}

/* The number of different first words of the lines in out. */
static int distinct_ids(void)
{
    CLEANUP_BUF struct buf all = BUF_INIT;
    char *lines[4096], *save = NULL;
    size_t n = 0;
    int distinct = 0;

    test_read(out, &all);
    for (char *l = strtok_r(all.data, "\n", &save); l != NULL && n < 4096;
         l = strtok_r(NULL, "\n", &save)) {
        l[strcspn(l, " ")] = '\0';
        lines[n++] = l;
    }
    qsort(lines, n, sizeof(*lines), compare_lines);
    for (size_t i = 0; i < n; i++)
        distinct += i == 0 || strcmp(lines[i], lines[i - 1]) != 0;
    return distinct;
}

static void add_spread(int n, int over_ms)
{
    int64_t now = test_now_ms();

    for (int i = 0; i < n; i++) {
        char at[24], payload[24];

        (void)snprintf(at, sizeof(at), "%lld",
                       (long long)(now + 200 + (int64_t)i * 7919 % over_ms));
        (void)snprintf(payload, sizeof(payload), "job %d", i);
        add_free("work", "at", at, payload);
    }
}

/* ---- each once, on time */

static void test_each_job_once_and_none_early(void **state)
{
    CLEANUP_BUF struct buf all = BUF_INIT;
    char *save = NULL;

    (void)state;
    /* A job that runs early would show a due time after the present time of this host. */
    test_handler(dir, "work",
                 "echo \"$LATER_ID $LATER_LATE_MS $(($(date +%%s%%3N) - LATER_DUE_MS))\" >> %s",
                 out);
    start_a("concurrency: 8");
    add_spread(200, 1000);
    assert_true(test_until_lines(out, NULL, 200, LONG_MS));
    assert_int_equal(distinct_ids(), 200);
    test_read(out, &all);
    for (char *l = strtok_r(all.data, "\n", &save); l != NULL; l = strtok_r(NULL, "\n", &save)) {
        int late = -1, since = -1;

        assert_int_equal(sscanf(l, "%*s %d %d", &late, &since), 2);
        assert_true(late >= 0);
        assert_true(since >= 0);
    }
    /* The last line is written before the last result is. */
    assert_true(test_until(no_job_is_left, NULL, LONG_MS));
    assert_int_equal(test_lines(out, NULL), 200);
    assert_int_equal(test_int(&redis, "HLEN", ROOT ":tries"), 0);
}

static void test_two_daemons_share_the_work(void **state)
{
    (void)state;
    test_handler(dir, "work", "echo \"$LATER_ID\" >> %s; sleep 0.02", out);
    start_a("concurrency: 2");
    start(&b, "b", "concurrency: 2");
    add_spread(200, 1000);
    assert_true(test_until_lines(out, NULL, 200, LONG_MS));
    assert_int_equal(distinct_ids(), 200);
    assert_int_equal(test_laterd_stop(&a) + test_laterd_stop(&b), 0);
    assert_true(test_lines(a.log, "outcome=done") > 0);
    assert_true(test_lines(b.log, "outcome=done") > 0);
    assert_int_equal(test_lines(a.log, "outcome=done") + test_lines(b.log, "outcome=done"), 200);
}

static void test_equal_due_times_keep_the_order_of_insertion(void **state)
{
    CLEANUP_BUF struct buf all = BUF_INIT;
    struct reply *r;
    char want[512] = "";

    (void)state;
    test_handler(dir, "work", "echo \"$(cat)\" >> %s", out);
    r = test_fcall(&redis, "later_add_many", "work", "in", "1s", "a", "b", "c", "d", "e", "f", "g",
                   "h", NULL);
    assert_non_null(r);
    reply_free(r);
    start_a("concurrency: 1");
    assert_true(test_until_lines(out, NULL, 8, LONG_MS));
    test_read(out, &all);
    for (char c = 'a'; c <= 'h'; c++)
        (void)snprintf(want + strlen(want), sizeof(want) - strlen(want), "%c\n", c);
    assert_string_equal(buf_str(&all), want);
}

static void test_urgent_jobs_go_first(void **state)
{
    CLEANUP_BUF struct buf all = BUF_INIT;
    char *last_urgent, *first_patient;

    (void)state;
    test_handler(dir, "work", "echo $LATER_PRIORITY >> %s", out);
    for (int i = 0; i < 60; i++) {
        add_free("work", "priority", "9", "x");
        add_free("work", "priority", "0", "x");
    }
    start_a("concurrency: 1");
    assert_true(test_until_lines(out, NULL, 120, LONG_MS));
    test_read(out, &all);
    first_patient = strchr(all.data, '9');
    last_urgent = strrchr(all.data, '0');
    assert_non_null(first_patient);
    assert_true(last_urgent < first_patient);
}

/* ---- payloads */

static void test_raw_members_run_once(void **state)
{
    (void)state;
    test_handler(dir, "raw", "echo \"$LATER_ID $(cat)\" >> %s", out);
    start_a("");
    for (int i = 0; i < 100; i++) {
        char score[24], member[24];

        (void)snprintf(score, sizeof(score), "%lld", (long long)test_now_ms());
        (void)snprintf(member, sizeof(member), "member %d", i);
        reply_free(test_redis_call(&redis, "ZADD", ROOT ":due:raw", score, member, NULL));
    }
    assert_true(test_until_lines(out, NULL, 100, LONG_MS));
    assert_int_equal(distinct_ids(), 100);
    assert_int_equal(test_lines(out, "member 99"), 1);
}

/* Looks find what no message told of, also when they take more than one turn. */
static void test_nothing_is_overlooked_among_many_queues(void **state)
{
    static const char *const raw[] = {ROOT ":due:q0", ROOT ":due:q90", ROOT ":due:q91",
                                      ROOT ":due:q1999"};
    CLEANUP_BUF struct buf conf = BUF_INIT;
    char now[24], soon[24];

    (void)state;
    buf_puts(&conf, "queues:\n");
    for (int i = 0; i < 2000; i++)
        buf_printf(&conf,
                   "  q%d: { handler: [/bin/sh, -c, \"echo $(cat) >> $OUT\"], env_pass: [OUT] }\n",
                   i);
    (void)setenv("OUT", out, 1);
    start_a(buf_str(&conf));
    add_free("q150", NULL, NULL, "told");
    assert_true(test_until_lines(out, "told", 1, LONG_MS));
    /* No message is sent for any of these, except for the last, before it is due. */
    (void)snprintf(now, sizeof(now), "%lld", (long long)test_now_ms());
    (void)snprintf(soon, sizeof(soon), "%lld", (long long)test_now_ms() + 3000);
    for (size_t i = 0; i < sizeof(raw) / sizeof(raw[0]); i++)
        reply_free(test_redis_call(&redis, "ZADD", raw[i], now, "raw", NULL));
    reply_free(
        test_redis_call(&redis, "HSET", ROOT ":jobs", "j00000000001", "-q91\nunheard", NULL));
    reply_free(test_redis_call(&redis, "ZADD", ROOT ":q:q91:5", soon, "j00000000001", NULL));
    reply_free(test_redis_call(&redis, "ZADD", ROOT ":heads", soon, "q91", NULL));
    reply_free(test_redis_call(&redis, "HSET", ROOT ":jobs", "j00000000002", "-q93\nlost", NULL));
    reply_free(test_redis_call(&redis, "ZADD", ROOT ":q:q93:5", now, "j00000000002", NULL));
    reply_free(test_fcall(&redis, "later_pause", "q92", "for", "1s", NULL));
    add_free("q92", NULL, NULL, "paused");
    assert_true(test_until_lines(out, "raw", 4, LONG_MS));
    assert_true(test_until_lines(out, "lost", 1, LONG_MS));
    assert_true(test_until_lines(out, "paused", 1, LONG_MS));
    assert_true(test_until_lines(out, "unheard", 1, LONG_MS));
    assert_true(test_now_ms() >= atoll(soon));
    (void)unsetenv("OUT");
}

/* Add n bytes as a payload (raw: as a raw member), let the handler write them down, and compare. */
static void round_trip(const char *payload, size_t n, bool raw)
{
    CLEANUP_FREE char *got = mem_printf("%s/got", dir);
    CLEANUP_BUF struct buf all = BUF_INIT;
    struct err err = ERR_INIT;
    struct url url;
    char score[24];
    const char *fcall[] = {"FCALL", "later_add", "1", ROOT, "bytes", payload};
    const char *zadd[] = {"ZADD", ROOT ":due:bytes", score, payload};
    size_t fcall_len[] = {5, 9, 1, strlen(ROOT), 5, n};
    size_t zadd_len[] = {4, strlen(ROOT ":due:bytes"), 0, n};
    struct client *c;
    struct reply *r;

    (void)unlink(got);
    zadd_len[2] = (size_t)snprintf(score, sizeof(score), "%lld", (long long)test_now_ms());
    assert_int_equal(url_parse(redis.url, &url, &err), 0);
    c = client_open(&url, TEST_CALL_MS, &err);
    assert_non_null(c);
    r = raw ? client_call(c, 4, zadd, zadd_len, &err) : client_call(c, 6, fcall, fcall_len, &err);
    assert_non_null(r);
    reply_free(r);
    client_close(c);
    assert_true(test_until_lines(out, "done", 1, LONG_MS));
    test_read(got, &all);
    assert_int_equal(all.len, n);
    assert_memory_equal(all.data, payload, n);
    (void)unlink(out);
}

static void test_payloads_arrive_byte_exact(void **state)
{
    static char nuls[1000];
    size_t big_n = 1024 * 1024;
    CLEANUP_FREE char *big = mem_new(big_n);

    (void)state;
    for (size_t at = 0; at < big_n; at += 256)
        assert_int_equal(getrandom(big + at, 256, 0), 256);
    test_handler(dir, "bytes", "cat > %s/got.part && mv %s/got.part %s/got && echo done >> %s", dir,
                 dir, dir, out);
    start_a("");
    round_trip("", 0, false);
    round_trip(nuls, sizeof(nuls), false);
    round_trip(big, big_n, false);
    round_trip(big, 16384, false);
    round_trip(big, 16385, false);
    round_trip(nuls, sizeof(nuls), true);
    round_trip(big, big_n, true);
}

static void test_payloads_over_the_limit_are_refused_or_buried(void **state)
{
    CLEANUP_FREE char *big = mem_new(5001);
    char score[24];

    (void)state;
    memset(big, 'x', 5000);
    test_handler(dir, "small", "echo started >> %s", out);
    start_a("defaults: { max_payload: 4KiB }");
    assert_null(test_fcall(&redis, "later_add", "small", big, NULL));
    (void)snprintf(score, sizeof(score), "%lld", (long long)test_now_ms());
    reply_free(test_redis_call(&redis, "ZADD", ROOT ":due:small", score, big, NULL));
    reply_free(test_redis_call(&redis, "ZADD", ROOT ":due:small", score, "fits", NULL));
    assert_true(test_until_lines(out, "started", 1, LONG_MS));
    assert_int_equal(test_int(&redis, "ZCARD", ROOT ":dead:small"), 1);
    assert_int_equal(test_lines(out, "started"), 1);
}

/* ---- failure */

static void test_retries_until_it_succeeds(void **state)
{
    CLEANUP_FREE char *id = NULL;
    CLEANUP_BUF struct buf all = BUF_INIT;

    (void)state;
    test_handler(dir, "flaky",
                 "echo \"$LATER_ATTEMPT $(date +%%s%%3N)\" >> %s; [ $LATER_ATTEMPT = 3 ]", out);
    start_a("defaults: { backoff: { first: 300ms, factor: 2, jitter: 10% } }");
    id = add("flaky", "keep", "1m", "x");
    assert_true(until_state(id, "done"));
    test_read(out, &all);
    {
        long long t1, t2, t3;

        assert_int_equal(sscanf(all.data, "1 %lld\n2 %lld\n3 %lld", &t1, &t2, &t3), 3);
        assert_true(t2 - t1 >= 270);
        assert_true(t3 - t2 >= 540);
    }
}

static void test_exit_65_is_dead_and_retry_runs_it_again(void **state)
{
    CLEANUP_FREE char *id = NULL;
    struct reply *r;

    (void)state;
    test_handler(dir, "deadly", "echo $LATER_ATTEMPT >> %s; exit 65", out);
    start_a("");
    id = add("deadly", NULL, NULL, "x");
    assert_true(until_state(id, "dead"));
    r = test_fcall(&redis, "later_result", id, NULL);
    assert_true(reply_is(reply_at(r, 1), "65"));
    reply_free(r);
    reply_free(test_fcall(&redis, "later_retry", id, NULL));
    assert_true(test_until_lines(out, NULL, 2, LONG_MS));
    assert_true(until_state(id, "dead"));
    r = test_fcall(&redis, "later_show", id, NULL);
    assert_true(reply_is(reply_named(r, "starts"), "2"));
    assert_true(reply_is(reply_named(r, "attempt"), "1"));
    reply_free(r);
}

static void test_attempts_run_out(void **state)
{
    CLEANUP_FREE char *id = NULL;

    (void)state;
    test_handler(dir, "never", "echo x >> %s; exit 3", out);
    start_a("defaults: { attempts: 2, backoff: { first: 10ms } }");
    id = add("never", NULL, NULL, "x");
    assert_true(until_state(id, "dead"));
    assert_int_equal(test_lines(out, NULL), 2);
}

static void test_a_timeout_ends_the_whole_group(void **state)
{
    CLEANUP_FREE char *id = NULL;
    char command[64];

    (void)state;
    /* Both ignore TERM. The grandchild is found by its unusual argument. */
    (void)snprintf(command, sizeof(command), "sleep 98%d", (int)getpid());
    test_handler(dir, "hang", "trap '' TERM; echo begin >> %s; %s & wait; %s", out, command,
                 command);
    start_a("defaults: { timeout: 300ms, kill_grace: 300ms, attempts: 1 }");
    id = add("hang", NULL, NULL, "x");
    assert_true(until_state(id, "dead"));
    assert_true(proc_until_none(command, LONG_MS));
    assert_int_equal(test_lines(a.log, "timed out"), 1);
}

static void test_a_handler_that_cannot_start_fails_by_name(void **state)
{
    CLEANUP_FREE char *id = NULL;
    CLEANUP_FREE char *path = mem_printf("%s/handlers/gone", dir);
    struct reply *r;

    (void)state;
    test_handler(dir, "gone", "exit 0");
    start_a("defaults: { attempts: 1 }\nqueues: { kept: { handler: [/bin/true] } }");
    reply_free(test_fcall(&redis, "later_pause", "gone", NULL));
    id = add("gone", NULL, NULL, "x");
    /* The interpreter is missing, not the file: only exec notices. */
    test_handler(dir, "gone", "exit 0");
    {
        CLEANUP_BUF struct buf script = BUF_INIT;
        FILE *f = fopen(path, "w");

        assert_non_null(f);
        (void)fputs("#!/nonexistent/interpreter\n", f);
        (void)fclose(f);
    }
    assert_true(test_laterd_says(&a, "event=handler-refused", LONG_MS));
    r = test_fcall(&redis, "later_resume", "gone", NULL);
    reply_free(r);
    add_free("kept", NULL, NULL, "x");
    assert_true(test_laterd_says(&a, "queue=kept", LONG_MS));
    assert_true(state_is(id, "waiting"));
}

/* ---- stopping, pausing, reloading */

static void test_sigterm_drains(void **state)
{
    int ended;

    (void)state;
    test_handler(dir, "slow", "echo begun >> %s; sleep 1; echo end $LATER_ATTEMPT >> %s", out, out);
    start_a("concurrency: 8");
    for (int i = 0; i < 40; i++)
        add_free("slow", NULL, NULL, "x");
    /* Jobs that are only claimed go back; running jobs may finish. */
    assert_true(test_until_lines(out, "begun", 8, LONG_MS));
    test_laterd_kill(&a, SIGTERM);
    assert_int_equal(test_laterd_wait(&a, 15000), 0);
    ended = test_lines(out, "end 1");
    assert_in_range(ended, 8, 39);
    assert_int_equal(ended, test_lines(out, "begun"));
    assert_int_equal(test_int(&redis, "ZCARD", ROOT ":q:slow:5"), 40 - ended);
    assert_int_equal(test_int(&redis, "ZCARD", ROOT ":running"), 0);
    assert_int_equal(test_int(&redis, "HLEN", ROOT ":workers"), 0);
}

static void test_a_stop_that_takes_too_long_puts_jobs_back(void **state)
{
    CLEANUP_FREE char *id = NULL;
    struct reply *r;

    (void)state;
    test_handler(dir, "slow", "trap '' TERM; echo begun >> %s; sleep 30", out);
    start_a("stop_timeout: 200ms\ndefaults: { kill_grace: 200ms }");
    id = add("slow", NULL, NULL, "x");
    assert_true(test_until_lines(out, "begun", 1, LONG_MS));
    test_laterd_kill(&a, SIGTERM);
    assert_int_equal(test_laterd_wait(&a, 10000), 0);
    r = test_fcall(&redis, "later_show", id, NULL);
    assert_true(reply_is(reply_named(r, "state"), "waiting"));
    assert_true(reply_is(reply_named(r, "attempt"), "0"));
    assert_true(reply_is(reply_named(r, "starts"), "1"));
    reply_free(r);
}

/* It returns when the worker holds nothing, and claims nothing more. */
static void test_quiet_waits(void **state)
{
    CLEANUP_FREE char *wait = NULL, *late = NULL;

    (void)state;
    test_handler(dir, "mail", "while [ ! -e %s/go ]; do sleep 0.05; done", dir);
    start_a("concurrency: 1\nlog_level: debug\n");
    free(test_add(&redis, "mail", NULL, NULL, "x"));
    free(test_add(&redis, "mail", NULL, NULL, "y"));
    assert_true(test_until_lines(a.log, "event=start job=", 1, LONG_MS));
    wait = mem_printf("%s/later --redis %s quiet --all --wait", test_build_dir(), redis.url);
    late = mem_printf("%s --timeout 100ms --json", wait);
    test_says(late, 75, "\"held\":1");
    test_handler(dir, "../go", "true");
    test_says(wait, 0, "1 worker told to start no more jobs, and no job is running there");
    assert_int_equal(test_lines(a.log, "outcome=done"), 1);
    test_says(wait, 0, "no job is running there"); /* it is quiet already */
    free(late);
    late = mem_printf("%s/later --redis %s quiet --all --off --wait", test_build_dir(), redis.url);
    test_says(late, 64, "does not go with --off");
}

/* However much there is to do: what it holds once it has returned is nothing. */
static void test_quiet_waits_for_a_busy_worker(void **state)
{
    CLEANUP_FREE char *line = NULL;

    (void)state;
    test_handler(dir, "mail", "true");
    start_a("concurrency: 4\n");
    line = mem_printf("L='%s/later --redis %s'; seq 3000 | $L add mail --from - && "
                      "for i in 1 2 3 4 5; do $L quiet --all --wait >/dev/null || exit 9; "
                      "$L workers --json | grep -q '\"held\":0' || exit 8; sleep 0.2; "
                      "$L workers --json | grep -q '\"held\":0' || exit 7; "
                      "$L quiet --all --off >/dev/null; done",
                      test_build_dir(), redis.url);
    test_says(line, 0, "3000 jobs added");
}

static void test_quiet_claims_no_more(void **state)
{
    (void)state;
    test_handler(dir, "work", "echo x >> %s", out);
    start_a("");
    add_free("work", NULL, NULL, "x");
    assert_true(test_until_lines(out, NULL, 1, LONG_MS));
    reply_free(test_fcall(&redis, "later_v1_quiet", "*", "on", NULL));
    assert_true(test_laterd_says(&a, "event=quiet by=remote", LONG_MS));
    add_free("work", NULL, NULL, "x");
    reply_free(test_fcall(&redis, "later_v1_quiet", "*", "off", NULL));
    assert_true(test_until_lines(out, NULL, 2, LONG_MS));
    test_laterd_kill(&a, SIGUSR1);
    assert_true(test_laterd_says(&a, "event=quiet by=signal", LONG_MS));
    add_free("work", NULL, NULL, "x");
    /* A second daemon takes the job; the quiet one did not. */
    start(&b, "b", "");
    assert_true(test_until_lines(out, NULL, 3, LONG_MS));
    assert_true(test_laterd_says(&b, "outcome=done", LONG_MS));
}

static void test_a_paused_queue_waits_and_others_go_on(void **state)
{
    (void)state;
    test_handler(dir, "work", "echo work >> %s", out);
    test_handler(dir, "other", "echo other >> %s", out);
    start_a("");
    reply_free(test_fcall(&redis, "later_pause", "work", "by", "me", "reason", "a test", NULL));
    add_free("work", NULL, NULL, "x");
    add_free("other", NULL, NULL, "x");
    assert_true(test_until_lines(out, "other", 1, LONG_MS));
    assert_int_equal(test_lines(out, "work"), 0);
    reply_free(test_fcall(&redis, "later_resume", "work", NULL));
    assert_true(test_until_lines(out, "work", 1, LONG_MS));
}

static void test_a_pause_ends_by_itself(void **state)
{
    (void)state;
    test_handler(dir, "work", "echo work >> %s", out);
    start_a("");
    reply_free(test_fcall(&redis, "later_pause", "work", "for", "500ms", NULL));
    add_free("work", NULL, NULL, "x");
    assert_true(test_until_lines(out, "work", 1, LONG_MS));
}

static void test_new_handlers_are_noticed(void **state)
{
    (void)state;
    start_a("");
    add_free("fresh", NULL, NULL, "x");
    test_handler(dir, "fresh", "echo fresh >> %s", out);
    assert_true(test_until_lines(out, "fresh", 1, LONG_MS));
}

static void in_dir(const char *commands)
{
    CLEANUP_FREE char *cmd = mem_printf("cd %s && %s", dir, commands);
    char *argv[] = {(char *)(uintptr_t) "sh", (char *)(uintptr_t) "-c", cmd, NULL};

    assert_int_equal(proc_run(argv, NULL, 0, NULL, NULL), 0);
}

static void does(const char *queue, const char *line)
{
    add_free(queue, NULL, NULL, "x");
    if (!test_until_lines(out, line, 1, LONG_MS))
        fail_msg("%s does not write %s", queue, line);
}

static void test_a_replaced_folder_is_noticed(void **state)
{
    (void)state;
    start_a("");
    in_dir("mkdir next && printf '#!/bin/sh\necho moved >>%s\n' $PWD/out >next/moved && "
           "chmod 755 next next/moved && mv handlers old && mv next handlers");
    assert_true(test_laterd_says(&a, "names=\"moved\"", LONG_MS));
    test_handler(dir, "later-still", "echo still >> %s", out);
    does("moved", "moved");
    does("later-still", "still");
    in_dir("rm -r handlers");
    assert_true(test_laterd_says(&a, "event=handler-refused", LONG_MS));
    in_dir("mkdir -m 755 handlers");
    test_handler(dir, "again", "echo again >> %s", out);
    does("again", "again");
}

/* Handlers are found through links, as versions are put into service. Each part of the path is
 * changed in turn. A stream's process is an old one until it is replaced. */
static void test_links_are_followed(void **state)
{
    (void)state;
    in_dir("rm -r handlers; mkdir -m 755 -p versions; for n in 1 2 3; do "
           "mkdir -m 755 versions/$n versions/$n/bin versions/$n/lib && "
           "printf '#!/bin/sh\necho new-%s >>%s\n' $n $PWD/out >versions/$n/bin/new-$n && "
           "printf '#!/bin/sh\necho same-%s >>%s\n' $n $PWD/out >versions/$n/bin/same && "
           "printf '#!/bin/sh\necho later-stream 1\nwhile read -r j id rest; do read -r x; "
           "echo %s-%s >>%s; echo ok ${id#id=}; done\n' stream $n $PWD/out "
           ">versions/$n/lib/worker && cp versions/$n/lib/worker versions/$n/lib/named && "
           "sed -i s/stream-/named-/ versions/$n/lib/named && chmod 755 versions/$n/*/* && "
           "ln -s ../../../current/lib/worker versions/$n/bin/worker || exit; done; "
           "mkdir -m 755 links && ln -s versions/1 current && ln -s ../current/bin links/bin && "
           "ln -s links/bin handlers");
    {
        CLEANUP_FREE char *yaml =
            mem_printf("queues: { worker: { mode: stream }, named: { mode: stream, handler: "
                       "[%s/current/lib/named] }, absent: { handler: [%s/current/absent] } }",
                       dir, dir);

        start_a(yaml);
    }
    does("same", "same-1");
    does("worker", "stream-1");
    does("named", "named-1");
    in_dir("ln -sfn versions/2 current");
    does("new-2", "new-2");
    does("same", "same-2");
    does("worker", "stream-2");
    does("named", "named-2");
    in_dir("rm current && ln -sfn ../versions/3/bin links/bin");
    does("new-3", "new-3");
    /* The path to this one had a part missing. */
    in_dir("ln -s versions/3 current; printf '#!/bin/sh\necho absent >>%s\n' $PWD/out >x && "
           "chmod 755 x && mv x versions/3/absent");
    does("absent", "absent");
    does("worker", "stream-3");
    does("named", "named-3");
    in_dir("ln -sfn versions/1/bin handlers");
    does("new-1", "new-1");
}

static void test_sighup_reloads_and_a_bad_file_changes_nothing(void **state)
{
    struct test_laterd edited;

    (void)state;
    start_a("queues: { one: { handler: [/bin/sh, -c, \"echo one >> $OUT\"], env_pass: [OUT] } }");
    test_laterd_conf(&edited, dir, "a", redis.url, "queues: { one: { handler: nonsense } }");
    test_laterd_kill(&a, SIGHUP);
    assert_true(test_laterd_says(&a, "event=reload result=refused", LONG_MS));
    test_handler(dir, "two", "echo two >> %s", out);
    test_laterd_conf(&edited, dir, "a", redis.url, "queues: { three: { handler: [/bin/true] } }");
    test_laterd_kill(&a, SIGHUP);
    assert_true(test_laterd_says(&a, "event=reload result=done", LONG_MS));
    add_free("two", NULL, NULL, "x");
    add_free("three", NULL, NULL, "x");
    assert_true(test_until_lines(out, "two", 1, LONG_MS));
    assert_true(test_laterd_says(&a, "queue=three", LONG_MS));
}

/* ---- results, progress, cancel */

static bool shows_progress(void *id)
{
    struct reply *r = test_fcall(&redis, "later_show", id, NULL);
    bool seen = reply_is(reply_named(r, "progress"), "40 resizing");

    reply_free(r);
    return seen;
}

static void test_outcomes_progress_and_cancel(void **state)
{
    CLEANUP_FREE char *id = NULL, *running = NULL;
    struct reply *r;

    (void)state;
    test_handler(dir, "tell", "echo 'result forty-two' >&3; echo chatter");
    test_handler(dir, "long", "echo 'progress 40 resizing' >&3; echo begun >> %s; sleep 30", out);
    start_a("");
    id = add("tell", "keep", "1m", "x");
    assert_true(until_state(id, "done"));
    r = test_fcall(&redis, "later_result", id, NULL);
    assert_true(reply_is(reply_at(r, 5), "forty-two"));
    reply_free(r);
    running = add("long", "keep", "1m", "x");
    assert_true(test_until_lines(out, "begun", 1, LONG_MS));
    assert_true(test_until(shows_progress, running, LONG_MS));
    r = test_fcall(&redis, "later_cancel", running, NULL);
    assert_true(reply_is(r, "cancelling"));
    reply_free(r);
    assert_true(until_state(running, "cancelled"));
    assert_int_equal(test_int(&redis, "ZCARD", ROOT ":running"), 0);
}

static void test_the_environment_is_the_contract(void **state)
{
    CLEANUP_BUF struct buf all = BUF_INIT;
    static const char *const want[] = {"LATER_ID=j",
                                       "LATER_QUEUE=env",
                                       "LATER_KEY=user:42",
                                       "LATER_PRIORITY=5",
                                       "LATER_ATTEMPT=1",
                                       "LATER_ATTEMPTS_MAX=25",
                                       "LATER_DUE_MS=1",
                                       "LATER_LATE_MS=",
                                       "LATER_TIMEOUT_MS=3600000",
                                       "LATER_FENCE=1",
                                       "LATER_WORKER=",
                                       "LATER_NAMESPACE=default",
                                       "LATER_CONTROL_FD=3",
                                       "PATH="};

    (void)state;
    test_handler(dir, "env", "env > %s; echo end >> %s", out, out);
    start_a("");
    add_free("env", "key", "user:42", "x");
    assert_true(test_until_lines(out, "end", 1, LONG_MS));
    test_read(out, &all);
    for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++)
        assert_non_null(strstr(all.data, want[i]));
    assert_null(strstr(all.data, "LATERD_"));
    assert_null(strstr(all.data, "LATER_BUILD_DIR"));
}

/* ---- starting */

static int run_laterd(const char *arg, struct buf *o, struct buf *e)
{
    CLEANUP_FREE char *program = mem_printf("%s/laterd", test_build_dir());
    char *argv[] = {program, (char *)(uintptr_t) "--config", a.conf, (char *)(uintptr_t)arg, NULL};

    return proc_run(argv, NULL, 0, o, e);
}

static void test_bad_starts_say_what_is_wrong(void **state)
{
    CLEANUP_BUF struct buf o = BUF_INIT;
    CLEANUP_BUF struct buf e = BUF_INIT;

    (void)state;
    test_laterd_conf(&a, dir, "a", redis.url, "concurency: 3");
    assert_int_equal(run_laterd(NULL, &o, &e), 78);
    assert_non_null(strstr(buf_str(&e), "concurrency"));
    test_laterd_conf(&a, dir, "a", redis.url, "queues: { x: { handler: [/nonexistent/x] } }");
    buf_clear(&e);
    assert_int_equal(run_laterd("--check-config", &o, &e), 78);
    assert_non_null(strstr(buf_str(&e), "/nonexistent/x"));
    test_laterd_conf(&a, dir, "a", redis.url, "concurency: 3\ndefaults: { timeout: 5 }");
    buf_clear(&e);
    assert_int_equal(run_laterd("--check-config", &o, &e), 78);
    assert_non_null(strstr(buf_str(&e), "did you mean \"concurrency\""));
    assert_non_null(strstr(buf_str(&e), "timeout: 5 has no unit"));
    test_laterd_conf(&a, dir, "a", redis.url,
                     "defaults: { env_file: /nonexistent/d }\n"
                     "queues: { x: {}, y: { env_file: /nonexistent/y } }");
    buf_clear(&e);
    assert_int_equal(run_laterd("--check-config", &o, &e), 78);
    assert_non_null(strstr(buf_str(&e), "/nonexistent/d"));
    assert_non_null(strstr(buf_str(&e), ": y: env_file"));
    assert_null(strstr(buf_str(&e), ": x: "));
    /* The file may come before the handler. */
    test_laterd_conf(&a, dir, "a", redis.url, "queues: { soon: { mode: stream } }");
    buf_clear(&e);
    assert_int_equal(run_laterd("--check-config", &o, &e), 0);
    assert_non_null(strstr(buf_str(&e), "warning: soon: no handler yet"));
    test_laterd_conf(&a, dir, "a", redis.url, "");
    assert_int_equal(run_laterd("--check-config", &o, &e), 0);
    buf_clear(&o);
    assert_int_equal(run_laterd("--print-config", &o, &e), 0);
    assert_non_null(strstr(buf_str(&o), "concurrency: 16"));
    test_laterd_start(&a);
    buf_clear(&e);
    assert_int_equal(run_laterd(NULL, &o, &e), 78);
    assert_non_null(strstr(buf_str(&e), "in use by another laterd"));
}

static void test_handlers_that_others_may_write_are_refused(void **state)
{
    CLEANUP_FREE char *path = mem_printf("%s/handlers/open", dir);

    (void)state;
    test_handler(dir, "open", "exit 0");
    assert_int_equal(chmod(path, 0777), 0);
    test_handler(dir, "fine", "echo fine >> %s", out);
    start_a("");
    assert_int_equal(test_lines(a.log, "event=handler-refused"), 1);
    assert_non_null(path);
    add_free("fine", NULL, NULL, "x");
    assert_true(test_until_lines(out, "fine", 1, LONG_MS));
}

static bool is_gone(void *arg)
{
    return access(arg, F_OK) < 0;
}

static void test_embedded_redis_is_supervised(void **state)
{
    CLEANUP_FREE char *sock = mem_printf("%s/state-a/redis.sock", dir);
    struct test_redis inner = {0};
    struct reply *r;

    (void)state;
    (void)snprintf(inner.url, sizeof(inner.url), "unix:%s", sock);
    test_handler(dir, "work", "echo work >> %s", out);
    test_laterd_conf(&a, dir, "a", "embedded", "");
    test_laterd_start(&a);
    r = test_fcall(&inner, "later_add", "work", "in", "1500ms", "x", NULL);
    assert_non_null(r);
    reply_free(r);
    /* The embedded server dies: it is started again, and the job is in its append-only file. */
    {
        struct url url;
        struct err err = ERR_INIT;
        struct client *c;
        const char *abort_it[] = {"SHUTDOWN", "NOSAVE", "FORCE"};

        assert_int_equal(url_parse(inner.url, &url, &err), 0);
        c = client_open(&url, TEST_CALL_MS, &err);
        assert_non_null(c);
        assert_null(client_call(c, 3, abort_it, NULL, &err));
        client_close(c);
    }
    assert_true(test_laterd_says(&a, "state=restarted", LONG_MS));
    assert_true(test_until_lines(out, "work", 1, LONG_MS));
    /* laterd is killed: the server stays, and the next daemon takes it over and stops it. */
    test_laterd_kill(&a, SIGKILL);
    (void)test_laterd_wait(&a, LONG_MS);
    test_laterd_start(&a);
    assert_int_equal(test_lines(a.log, "state=taken-over"), 1);
    assert_int_equal(test_laterd_stop(&a), 0);
    assert_true(test_until(is_gone, sock, LONG_MS));
}

/* ---- the guard; what it does is in test_guard.c */

/* The pid behind this text in the last line of the log that has it. The text ends with "pid=". */
static pid_t last_pid(const char *text)
{
    CLEANUP_BUF struct buf log = BUF_INIT;
    const char *at, *next;

    test_read(a.log, &log);
    at = strstr(buf_str(&log), text);
    assert_non_null(at);
    while ((next = strstr(at + 1, text)) != NULL)
        at = next;
    return (pid_t)strtol(at + strlen(text), NULL, 10);
}

/* Dead at least: its parent now is another process, which may not reap it yet. */
static bool is_ended(void *pid)
{
    return pidstat_start(*(pid_t *)pid) < 0;
}

/* A lock on a file in a removed folder would keep nobody out: the folder is made again. */
static void test_a_removed_state_folder_is_made_again(void **state)
{
    (void)state;
    test_handler(dir, "work", "echo $$ >>%s; exec sleep 1000", out);
    start_a("");
    add_free("work", NULL, NULL, "x");
    assert_true(test_until_lines(out, NULL, 1, LONG_MS));
    in_dir("rm -rf state-a; ln -s state-a state-b");
    assert_true(test_laterd_says(&a, "event=state-folder state=made-again", LONG_MS));
    test_laterd_conf(&b, dir, "b", redis.url, "");
    test_laterd_launch(&b);
    assert_int_equal(test_laterd_wait(&b, LONG_MS), 78);
    assert_int_equal(test_lines(b.log, "in use by another laterd"), 1);
    proc_done(&b.proc);
    /* The new folder has the jobs that run. */
    test_laterd_kill(&a, SIGKILL);
    (void)test_laterd_wait(&a, LONG_MS);
    proc_done(&a.proc);
    test_laterd_start(&a);
    assert_true(test_laterd_says(&a, "event=predecessor", LONG_MS));
    /* Another daemon takes the folder first: then this is logged. */
    proc_signal(&a.proc, SIGSTOP);
    in_dir("rm -rf state-a; mkdir -m 700 state-a");
    test_laterd_start(&b);
    proc_signal(&a.proc, SIGCONT);
    assert_true(test_laterd_says(&a, "event=state-folder state=lost", LONG_MS));
    assert_int_equal(test_laterd_stop(&b), 0);
    assert_true(test_until_lines(a.log, "state=made-again", 1, LONG_MS));
    reply_free(test_fcall(&redis, "later_pause", "work", NULL));
    in_dir("kill -9 $(tail -1 out)");
}

/* Entries in a folder that was moved away, or in a copy, are not those of a dead daemon. */
static void test_a_moved_state_folder_kills_nothing(void **state)
{
    static const char *const ways[] = {"mv state-a state-b", "cp -a state-a state-b"};

    (void)state;
    test_handler(dir, "work", "echo $$ >>%s; exec sleep 1000", out);
    start_a("");
    add_free("work", NULL, NULL, "x");
    assert_true(test_until_lines(out, NULL, 1, LONG_MS));
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        in_dir("rm -rf state-b");
        in_dir(ways[i]);
        assert_true(test_laterd_says(&a, "event=state-folder state=made-again", LONG_MS));
        test_laterd_conf(&b, dir, "b", redis.url, "");
        test_laterd_start(&b);
        assert_int_equal(test_laterd_stop(&b), 0);
        in_dir("kill -0 $(cat out)");
    }
    in_dir("kill -9 $(cat out)");
}

static void test_there_is_always_a_guard(void **state)
{
    static const char started[] = "event=guard state=started pid=";
    pid_t first, second;

    (void)state;
    start_a("");
    first = last_pid(started);
    assert_int_equal(kill(first, SIGKILL), 0);
    assert_true(test_laterd_says(&a, "event=guard state=died", LONG_MS));
    assert_true(test_until_lines(a.log, started, 2, LONG_MS));
    second = last_pid(started);
    assert_int_equal(kill(second, 0), 0);
    /* It is reaped before the daemon ends. */
    assert_int_equal(test_laterd_stop(&a), 0);
    assert_int_equal(kill(second, 0), -1);
    test_laterd_start(&a);
    second = last_pid(started);
    test_laterd_kill(&a, SIGKILL);
    (void)test_laterd_wait(&a, LONG_MS);
    assert_true(test_until(is_ended, &second, LONG_MS));
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, fx_open, fx_close)
    const struct CMUnitTest tests[] = {
        T(test_each_job_once_and_none_early),
        T(test_two_daemons_share_the_work),
        T(test_equal_due_times_keep_the_order_of_insertion),
        T(test_urgent_jobs_go_first),
        T(test_raw_members_run_once),
        T(test_nothing_is_overlooked_among_many_queues),
        T(test_payloads_arrive_byte_exact),
        T(test_payloads_over_the_limit_are_refused_or_buried),
        T(test_retries_until_it_succeeds),
        T(test_exit_65_is_dead_and_retry_runs_it_again),
        T(test_attempts_run_out),
        T(test_a_timeout_ends_the_whole_group),
        T(test_a_handler_that_cannot_start_fails_by_name),
        T(test_sigterm_drains),
        T(test_a_stop_that_takes_too_long_puts_jobs_back),
        T(test_quiet_claims_no_more),
        T(test_quiet_waits),
        T(test_quiet_waits_for_a_busy_worker),
        T(test_a_paused_queue_waits_and_others_go_on),
        T(test_a_pause_ends_by_itself),
        T(test_new_handlers_are_noticed),
        T(test_a_replaced_folder_is_noticed),
        T(test_links_are_followed),
        T(test_sighup_reloads_and_a_bad_file_changes_nothing),
        T(test_outcomes_progress_and_cancel),
        T(test_the_environment_is_the_contract),
        T(test_bad_starts_say_what_is_wrong),
        T(test_handlers_that_others_may_write_are_refused),
        T(test_embedded_redis_is_supervised),
        T(test_a_removed_state_folder_is_made_again),
        T(test_a_moved_state_folder_kills_nothing),
        T(test_there_is_always_a_guard),
    };

    if (getenv("LATER_ONLY") != NULL)
        cmocka_set_test_filter(getenv("LATER_ONLY"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
