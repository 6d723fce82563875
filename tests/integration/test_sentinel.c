/*
 * Failovers by Sentinel, with real servers: one master, two replicas, three sentinels. Failovers of
 * each kind lose nothing that WAIT had confirmed, let nothing overlap under a lock, leave handlers
 * alone, and tell what was lost.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "../gates/gate_judge.h"
#include "../support/shell.h"
#include "sentinel_fixture.h"

static int open_all(void **state)
{
    (void)state;
    open_sentinels();
    sentinels_promote(&s);
    return 0;
}

/* redis-cli does not ask sentinels: it gets the server that they name. */
static void test_cli_gets_the_master(void **state)
{
    CLEANUP_FREE char *line = mem_printf("$LATER --redis %s cli role", s.by);

    (void)state;
    test_says(line, 0, "master");
}

static void test_replicas_confirm(void **state)
{
    CLEANUP_FREE char *enough =
        mem_printf("$LATER --redis %s add q --replicas 2 --confirm 5s x", s.by);
    CLEANUP_FREE char *few =
        mem_printf("$LATER --redis %s add q --replicas 3 --confirm 50ms x", s.by);
    CLEANUP_FREE char *alone = mem_printf("$LATER --redis %s add q --confirm 50ms x", s.by);

    (void)state;
    test_says(enough, 0, "");
    test_says(few, 75, "was added, but 2 of 3 replicas confirmed it within 50 ms");
    test_says(alone, 64, "go with --replicas");
}

/* ---- failovers */

/* Daemon a reaches each server at its own port, also while that is cut off from all others; b and
 * the producers reach them as the sentinels do. Each daemon has ledgers of its own. */
static void start_daemon(struct test_laterd *d, const char *name, const char *handler,
                         const char *more)
{
    CLEANUP_FREE char *ledgers = mem_printf(
        "mkdir -p $DIR/referee && cd $DIR && touch work-%s quick-%s slow-%s", name, name, name);
    CLEANUP_FREE char *yaml =
        mem_printf("redis_timeout: 1s\nconcurrency: 16\n%squeues:\n"
                   "  work: {handler: [%s, %s/work-%s, '0', '5']}\n"
                   "  quick: {handler: [%s, %s/quick-%s, '0', '5', %s/referee], lock: '{key}'}\n"
                   "  slow: {handler: [%s, %s/slow-%s, '100', '300', %s/referee], lock: '{key}'}\n"
                   "  long: {timeout: 1h}\n  doom: {}\n  doomlock: {lock: doomed}\n",
                   more, handler, dir, name, handler, dir, name, dir, handler, dir, name, dir);

    assert_int_equal(test_sh(ledgers), 0);
    test_laterd_conf(d, dir, name, s.by, yaml);
    test_laterd_start(d);
}

/* Both replicas: one alone may be the one that is not promoted. Adds jobs as quickly as
 * confirmations come; the ids of those that were confirmed go to $DIR/confirmed. */
#define PRODUCER                                                                                   \
    "sh -c 'while [ ! -e $DIR/enough ]; do id=$($LATER --redis %s add work --replicas 2 "          \
    "--confirm "                                                                                   \
    "1s p 2>>$DIR/adds) && echo $id >>$DIR/confirmed; done'"

/* Under four locks, so many quick jobs a second and one slow one. They are due later: those that
 * become due while the master is cut off are due at both servers. */
#define FILLER                                                                                     \
    "sh -c 'while [ ! -e $DIR/enough ]; do for k in 1 2 3 4; do for q in \"quick %d\" \"slow "     \
    "1\"; "                                                                                        \
    "do set -- $q; seq $2 | $LATER --redis %s add $1 --key $1$k --in 4s --from - 2>>$DIR/fills "   \
    "&& "                                                                                          \
    "echo $2 >>$DIR/added; done; done; sleep 0.8; done' >/dev/null"

/* What is only at the master that is cut off: a started job, whose name is told. */
static void doom(int old, const char *queue, char id[16])
{
    CLEANUP_FREE char *line =
        mem_printf("$LATER --redis redis://127.0.0.1:%s add %s x", s.nodes[old].port, queue);
    CLEANUP_FREE char *started = NULL;
    struct buf said = BUF_INIT;

    assert_int_equal(test_sh_out(line, &said), 0);
    (void)snprintf(id, 16, "%.12s", buf_str(&said));
    buf_done(&said);
    started = mem_printf("%s %s", queue, id);
    assert_true(test_until_lines(out, started, 1, LONG_MS));
}

static void assert_tail_is_told(const char *id)
{
    CLEANUP_FREE char *text = mem_printf("event=data-loss job=%s", id);

    assert_true(test_until_lines(a.log, text, 1, LONG_MS));
}

/* Of daemon a and b. */
static int lines_of(const char *what, const char *text)
{
    CLEANUP_FREE char *of_a = mem_printf("%s/%s-a", dir, what);
    CLEANUP_FREE char *of_b = mem_printf("%s/%s-b", dir, what);

    return test_lines(of_a, text) + test_lines(of_b, text);
}

struct ends {
    const char *queue;
    int n;
};

