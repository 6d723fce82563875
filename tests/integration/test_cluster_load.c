/*
 * laterd and later on a Redis Cluster under load, with real nodes: a slot that moves while jobs are
 * added and run, and primaries that die.
 *
 *     LATER_JOBS=20000 LATER_PRODUCERS=8 LATER_FAILOVERS=10 tests/integration/test_cluster_load
 */
#include "cluster_fixture.h"

/* Add jobs one by one, by so many producers at once, until there are enough; the ids of those that
 * later says are added go to $DIR/added. */
static void begin_producers(struct proc *p, long producers, long jobs, const char *options)
{
    CLEANUP_FREE char *line = mem_printf(
        "exec >/dev/null 2>>$DIR/refused; for p in $(seq %ld); do (i=0; while [ $i -lt %ld ]; do "
        "i=$((i+1)); id=$($LATER --redis $BY add work %s $i) && echo $id >>$DIR/added; done) & "
        "done; wait",
        producers, jobs / producers, options);
    char *argv[] = {(char *)(uintptr_t) "/bin/sh", (char *)(uintptr_t) "-c", line, NULL};

    proc_start(p, argv, NULL, NULL);
}

static void begin_ledgers(void)
{
    assert_int_equal(test_sh("cd $DIR && rm -f ran added refused && touch ran added refused"), 0);
}

static int lines(const char *name)
{
    CLEANUP_FREE char *path = mem_printf("%s/%s", dir, name);

    return test_lines(path, NULL);
}

/* All whose ids were told have run. */
static bool have_run(void *arg)
{
    (void)arg;
    return test_sh("cd $DIR && sort -u ran >r && sort -u added >a && [ -z \"$(comm -13 r a)\" ]") ==
           0;
}

/* How many ids stand in the ledger more than once. */
static int repeated(const char *name)
{
    CLEANUP_FREE char *line = mem_printf("sort $DIR/%s | uniq -d | wc -l", name);
    CLEANUP_BUF struct buf said = BUF_INIT;

    assert_int_equal(test_sh_out(line, &said), 0);
    return atoi(buf_str(&said));
}

/* ---- a slot that moves */

/* Key by key, each third time held for a second in the middle; or as a whole. */
static int64_t move(int moves, bool as_a_whole)
{
    int to = next_primary(cluster_owner(&c, 0, "default"));

    return as_a_whole ? cluster_move_whole(&c, "default", to)
                      : cluster_move(&c, "default", to, moves % 3 == 0 ? 1000 : 0);
}

static void move_under_load(bool as_a_whole)
{
    long jobs = from_env("LATER_JOBS", 400);
    int64_t stood = 0, longest = 0;
    struct proc producer;
    int moves = 0, owner;

    begin_ledgers();
    start(0, "default");
    begin_producers(&producer, from_env("LATER_PRODUCERS", 1), jobs, "");
    while (proc_wait(&producer, 100) < 0) {
        int64_t ms = move(moves, as_a_whole);

        assert_true(ms >= 0);
        longest = ms > longest ? ms : longest;
        stood += ms;
        moves++;
    }
    proc_done(&producer);
    assert_int_equal(lines("refused"), 0);
    assert_int_equal(lines("added"), jobs);
    assert_true(test_until(have_run, NULL, LONG_MS));
    assert_int_equal(lines("ran"), jobs);
    assert_int_equal(repeated("ran"), 0);
    assert_int_equal(repeated("added"), 0);
    assert_true(moves > 1);
    print_message("%ld jobs, %d moves, which stood %lld ms in all, %lld ms at most\n", jobs, moves,
                  (long long)stood, (long long)longest);
    must("default", "$L fsck", "");
    owner = cluster_owner(&c, 0, "default");
    for (int i = 0; i < CLUSTER_PRIMARIES; i++)
        assert_int_equal(cluster_keys(&c, i, "default") > 0, i == owner);
    assert_true(as_a_whole || test_lines(d[0].log, "event=slot-moves") > 0);
}

static void test_a_slot_that_moves_loses_and_doubles_nothing(void **state)
{
    (void)state;
    move_under_load(false);
}

static void test_a_slot_that_moves_as_a_whole_neither(void **state)
{
    (void)state;
    if (cluster_move_whole(&c, "default", next_primary(cluster_owner(&c, 0, "default"))) < 0)
        skip();
    move_under_load(true);
}

/* ---- a primary that dies */

/* Only what the replica had confirmed is sure to be there after it took over; but nothing of it is
 * lost. A job whose end had not reached the replica runs again, as the manual says. */
static void test_a_replica_takes_over(void **state)
{
    CLEANUP_FREE char *added = mem_printf("%s/added", dir);
    long failovers = from_env("LATER_FAILOVERS", 2);
    struct proc producer;

    (void)state;
    begin_ledgers();
    start(0, "default");
    begin_producers(&producer, 1, failovers * 150, "--replicas 1 --confirm 1s");
    for (long i = 0; i < failovers; i++) {
        int told = test_lines(d[0].log, "event=link state=up"), killed;

        /* Under load: once some more are confirmed. */
        assert_true(test_until_lines(added, NULL, lines("added") + 5, LONG_MS));
        killed = cluster_fail(&c, "default");
        assert_true(test_until_lines(d[0].log, "event=link state=up", told + 1, LONG_MS));
        cluster_heal(&c, killed);
    }
    while (proc_wait(&producer, LONG_MS) < 0)
        fail_msg("the producer hangs");
    proc_done(&producer);
    assert_true(test_until(have_run, NULL, LONG_MS));
    must("default", "$L fsck", "");
    print_message("%ld failovers: %d confirmed, all ran; %d not, %d ran twice, %d told lost\n",
                  failovers, lines("added"), lines("refused"), repeated("ran"),
                  test_lines(d[0].log, "event=data-loss"));
}

int main(void)
{
#define DAEMON_TEST(f) cmocka_unit_test_teardown(f, stop_daemons)
    const struct CMUnitTest tests[] = {
        DAEMON_TEST(test_a_slot_that_moves_loses_and_doubles_nothing),
        DAEMON_TEST(test_a_slot_that_moves_as_a_whole_neither),
        DAEMON_TEST(test_a_replica_takes_over),
    };

    cmocka_set_test_filter(getenv("LATER_ONLY")); /* a name, with * and ? */
    return cmocka_run_group_tests(tests, open_cluster, close_cluster);
}
