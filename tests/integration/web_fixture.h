/*
 * For tests of later-web: the program on a port of its own beside the server of command.h, and
 * requests that are written byte for byte. The last answer is in `out`.
 */
#ifndef LATER_TESTS_INTEGRATION_WEB_FIXTURE_H
#define LATER_TESTS_INTEGRATION_WEB_FIXTURE_H

#include <jansson.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "../support/clock.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/mem.h"
#include "command.h"

#define LONG_MS 60000

static struct proc web;
static int port;            /* 0: it listens at web_socket */
static char web_socket[96]; /* "" unless web_at_socket */
static char token[64];
static char *web_env[8]; /* of the program that is started next */
static size_t web_nenv;
static const char *web_redis;        /* the server it is given; NULL: redis.url */
static struct test_clock *web_clock; /* NULL unless web_on_clock */

union web_address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_un path;
};

/* ---- how it is started */

/* NAME=value in the environment of the program; takes the text. */
static inline void web_setting(char *text)
{
    assert_true(web_nenv < sizeof(web_env) / sizeof(web_env[0]) - 1);
    web_env[web_nenv++] = text;
}

/* It gets a clock that the test lets go ahead. */
static inline void web_on_clock(void)
{
    CLEANUP_FREE char *path = mem_printf("%s/web.clock", redis.dir);

    web_clock = test_clock_make(path);
    web_setting(test_clock_preload());
    web_setting(test_clock_variable(path));
    web_setting(test_clock_sanitizer());
}

/* It listens at a socket file, whose buffers in the kernel are small, and not at a port. */
static inline void web_at_socket(void)
{
    CLEANUP_FREE char *path = mem_printf("%s/web.token", redis.dir);
    FILE *f = fopen(path, "we");

    (void)snprintf(web_socket, sizeof(web_socket), "%s/web.sock", redis.dir);
    (void)snprintf(token, sizeof(token), "0123456789abcdef0123456789abcdef");
    assert_non_null(f);
    assert_int_equal(fchmod(fileno(f), 0600), 0);
    assert_true(fprintf(f, "%s\n", token) > 0);
    assert_int_equal(fclose(f), 0);
    web_setting(mem_printf("LATERD_WEB_TOKEN_FILE=%s", path));
}

static inline bool is_listening(void *arg)
{
    (void)arg;
    return proc_has_logged(&web, web_socket[0] != '\0' ? "event=listening" : "#token=");
}

/* The token that it made and told. */
static inline void read_token(const char *log)
{
    FILE *f = fopen(log, "re");
    char line[512] = "";
    const char *at;

    assert_non_null(f);
    assert_non_null(fgets(line, sizeof(line), f));
    (void)fclose(f);
    at = strstr(line, "#token=");
    assert_non_null(at);
    (void)snprintf(token, sizeof(token), "%.32s", at + 7);
}

static inline void start_web(const char *option)
{
    CLEANUP_FREE char *program = mem_printf("%s/later-web", test_build_dir());
    CLEANUP_FREE char *log = mem_printf("%s/web.log", redis.dir);
    CLEANUP_FREE char *at = NULL;
    const char *argv[] = {program,    "--redis", web_redis != NULL ? web_redis : redis.url,
                          "--listen", NULL,      option,
                          NULL};

    port = web_socket[0] != '\0' ? 0 : test_free_port();
    at = port == 0 ? mem_printf("unix:%s", web_socket) : mem_printf("127.0.0.1:%d", port);
    argv[4] = at;
    (void)unlink(log);
    proc_start(&web, (char *const *)argv, web_env, log);
    if (!test_until(is_listening, NULL, LONG_MS))
        fail_msg("later-web does not listen");
    if (port != 0)
        read_token(log);
}

/* So many seconds pass for the page. A process that goes on looks at its clock. */
static inline void pass(int s)
{
    proc_stop(&web);
    (void)__atomic_add_fetch(&web_clock->ahead_s, s, __ATOMIC_SEQ_CST);
    proc_signal(&web, SIGCONT);
}

static inline int stop_web(void **state)
{
    int status = 0;

    (void)state;
    if (web.pid > 0) {
        proc_signal(&web, SIGTERM);
        status = proc_wait(&web, LONG_MS);
        proc_done(&web);
    }
    if (web_clock != NULL)
        test_clock_free(web_clock);
    web_clock = NULL;
    web_socket[0] = '\0';
    while (web_nenv > 0) {
        free(web_env[--web_nenv]);
        web_env[web_nenv] = NULL;
    }
    return status;
}

/* Kilobytes that the process has in memory. */
static inline long resident(void)
{
    CLEANUP_FREE char *path = mem_printf("/proc/%d/statm", (int)web.pid);
    FILE *f = fopen(path, "re");
    long all = 0, here = 0;

    assert_non_null(f);
    assert_int_equal(fscanf(f, "%ld %ld", &all, &here), 2);
    (void)fclose(f);
    return here * (sysconf(_SC_PAGESIZE) / 1024);
}

/* ---- a request */