static bool have_ended(void *arg)
{
    const struct ends *e = arg;

    return lines_of(e->queue, " end ") >= e->n;
}

static void until_ended(const char *queue, int n)
{
    struct ends e = {queue, n};

    assert_true(test_until(have_ended, &e, LONG_MS));
}

static int64_t fail_over(enum way way)
{
    int in_a = test_lines(a.log, "event=failover"), in_b = test_lines(b.log, "event=failover");
    int old = sentinels_break(&s, way), work, quick;
    char free_one[16], locked_one[16];
    int64_t promoted_ms;

    if (way == BY_CUT) {
        doom(old, "doom", free_one);
        doom(old, "doomlock", locked_one);
        sentinels_promote(&s);
    }
    sentinels_until_moved(&s, old);
    /* Before the old master is back. */
    assert_true(test_until_lines(a.log, "event=failover", in_a + 1, LONG_MS));
    assert_true(test_until_lines(b.log, "event=failover", in_b + 1, LONG_MS));
    promoted_ms = sentinels_promoted_ms(&s);
    if (way == BY_CUT) {
        assert_tail_is_told(free_one);
        assert_tail_is_told(locked_one);
    }
    work = lines_of("work", " end ");
    quick = lines_of("quick", " end ");
    sentinels_heal(&s, way, old, test_is_long());
    until_ended("work", work + 20);
    until_ended("quick", quick + 5);
    return promoted_ms;
}

/* ---- what the ledgers and the logs tell */

/* Microseconds of CLOCK_MONOTONIC, which the ledgers have, from milliseconds of the wall clock. */
static int64_t mono_us(int64_t wall_ms)
{
    return (wall_ms - test_now_ms()) * 1000 + mono_now().us;
}

/* The number that the daemon got when it registered for the first time after this, in ms of the
 * wall clock; 0: it did not. Numbers rise: later claims have higher fences. */
static int64_t registered_as(const struct test_laterd *d, int64_t after_ms)
{
    struct buf log = BUF_INIT;
    int64_t found = 0;

    test_read(d->log, &log);
    for (char *line = strtok(log.data, "\n"); line != NULL && found == 0;
         line = strtok(NULL, "\n")) {
        const char *event = strstr(line, "event=registered epoch=");
        struct tm tm = {0};
        const char *rest = strptime(line, "%Y-%m-%dT%H:%M:%S", &tm);

        if (rest != NULL && event != NULL &&
            (int64_t)timegm(&tm) * 1000 + strtol(rest + 1, NULL, 10) >= after_ms)
            found = strtoll(strstr(event, "epoch=") + 6, NULL, 10);
    }
    buf_done(&log);
    return found;
}

/* The first start of a daemon of what it claimed at the new master, in ms after the promotion; -1:
 * none. */
static int64_t first_start_ms(const struct test_laterd *d, const char *queue, int64_t promoted_ms)
{
    CLEANUP_FREE char *path = mem_printf("%s/%s-%s", dir, queue, d->name);
    int64_t epoch = registered_as(d, promoted_ms), found = INT64_MAX;
    struct gate_judge judge;

    gate_judge_read(&judge, path, NULL);
    for (size_t i = 0; epoch > 0 && i < judge.n; i++)
        if (judge.lines[i].is_start && judge.lines[i].fence > epoch && judge.lines[i].us < found)
            found = judge.lines[i].us;
    gate_judge_done(&judge);
    return found != INT64_MAX ? (found - mono_us(promoted_ms)) / 1000 : -1;
}

/* Of both daemons. */
static int64_t first_of_all_ms(const char *queue, int64_t promoted_ms)
{
    int64_t of_a = first_start_ms(&a, queue, promoted_ms);
    int64_t of_b = first_start_ms(&b, queue, promoted_ms);

    return of_b < 0 || (of_a >= 0 && of_a < of_b) ? of_a : of_b;
}

static int by_size(const void *x, const void *y)
{
    const int64_t *p = x, *q = y;

    return (*p > *q) - (*p < *q);
}

static const char *const ways[WAYS] = {"kill -9", "SIGSTOP", "planned", "cut off"};

static void tell_first_starts(const int64_t *promoted_ms, int n)
{
    int64_t work[64], locked[64];

    for (int i = 0; i < n; i++) {
        work[i] = first_of_all_ms("work", promoted_ms[i]);
        locked[i] = first_of_all_ms("quick", promoted_ms[i]);
        print_message("%s: first start %lld ms after the promotion, under a lock %lld ms\n",
                      ways[i % WAYS], (long long)work[i], (long long)locked[i]);
    }
    qsort(work, (size_t)n, sizeof(*work), by_size);
    qsort(locked, (size_t)n, sizeof(*locked), by_size);
    print_message("first start: median %lld ms, max %lld ms; under a lock: median %lld ms, max "
                  "%lld ms\n",
                  (long long)work[n / 2], (long long)work[n - 1], (long long)locked[n / 2],
                  (long long)locked[n - 1]);
}

/* By queue: started more than once, and with the same attempt; by the failover that lost the first
 * start, which may have been up to three seconds after it. at: when replicas were promoted. */
