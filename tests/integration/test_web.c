/*
 * later-web with a real server: who gets in, what is answered, what may be changed, and what it
 * costs Redis. Requests are written byte for byte.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/mem.h"
#include "command.h"

#define LONG_MS 60000
#define CLIENTS 64 /* DOOR_MAX */
#define MANY 1000  /* connections at once */

static struct proc web;
static int port;
static char token[64];
static char log_path[256];

/* ---- the program */

static bool is_listening(void *arg)
{
    (void)arg;
    return proc_has_logged(&web, "#token=");
}

static void start_web_with(const char *option, char *const *env)
{
    CLEANUP_FREE char *program = mem_printf("%s/later-web", test_build_dir());
    char listen[64];
    const char *argv[] = {program, "--redis", redis.url, "--listen", listen, option, NULL};
    const char *at;

    port = test_free_port();
    (void)snprintf(listen, sizeof(listen), "127.0.0.1:%d", port);
    (void)snprintf(log_path, sizeof(log_path), "%s/web.log", redis.dir);
    (void)unlink(log_path);
    proc_start(&web, (char *const *)argv, env, log_path);
    if (!test_until(is_listening, NULL, LONG_MS))
        fail_msg("later-web does not listen");
    {
        FILE *f = fopen(log_path, "re");
        char line[512] = "";

        assert_non_null(f);
        assert_non_null(fgets(line, sizeof(line), f));
        (void)fclose(f);
        at = strstr(line, "#token=");
        assert_non_null(at);
        (void)snprintf(token, sizeof(token), "%.32s", at + 7);
    }
}

static void start_web(const char *option)
{
    start_web_with(option, NULL);
}

static int stop_web(void **state)
{
    int status = 0;

    (void)state;
    if (web.pid > 0) {
        proc_signal(&web, SIGTERM);
        status = proc_wait(&web, LONG_MS);
        proc_done(&web);
    }
    return status;
}

/* ---- a request */

static int dial(void)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_port = htons((uint16_t)port),
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct timeval patience = {.tv_sec = LONG_MS / 1000};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    if (connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0)
        fail_msg("cannot connect");
    return fd;
}

static void write_all(int fd, const char *p, size_t n)
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
static int read_answer(int fd)
{
    char piece[4096];
    ssize_t n;

    buf_clear(&out);
    while ((n = recv(fd, piece, sizeof(piece), 0)) > 0)
        buf_add(&out, piece, (size_t)n);
    (void)close(fd);
    return out.len > 12 ? atoi(buf_str(&out) + 9) : 0;
}

static int request(const char *bytes)
{
    int fd = dial();

    write_all(fd, bytes, strlen(bytes));
    return read_answer(fd);
}

static int get_as(const char *given, const char *path)
{
    CLEANUP_FREE char *text = mem_printf("GET %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n"
                                         "Authorization: Bearer %s\r\n\r\n",
                                         path, port, given);

    return request(text);
}

static int get(const char *path)
{
    return get_as(token, path);
}

static int post_from(const char *headers, const char *path, const char *body)
{
    CLEANUP_FREE char *text =
        mem_printf("POST %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAuthorization: Bearer %s\r\n"
                   "Content-Type: application/json\r\n%sContent-Length: %zu\r\n\r\n%s",
                   path, port, token, headers, strlen(body), body);

    return request(text);
}

static int post(const char *path, const char *body)
{
    return post_from("Sec-Fetch-Site: same-origin\r\n", path, body);
}

/* The body of the last answer; the caller frees it. */
static json_t *answer(void)
{
    const char *body = strstr(buf_str(&out), "\r\n\r\n");
    json_t *value = body != NULL ? json_loads(body + 4, 0, NULL) : NULL;

    if (value == NULL)
        fail_msg("no JSON: %s", buf_str(&out));
    return value;
}

static const char *text_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));

    return text != NULL ? text : "";
}

/* ---- who gets in */

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

/* Clients that send nothing have all places: whoever comes then waits, and gets one that is free.
 */
static void test_slow_clients_hold_no_more_than_their_places(void **state)
{
    static const char half[] = "GET / HTTP/1.1\r\nHo";
    int slow[CLIENTS], fd;

    (void)state;
    start_web(NULL);
    for (size_t i = 0; i < CLIENTS; i++) {
        slow[i] = dial();
        write_all(slow[i], half, sizeof(half) - 1);
    }
    fd = dial();
    {
        CLEANUP_FREE char *text = mem_printf("GET / HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n", port);

        write_all(fd, text, strlen(text));
    }
    (void)close(slow[0]);
    assert_int_equal(read_answer(fd), 200);
    /* After ten seconds a place is free again, whatever its client does. */
    assert_int_equal(get("/"), 200);
    assert_int_equal(read_answer(slow[1]), 408);
    for (size_t i = 2; i < CLIENTS; i++)
        (void)close(slow[i]);
    assert_int_equal(get("/"), 200);
}