/* A descriptor and the address to connect it to. -> the length of that */
static inline socklen_t web_address(int *ret_fd, int flags, union web_address *ret)
{
    memset(ret, 0, sizeof(*ret));
    *ret_fd = socket(port != 0 ? AF_INET : AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);
    assert_true(*ret_fd >= 0);
    if (port == 0) {
        ret->path.sun_family = AF_UNIX;
        (void)snprintf(ret->path.sun_path, sizeof(ret->path.sun_path), "%s", web_socket);
        return sizeof(ret->path);
    }
    ret->v4.sin_family = AF_INET;
    ret->v4.sin_port = htons((uint16_t)port);
    ret->v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return sizeof(ret->v4);
}

static inline int dial(void)
{
    struct timeval patience = {.tv_sec = LONG_MS / 1000};
    union web_address a;
    int fd;
    socklen_t n = web_address(&fd, 0, &a);

    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    if (connect(fd, &a.any, n) < 0)
        fail_msg("cannot connect");
    return fd;
}

static inline void write_all(int fd, const char *p, size_t n)
{
    while (n > 0) {
        ssize_t sent = send(fd, p, n, MSG_NOSIGNAL);

        if (sent < 0)
            return; /* it was refused already: the answer is there */
        p += sent;
        n -= (size_t)sent;
    }
}

/* What comes until the other side closes, in `out`. -> the status; 0 if there is none */
static inline int read_answer(int fd)
{
    char piece[4096];
    ssize_t n;

    buf_clear(&out);
    while ((n = recv(fd, piece, sizeof(piece), 0)) > 0)
        buf_add(&out, piece, (size_t)n);
    (void)close(fd);
    return out.len > 12 ? atoi(buf_str(&out) + 9) : 0;
}

static inline int request(const char *bytes)
{
    int fd = dial();

    write_all(fd, bytes, strlen(bytes));
    return read_answer(fd);
}

static inline void send_get(int fd, const char *given, const char *path)
{
    CLEANUP_FREE char *text = mem_printf("GET %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n"
                                         "Authorization: Bearer %s\r\n\r\n",
                                         path, port, given);

    write_all(fd, text, strlen(text));
}

static inline int get_as(const char *given, const char *path)
{
    int fd = dial();

    send_get(fd, given, path);
    return read_answer(fd);
}

static inline int get(const char *path)
{
    return get_as(token, path);
}

static inline int post_from(const char *headers, const char *path, const char *body)
{
    CLEANUP_FREE char *text =
        mem_printf("POST %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAuthorization: Bearer %s\r\n"
                   "Content-Type: application/json\r\n%sContent-Length: %zu\r\n\r\n%s",
                   path, port, token, headers, strlen(body), body);

    return request(text);
}

static inline int post(const char *path, const char *body)
{
    return post_from("Sec-Fetch-Site: same-origin\r\n", path, body);
}

/* The body of the last answer; the caller frees it. */
static inline json_t *answer(void)
{
    const char *body = strstr(buf_str(&out), "\r\n\r\n");
    json_t *value = body != NULL ? json_loads(body + 4, 0, NULL) : NULL;

    if (value == NULL)
        fail_msg("no JSON: %s", buf_str(&out));
    return value;
}

static inline const char *text_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));

    return text != NULL ? text : "";
}

/* ---- does it answer? */

static inline bool is_back(void *arg)
{
    (void)arg;
    return get("/api/v1/default/queues") == 200;
}

static inline bool can_add(void *arg)
{
    (void)arg;
    return post("/api/v1/default/jobs", "{\"queue\":\"mail\",\"payload\":\"x\"}") == 200;
}

/* ---- the stream */

/* Read from the stream until `out` has this text. */
static inline void read_until(int fd, const char *text)
{
    struct mono begin = mono_now();
    char piece[4096];
    ssize_t n;

    while (out.len == 0 || strstr(buf_str(&out), text) == NULL) {
        n = recv(fd, piece, sizeof(piece), 0);
        /* A stream that has nothing to tell beats. */
        if (n <= 0 || test_ms_since(begin) > LONG_MS)
            fail_msg("the stream ended before '%s': %s", text, buf_str(&out));
        buf_add(&out, piece, (size_t)n);
    }
}

/* Publish what is no call's event. -> how many heard it */
static inline int64_t publish(const char *text)
{
    struct reply *r = test_redis_call(&redis, "PUBLISH", ROOT ":events", text, NULL);
    int64_t n = reply_int(r);

    reply_free(r);
    return n;
}

static inline bool is_followed(void *arg)
{
    (void)arg;
    return publish("1 1 0") == 1;
}

/* A stream has begun before Redis has taken the subscription: what is published meanwhile is
 * missed.
 * -> its connection, which hears all from here on */
static inline int open_tail(void)
{
    int fd = dial();

    send_get(fd, token, "/api/v1/default/tail");
    buf_clear(&out);
    read_until(fd, "\n\n");
    assert_says(&out, "Content-Type: text/event-stream");
    assert_true(test_until(is_followed, NULL, LONG_MS));
    return fd;
}

#define WEB_TEST(f) cmocka_unit_test_setup_teardown(f, flush_all, stop_web)

#endif