#define COUNTS                                                                                     \
    "cd $DIR && for q in work quick slow; do cat $q-a $q-b | sort -n | awk -v q=$q -v at=\"%s\" '" \
    "BEGIN {n = split(at, p, \" \")} $2 == \"start\" {starts++; if ($3 in job) {again++; for (i "  \
    "= 1; "                                                                                        \
    "i < n && p[i] < job[$3] - 3000000;) i++; by[(i - 1) %% 4]++} job[$3] = $1; if (attempt[$3 "   \
    "\" "                                                                                          \
    "\" $4]++) twice++} END {printf \"%%s: %%d starts of %%d jobs, %%d again, %%d of these the "   \
    "same "                                                                                        \
    "attempt; lost by kill -9 %%d, SIGSTOP %%d, planned %%d, cut off %%d\\n\", q, starts, "        \
    "length(job), again, twice, by[0], by[1], by[2], by[3]}'; done; "                              \
    "echo \"added under locks: $(awk '{n += $1} END {print n}' added), and $(sort -u confirmed | " \
    "wc "                                                                                          \
    "-l) that WAIT confirmed; refused or not confirmed: $(wc -l <adds)\"; echo \"failovers told: " \
    "$(cat a.log b.log | grep -c event=failover), jobs told lost: $(cat a.log b.log | grep -c "    \
    "event=data-loss), not adopted: $(cat a.log b.log | grep -c event=not-adopted)\""

static void tell_counts(const int64_t *promoted_ms, int n)
{
    struct buf said = BUF_INIT, at = BUF_INIT;
    CLEANUP_FREE char *line = NULL;

    for (int i = 0; i < n; i++)
        buf_printf(&at, "%lld ", (long long)mono_us(promoted_ms[i]));
    line = mem_printf(COUNTS, buf_str(&at));
    (void)test_sh_out(line, &said);
    print_message("%s", buf_str(&said));
    buf_done(&said);
    buf_done(&at);
}

static bool all_have_run(void *arg)
{
    (void)arg;
    return test_sh(
               "sort -u $DIR/confirmed >$DIR/c; cat $DIR/work-a $DIR/work-b | awk '$2 == "
               "\"end\" {print $3}' | sort -u >$DIR/r; test -z \"$(comm -23 $DIR/c $DIR/r)\"") == 0;
}

static void test_failovers_by_sentinel(void **state)
{
    CLEANUP_FREE char *add_long = mem_printf("$LATER --redis %s add long --replicas 2 x", s.by);
    CLEANUP_FREE char *producer = mem_printf(PRODUCER, s.by);
    CLEANUP_FREE char *filler = mem_printf(FILLER, test_is_long() ? 50 : 5, s.by);
    int rounds = test_is_long() ? 20 : WAYS;
    int64_t promoted_ms[20];
    struct proc adding, filling;
    char handler[96];

    (void)state;
    test_install(dir, "tests/gates/gate_handler", handler);
    for (const char *const *name = (const char *const[]){"long", "doom", "doomlock", NULL};
         *name != NULL; name++)
        test_handler(dir, *name,
                     "echo \"%s $LATER_ID\" >>%s\nwhile [ ! -e %s/enough ]; do sleep 0.1; done\n"
                     "echo \"%s-ends $LATER_ID\" >>%s",
                     *name, out, dir, *name, out);
    start_daemon(&a, "a", handler, s.announce);
    start_daemon(&b, "b", handler, "");
    assert_int_equal(test_sh(add_long), 0);
    assert_true(test_until_lines(out, "long ", 1, LONG_MS));
    test_sh_start(&adding, producer);
    test_sh_start(&filling, filler);
    for (int i = 0; i < rounds; i++)
        promoted_ms[i] = fail_over((enum way)(i % WAYS));
    assert_int_equal(test_sh("touch $DIR/enough"), 0);
    assert_int_equal(proc_wait(&adding, LONG_MS), 0);
    assert_int_equal(proc_wait(&filling, LONG_MS), 0);
    proc_done(&adding);
    proc_done(&filling);
    assert_true(test_until(all_have_run, NULL, LONG_MS));
    tell_first_starts(promoted_ms, rounds);
    tell_counts(promoted_ms, rounds);
    assert_true(test_until_lines(out, "long-ends ", 1, LONG_MS));
    assert_int_equal(test_lines(out, "long "), 1);
    assert_int_equal(lines_of("quick", " clash ") + lines_of("slow", " clash "), 0);
    /* What ran without a lock went on; under one it was ended. */
    assert_true(test_until_lines(out, "doom-ends ", rounds / WAYS, LONG_MS));
    assert_int_equal(test_lines(out, "doomlock-ends "), 0);
    assert_int_equal(test_laterd_stop(&a), 0);
    assert_int_equal(test_laterd_stop(&b), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cli_gets_the_master),
        cmocka_unit_test(test_replicas_confirm),
        cmocka_unit_test(test_failovers_by_sentinel),
    };

    return cmocka_run_group_tests(tests, open_all, close_sentinels);
}
