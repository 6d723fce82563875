/*
 * TLS to Redis: each fault of a certificate has its sentence and cure, nothing readable is on the
 * wire, and certificates that are replaced need no reload.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "../support/certs.h"
#include "../support/env.h"
#include "../support/shell.h"
#include "base/cleanup.h"
#include "base/mem.h"
#include "fixture.h"

#define LONG_MS 60000
#define JOBS 1000

static char certs[64]; /* folder */
static int tls_port, plain_port;

static int open_with_tls(void **state)
{
    static char tls[8], plain[8], cert[96], key[96], ca[96];
    static const char *args[] = {"--tls-port",
                                 tls,
                                 "--port",
                                 plain,
                                 "--tls-cert-file",
                                 cert,
                                 "--tls-key-file",
                                 key,
                                 "--tls-ca-cert-file",
                                 ca,
                                 "--tls-auth-clients",
                                 "optional",
                                 NULL};

    (void)state;
    tls_port = test_free_port();
    plain_port = test_free_port();
    (void)snprintf(tls, sizeof(tls), "%d", tls_port);
    (void)snprintf(plain, sizeof(plain), "%d", plain_port);
    (void)snprintf(cert, sizeof(cert), "%s/server.crt", certs);
    (void)snprintf(key, sizeof(key), "%s/server.key", certs);
    (void)snprintf(ca, sizeof(ca), "%s/ca.crt", certs);
    return fx_open_with(args);
}

static void server_uses(const char *name)
{
    CLEANUP_FREE char *cert = mem_printf("%s/%s.crt", certs, name);
    CLEANUP_FREE char *key = mem_printf("%s/%s.key", certs, name);

    reply_free(
        test_redis_call(&redis, "CONFIG", "SET", "tls-cert-file", cert, "tls-key-file", key, NULL));
}

/* `later stats` with these options; PORT is the port of TLS. */
static void says(const char *url, const char *options, int status, const char *text)
{
    CLEANUP_FREE char *line = mem_printf("C=%s; $LATER --redis %s %s stats", certs, url, options);

    test_says(line, status, text);
}

static void test_each_fault_has_its_sentence(void **state)
{
    static const struct {
        const char *server, *options, *text;
    } faults[] = {
        {"server", "", "of a CA that is not known here: give the CA's certificate as redis_tls_ca"},
        {"server", "--tls-ca $C/other.crt", "of a CA that is not known here"},
        {"server", "--tls-ca $C/none.crt", "none.crt: No such file or directory"},
        {"server", "--tls-ca $C/ca.key", "ca.key holds no certificate"},
        {"server", "--tls-ca $C/ca.crt --tls-name redis.example",
         "is for localhost, not for redis.example: connect by that name, or give it as"},
        {"server", "--tls-ca $C/ca.crt --tls-cert $C/client.crt", "go together"},
        {"server", "--tls-ca $C/ca.crt --tls-cert $C/client.crt --tls-key $C/server.key",
         "server.key is not the key of redis_tls_cert"},
        {"server", "--tls-ca $C/ca.crt --tls-cert $C/client.crt --tls-key $C/expired.key",
         "can be read by others"},
        {"server", "--tls-ca $C/ca.crt --tls-cert $C/foreign.crt --tls-key $C/foreign.key",
         "the server refuses redis_tls_cert"},
        {"expired", "--tls-ca $C/ca.crt", "has expired: renew it"},
        {"self", "", "self-signed: give that certificate as redis_tls_ca"},
    };
    CLEANUP_FREE char *url = mem_printf("rediss://localhost:%d", tls_port);
    CLEANUP_FREE char *by_address = mem_printf("rediss://127.0.0.1:%d", tls_port);

    (void)state;
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
        server_uses(faults[i].server);
        says(url, faults[i].options, 78, faults[i].text);
    }
    says(url, "--tls-ca $C/self.crt", 0, "");
    server_uses("server");
    says(by_address, "--tls-ca $C/ca.crt", 0, "");
    reply_free(test_redis_call(&redis, "CONFIG", "SET", "tls-auth-clients", "yes", NULL));
    says(url, "--tls-ca $C/ca.crt", 78, "the server wants a certificate of its clients");
    says(url, "--tls-ca $C/ca.crt --tls-cert $C/client.crt --tls-key $C/client.key", 0, "");
}

static void test_the_wrong_port(void **state)
{
    CLEANUP_FREE char *plain = mem_printf("redis://localhost:%d", tls_port);
    CLEANUP_FREE char *tls = mem_printf("rediss://localhost:%d", plain_port);

    (void)state;
    says(plain, "", 69, "rediss:// in place of redis://");
    says(tls, "", 69, "redis:// in place of rediss://");
}