/* Kilobytes that the process has in memory. */
static long resident(void)
{
    CLEANUP_FREE char *path = mem_printf("/proc/%d/statm", (int)web.pid);
    FILE *f = fopen(path, "re");
    long all = 0, here = 0;

    assert_non_null(f);
    assert_int_equal(fscanf(f, "%ld %ld", &all, &here), 2);
    (void)fclose(f);
    return here * (sysconf(_SC_PAGESIZE) / 1024);
}

static void test_many_connections_cost_no_memory(void **state)
{
    static int fds[MANY];
    struct rlimit files = {.rlim_cur = 0};
    long before;
    size_t n = 0;

    (void)state;
    start_web(NULL);
    assert_int_equal(get("/"), 200);
    before = resident();
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
    files.rlim_cur = files.rlim_max < 2 * MANY ? files.rlim_max : 2 * MANY;
    (void)setrlimit(RLIMIT_NOFILE, &files);
    for (; n < MANY && n < 300; n++) { /* more than the kernel's queue would make connect() wait */
        fds[n] = dial();
        write_all(fds[n], "GET / HTTP/1.1\r\n", 16);
    }
    assert_true(resident() - before < 4096);
    while (n > 0)
        (void)close(fds[--n]);
    assert_int_equal(get("/"), 200);
}

/* ---- what is answered */

static void test_the_api_tells_what_the_command_tells(void **state)
{
    static const char payload[] = "<script>alert(1)</script>\"&\x7f\xff";
    CLEANUP_FREE char *id = NULL;
    json_t *all, *one, *listed;

    (void)state;
    start_web(NULL);
    assert_int_equal(run_in(payload, sizeof(payload) - 1, "add", "mail", "-", NULL), 0);
    id = mem_dup(buf_str(&out), 12);
    assert_int_equal(run("--json", "stats", "mail"), 0);
    all = json_loads(buf_str(&out), 0, NULL);
    listed = json_array_get(json_object_get(all, "queues"), 0);
    assert_int_equal(get("/api/v1/default/queues/mail"), 200);
    one = answer();
    assert_true(json_equal(json_object_get(one, "queue"), listed));
    json_decref(one);
    json_decref(all);

    {
        CLEANUP_FREE char *path = mem_printf("/api/v1/default/jobs/%s", id);
        CLEANUP_FREE char *bytes = mem_printf("/api/v1/default/jobs/%s/payload", id);

        assert_int_equal(get(path), 200);
        one = answer();
        assert_string_equal(text_of(json_object_get(one, "job"), "id"), id);
        assert_string_equal(text_of(json_object_get(one, "explain"), "waits_for"), "worker");
        json_decref(one);
        assert_int_equal(get(bytes), 200);
        assert_says(&out, "Content-Type: text/plain; charset=utf-8\r\n");
        assert_says(&out, "Content-Disposition: attachment; filename=\"payload.txt\"");
        assert_says(&out, "Content-Security-Policy: sandbox; default-src 'none'");
        assert_memory_equal(out.data + out.len - (sizeof(payload) - 1), payload,
                            sizeof(payload) - 1);
    }
    assert_int_equal(get("/api/v1/default/jobs/j00000000000"), 404);
    assert_int_equal(get("/api/v1/other/queues"), 404);
    assert_int_equal(get("/api/v1/default/queues/a%20b"), 409);
    assert_int_equal(get("/api/v1/default/queues/mail/jobs?state=lost"), 400);
}

/* No answer has the bytes, as text or as base64. */
static void assert_hidden(const char *path)
{
    assert_int_equal(get(path), 200);
    assert_null(strstr(buf_str(&out), "\"payload_start"));
    assert_null(strstr(buf_str(&out), "\"payload\""));
    assert_null(strstr(buf_str(&out), "_base64"));
    assert_null(strstr(buf_str(&out), "hidden"));
}

