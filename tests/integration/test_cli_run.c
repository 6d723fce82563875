/* `later run`: a handler runs without a daemon, and is told and judged as by one. */
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

#include "base/cleanup.h"
#include "base/mem.h"
#include "../support/env.h"
#include "../support/laterd.h"
#include "command.h"

#define LONG_MS 60000

static char dir[64];
static char handler[sizeof(dir) + 32]; /* DIR/handlers/mail */

static void write_handler(const char *script)
{
    test_handler(dir, "mail", "%s", script);
    (void)snprintf(handler, sizeof(handler), "%s/handlers/mail", dir);
}

static void test_what_it_is_told(void **state)
{
    (void)state;
    write_handler("echo \"$LATER_ID $LATER_QUEUE [$LATER_KEY] $LATER_ATTEMPT/$LATER_ATTEMPTS_MAX"
                  " ${LATER_CHECKPOINT-none} $LATER_TIMEOUT_MS ${HIDDEN-none}\"; cat");
    (void)setenv("HIDDEN", "x", 1);
    assert_int_equal(feed("a b", "run", handler), 0);
    assert_says(&out, "\nj00000000000 mail [] 1/25 none 3600000 none\na b\n");
    assert_int_equal(feed("a b", "run", "--queue", "q", "--key", "k", "--attempt", "3",
                          "--attempts", "7", "--checkpoint", "line 4", "--timeout", "9s", handler),
                     0);
    assert_says(&out, "\nj00000000000 q [k] 3/7 line 4 9000 none\na b\n");
    assert_string_equal(buf_str(&err), "");
}

/* Each end, as laterd would judge it. */
static void test_what_comes_of_it(void **state)
{
    static const struct {
        const char *script, *outcome;
        int status;
    } ends[] = {
        {"exit 0", "\"outcome\":\"done\",\"code\":0,\"reason\":\"exit status 0\"", 0},
        {"echo why >&2; exit 3",
         "\"outcome\":\"retry\",\"code\":3,\"reason\":\"why\",\"retry_in_ms\":15000", 3},
        {"echo reason gone >&3; exit 65",
         "\"outcome\":\"dead\",\"code\":65,\"reason\":\"gone\",\"run_ms\"", 65},
        {"echo retry-in 7s >&3; exit 75", "\"outcome\":\"retry\",\"code\":75", 75},
        {"kill -9 $$", "\"reason\":\"killed by signal 9 (Killed)\"", 137},
        {"echo 'add mail key' >&3", "\"outcome\":\"retry\",\"code\":65", 65},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        write_handler(ends[i].script);
        assert_int_equal(run("run", "--json", handler), ends[i].status);
        assert_says(&out, ends[i].outcome);
    }
    write_handler("sleep 60");
    assert_int_equal(run("run", "--timeout", "200ms", handler), 124);
    assert_says(&out, "timed out after 200ms");
    write_handler("exit 3");
    assert_int_equal(run("run", "--attempts", "1", handler), 3);
    assert_says(&out, "outcome           dead\nreason            exit status 3; no attempt of 1");
}

static void test_what_it_tells(void **state)
{
    (void)state;
    write_handler("echo progress half >&3; echo checkpoint 40 >&3; echo 'result fine' >&3\n"
                  "echo 'add next key k priority 3 -- a b' >&3\n"
                  "later step one -- echo stepped");
    assert_int_equal(run("run", "--json", handler), 0);
    assert_says(&out,
                "\"progress\":\"half\",\"checkpoint\":\"40\",\"result\":\"fine\","
                "\"adds\":[{\"queue\":\"next\",\"options\":{\"key\":\"k\",\"priority\":\"3\"},"
                "\"payload\":\"a b\"}],\"output_bytes\":8,\"output\":\"stepped\\n\"}");
    assert_int_equal(run("run", handler), 0);
    assert_says(&out, "adds              next key k priority 3 a b\n");
}

static void test_what_it_refuses(void **state)
{
    (void)state;
    assert_int_equal(run("run"), 64);
    assert_int_equal(run("run", "mail"), 66);
    assert_says(&err, "write a path: ./NAME");
    assert_int_equal(run("run", "./no/such"), 66);
    assert_int_equal(run("run", "--attempt", "0", handler), 64);
    assert_int_equal(run("run", "--timeout", "x", handler), 64);
    assert_int_equal(run("run", dir), 127);
}

static bool has_begun(void *file)
{
    return access(file, F_OK) == 0;
}

/* Ctrl-C ends the handler, too, which may say what it wants. */
static void test_an_interrupt(void **state)
{
    CLEANUP_FREE char *begun = mem_printf("%s/begun", dir);
    CLEANUP_FREE char *script =
        mem_printf("trap 'echo told; exit 1' TERM; : > %s; sleep 60 & wait", begun);
    char *argv[] = {later, (char *)"run", handler, NULL};
    struct proc p;

    (void)state;
    write_handler(script);
    proc_start(&p, argv, NULL, "/dev/null");
    assert_true(test_until(has_begun, begun, LONG_MS));
    proc_signal(&p, SIGINT);
    assert_int_equal(proc_wait(&p, LONG_MS), 130);
    proc_done(&p);
}

static int start(void **state)
{
    CLEANUP_FREE char *path = NULL;

    (void)state;
    (void)snprintf(later, sizeof(later), "%s/later", test_build_dir());
    (void)setenv("LATER_REDIS_URL", "unix:/no/such/server", 1); /* nobody is asked */
    (void)unsetenv("LATERD_CONFIG");
    path = mem_printf("%s:/usr/bin:/bin", test_build_dir()); /* a handler finds `later` */
    (void)setenv("PATH", path, 1);
    test_folder_make(dir);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    buf_done(&out);
    buf_done(&err);
    test_folder_remove(dir);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_it_is_told), cmocka_unit_test(test_what_comes_of_it),
        cmocka_unit_test(test_what_it_tells),   cmocka_unit_test(test_what_it_refuses),
        cmocka_unit_test(test_an_interrupt),
    };

    return cmocka_run_group_tests(tests, start, stop);
}