static void test_an_old_protocol(void **state)
{
    struct proc old;
    int port = test_free_port();
    CLEANUP_FREE char *line =
        mem_printf("openssl s_server -accept %d -cert %s/server.crt -key %s/server.key "
                   "-www -tls1_1 -cipher DEFAULT@SECLEVEL=0",
                   port, certs, certs);
    CLEANUP_FREE char *ask =
        mem_printf("for i in $(seq 100); do $LATER --redis rediss://localhost:%d stats 2>&1 | grep "
                   "newer && break; sleep 0.1; done",
                   port);

    (void)state;
    test_sh_start(&old, line);
    test_says(ask, 0, "does not speak TLS 1.2 or newer");
    proc_done(&old);
}

/* ---- what is on the wire */

/* Passes bytes on between one client after the other and the server, and looks for a word. */
struct tap {
    pthread_t thread;
    int listener, port, to;
    const char *word;
    bool has_seen;
    size_t bytes;
};

static bool pass_on(struct tap *t, int from, int to)
{
    static char chunk[65536];
    ssize_t n = recv(from, chunk, sizeof(chunk), 0);

    if (n <= 0 || send(to, chunk, (size_t)n, MSG_NOSIGNAL) != n)
        return false;
    t->has_seen = t->has_seen || memmem(chunk, (size_t)n, t->word, strlen(t->word)) != NULL;
    t->bytes += (size_t)n;
    return true;
}

static void *tap_one(void *arg)
{
    struct tap *t = arg;
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)t->to),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    CLEANUP_CLOSE int client = accept(t->listener, NULL, NULL);
    CLEANUP_CLOSE int server = socket(AF_INET, SOCK_STREAM, 0);
    struct pollfd p[2] = {{client, POLLIN, 0}, {server, POLLIN, 0}};
    bool lives = connect(server, (struct sockaddr *)&to, sizeof(to)) == 0;

    while (lives && poll(p, 2, LONG_MS) > 0)
        lives = (p[0].revents == 0 || pass_on(t, client, server)) &&
                (p[1].revents == 0 || pass_on(t, server, client));
    return NULL;
}

/* Add JOBS jobs whose payloads have the word, by one `later add` through the tap. */
static void add_through(struct tap *t, const char *scheme, int to)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof(at);
    CLEANUP_FREE char *line = NULL;

    *t = (struct tap){.listener = socket(AF_INET, SOCK_STREAM, 0), .to = to, .word = "SECRETWORD"};
    assert_int_equal(bind(t->listener, (struct sockaddr *)&at, n), 0);
    assert_int_equal(listen(t->listener, 1), 0);
    assert_int_equal(getsockname(t->listener, (struct sockaddr *)&at, &n), 0);
    assert_int_equal(pthread_create(&t->thread, NULL, tap_one, t), 0);
    line = mem_printf("seq %d | sed s/^/SECRETWORD/ | $LATER --redis %s://localhost:%d %s%s%s add "
                      "work --from - >/dev/null",
                      JOBS, scheme, ntohs(at.sin_port), to == tls_port ? "--tls-ca " : "",
                      to == tls_port ? certs : "", to == tls_port ? "/ca.crt" : "");
    assert_int_equal(test_sh(line), 0);
    assert_int_equal(pthread_join(t->thread, NULL), 0);
    (void)close(t->listener);
}

static void test_nothing_readable_is_on_the_wire(void **state)
{
    struct tap t;

    (void)state;
    test_redis_load(&redis);
    add_through(&t, "redis", plain_port);
    assert_true(t.has_seen); /* the tap works */
    add_through(&t, "rediss", tls_port);
    assert_false(t.has_seen);
    assert_true(t.bytes > JOBS * strlen(t.word));
    assert_int_equal(test_int(&redis, "HLEN", ROOT ":jobs"), 2 * JOBS);
}

/* ---- a daemon */

static void start_over_tls(const char *yaml)
{
    CLEANUP_FREE char *url = mem_printf("rediss://localhost:%d", tls_port);
    CLEANUP_FREE char *all =
        mem_printf("redis_tls_ca: %s/use.crt\nredis_tls_cert: %s/client.crt\nredis_tls_key: "
                   "%s/client.key\n%s",
                   certs, certs, certs, yaml);

    test_laterd_conf(&a, dir, "a", url, all);
    test_laterd_start(&a);
}