static void test_payloads_are_hidden_everywhere(void **state)
{
    static char setting[] = "LATERD_WEB_PAYLOADS=false";
    static char *const env[] = {setting, NULL};
    static const char payload[] = "hidden\xff";
    CLEANUP_FREE char *id = NULL;

    (void)state;
    assert_int_equal(run_in(payload, sizeof(payload) - 1, "add", "mail", "-", NULL), 0);
    id = mem_dup(buf_str(&out), 12);
    do_redis("FCALL", "later_batch", "1", ROOT, "b", "then", "mail", payload);
    do_redis("FCALL", "later_schedule_set", "1", ROOT, "s", "every", "1h", "queue", "mail",
             payload);
    start_web_with(NULL, env);
    {
        CLEANUP_FREE char *job = mem_printf("/api/v1/default/jobs/%s", id);
        CLEANUP_FREE char *bytes = mem_printf("/api/v1/default/jobs/%s/payload", id);
        CLEANUP_FREE char *search = mem_printf("/api/v1/default/search?q=%s", id);

        assert_hidden(job);
        assert_hidden(search);
        assert_int_equal(get(bytes), 403);
    }
    assert_hidden("/api/v1/default/queues/mail/jobs?state=due");
    assert_hidden("/api/v1/default/queues/mail");
    assert_hidden("/api/v1/default/running");
    assert_hidden("/api/v1/default/batches/b");
    assert_hidden("/api/v1/default/batches");
    assert_hidden("/api/v1/default/schedules/s");
    assert_hidden("/api/v1/default/schedules");
}

/* How often functions were called since the server's statistics were reset. */
static int64_t calls(void)
{
    struct reply *r = test_redis_call(&redis, "INFO", "commandstats", NULL);
    const char *at = strstr(reply_str(r), "cmdstat_fcall:calls=");
    int64_t n = at != NULL ? atoll(at + strlen("cmdstat_fcall:calls=")) : 0;

    reply_free(r);
    return n;
}

static void test_a_hundred_viewers_cost_what_one_costs(void **state)
{
    struct mono begin = mono_now();
    int64_t ms, of_one;

    (void)state;
    start_web(NULL);
    do_redis("CONFIG", "RESETSTAT");
    assert_int_equal(get("/api/v1/default/workers"), 200);
    of_one = calls();
    assert_true(of_one >= 2); /* workers, suspects */
    for (int i = 1; i < 100; i++)
        assert_int_equal(get("/api/v1/default/workers"), 200);
    ms = test_ms_since(begin);
    assert_true(calls() <= of_one * (ms / 1900 + 1));
    do_redis("CONFIG", "RESETSTAT");
    assert_int_equal(calls(), 0); /* nobody looks */
}

/* Read from the stream until it has this text. */
static void read_until(int fd, const char *text)
{
    char piece[4096];
    ssize_t n;

    while (out.len == 0 || strstr(buf_str(&out), text) == NULL) {
        n = recv(fd, piece, sizeof(piece), 0);
        if (n <= 0)
            fail_msg("the stream ended before '%s': %s", text, buf_str(&out));
        buf_add(&out, piece, (size_t)n);
    }
}

static int open_tail(void)
{
    CLEANUP_FREE char *text =
        mem_printf("GET /api/v1/default/tail HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n"
                   "Authorization: Bearer %s\r\n\r\n",
                   port, token);
    int fd = dial();

    write_all(fd, text, strlen(text));
    buf_clear(&out);
    read_until(fd, "\n\n");
    return fd;
}

#define TAILS 24 /* TAIL_MAX */

/* -> how many heard it */
static int64_t publish(const char *text)
{
    struct reply *r = test_redis_call(&redis, "PUBLISH", ROOT ":events", text, NULL);
    int64_t n = reply_int(r);

    reply_free(r);
    return n;
}

static bool is_unfollowed(void *arg)
{
    (void)arg;
    return publish("1 1 0") == 0;
}

static void test_the_tail_tells_what_happens(void **state)
{
    int fds[TAILS];

    (void)state;
    start_web(NULL);
    for (size_t i = 0; i < TAILS; i++) {
        fds[i] = open_tail();
        assert_says(&out, "Content-Type: text/event-stream");
    }
    assert_int_equal(get("/api/v1/default/tail"), 503);
    assert_int_equal(publish("1 1 7\nno event"), 1);
    do_redis("FCALL", "later_add", "1", ROOT, "mail", "x");
    for (size_t i = 0; i < TAILS; i++) {
        buf_clear(&out);
        read_until(fds[i], "\"event\":\"added\"");
        assert_says(&out, "event: left\ndata: {\"n\":7}");
    }
    /* A stream that is read by nobody ends with its connection, and the subscription with the last.
     */
    for (size_t i = 0; i < TAILS; i++)
        (void)close(fds[i]);
    assert_true(test_until(is_unfollowed, NULL, LONG_MS));
    fds[0] = open_tail();
    proc_signal(&web, SIGTERM);
    assert_int_equal(proc_wait(&web, LONG_MS), 0);
    assert_int_equal(recv(fds[0], (char[1]){0}, 1, 0) >= 0, 1);
    (void)close(fds[0]);
}

