/* Output that could not be written is no success, and what was done is said all the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cli/verbs/verbs.h"
#include "lock_fixture.h"

/* Lines of shell, behind "$LATER ", for each verb and each way of it to print. */
static const char *const lines[] = {
    "help",
    "add --help",
    "--version",
    "add q x",
    "--json add q x",
    "add q --from $DIR/lines",
    "add q x --wait --wait-timeout 60s",
    "show $JOB",
    "explain $JOB",
    "wait $DONE",
    "ls q",
    "ls q --by reason",
    "--json ls q",
    "cancel $($LATER add q x --in 1h)",
    "retry $DEAD",
    "retry --all q",
    "run-now $JOB",
    "reschedule $($LATER add q x --in 1h) --in 2h",
    "pause q",
    "resume q",
    "stats",
    "stats q",
    "stats q --since 1h",
    "stats --prometheus",
    "workers",
    "limits",
    "limits set l semaphore 2",
    "throttle r",
    "gates s",
    "export q --state done",
    "purge q --state done --yes",
    "import q $DIR/jobs",
    "batch add b x",
    "batch ls",
    "batch show b",
    "schedule add n every 1h x --queue q",
    "schedule ls",
    "schedule show n",
    "schedule next n",
    "schedule calendar n",
    "schedule run-now n",
    "publish t.y x",
    "topic ls",
    "topic subscribe t.x q2",
    "broadcast w x",
    "broadcast w x --wait",
    "top --by busy",
    "seen s k2",
    "--json seen s k3",
    "seen s --lines <$DIR/lines",
    "seen ls",
    "find q",
    "health",
    "quiet '*'",
    "bulk ls",
    "fsck",
    "setup",
    "run /bin/true",
};

/* They print nothing: what they run does. tail prints when something happens. */
static const char *const silent[] = {"lock", "sem", "once", "cli", "tail", "web", "step"};

static bool is_tested(const char *verb)
{
    for (size_t i = 0; i < sizeof(silent) / sizeof(silent[0]); i++) {
        if (strcmp(silent[i], verb) == 0)
            return true;
    }
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        const char *line = strncmp(lines[i], "--json ", 7) == 0 ? lines[i] + 7 : lines[i];

        if (strncmp(line, verb, strlen(verb)) == 0 && line[strlen(verb)] == ' ')
            return true;
        if (strcmp(line, verb) == 0)
            return true;
    }
    return false;
}

static struct test_laterd laterd;

static int begin(void **state)
{
    (void)setup(state);
    test_handler(dir, "q", "cat");
    test_handler(dir, "w", "cat");
    test_handler(dir, "bad", "exit 1");
    test_laterd_conf(&laterd, dir, "d", redis.url,
                     "queues: {q: {keep: 1h}, w: {}, bad: {attempts: 1}}");
    test_laterd_start(&laterd);
    assert_int_equal(
        test_sh("$LATER limits set s semaphore 2 && $LATER limits set r rate 999/1h --burst 999 && "
                "$LATER topic subscribe t.y q && $LATER seen s k --for 1h && "
                "seq 300 >$DIR/lines && echo '{\"payload\":\"x\"}' >$DIR/jobs"),
        0);
    return 0;
}

static int end(void **state)
{
    int status = test_laterd_stop(&laterd);

    return status + teardown(state);
}

static void name_jobs(void)
{
    CLEANUP_BUF struct buf id = BUF_INIT, done = BUF_INIT, dead = BUF_INIT;

    assert_int_equal(test_sh_out("$LATER add q x --in 1h", &id), 0);
    assert_int_equal(test_sh_out("$LATER add q x", &done), 0);
    assert_int_equal(
        test_sh_out("id=$($LATER add bad x); $LATER wait $id >$DIR/said 2>&1; echo $id", &dead), 0);
    (void)setenv("DEAD", buf_str(&dead), 1);
    (void)setenv("JOB", buf_str(&id), 1);
    (void)setenv("DONE", buf_str(&done), 1);
}

static void test_every_verb(void **state)
{
    (void)state;
    for (size_t i = 0; cli_verbs[i] != NULL; i++) {
        if (!is_tested(cli_verbs[i]->name))
            fail_msg("%s: no line of this test tries it", cli_verbs[i]->name);
    }
    name_jobs();
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        CLEANUP_FREE char *line = mem_printf("$LATER %s >/dev/full", lines[i]);
        CLEANUP_BUF struct buf said = BUF_INIT;
        int status = test_sh_out(line, &said);

        if (status != 74 || strstr(buf_str(&said), "cannot write the output") == NULL)
            fail_msg("%s: %d %s\n", lines[i], status, buf_str(&said));
    }
}

/* The id of what was added, and the lines whose keys are remembered now, are said elsewhere. */
static void test_what_was_done_is_said(void **state)
{
    (void)state;
    test_says("$LATER add q x --in 1h >/dev/full 2>$DIR/said; $LATER show $(tail -n 1 $DIR/said)",
              0, "waiting");
    test_says("seq 300 | $LATER seen s --lines >/dev/full", 74, "lines 1 to ");
    /* It stops early, and without a word where the reader went away. */
    assert_int_equal(test_sh("seq 9999 | $LATER seen t --lines >/dev/full 2>&1"), 74);
    assert_int_equal(test_sh("test $(seq 9999 | $LATER seen t --lines | grep -c .) -gt 9000"), 0);
    test_says("(seq 9999 | $LATER seen u --lines; echo $? >&2) | true", 0, "141\n");
}

static void test_tail_ends(void **state)
{
    (void)state;
    test_says("$LATER tail >/dev/full & p=$!; while kill -0 $p; do $LATER add q x >$DIR/said 2>&1; "
              "sleep 0.05; done 2>/dev/null; wait $p; echo $?",
              0, "74\n");
}

static void test_laterd_too(void **state)
{
    (void)state;
    test_says("for o in --version --help --print-config --check-config; do "
              "${LATER}d --config $DIR/d.yaml $o >/dev/full; echo $?; done | sort -u",
              0, "74\n");
    test_says("${LATER}d --version 2>&1 >/dev/full | grep 'cannot write the output'", 0, "output");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_every_verb, begin, end),
        cmocka_unit_test_setup_teardown(test_what_was_done_is_said, begin, end),
        cmocka_unit_test_setup_teardown(test_tail_ends, begin, end),
        cmocka_unit_test_setup_teardown(test_laterd_too, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
