/* `later find`, and @ in place of an id: what they print, refuse and answer. */
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "../support/env.h"
#include "command.h"

static void test_find(void **state)
{
    (void)state;
    assert_int_equal(run("find", "ma"), 66);
    assert_says(&err, "no name begins with 'ma'");
    assert_int_equal(run("find"), 66);
    assert_says(&err, "there are no names");
    assert_int_equal(run("find", "--kind", "topic"), 66);
    assert_says(&err, "there are no names of kind topic");
    assert_int_equal(run("add", "mail", "x"), 0);
    assert_int_equal(run("add", "mailing", "x"), 0);
    assert_int_equal(run("limits", "set", "main", "semaphore", "2"), 0);
    assert_int_equal(run("find", "ma"), 0);
    assert_out("KIND   NAME\nqueue  mail\nqueue  mailing\nsem    main\n");
    assert_int_equal(run("find", "ma", "--json", "--kind", "gate"), 0);
    assert_out("{\"kind\":\"sem\",\"name\":\"main\"}\n");
    assert_int_equal(run("find", "ma", "-n", "1"), 0);
    assert_out("KIND   NAME\nqueue  mail\nsem    main\n");
    assert_says(&err, "there are more");
    assert_int_equal(run("find", "ma", "--count", "10000"), 0);
    assert_int_equal(run("find", "ma", "--complete"), 0);
    assert_out("mail\nmailing\nmain\n");
    assert_int_equal(run("find", "ma", "--count", "0"), 64);
    assert_int_equal(run("find", "ma", "--count", "10001"), 64);
    assert_int_equal(run("find", "ma", "--kind", "queues"), 64);
    assert_says(&err, "did you mean queue?");
    assert_int_equal(run("find", "ma", "mb"), 64);
}

/* Names may have any byte; a shell is told only what it can quote. */
static void test_every_byte(void **state)
{
    static const char *const names[] = {"x'$(y)`\\", "x\xff\xc2\x9b", "x\xe2\x80\xae", "x*"};

    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        assert_int_equal(run("limits", "set", names[i], "semaphore", "1"), 0);
    do_redis("ZADD", ROOT ":index", "0", "topic:x\n\033[2Jy");
    assert_int_equal(run("find", "x"), 0);
    assert_says(&out, "x'$(y)`\\\n");
    assert_says(&out, "x\\xff\\xc2\\x9b\n");
    assert_says(&out, "x\\xe2\\x80\\xae\n");
    assert_says(&out, "x\\x0a\\x1b[2Jy\n");
    assert_int_equal(run("find", "x", "--json"), 0);
    assert_says(&out, "{\"kind\":\"sem\",\"name_base64\":\"eP/Cmw==\"}\n");
    assert_int_equal(run("find", "x", "--complete"), 0);
    assert_out("x'$(y)`\\\nx*\n");
    assert_int_equal(run("find", "q\033[2J"), 66);
    assert_says(&err, "'q\\x1b[2J'");
}

/* A shell is told nothing where something is wrong. */
static void test_complete_is_quiet(void **state)
{
    (void)state;
    do_redis("SET", ROOT ":index", "foreign");
    assert_int_equal(run("find", "x"), 1);
    assert_says(&err, "has a foreign type");
    assert_int_equal(run("find", "x", "--complete"), 0);
    assert_out("");
    assert_string_equal(buf_str(&err), "");
    assert_int_equal(run("--redis", "unix:/nonexistent", "find", "x", "--complete"), 0);
    assert_string_equal(buf_str(&err), "");
    do_redis("DEL", ROOT ":index");
    do_redis("FUNCTION", "FLUSH");
    assert_int_equal(run("find", "x", "--complete"), 0);
    assert_out("");
    assert_string_equal(buf_str(&err), "");
    assert_int_equal(run("find", "x"), 66); /* this one loads it */
}

/* A server that does not answer: a shell waits half a second, not the timeout of the command. */
static void test_complete_is_quick(void **state)
{
    CLEANUP_FREE char *path = mem_printf("%s/mute.sock", redis.dir);
    CLEANUP_FREE char *url = mem_printf("unix:%s", path);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const char *const argv[] = {"timeout", "4", later,        "--redis", url,
                                "find",    "x", "--complete", NULL};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    (void)state;
    assert_true(fd >= 0 && strlen(path) < sizeof(address.sun_path));
    memcpy(address.sun_path, path, strlen(path) + 1);
    assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(fd, 5), 0);
    assert_int_equal(run_argv((char *const *)(uintptr_t)argv, NULL, 0), 0);
    assert_out("");
    assert_string_equal(buf_str(&err), "");
    (void)close(fd);
}