static bool is_back(void *arg)
{
    (void)arg;
    return get("/api/v1/default/queues") == 200;
}

static void test_without_redis_it_says_so_and_comes_back(void **state)
{
    json_t *said;

    (void)state;
    start_web(NULL);
    assert_int_equal(get("/api/v1/default/queues"), 200);
    test_redis_kill(&redis, SIGKILL);
    test_pause(2000); /* the last answer is shown for so long */
    assert_int_equal(get("/api/v1/default/queues"), 503);
    said = answer();
    assert_true(strlen(text_of(said, "text")) > 10);
    json_decref(said);
    assert_int_equal(get_as("", "/"), 200);
    test_redis_restart(&redis);
    test_redis_load(&redis);
    assert_true(test_until(is_back, NULL, LONG_MS));
}

static bool can_add(void *arg)
{
    (void)arg;
    return post("/api/v1/default/jobs", "{\"queue\":\"mail\",\"payload\":\"x\"}") == 200;
}

/* Each kind of question makes the connection anew, not only some. */
static void test_it_adds_jobs_again_after_a_restart_of_redis(void **state)
{
    (void)state;
    start_web("--write");
    assert_true(can_add(NULL));
    test_redis_kill(&redis, SIGKILL);
    test_redis_restart(&redis);
    test_redis_load(&redis);
    assert_true(test_until(can_add, NULL, LONG_MS));
}

#define ASKERS 20

/* Whoever wants the tail, or the health, waits for Redis: the others do not wait for each of them.
 */
static void test_a_redis_that_hangs_holds_up_nobody_for_long(void **state)
{
    static const char *const wanted[] = {"tail", "health"};

    (void)state;
    start_web(NULL);
    assert_int_equal(get("/api/v1/default/queues"), 200);
    test_redis_kill(&redis, SIGSTOP);
    for (size_t k = 0; k < sizeof(wanted) / sizeof(wanted[0]); k++) {
        struct mono begin = mono_now();
        int fds[ASKERS];

        for (int i = 0; i < ASKERS; i++) {
            CLEANUP_FREE char *text =
                mem_printf("GET /api/v1/default/%s?%d HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n"
                           "Authorization: Bearer %s\r\n\r\n",
                           wanted[k], i, port, token);

            fds[i] = dial();
            write_all(fds[i], text, strlen(text));
        }
        assert_int_equal(get("/"), 200);
        for (int i = 0; i < ASKERS; i++)
            assert_true(read_answer(fds[i]) > 0);
        /* All of them together wait for about 4 s; if each did by himself, it would be 40 s. */
        assert_true(test_ms_since(begin) < 20000);
    }
    test_redis_kill(&redis, SIGCONT);
    assert_true(test_until(is_back, NULL, LONG_MS));
}

/* ---- what may be changed */

static void test_a_page_that_only_looks_changes_nothing(void **state)
{
    (void)state;
    start_web(NULL);
    assert_int_equal(post("/api/v1/default/jobs", "{\"queue\":\"mail\",\"payload\":\"x\"}"), 403);
    assert_int_equal(post("/api/v1/default/queues/mail/pause", "{}"), 403);
    assert_int_equal(count("HLEN", ROOT ":jobs"), 0);
    assert_int_equal(count("HLEN", ROOT ":paused"), 0);
}

