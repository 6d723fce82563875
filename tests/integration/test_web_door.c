/*
 * later-web with a real server: who gets in, and what those can do who do not behave.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sys/resource.h>

#include "web_fixture.h"

#define CLIENTS 64 /* DOOR_MAX */
#define MANY 10000
#define LARGE ((size_t)1048576) /* MAX_PAYLOAD */
#define GIGABYTE ((size_t)1 << 30)

static void test_only_who_has_the_token_is_answered(void **state)
{
    (void)state;
    start_web(NULL);
    assert_int_equal(get("/api/v1/"), 200);
    assert_int_equal(get_as("", "/api/v1/"), 401);
    assert_int_equal(get_as("0123456789abcdef0123456789abcdef", "/api/v1/"), 401);
    token[31] = token[31] == '0' ? '1' : '0';
    assert_int_equal(get("/api/v1/default/queues"), 401);
    token[31] = '\0';
    assert_int_equal(get("/api/v1/default/queues"), 401);
}

/* What a proxy adds stands behind what a client sent: two of them name nobody. */
static void test_a_header_that_comes_twice_says_nothing(void **state)
{
    CLEANUP_FREE char *text = NULL;

    (void)state;
    start_web(NULL);
    text = mem_printf("GET /api/v1/ HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n"
                      "Authorization: Bearer %s\r\nauthorization: Bearer x\r\n\r\n",
                      port, token);
    assert_int_equal(request(text), 401);
}

/* The page itself holds no secret: it asks for the token. */
static void test_the_page_comes_with_its_policy(void **state)
{
    (void)state;
    start_web(NULL);
    assert_int_equal(get_as("", "/"), 200);
    assert_says(&out, "Content-Security-Policy: default-src 'none'; script-src 'self';");
    assert_says(&out, "require-trusted-types-for 'script'");
    assert_says(&out, "X-Content-Type-Options: nosniff");
    assert_says(&out, "Connection: close");
    assert_int_equal(get_as("", "/index.html"), 200);
    assert_int_equal(get_as("", "/main.c"), 404);
    assert_int_equal(get_as("", "/../main.c"), 400);
    assert_int_equal(get_as("", "/%2e%2e/main.c"), 400);
    assert_int_equal(get_as("", "/%00"), 400);
    /* What is decoded once is a name with a percent sign, and no file has it. */
    assert_int_equal(get_as("", "/%252e%252e/main.c"), 404);
    assert_int_equal(get_as("", "/..%2fmain.c"), 404);
}

static void test_a_request_has_one_meaning(void **state)
{
    (void)state;
    start_web(NULL);
    assert_int_equal(request("GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n"), 421);
    assert_int_equal(request("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"), 421);
    assert_int_equal(request("GET / HTTP/1.0\r\n\r\n"), 505);
    assert_int_equal(request("GET / HTTP/1.1\r\nX: a\r\n b\r\n\r\n"), 400);
    assert_int_equal(request("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"), 400);
    assert_int_equal(request("POST / HTTP/1.1\r\nContent-Length: 1073741824\r\n\r\n"), 413);
    /* What stands behind the first request is not looked at. */
    {
        CLEANUP_FREE char *two = mem_printf("GET / HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n"
                                            "GET /api/v1/ HTTP/1.1\r\nHost: evil\r\n\r\n",
                                            port);
        const char *first;

        assert_int_equal(request(two), 200);
        first = strstr(buf_str(&out), "HTTP/1.1");
        assert_non_null(first);
        assert_null(strstr(first + 1, "HTTP/1.1"));
    }
}

/* ---- who takes his time */

/* What is in memory may grow by so much, whatever clients do that send and take little. */
#define MORE_KIB 4096
#define HALF "GET / HTTP/1.1\r\nHo"

/* Clients that send nothing have all places: whoever comes then waits, and gets one that is free.
 */
static void test_slow_clients_hold_no_more_than_their_places(void **state)
{
    int slow[CLIENTS], fd;

    (void)state;
    web_on_clock();
    start_web(NULL);
    for (size_t i = 0; i < CLIENTS; i++) {
        slow[i] = dial();
        write_all(slow[i], HALF, strlen(HALF));
    }
    fd = dial();
    send_get(fd, token, "/");
    (void)close(slow[0]);
    assert_int_equal(read_answer(fd), 200);
    /* After ten seconds a place is free again, whatever its client does. */
    pass(11);
    assert_int_equal(get("/"), 200);
    for (size_t i = 1; i < CLIENTS; i++)
        assert_int_equal(read_answer(slow[i]), 408);
}

