/*
 * Jobs that go on where they stopped, under kills of handlers, of steps, of workers and of Redis,
 * and a failover. LATER_FULL: as many as are promised. LATER_SEED: the seed of the moments.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "../support/shell.h"
#include "sentinel_fixture.h"

#define QUICK "defaults: { attempts: 1000, crashes: 1000, backoff: { first: 10ms, max: 10ms } }\n"
#define JOBS 8

static int random_between(int from, int to)
{
    return from + rand() % (to - from + 1);
}

static void seed(void)
{
    const char *text = getenv("LATER_SEED");
    unsigned n = text != NULL ? (unsigned)atol(text) : (unsigned)time(NULL);

    (void)printf("seed %u\n", n);
    srand(n);
}

/* Kill one process of a running handler: its shell, a step of it, or the command of a step. */
static void kill_something(void)
{
    (void)test_shf(NULL,
                   "for f in $(ls %s/running 2>/dev/null); do pgrep -s $f; done | shuf -n 1 | "
                   "xargs -r kill -9 2>/dev/null",
                   dir);
}

static void kill_worker(void)
{
    test_laterd_kill(&a, SIGKILL);
    (void)test_laterd_wait(&a, LONG_MS);
    test_laterd_start(&a);
}

/* What the judge of a log has said. */
static void tell(int status, struct buf *said)
{
    (void)printf("%s", buf_str(said));
    assert_int_equal(status, 0);
}

/* ---- checkpoints */

/* A piece is a second of work, and its checkpoint is told behind it: that takes half a second at
 * most. */
static void serve_pieces(int pieces)
{
    test_handler(dir, "q",
                 "from=${LATER_CHECKPOINT:-0}\n"
                 "echo \"start $LATER_ID $from\" >> %s\n"
                 "touch %s/running/$$\n"
                 "i=$from\n"
                 "while [ $i -lt %d ]; do\n"
                 "    i=$((i + 1)); sleep 1\n"
                 "    echo \"piece $LATER_ID $i\" >> %s\n"
                 "    echo \"checkpoint $i\" >&3\n"
                 "done\n"
                 "rm -f %s/running/$$\n",
                 out, dir, pieces, out, dir);
}

/* Each job has done each piece. No start goes back behind an earlier one, unless Redis lost data.
 * What was done again is told; it is at most two pieces for each start but the first one, so that a
 * slow machine passes. */
static void judge_pieces(int pieces, int kills, bool may_go_back)
{
    CLEANUP_BUF struct buf said = BUF_INIT;
    int status;

    status = test_shf(
        &said,
        "awk -v pieces=%d -v kills=%d -v back=%d '"
        "$1 == \"start\" { if ($3 < at[$2] && !back) { print \"older\", $0; bad = 1 } "
        "at[$2] = $3; starts[$2]++; all++ } "
        "$1 == \"piece\" { n[$2 \" \" $3]++; done[$2] += n[$2 \" \" $3] == 1; again += n[$2 \" "
        "\" $3] > 1; re[$2] += n[$2 \" \" $3] > 1 } "
        "END { for (j in starts) { jobs++; if (done[j] != pieces || re[j] > 2 * (starts[j] - "
        "1)) { print j, done[j], re[j], starts[j]; bad = 1 } } "
        "each = 0; if (all > jobs) each = again / (all - jobs); "
        "printf \"figure: %%d kills, %%d jobs of %%d pieces, %%d starts, %%d pieces done "
        "again, "
        "%%.2f for each further start\\n\", kills, jobs, pieces, all, again, each; "
        "exit bad || jobs != %d }' %s",
        pieces, kills, may_go_back, JOBS, out);
    tell(status, &said);
}

static void test_checkpoints_under_kills(void **state)
{
    int pieces = test_is_long() ? 60 : 6, kills = 0;

    (void)state;
    seed();
    test_must("mkdir %s/running", dir);
    serve_pieces(pieces);
    start_a(QUICK "concurrency: 8\n");
    for (int i = 0; i < JOBS; i++)
        free(test_add(&redis, "q", NULL, NULL, "x"));
    while (test_int(&redis, "HLEN", ROOT ":jobs") > 0 && kills < 20 * pieces) {
        int what = random_between(0, 19);

        (void)usleep((useconds_t)random_between(100, 1500) * 1000);
        if (what == 0) {
            test_redis_kill(&redis, SIGKILL);
            test_redis_restart(&redis);
        } else if (what < 3) {
            kill_worker();
        } else {
            kill_something();
        }
        kills++;
        if (kills == 2 * pieces) /* they may end now */
            break;
    }
    /* Jobs under which two workers died run one after the other. */
    assert_true(test_until(no_job_is_left, NULL, 2000 * JOBS * pieces + LONG_MS));
    judge_pieces(pieces, kills, false);
    assert_int_equal(test_int(&redis, "EXISTS", ROOT ":resume"), 0);
}

/* A replica takes over, and handlers die just then. Two seconds of writes may be lost with the old
 * master. */
