/*
 * later-web when Redis is slow, or breaks its connections. (Without one, and one that hangs:
 * test_web_calls.c, test_web_stream.c.)
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sys/prctl.h>
#include <sys/wait.h>

#include "web_fixture.h"

/* ---- connections that end while nobody asks */

static void test_a_connection_that_ended_is_made_anew(void **state)
{
    (void)state;
    start_web("--write");
    assert_int_equal(get("/api/v1/default/queues"), 200);
    assert_true(can_add(NULL));
    do_redis("CLIENT", "KILL", "TYPE", "normal");
    assert_int_equal(get("/api/v1/default/batches"), 200);
    assert_true(can_add(NULL));
}

/* ---- a server that is not well */

enum how { TRICKLES, SLOW, BREAKS };

#define EACH 2 /* commands of a connection that BREAKS answers */

/* Say something to a command. False: the connection is over. */
static bool say(int fd, enum how how, int n)
{
    static const char some[] = "$100000\r\n", list[] = "*1\r\n$1\r\n0\r\n";

    if (how == BREAKS && n >= EACH)
        return false;
    if (how == TRICKLES) {
        if (n == 0 && send(fd, some, sizeof(some) - 1, MSG_NOSIGNAL) < 0)
            return false;
        for (;;) {
            test_pause(100);
            if (send(fd, "x", 1, MSG_NOSIGNAL) < 0)
                return false;
        }
    }
    if (how == SLOW)
        test_pause(1500);
    return send(fd, list, sizeof(list) - 1, MSG_NOSIGNAL) > 0;
}

/* Answer what comes, and append it to the file; until the other side closes. */
static void serve(int fd, enum how how, const char *file)
{
    FILE *f = fopen(file, "ae");
    char bytes[4096];
    ssize_t n;

    for (int i = 0; f != NULL && (n = recv(fd, bytes, sizeof(bytes), 0)) > 0; i++) {
        (void)fwrite(bytes, 1, (size_t)n, f);
        (void)fflush(f);
        if (!say(fd, how, i))
            break;
    }
    _exit(0);
}

/* A process that dies with its parent. */
static pid_t fork_bound(void)
{
    pid_t pid = fork();

    if (pid == 0)
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    return pid;
}

static void be_server(int listener, enum how how, const char *file)
{
    (void)signal(SIGCHLD, SIG_IGN);
    for (;;) {
        int fd = accept(listener, NULL, NULL);

        if (fork_bound() == 0)
            serve(fd, how, file);
        (void)close(fd);
    }
}

static pid_t sick;
static char heard[256];

/* later-web with such a server in place of Redis. */
static void start_web_at(enum how how)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int its_port = test_free_port(), on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CLEANUP_FREE char *url = mem_printf("redis://127.0.0.1:%d", its_port);

    a.sin_port = htons((uint16_t)its_port);
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
    assert_int_equal(listen(fd, 16), 0);
    (void)snprintf(heard, sizeof(heard), "%s/heard", redis.dir);
    (void)unlink(heard);
    sick = fork_bound();
    if (sick == 0)
        be_server(fd, how, heard);
    (void)close(fd);
    web_redis = url;
    start_web("--write");
    web_redis = NULL;
}

static int stop_web_and_server(void **state)
{
    if (sick > 0) {
        (void)kill(sick, SIGKILL);
        (void)waitpid(sick, NULL, 0);
        sick = 0;
    }
    return stop_web(state);
}

static int times_heard(const char *word)
{
    CLEANUP_BUF struct buf all = BUF_INIT;
    FILE *f = fopen(heard, "re");
    char bytes[4096];
    size_t n;
    int times = 0;

    assert_non_null(f);
    while ((n = fread(bytes, 1, sizeof(bytes), f)) > 0)
        buf_add(&all, bytes, n);
    (void)fclose(f);
    for (const char *p = buf_str(&all); (p = strstr(p, word)) != NULL; p++)
        times++;
    return times;
}

/* The first call on a dead connection: what looks is asked again, what changes is not. */
static void test_only_what_looks_is_sent_again(void **state)
{
    (void)state;
    start_web_at(BREAKS);
    assert_int_equal(get("/api/v1/default/batches?after=1"), 200);
    assert_int_equal(get("/api/v1/default/batches?after=2"), 200);
    assert_int_equal(times_heard("later_v1_batches"), 3);
    assert_int_equal(post("/api/v1/default/queues/mail/pause", "{}"), 200);
    assert_int_equal(post("/api/v1/default/queues/web/pause", "{}"), 503);
    assert_int_equal(times_heard("later_pause"), 2);
}

static void assert_given_up(const char *path)
{
    struct mono begin = mono_now();
    json_t *said;

    assert_int_equal(get(path), 503);
    assert_true(test_ms_since(begin) < 30000); /* without a bound it would be hours */
    said = answer();
    assert_true(strlen(text_of(said, "text")) > 10);
    json_decref(said);
}

static void test_an_answer_that_never_ends_is_given_up(void **state)
{
    (void)state;
    start_web_at(TRICKLES);
    assert_given_up("/api/v1/default/queues");
}

static void test_many_slow_answers_are_given_up(void **state)
{
    (void)state;
    start_web_at(SLOW);
    assert_given_up("/api/v1/default/overview");
    assert_says(&out, "too slowly");
}

int main(void)
{
#define SICK_TEST(f) cmocka_unit_test_setup_teardown(f, flush_all, stop_web_and_server)
    const struct CMUnitTest tests[] = {
        WEB_TEST(test_a_connection_that_ended_is_made_anew),
        SICK_TEST(test_only_what_looks_is_sent_again),
        SICK_TEST(test_an_answer_that_never_ends_is_given_up),
        SICK_TEST(test_many_slow_answers_are_given_up),
    };

    return cmocka_run_group_tests_name("web_trouble", tests, start_all, stop_all);
}