/* Read up to n bytes. -> how many came before the end */
static size_t take(int fd, size_t n)
{
    char piece[4096];
    size_t all = 0;
    ssize_t got = 1;

    while (all < n && got > 0) {
        got = recv(fd, piece, n - all < sizeof(piece) ? n - all : sizeof(piece), 0);
        all += got > 0 ? (size_t)got : 0;
    }
    return all;
}

/* A job with the largest payload that there is. -> its path; the caller's */
static char *add_large(void)
{
    CLEANUP_FREE char *large = mem_new(LARGE + 1);

    memset(large, 'x', LARGE);
    assert_int_equal(run_in(large, LARGE, "add", "mail", "-", NULL), 0);
    return mem_printf("/api/v1/default/jobs/%.12s/payload", buf_str(&out));
}

/* All places are taken by those who let a large answer wait and take a kilobyte now and then. ->
 * how many KiB are in memory at most */
static long read_slowly(const char *path, size_t *longest)
{
    int slow[CLIENTS];
    long most = 0;

    for (size_t i = 0; i < CLIENTS; i++) {
        slow[i] = dial();
        send_get(slow[i], token, path);
    }
    for (int round = 0; round < 4; round++) {
        for (size_t i = 0; i < CLIENTS; i++)
            assert_true(take(slow[i], 1024) == 1024);
        most = resident() > most ? resident() : most;
        pass(8);
    }
    for (size_t i = 0; i < CLIENTS; i++) {
        size_t rest = take(slow[i], LARGE);

        *longest = rest > *longest ? rest : *longest;
        (void)close(slow[i]);
    }
    assert_int_equal(get("/"), 200);
    return most;
}

/* They are never idle, and are given up after half a minute. Meanwhile each answer is in memory
 * once; those who come then find the memory of the first. */
static void test_slow_readers_are_given_up(void **state)
{
    CLEANUP_FREE char *path = add_large();
    long before, first, then;
    size_t longest = 0;

    (void)state;
    web_at_socket();
    web_on_clock();
    start_web(NULL);
    assert_int_equal(get("/"), 200);
    before = resident();
    first = read_slowly(path, &longest);
    then = read_slowly(path, &longest);
    print_message("figure W1: %d readers of 1 MiB: %ld MiB more in memory, then %ld, given up "
                  "after 30 s\n",
                  CLIENTS, (first - before) / 1024, (then - before) / 1024);
    assert_true(longest < LARGE / 2);
    assert_true(test_is_sanitized() || first - before < CLIENTS * (long)(LARGE / 1024) * 5 / 4);
    assert_true(test_is_sanitized() || then - first < MORE_KIB);
}

/* ---- who sends too much */

/* Send these bytes, then x, a gigabyte of them or as many as are taken. -> how many that were */
static size_t pour(const char *first)
{
    static char piece[65536];
    int fd = dial();
    size_t all = 0;
    ssize_t n;

    memset(piece, 'x', sizeof(piece));
    write_all(fd, first, strlen(first));
    while (all < GIGABYTE && (n = send(fd, piece, sizeof(piece), MSG_NOSIGNAL)) > 0)
        all += (size_t)n;
    (void)close(fd);
    return all;
}

/* A head without an end, a body of the length that was said, and one that is longer. */
static void test_a_gigabyte_is_not_taken(void **state)
{
    CLEANUP_FREE char *head = NULL, *body = NULL, *longer = NULL;
    long before;
    size_t most = 0;

    (void)state;
    start_web("--write");
    head = mem_printf("GET / HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nX: ", port);
    body = mem_printf("POST /api/v1/default/jobs HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n"
                      "Content-Type: application/json\r\nContent-Length: 1073741824\r\n\r\n",
                      port);
    longer = mem_printf("POST /api/v1/default/jobs HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n"
                        "Content-Type: application/json\r\nContent-Length: 65536\r\n\r\n",
                        port);
    assert_int_equal(get("/"), 200);
    before = resident();
    for (int i = 0; i < 20; i++) {
        const char *const first[] = {head, body, longer};
        size_t n = pour(first[i % 3]);

        most = n > most ? n : most;
    }
    print_message("figure W1: of 1 GB %zu KiB left the client, %ld KiB more in memory\n",
                  most / 1024, resident() - before);
    assert_true(most < GIGABYTE / 16);
    assert_true(test_is_sanitized() || resident() - before < MORE_KIB);
    assert_int_equal(get("/"), 200);
}

