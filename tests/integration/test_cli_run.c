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
    assert_says(&err, " stream=stdout msg=\"j00000000000 mail [] 1/25 none 3600000 none\"\n");
    assert_says(&err, " msg=\"a b\"\n");
    assert_int_equal(feed("a b", "run", "--queue", "q", "--key", "k", "--attempt", "3",
                          "--attempts", "7", "--checkpoint", "line 4", "--timeout", "9s", handler),
                     0);
    assert_says(&err, " msg=\"j00000000000 q [k] 3/7 line 4 9000 none\"\n");
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
    char longer[258] = "";

    (void)state;
    assert_int_equal(run("run"), 64);
    assert_int_equal(run("run", "mail"), 66);
    assert_says(&err, "write a path: ./NAME");
    assert_int_equal(run("run", "./no/such"), 66);
    assert_int_equal(run("run", "--attempt", "0", handler), 64);
    assert_int_equal(run("run", "--timeout", "x", handler), 64);
    assert_int_equal(run("run", "--timeout", "0s", handler), 64);
    assert_int_equal(run("run", "--checkpoint", "a\nb", handler), 64);
    assert_int_equal(run("run", "--queue", "a b", handler), 64);
    assert_says(&err, "'a b' is no name of a queue");
    memset(longer, 'x', sizeof(longer) - 1);
    assert_int_equal(run("run", "--queue", longer, handler), 64);
    assert_int_equal(run("run", "--key", longer, handler), 64);
    assert_says(&err, "--key: at most 256 bytes");
    assert_int_equal(run("run", "--config", "/no/such", handler), 66);
    assert_int_equal(run("run", "--queue", "q", dir), 127);
    assert_int_equal(run("run", "--attempt", "26", handler), 1);
    assert_says(&out, "outcome           dead\nreason            all 25 attempts are used up\n");
}

/* The settings of the queue count, and nothing else of the file. */
static void test_a_configuration(void **state)
{
    CLEANUP_FREE char *file = mem_printf("%s/conf.yaml", dir);
    FILE *f = fopen(file, "w");

    (void)state;
    assert_non_null(f);
    (void)fputs("redis: unix:/no/such/server\nnamespace: ns\n"
                "queues: { mail: { attempts: 2, exit_dead: [7], env: { A: b } } }\n",
                f);
    assert_int_equal(fclose(f), 0);
    write_handler("echo \"$LATER_ATTEMPTS_MAX $LATER_NAMESPACE $A\"; exit 7");
    assert_int_equal(run("run", "--config", file, handler), 7);
    assert_says(&err, " msg=\"2 ns b\"\n");
    assert_says(&out, "outcome           dead\n");
    assert_int_equal(run("run", "--config", file, "--queue", "other", handler), 7);
    assert_says(&out, "outcome           retry in");
}

static bool has_begun(void *file)
{
    return access(file, F_OK) == 0;
}

/* Start the handler, and send the signals when it has begun. -> the exit status of later */
static int interrupted(const char *script, int first, int second)
{
    CLEANUP_FREE char *begun = mem_printf("%s/begun", dir);
    CLEANUP_FREE char *whole =
        mem_printf("%s; : > %s; while :; do sleep 1 & wait; done", script, begun);
    CLEANUP_FREE char *log = mem_printf("%s/log", dir);
    char *argv[] = {later, (char *)"run", (char *)"--timeout", (char *)"1h", handler, NULL};
    struct proc p;
    int status;

    (void)unlink(begun);
    (void)unlink(log);
    write_handler(whole);
    proc_start(&p, argv, NULL, log);
    assert_true(test_until(has_begun, begun, LONG_MS));
    proc_signal(&p, SIGCONT); /* as of a shell that brings it to the front again */
    proc_signal(&p, first);
    if (second != 0) {
        assert_true(test_until(proc_log_has, &(struct proc_log){&p, "told"}, LONG_MS));
        proc_signal(&p, second);
    }
    status = proc_wait(&p, LONG_MS);
    assert_true(proc_has_logged(&p, "told"));
    proc_done(&p);
    return status;
}

/* A signal ends the handler, which may say what it wants; a second one kills it. */
static void test_a_signal(void **state)
{
    (void)state;
    assert_int_equal(interrupted("trap 'echo told; exit 1' TERM", SIGINT, 0), 128 + SIGINT);
    assert_int_equal(interrupted("trap 'echo told; exit 1' TERM", SIGHUP, 0), 128 + SIGHUP);
    assert_int_equal(interrupted("trap 'echo told; exit 0' TERM", SIGTERM, 0), 0);
    assert_int_equal(interrupted("trap 'echo told' TERM", SIGTERM, SIGINT), 128 + SIGTERM);
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
        cmocka_unit_test(test_a_configuration), cmocka_unit_test(test_a_signal),
    };

    return cmocka_run_group_tests(tests, start, stop);
}