static void lose_links(void)
{
    reply_free(test_redis_call(&redis, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes", NULL));
    reply_free(test_redis_call(&redis, "CLIENT", "KILL", "TYPE", "pubsub", NULL));
}

/* First the server's certificate, then the CA with it: the links come back, and no job is lost. */
static void test_certificates_are_replaced_under_load(void **state)
{
    CLEANUP_FREE char *use_ca = mem_printf("cp %s/ca.crt %s/use.crt", certs, certs);
    CLEANUP_FREE char *use_self = mem_printf("cp %s/self.crt %s/use.crt", certs, certs);

    (void)state;
    assert_int_equal(test_sh(use_ca), 0);
    test_handler(dir, "work", "echo ran >>%s", out);
    reply_free(test_redis_call(&redis, "CONFIG", "SET", "tls-auth-clients", "yes", NULL));
    start_over_tls("concurrency: 4\n");
    for (int i = 0; i < 40; i++)
        free(test_add(&redis, "work", NULL, NULL, "x"));
    assert_int_equal(test_sh(use_self), 0);
    server_uses("self");
    lose_links();
    for (int i = 0; i < 40; i++)
        free(test_add(&redis, "work", NULL, NULL, "x"));
    assert_true(test_until(no_job_is_left, NULL, LONG_MS));
    assert_true(test_lines(out, NULL) >= 80);
    /* One that is not trusted: it says so, does not spin, and goes on when that is mended. */
    server_uses("server");
    lose_links();
    assert_true(test_laterd_says(&a, "of a CA that is not known here", LONG_MS));
    assert_int_equal(test_sh(use_ca), 0);
    free(test_add(&redis, "work", NULL, NULL, "x"));
    assert_true(test_until(no_job_is_left, NULL, LONG_MS));
}

/* No connection belongs to it. */
static bool user_is_gone(void *user)
{
    struct reply *r = test_redis_call(&redis, "CLIENT", "LIST", NULL);
    bool is_gone = strstr(reply_str(r), user) == NULL;

    reply_free(r);
    return is_gone;
}

/* A program says a new password and another user; the first user is removed behind it. */
static void test_users_take_turns(void **state)
{
    CLEANUP_FREE char *program = mem_printf("%s/say-password", dir);
    CLEANUP_FREE char *yaml = NULL;

    (void)state;
    test_handler(dir, "work", "echo ran >>%s", out);
    yaml = mem_printf("install -m 700 /dev/stdin %s <<'END'\n#!/bin/sh\ncat %s/login\nEND\n"
                      "printf 'p1\\none\\n' >%s/login; cp %s/ca.crt %s/use.crt",
                      program, dir, dir, certs, certs);
    assert_int_equal(test_sh(yaml), 0);
    free(yaml);
    reply_free(
        test_redis_call(&redis, "ACL", "SETUSER", "one", "on", ">p1", "~*", "&*", "+@all", NULL));
    yaml = mem_printf("redis_password_command: [%s]\nredis_password_every: 1s\n", program);
    start_over_tls(yaml);
    for (int turn = 0; turn < 3; turn++) {
        const char *now = turn % 2 == 0 ? "two" : "one", *then = turn % 2 == 0 ? "one" : "two";
        CLEANUP_FREE char *line = mem_printf("printf 'p2\\n%s\\n' >%s/login", now, dir);
        char gone[32];
        struct reply *r;

        reply_free(test_redis_call(&redis, "ACL", "SETUSER", now, "on", "resetpass", ">p2", "~*",
                                   "&*", "+@all", NULL));
        assert_int_equal(test_sh(line), 0);
        (void)snprintf(gone, sizeof(gone), "user=%s ", then);
        assert_true(test_until(user_is_gone, gone, LONG_MS));
        r = test_redis_call(&redis, "ACL", "DELUSER", then, NULL);
        assert_int_equal(reply_int(r), 1);
        reply_free(r);
        free(test_add(&redis, "work", NULL, NULL, "x"));
        assert_true(test_until(no_job_is_left, NULL, LONG_MS));
    }
    assert_int_equal(test_lines(a.log, "state=down"), 0);
}

static int make_certificates(void **state)
{
    CLEANUP_FREE char *later = mem_printf("%s/later", test_build_dir());

    (void)state;
    test_folder_make(certs);
    assert_int_equal(setenv("DIR", certs, 1), 0);
    assert_int_equal(setenv("LATER", later, 1), 0);
    return certs_make(certs);
}

static int remove_certificates(void **state)
{
    (void)state;
    test_folder_remove(certs);
    return 0;
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, open_with_tls, fx_close)
    const struct CMUnitTest tests[] = {
        T(test_each_fault_has_its_sentence),
        T(test_the_wrong_port),
        T(test_an_old_protocol),
        T(test_nothing_readable_is_on_the_wire),
        T(test_certificates_are_replaced_under_load),
        T(test_users_take_turns),
    };

    cmocka_set_test_filter(getenv("LATER_ONLY")); /* a name, with * and ? */
    return cmocka_run_group_tests(tests, make_certificates, remove_certificates);
}