/* ---- who are many */

/* Not waiting for a place in the kernel's queue. */
static int connect_later(void)
{
    union web_address a;
    int fd;
    socklen_t n = web_address(&fd, SOCK_NONBLOCK, &a);

    (void)connect(fd, &a.any, n);
    return fd;
}

/* May this program have so many connections? */
static bool may_open(rlim_t n)
{
    struct rlimit files;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
    files.rlim_cur = files.rlim_max < n + 100 ? files.rlim_max : n + 100;
    return setrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur == n + 100;
}

/* At once: those who have no place wait in the kernel, which keeps some hundreds of them. */
static void test_ten_thousand_connections_cost_no_memory(void **state)
{
    static int fds[MANY];
    long before, most;

    (void)state;
    if (!may_open(MANY))
        skip();
    web_on_clock();
    start_web(NULL);
    assert_int_equal(get("/"), 200);
    before = resident();
    for (size_t i = 0; i < MANY; i++) {
        fds[i] = connect_later();
        (void)send(fds[i], HALF, strlen(HALF), MSG_NOSIGNAL);
    }
    pass(11); /* those who wait come to their turn */
    most = resident() - before;
    for (size_t i = 0; i < MANY; i++)
        (void)close(fds[i]);
    assert_int_equal(get("/"), 200);
    print_message("figure W1: %d connections: %ld KiB more in memory\n", MANY, most);
    assert_true(test_is_sanitized() || most < MORE_KIB);
}

/* One after the other: nothing is left of them. */
static void test_ten_thousand_requests_leave_nothing(void **state)
{
    long before;

    (void)state;
    start_web(NULL);
    for (int i = 0; i < 100; i++)
        assert_int_equal(get("/"), 200);
    before = resident();
    for (int i = 0; i < MANY; i++)
        assert_int_equal(i % 2 == 0 ? get("/icon.svg") : get_as("", "/api/v1/"),
                         i % 2 == 0 ? 200 : 401);
    print_message("figure W1: %d requests: %ld KiB more in memory\n", MANY, resident() - before);
    assert_true(test_is_sanitized() || resident() - before < MORE_KIB);
}

/* ---- settings */

static int try_start(const char *listen)
{
    CLEANUP_FREE char *program = mem_printf("%s/later-web", test_build_dir());
    const char *argv[] = {program, "--redis", redis.url, "--listen", listen, NULL};

    return run_argv((char *const *)argv, NULL, 0);
}

static void test_it_does_not_open_itself_to_others(void **state)
{
    (void)state;
    assert_int_equal(try_start("0.0.0.0:8377"), 78);
    assert_says(&err, "web.token_file");
    assert_int_equal(try_start("[::]:8377"), 78);
    assert_int_equal(try_start("example.com:80"), 78);
    assert_int_equal(try_start("127.0.0.1:0"), 78);
    assert_int_equal(try_start("unix:relative"), 78);
    start_web(NULL);
    {
        CLEANUP_FREE char *taken = mem_printf("127.0.0.1:%d", port);

        assert_int_equal(try_start(taken), 69);
        assert_says(&err, "Address already in use");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WEB_TEST(test_only_who_has_the_token_is_answered),
        WEB_TEST(test_a_header_that_comes_twice_says_nothing),
        WEB_TEST(test_the_page_comes_with_its_policy),
        WEB_TEST(test_a_request_has_one_meaning),
        WEB_TEST(test_slow_clients_hold_no_more_than_their_places),
        WEB_TEST(test_slow_readers_are_given_up),
        WEB_TEST(test_a_gigabyte_is_not_taken),
        WEB_TEST(test_ten_thousand_connections_cost_no_memory),
        WEB_TEST(test_ten_thousand_requests_leave_nothing),
        WEB_TEST(test_it_does_not_open_itself_to_others),
    };

    return cmocka_run_group_tests_name("web_door", tests, start_all, stop_all);
}
