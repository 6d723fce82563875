/*
 * What commands do while the slot of their namespace moves, and when it has: they wait, follow, or
 * end with a sentence that names the cause.
 */
#include "cluster_fixture.h"

#include <signal.h>

#define NS "moves"

static struct cluster_moving moving;
static struct proc command;

/* The namespace has some keys, so that half of them can move. */
static int open_moves(void **state)
{
    int failed = open_cluster(state);

    start(0, NS);
    must(NS, "seq 300 | $L add idle --in 10h --from -", "300 jobs added");
    must(NS, "$L add other --in 10h --key k x", "");
    return failed;
}

static int close_moves(void **state)
{
    (void)stop_daemons(state);
    return close_cluster(state);
}

static void begin_move(void)
{
    cluster_begin_move(&c, NS, next_primary(cluster_owner(&c, 0, NS)), &moving);
}

static void end_move(void)
{
    (void)cluster_end_move(&moving);
}

static void move(void)
{
    begin_move();
    end_move();
}

/* Start a line; $L is as in must. What it says goes to $DIR/said. */
static void begin_command(const char *line)
{
    CLEANUP_FREE char *all =
        mem_printf("sh -c 'L=\"$LATER --redis $BY --namespace " NS "\"; %s'", line);

    assert_int_equal(test_sh("rm -f $DIR/said $DIR/go"), 0);
    test_sh_start(&command, all);
}

static void end_command(int status, const char *says)
{
    CLEANUP_FREE char *path = mem_printf("%s/said", dir);
    CLEANUP_BUF struct buf said = BUF_INIT;
    int ended = proc_wait(&command, LONG_MS);

    test_read(path, &said);
    if (ended != status || strstr(buf_str(&said), says) == NULL)
        fail_msg("status %d, says: %.2000s", ended, buf_str(&said));
    proc_done(&command);
}

static void until_said(const char *text)
{
    CLEANUP_FREE char *path = mem_printf("%s/said", dir);

    assert_true(test_until_lines(path, text, 1, LONG_MS));
}

static void go(void)
{
    assert_int_equal(test_sh("touch $DIR/go"), 0);
}

static bool has_jobs(void *queue)
{
    CLEANUP_FREE char *line =
        mem_printf("$LATER --redis $BY --namespace " NS " ls %s --state due", (char *)queue);

    return test_sh(line) == 0;
}

/* The first lines of a command were added. */
static void until_begun(const char *queue)
{
    assert_true(test_until(has_jobs, (void *)(uintptr_t)queue, LONG_MS));
}

#define UNTIL_GO "while [ ! -e $DIR/go ]; do sleep 0.05; done; "

/* It begins while the slot moves, and does not end before it has moved. */
static void waits_and_ends(const char *line, const char *says)
{
    bool has_waited;

    begin_move();
    begin_command(line);
    has_waited = proc_wait(&command, 500) < 0;
    end_move();
    end_command(0, says);
    assert_true(has_waited);
}

/* ---- begun while it moves */

static void test_add_waits(void **state)
{
    (void)state;
    waits_and_ends("$L add idle --in 10h x", "");
}

static void test_add_from_waits(void **state)
{
    (void)state;
    waits_and_ends("seq 1000 | $L add idle1 --in 10h --from -", "1000 jobs added");
    must(NS, "$L export idle1 | wc -l", "1000");
}

static void test_import_waits(void **state)
{
    (void)state;
    must(NS, "$L export idle >$DIR/idle.jsonl", "");
    waits_and_ends("$L import idle2 $DIR/idle.jsonl", " added");
    must(NS, "[ $($L export idle2 | wc -l) -eq $(wc -l <$DIR/idle.jsonl) ]", "");
}

static void test_export_waits(void **state)
{
    (void)state;
    waits_and_ends("$L export idle1 | wc -l", "1000");
}