static void test_checkpoints_and_a_failover(void **state)
{
    CLEANUP_FREE char *add = mem_printf("for i in 1 2 3 4 5 6 7 8; do $LATER --redis %s add q "
                                        "--replicas 2 x; done",
                                        s.by);
    CLEANUP_FREE char *left =
        mem_printf("$LATER --redis %s ls q --state running | grep -c '^j'", s.by);
    int pieces = test_is_long() ? 60 : 10;

    (void)state;
    test_must("mkdir %s/running", dir);
    serve_pieces(pieces);
    test_laterd_conf(&a, dir, "a", s.by, QUICK "concurrency: 8\n");
    test_laterd_start(&a);
    assert_int_equal(test_sh(add), 0);
    assert_true(test_until_lines(out, "piece ", 2 * JOBS, LONG_MS));
    {
        enum way way = (enum way)0;
        int old = sentinels_break(&s, way);

        kill_something();
        sentinels_promote(&s);
        kill_something();
        sentinels_until_moved(&s, old);
        sentinels_heal(&s, way, old, false);
    }
    /* What was told while no master was there comes when the link is up again. */
    assert_true(test_until_lines(a.log, "event=link state=up", 2, LONG_MS));
    (void)usleep(1500000);
    kill_worker();
    for (int i = 0; i < 600 && test_sh(left) == 0; i++)
        (void)usleep(500000);
    judge_pieces(pieces, 3, true);
}

/* ---- steps */

/* Of each step the log has: ran ID NAME SHA (before the command ends), got ID NAME SHA (behind
 * `later step`). The outputs are random bytes. */
static void serve_steps(void)
{
    CLEANUP_FREE char *later = mem_printf("%s/later", test_build_dir());

    test_handler(
        dir, "q",
        "touch %s/running/$$\n"
        "d=$(mktemp -d %s/work.XXXXXX)\n"
        "for name in charge ship mail; do\n"
        "    '%s' step $name -- sh -ec 'sleep 0.03; head -c $(shuf -i 0-16384 -n 1) "
        "/dev/urandom > $0/out; sum=$(sha1sum < $0/out); echo \"ran $LATER_ID $1 $sum\" >> "
        "%s; cat $0/out; sleep 0.03' $d $name > $d/got || exit 1\n"
        "    sum=$(sha1sum < $d/got) || exit 1 # it may be killed, too\n"
        "    echo \"got $LATER_ID $name $sum\" >> %s\n"
        "done\n"
        "rm -rf %s/running/$$ $d\n",
        dir, dir, later, out, out, dir);
}

/* Behind the first `got` of a step it never ran again; each got what the last run before it had
 * printed, byte for byte. */
static void judge_steps(int kills)
{
    CLEANUP_BUF struct buf said = BUF_INIT;
    int status;

    status = test_shf(
        &said,
        "awk -v kills=%d '"
        "{ key = $2 \" \" $3 } "
        "$1 == \"ran\" { ran++; if (key in got) { print \"again\", $0; bad = 1 } last[key] = "
        "$4 } "
        "$1 == \"got\" { if (!(key in got)) { n++; if ($4 != last[key]) { print \"not the "
        "last\", $0, last[key]; bad = 1 } got[key] = $4 } else { more++; if ($4 != got[key]) { "
        "print \"other bytes\", $0; bad = 1 } } } "
        "END { printf \"figure: %%d kills, %%d steps kept, %%d runs of their commands, %%d "
        "times taken from the job\\n\", kills, n, ran, more; exit bad || n < 3 }' %s",
        kills, out);
    tell(status, &said);
}

static void test_steps_under_kills(void **state)
{
    int most = test_is_long() ? 200 : 25;

    (void)state;
    seed();
    test_must("mkdir %s/running", dir);
    serve_steps();
    start_a(QUICK "concurrency: 4\n");
    for (int kills = 0; kills < most; kills++) {
        while (test_int(&redis, "HLEN", ROOT ":jobs") < 6)
            free(test_add(&redis, "q", NULL, NULL, "x"));
        (void)usleep((useconds_t)random_between(1, 150) * 1000);
        if (kills % 25 == 12) {
            test_redis_kill(&redis, SIGKILL);
            test_redis_restart(&redis);
        } else if (kills % 12 == 6) {
            kill_worker();
        } else {
            kill_something();
        }
    }
    assert_true(test_until(no_job_is_left, NULL, LONG_MS));
    judge_steps(most);
    assert_int_equal(test_int(&redis, "EXISTS", ROOT ":resume"), 0);
    test_must("'%s/later' --redis %s fsck", test_build_dir(), redis.url);
}

static int open_failover(void **state)
{
    (void)state;
    open_sentinels();
    return 0;
}

#define T(f) cmocka_unit_test_setup_teardown(f, fx_open_aof, fx_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(test_checkpoints_under_kills),
        T(test_steps_under_kills),
        cmocka_unit_test_setup_teardown(test_checkpoints_and_a_failover, open_failover,
                                        close_sentinels),
    };

    cmocka_set_test_filter(getenv("LATER_ONLY")); /* a name, with * and ? */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
