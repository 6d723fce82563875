/*
 * The log of a real laterd: native in the journal (here a socket in a mount namespace of our own),
 * as JSON, and limited.
 */
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "../support/env.h"
#include "base/cleanup.h"
#include "base/mem.h"
#include "fixture.h"

#define LONG_MS 60000
#define TRACE_ID "4bf92f3577b34da6a3ce929d0e0e4736"
#define TRACE "00-" TRACE_ID "-00f067aa0ba902b7-01"
#define JOURNAL "/run/systemd/journal/socket"

/* ---- the journal */

static int journal = -1;

static void journal_listen(void)
{
    struct sockaddr_un at = {AF_UNIX, JOURNAL};

    journal = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_true(journal >= 0);
    assert_int_equal(bind(journal, (struct sockaddr *)&at, sizeof(at)), 0);
}

/* From here on this process has a /run of its own. Skipped where that is not allowed. */
static void journal_open(void)
{
    if (unshare(CLONE_NEWNS) < 0)
        skip();
    assert_int_equal(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
    assert_int_equal(mount("tmpfs", "/run", "tmpfs", 0, "mode=0755"), 0);
    assert_int_equal(mkdir("/run/systemd", 0755), 0);
    assert_int_equal(mkdir("/run/systemd/journal", 0755), 0);
    journal_listen();
}

/* Start laterd as systemd starts a service: stderr is the stream that JOURNAL_STREAM names. */
static void start_in_journal(const char *yaml)
{
    CLEANUP_FREE char *program = mem_printf("%s/laterd", test_build_dir());
    CLEANUP_FREE char *stream = NULL;
    char *argv[] = {program, (char *)(uintptr_t) "--config", a.conf, NULL};
    char *env[2] = {NULL, NULL};
    struct stat st;
    FILE *f;

    test_laterd_conf(&a, dir, "a", redis.url, yaml);
    argv[2] = a.conf;
    f = fopen(a.log, "w");
    assert_non_null(f);
    assert_int_equal(fstat(fileno(f), &st), 0);
    (void)fclose(f);
    stream = mem_printf("JOURNAL_STREAM=%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
    env[0] = stream;
    proc_start(&a.proc, argv, env, a.log);
    a.runs = true;
}

/* The datagrams so far, each followed by an empty line. */
static struct buf heard;

struct wanted {
    const char *first, *second; /* in one datagram */
};

static bool has_come(void *arg)
{
    const struct wanted *w = arg;
    static char datagram[65536];
    ssize_t n;

    while ((n = recv(journal, datagram, sizeof(datagram) - 1, MSG_DONTWAIT)) > 0) {
        datagram[n] = '\0';
        assert_int_equal(strlen(datagram), n);
        buf_puts(&heard, datagram);
        buf_puts(&heard, "\n");
    }
    for (const char *at = strstr(buf_str(&heard), w->first); at != NULL;
         at = strstr(at + 1, w->first)) {
        const char *end = strstr(at, "\n\n"), *second = strstr(at, w->second);

        if (second != NULL && second < end)
            return true;
    }
    return false;
}

static bool comes(const char *first, const char *second)
{
    return test_until(has_come, &(struct wanted){first, second}, LONG_MS);
}

static void test_journal_gets_fields(void **state)
{
    CLEANUP_FREE char *id = NULL, *field = NULL;

    (void)state;
    journal_open();
    test_handler(dir, "mail",
                 "printf 'one\\033[31m\"two\\nPRIORITY=0\\n' >&2; cat >/dev/null; exit 65");
    start_in_journal("");
    assert_true(comes("MESSAGE=event=starting ", "\nPRIORITY=5\nSYSLOG_IDENTIFIER=laterd\n"));
    assert_true(comes("MESSAGE=event=registered ", "\nLATERD_EVENT=registered\n"));
    assert_true(comes("MESSAGE_ID=a1c893e36c494a21a9af5a98dbf63f8b\n", "LATERD_STATE=up\n"));
    id = test_add(&redis, "mail", "trace", TRACE, "secret payload");
    field = mem_printf("\nLATERD_JOB=%s\n", id);
    assert_true(comes("MESSAGE_ID=71b865ffcd294b898c6f80f1392e5082\n", field));
    assert_true(
        comes("MESSAGE_ID=71b865ffcd294b898c6f80f1392e5082\n", "LATERD_EVENT=end\nLATERD_JOB=j"));
    assert_true(comes("LATERD_EVENT=end\n", "LATERD_TRACE_ID=" TRACE_ID "\n"));
    assert_true(comes("\nLATERD_STREAM=stderr\n", "LATERD_MSG=one\\x1b[31m\\x22two\n"));
    assert_true(comes("\nLATERD_QUEUE=mail\n", "LATERD_MSG=PRIORITY=0\n"));
    assert_null(strstr(buf_str(&heard), "\nPRIORITY=0\n"));
    assert_null(strstr(buf_str(&heard), "secret"));
    assert_true(comes("LATERD_WORKER=", "LATERD_EVENT=end\n"));
    assert_int_equal(test_lines(a.log, NULL), 0);
    /* A reload is logged to the journal, too. */
    assert_int_equal(kill(a.proc.pid, SIGHUP), 0);
    assert_true(comes("LATERD_EVENT=reload\n", "LATERD_RESULT=done\n"));
    /* Without a journal the line goes to stderr, which a later journal reads. */
    (void)close(journal);
    assert_int_equal(unlink(JOURNAL), 0);
    assert_int_equal(kill(a.proc.pid, SIGHUP), 0);
    assert_true(test_until_lines(a.log, "<5>event=reload result=done", 1, LONG_MS));
    journal_listen();
    assert_int_equal(kill(a.proc.pid, SIGUSR1), 0);
    assert_true(comes("LATERD_EVENT=quiet\n", "LATERD_BY=signal\n"));
    (void)close(journal);
    buf_done(&heard);
}

/* ---- JSON */

static json_t *line_of(const char *log, const char *event)
{
    CLEANUP_BUF struct buf text = BUF_INIT;
    CLEANUP_FREE char *bytes = NULL;
    json_t *found = NULL;
    char *rest, *line;

    test_read(log, &text);
    rest = bytes = buf_take(&text);
    while ((line = strsep(&rest, "\n")) != NULL && *line != '\0') {
        json_t *object = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
        const char *name = json_string_value(json_object_get(object, "event"));

        if (object == NULL)
            fail_msg("no JSON: %s", line);
        if (found == NULL && strcmp(name != NULL ? name : "", event) == 0)
            found = object;
        else
            json_decref(object);
    }
    return found;
}

static void start_as_json(const char *handler)
{
    test_handler(dir, "mail", "%s", handler);
    test_laterd_conf(&a, dir, "a", redis.url, "log_format: json");
    test_laterd_launch(&a);
    assert_true(test_laterd_says(&a, "\"event\":\"registered\"", LONG_MS));
}

static void test_json_lines(void **state)
{
    CLEANUP_FREE char *id = NULL;
    struct test_laterd edited;
    json_t *end;

    (void)state;
    start_as_json("printf 'a \"quote\" \\\\ and \\377\\n'; exit 3");
    id = test_add(&redis, "mail", "attempts", "2", "x");
    assert_true(test_laterd_says(&a, "\"event\":\"end\"", LONG_MS));
    end = line_of(a.log, "end");
    assert_string_equal(json_string_value(json_object_get(end, "job")), id);
    assert_string_equal(json_string_value(json_object_get(end, "queue")), "mail");
    assert_string_equal(json_string_value(json_object_get(end, "level")), "warn");
    assert_string_equal(json_string_value(json_object_get(end, "outcome")), "retry");
    assert_int_equal(json_integer_value(json_object_get(end, "attempt")), 1);
    assert_true(json_integer_value(json_object_get(end, "worker")) > 1000000);
    assert_non_null(json_object_get(end, "time"));
    json_decref(end);
    assert_true(
        test_laterd_says(&a, "\"msg\":\"a \\\\x22quote\\\\x22 \\\\ and \\\\xff\"", LONG_MS));
    test_laterd_conf(&edited, dir, "a", redis.url, "log_format: text");
    test_laterd_kill(&a, SIGHUP);
    assert_true(test_laterd_says(&a, "notice event=reload result=done", LONG_MS));
}

/* The guard is a process of its own, which does not read the configuration. */
static void test_json_lines_of_the_guard(void **state)
{
    json_t *kill;

    (void)state;
    start_as_json("echo started; exec sleep 1000");
    free(test_add(&redis, "mail", "lock", "door", "x"));
    assert_true(test_laterd_says(&a, "\"msg\":\"started\"", LONG_MS));
    test_laterd_kill(&a, SIGKILL);
    (void)test_laterd_wait(&a, LONG_MS);
    assert_true(test_until_lines(a.log, "guard-kill", 1, LONG_MS));
    kill = line_of(a.log, "guard-kill");
    assert_non_null(kill);
    assert_string_equal(json_string_value(json_object_get(kill, "level")), "warn");
    assert_true(json_integer_value(json_object_get(kill, "pid")) > 1);
    json_decref(kill);
}

/* ---- traces */

/* A trace id is in the lines of start and end, where the job has a valid trace. */
static void test_a_trace_is_told(void **state)
{
    CLEANUP_FREE char *id = NULL;

    (void)state;
    test_handler(dir, "mail", "exit 0");
    start_a("log_level: debug");
    id = test_add(&redis, "mail", "in", "1h", "x");
    /* As an add took it before traces were checked. */
    reply_free(test_redis_call(&redis, "HSET", ROOT ":jobs", id, "-mail T=4bf9\nx", NULL));
    reply_free(test_fcall(&redis, "later_run_now", id, NULL));
    free(test_add(&redis, "mail", NULL, NULL, "x"));
    free(test_add(&redis, "mail", "trace", TRACE, "x"));
    assert_true(test_until_lines(a.log, " event=end ", 3, LONG_MS));
    assert_int_equal(test_lines(a.log, " event=start "), 3);
    assert_int_equal(test_lines(a.log, " trace_id="), 2);
    assert_int_equal(test_lines(a.log, " trace_id=" TRACE_ID), 2);
}

/* ---- how much */

/* A storm of failing jobs, each of which prints a lot: the log stays small, and counts the rest. */
static void test_a_storm_is_told_in_short(void **state)
{
    struct stat st;

    (void)state;
    test_handler(dir, "mail", "i=0; while [ $i -lt 100 ]; do echo line; i=$((i+1)); done; exit 65");
    test_handler(dir, "web", "exit 65");
    start_a("log_rate: 1\nconcurrency: 8");
    for (int i = 0; i < 300; i++)
        free(test_add(&redis, "mail", NULL, NULL, "x"));
    assert_true(
        test_until_lines(a.log, "event=suppressed of=end of_level=error queue=mail", 1, LONG_MS));
    free(test_add(&redis, "web", NULL, NULL, "x"));
    assert_true(test_until_lines(a.log, "event=end job=j", 51, LONG_MS));
    assert_true(test_laterd_says(&a, "queue=web", LONG_MS)); /* another kind is not hidden */
    assert_true(
        test_laterd_says(&a, "of=output of_level=info queue=mail suppressed_lines=", LONG_MS));
    assert_in_range(test_lines(a.log, "stream=stdout"), 500, 1200);
    assert_in_range(test_lines(a.log, "event=end job="), 51, 120);
    assert_int_equal(stat(a.log, &st), 0);
    assert_true(st.st_size < 300000);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, fx_open, fx_close)
    const struct CMUnitTest tests[] = {
        T(test_json_lines),          T(test_json_lines_of_the_guard),
        T(test_a_trace_is_told),     T(test_a_storm_is_told_in_short),
        T(test_journal_gets_fields), /* the last: /run is another one after it */
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