/* Its time is over first: nothing was done, and it says why. */
static void test_an_end_names_the_cause(void **state)
{
    static const char *const lines[] = {"add idle3 --in 10h x", "export idle1",
                                        "import idle3 $DIR/idle.jsonl",
                                        "add idle3 --in 10h --from $DIR/idle.jsonl"};

    (void)state;
    begin_move();
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        CLEANUP_FREE char *line = mem_printf("$LATER --config %s %s", d[0].conf, lines[i]);

        test_says(line, 69, "its slot moves to another node; until it has, nothing is done");
    }
    end_move();
    must(NS, "! $L ls idle3 2>&1", "idle3");
}

/* ---- begun before it moves */

/* The line has begun with the queue when the slot moves, and goes on at its new owner. */
static void follows(const char *line, const char *queue, const char *says)
{
    begin_command(line);
    until_begun(queue);
    move();
    go();
    end_command(0, says);
}

static void test_add_from_follows(void **state)
{
    (void)state;
    follows("{ seq 10; " UNTIL_GO "seq 2000; } | $L add idle4 --in 10h --from -", "idle4",
            "2010 jobs added");
    must(NS, "$L export idle4 | wc -l", "2010");
}

static void test_import_follows(void **state)
{
    (void)state;
    follows("{ head -10 $DIR/idle.jsonl; " UNTIL_GO "cat $DIR/idle.jsonl; } | $L import idle5",
            "idle5", " added");
    must(NS, "[ $($L export idle5 | wc -l) -eq $((10 + $(wc -l <$DIR/idle.jsonl))) ]", "");
}

/* Nobody reads what it writes before the slot has moved. */
static void test_export_follows(void **state)
{
    (void)state;
    must(NS, "seq -f %0200.0f 2000 | $L add long --in 10h --from -", "2000 jobs added");
    begin_command("{ $L export long; echo status $? >&2; } | { read line; echo begun; " UNTIL_GO
                  "echo $((1 + $(wc -l))); }");
    until_said("begun");
    move();
    go();
    end_command(0, "2000");
    until_said("status 0");
}

static void test_wait_follows(void **state)
{
    (void)state;
    must(NS, "$L add work --in 3s --keep 1h x >$DIR/id", "");
    begin_command("$L wait --timeout 2m $(cat $DIR/id)");
    move();
    end_command(0, "");
}

static void test_tail_follows(void **state)
{
    (void)state;
    begin_command("exec $L tail");
    for (int i = 0; i < 2; i++) {
        CLEANUP_FREE char *add = mem_printf("$L add probe%d --in 10h x", i);
        CLEANUP_FREE char *queue = mem_printf("probe%d", i);

        for (int tries = 0; tries < 600; tries++) {
            CLEANUP_FREE char *path = mem_printf("%s/said", dir);

            must(NS, add, "");
            if (test_until_lines(path, queue, 1, 200))
                break;
        }
        until_said(queue);
        if (i == 0)
            move();
    }
    proc_signal(&command, SIGINT);
    end_command(130, "");
}

static void test_nothing_is_amiss(void **state)
{
    (void)state;
    must(NS, "$L fsck", "");
    for (int i = 0; i < CLUSTER_PRIMARIES; i++)
        assert_int_equal(cluster_keys(&c, i, NS) > 0, i == cluster_owner(&c, 0, NS));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_add_waits),
        cmocka_unit_test(test_add_from_waits),
        cmocka_unit_test(test_import_waits),
        cmocka_unit_test(test_export_waits),
        cmocka_unit_test(test_an_end_names_the_cause),
        cmocka_unit_test(test_add_from_follows),
        cmocka_unit_test(test_import_follows),
        cmocka_unit_test(test_export_follows),
        cmocka_unit_test(test_wait_follows),
        cmocka_unit_test(test_tail_follows),
        cmocka_unit_test(test_nothing_is_amiss),
    };

    cmocka_set_test_filter(getenv("LATER_ONLY")); /* a name, with * and ? */
    return cmocka_run_group_tests(tests, open_moves, close_moves);
}