/* The id of the n-th job from the last; the caller frees it. */
static char *shown(const char *operand)
{
    char *from, *id;

    assert_int_equal(run("--json", "show", operand), 0);
    from = strstr(buf_str(&out), "\"id\":\"");
    assert_non_null(from);
    id = mem_dup(from + 6, 12);
    return id;
}

/* Add a job. The caller frees its id. */
static char *add(const char *queue)
{
    assert_int_equal(run("add", queue, "x", "--in", "1h"), 0);
    return mem_dup(buf_str(&out), 12);
}

static void test_recents(void **state)
{
    CLEANUP_FREE char *one = NULL, *two = NULL, *last = NULL, *before = NULL;

    (void)state;
    assert_int_equal(run("show", "@"), 66);
    assert_says(&err, "has added no job here with later in the last 30 days");
    one = add("mail");
    two = add("other");
    last = shown("@");
    before = shown("@2");
    assert_string_equal(last, two);
    assert_string_equal(before, one);
    assert_int_equal(run("run-now", "@2", "@1"), 0);
    assert_says(&out, one);
    assert_says(&out, two);
    assert_int_equal(run("explain", "@"), 0);
    assert_says(&out, "other");
    assert_int_equal(run("find", "--kind", "job", "-n", "1"), 0);
    assert_says(&err, "later: there are more: --count N\n");
    assert_int_equal(run("find", "--kind", "job"), 0);
    assert_says(&out, two);
    assert_int_equal(run("find", "--kind", "job", one, "--complete"), 0);
    assert_says(&out, one);
    assert_int_equal(run("find", "--kind", "job", "x"), 66);
    assert_int_equal(run("cancel", "@2"), 0);
    assert_says(&out, one);
    assert_int_equal(run("show", "@2"), 66); /* it is gone, and still the one before */
    assert_says(&err, one);
}

static void test_no_names(void **state)
{
    static const char *const bad[] = {"@0",  "@x",  "@-1", "@1x",
                                      "@01", "@ 1", "@@",  "@9999999999999"};
    CLEANUP_FREE char *id = add("mail");

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(run("show", bad[i]), 64);
        assert_says(&err, "names no job: @ is the one that you added last");
    }
    assert_int_equal(run("show", "@2"), 66);
    assert_says(&err, "@2: ");
    assert_says(&err, "has added only 1 job here");
    assert_int_equal(run("show", "@99"), 66);
    assert_int_equal(run("show", "@101"), 66);
    assert_says(&err, "only the last 100 jobs");
    assert_int_equal(run("cancel", "@", "@2"), 66); /* all or none is read */
    assert_int_equal(run("show", id), 0);
    assert_int_equal(run("add", "@", "x"), 65); /* no id is meant here */
    do_redis("SET", ROOT ":recents", "foreign");
    assert_int_equal(run("add", "mail", "x"), 0);
    assert_string_equal(buf_str(&err),
                        "later: no running worker serves queue mail: the job waits until one "
                        "does\n");
    do_redis("DEL", ROOT ":recents");
}

/* QUEUE@KEY is a job by its unique key. */
static void test_unique_key(void **state)
{
    CLEANUP_FREE char *id = NULL, *by_key = NULL, *last = NULL;

    (void)state;
    assert_int_equal(run("add", "mail", "x", "--unique", "2", "--in", "1h"), 0);
    id = mem_dup(buf_str(&out), 12);
    by_key = shown("mail@2");
    assert_string_equal(by_key, id);
    do_redis("FCALL", "later_add", "1", ROOT, "other", "unique", "k", "in", "1h", "x");
    assert_int_equal(run("add", "other", "x", "--unique", "k"), 0); /* dropped: not ours */
    last = shown("@");
    assert_string_equal(last, id);
}

/* All verbs that add. */
static void test_who_adds(void **state)
{
    CLEANUP_FREE char *id = NULL, *last = NULL, *line = NULL;
    char epoch[24];

    (void)state;
    register_worker("mail", epoch);
    assert_int_equal(run("topic", "subscribe", "t", "mail"), 0);
    assert_int_equal(run("publish", "t", "x"), 0);
    id = mem_dup(buf_str(&out), 12);
    last = shown("@");
    assert_string_equal(last, id);
    assert_int_equal(run("broadcast", "mail", "x"), 0);
    assert_int_equal(run("show", "@"), 0);
    assert_says(&out, "expires after     1h");
    assert_int_equal(run("schedule", "add", "s", "every", "1h", "--queue", "mail", "x"), 0);
    assert_int_equal(run("schedule", "run-now", "s"), 0);
    assert_int_equal(run("--json", "show", "@"), 0);
    assert_says(&out, "\"schedule\":\"s\"");
    line = mem_new(301);
    for (int i = 0; i < 150; i++)
        memcpy(line + (size_t)2 * (size_t)i, i < 149 ? "x\n" : "y\n", 2);
    assert_int_equal(feed(line, "add", "mail", "--from", "-"), 0);
    assert_int_equal(count("LLEN", ROOT ":recent:nobody"), 0);
    assert_int_equal(run("--json", "show", "@"), 0);
    assert_says(&out, "\"payload\":\"y\"");
    assert_int_equal(run("--json", "show", "@100"), 0);
    assert_says(&out, "\"payload\":\"x\"");
}