static void test_a_page_that_may_write_does_what_the_command_does(void **state)
{
    json_t *told;

    (void)state;
    start_web("--write");
    assert_int_equal(post("/api/v1/default/jobs",
                          "{\"queue\":\"mail\",\"payload\":\"x\",\"in\":\"1h\",\"key\":\"k\"}"),
                     200);
    told = answer();
    assert_string_equal(text_of(told, "status"), "added");
    {
        CLEANUP_FREE char *cancel =
            mem_printf("/api/v1/default/jobs/%s/cancel", text_of(told, "id"));

        assert_int_equal(count("HLEN", ROOT ":jobs"), 1);
        assert_int_equal(post(cancel, "{}"), 200);
        assert_int_equal(count("HLEN", ROOT ":jobs"), 0);
        assert_int_equal(post(cancel, "{}"), 404);
    }
    json_decref(told);
    assert_int_equal(post("/api/v1/default/queues/mail/pause", "{\"reason\":\"deploy\"}"), 200);
    assert_int_equal(run("--json", "stats", "mail"), 0);
    assert_says(&out, "\"by\":\"web\",\"reason\":\"deploy\"");
    assert_int_equal(post("/api/v1/default/queues/mail/resume", "{}"), 200);
    assert_int_equal(count("HLEN", ROOT ":paused"), 0);
}

/* A page sends numbers as numbers. What is not understood is refused: without its reason a bulk
 * would mean all jobs. */
static void test_each_option_counts_or_is_refused(void **state)
{
    static const char bulk[] = "/api/v1/default/bulks", jobs[] = "/api/v1/default/jobs";

    (void)state;
    start_web("--write");
    assert_int_equal(
        post(jobs, "{\"queue\":\"mail\",\"payload\":\"x\",\"in\":\"1h\",\"priority\":0}"), 200);
    assert_int_equal(count("ZCARD", ROOT ":q:mail:0"), 1);
    assert_int_equal(post(jobs, "{\"queue\":\"mail\",\"payload\":\"x\",\"priority\":true}"), 400);
    assert_int_equal(post(jobs, "{\"queue\":\"mail\",\"payload\":\"x\",\"key\":\"a\\u0000b\"}"),
                     400);
    assert_int_equal(
        post(bulk, "{\"verb\":\"purge\",\"queue\":\"mail\",\"state\":\"due\",\"reason\":[\"x\"]}"),
        400);
    assert_int_equal(
        post(bulk, "{\"verb\":\"purge\",\"queue\":\"mail\",\"state\":\"due\",\"reason\":\"\"}"),
        400);
    assert_int_equal(
        post(bulk, "{\"verb\":\"purge\",\"queue\":\"mail\",\"state\":\"due\",\"key\":\"\"}"), 400);
    assert_int_equal(count("HLEN", ROOT ":jobs"), 1);
}

static void test_another_site_changes_nothing(void **state)
{
    static const char path[] = "/api/v1/default/queues/mail/pause";

    (void)state;
    start_web("--write");
    assert_int_equal(post_from("Sec-Fetch-Site: cross-site\r\n", path, "{}"), 403);
    assert_int_equal(post_from("Sec-Fetch-Site: same-site\r\n", path, "{}"), 403);
    assert_int_equal(post(path, "[]"), 400);
    assert_int_equal(post(path, "{\"reason\":1,\"reason\":2}"), 400);
    assert_int_equal(get(path), 404);
    token[0] = token[0] == '0' ? '1' : '0';
    assert_int_equal(post(path, "{}"), 401);
    assert_int_equal(count("HLEN", ROOT ":paused"), 0);
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
#define WEB_TEST(f) cmocka_unit_test_setup_teardown(f, flush_all, stop_web)
    const struct CMUnitTest tests[] = {
        WEB_TEST(test_only_who_has_the_token_is_answered),
        WEB_TEST(test_a_header_that_comes_twice_says_nothing),
        WEB_TEST(test_the_page_comes_with_its_policy),
        WEB_TEST(test_a_request_has_one_meaning),
        WEB_TEST(test_slow_clients_hold_no_more_than_their_places),
        WEB_TEST(test_many_connections_cost_no_memory),
        WEB_TEST(test_the_api_tells_what_the_command_tells),
        WEB_TEST(test_payloads_are_hidden_everywhere),
        WEB_TEST(test_a_hundred_viewers_cost_what_one_costs),
        WEB_TEST(test_the_tail_tells_what_happens),
        WEB_TEST(test_a_page_that_only_looks_changes_nothing),
        WEB_TEST(test_a_page_that_may_write_does_what_the_command_does),
        WEB_TEST(test_each_option_counts_or_is_refused),
        WEB_TEST(test_another_site_changes_nothing),
        WEB_TEST(test_it_does_not_open_itself_to_others),
        WEB_TEST(test_without_redis_it_says_so_and_comes_back),
        WEB_TEST(test_it_adds_jobs_again_after_a_restart_of_redis),
        WEB_TEST(test_a_redis_that_hangs_holds_up_nobody_for_long),
    };

    return cmocka_run_group_tests_name("web", tests, start_all, stop_all);
}