/* ---- a server that stands still after the answer */

/* Pass on what a client sends and is told, until it sends this word: from there on nothing. */
static void pass_on(int client, const char *word)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    int server = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct pollfd ready[2] = {{client, POLLIN, 0}, {server, POLLIN, 0}};
    static char bytes[65536];

    (void)snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", redis.sock);
    if (connect(server, (struct sockaddr *)&addr, sizeof(addr)) < 0)
        return;
    while (poll(ready, 2, -1) > 0) {
        for (int i = 0; i < 2; i++) {
            ssize_t n = ready[i].revents != 0 ? read(ready[i].fd, bytes, sizeof(bytes)) : -1;

            if (n == 0)
                return;
            if (n > 0 && i == 0 && memmem(bytes, (size_t)n, word, strlen(word)) != NULL)
                (void)pause();
            if (n > 0 && write(ready[1 - i].fd, bytes, (size_t)n) != n)
                return;
        }
    }
}

/* A server that stands still when it is asked for this. url: where it is; -> its process */
static pid_t stall_at(const char *word, char url[128])
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    CLEANUP_CLOSE int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    pid_t pid;

    (void)snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/still.sock", redis.dir);
    (void)snprintf(url, 128, "unix:%s", addr.sun_path);
    (void)unlink(addr.sun_path);
    assert_int_equal(bind(listener, (struct sockaddr *)&addr, sizeof(addr)), 0);
    assert_int_equal(listen(listener, 4), 0);
    pid = fork();
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;) {
            int client = accept(listener, NULL, NULL);

            if (client >= 0 && fork() == 0) {
                (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
                pass_on(client, word);
                _exit(0);
            }
            (void)close(client);
        }
    }
    return pid;
}

/* The answer is out, and the exit is not held up: neither by the note of the id, nor by the
 * question whether somebody serves the queue. */
static void test_stands_still_after_the_answer(void **state)
{
    static const char *const words[] = {"later_v1_recent", "later_v1_known"};
    char epoch[24];

    (void)state;
    register_worker("mail", epoch);
    do_redis("FCALL", "later_subscribe", "1", ROOT, "t", "mail");
    do_redis("FCALL", "later_schedule_set", "1", ROOT, "s", "every", "1h", "queue", "mail", "x");
    for (size_t i = 0; i < 2; i++) {
        char url[128];
        pid_t pid = stall_at(words[i], url);
        int64_t began_ms = test_now_ms();

        assert_int_equal(run("--redis", url, "add", "mail", "x"), 0);
        assert_int_equal(out.len, 13);
        assert_int_equal(run("--redis", url, "publish", "t", "x"), 0);
        assert_int_equal(run("--redis", url, "broadcast", "mail", "x"), 0);
        assert_int_equal(run("--redis", url, "topic", "subscribe", "u", "mail"), 0);
        assert_int_equal(run("--redis", url, "schedule", "run-now", "s"), 0);
        assert_int_equal(out.len, 13);
        assert_int_equal(feed("x\n", "--redis", url, "batch", "run", i == 0 ? "b0" : "b1", "mail",
                              "--from", "-"),
                         0);
        assert_in_range(test_now_ms() - began_ms, 0,
                        19000); /* 5 s each if they waited as for an answer */
        assert_int_equal(kill(pid, SIGKILL), 0);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
    }
}

static void test_no_such_database(void **state)
{
    char url[600];

    (void)state;
    (void)snprintf(url, sizeof(url), "%s?db=99", redis.url);
    assert_int_equal(run("--redis", url, "find"), 65);
    assert_says(&err, "database 99, the last number of the URL (CONFIG GET databases): ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_no_such_database, flush_all),
        cmocka_unit_test_setup(test_find, flush_all),
        cmocka_unit_test_setup(test_every_byte, flush_all),
        cmocka_unit_test_setup(test_recents, flush_all),
        cmocka_unit_test_setup(test_no_names, flush_all),
        cmocka_unit_test_setup(test_unique_key, flush_all),
        cmocka_unit_test_setup(test_who_adds, flush_all),
        cmocka_unit_test_setup(test_stands_still_after_the_answer, flush_all),
        cmocka_unit_test_setup(test_complete_is_quick, flush_all),
        cmocka_unit_test_setup(test_complete_is_quiet, flush_all),
    };

    return cmocka_run_group_tests(tests, start_all, stop_all);
}
