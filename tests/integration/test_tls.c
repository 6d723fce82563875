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
#define JOBS 10000

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
    /* Redis 7 leaves a handshake without an answer (69), Redis 8 answers it with an error (78). */
    says(tls, "stats; s=$?; [ $s -ne 78 ] || s=69; exit $s #", 69,
         "redis:// in place of rediss://");
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

/* ---- a daemon */

static void start_over_tls(int port, const char *yaml)
{
    CLEANUP_FREE char *url = mem_printf("rediss://localhost:%d", port);
    CLEANUP_FREE char *all =
        mem_printf("redis_tls_ca: %s/use.crt\nredis_tls_cert: %s/client.crt\nredis_tls_key: "
                   "%s/client.key\n%s",
                   certs, certs, certs, yaml);

    test_laterd_conf(&a, dir, "a", url, all);
    test_laterd_start(&a);
}

static void trust_the_ca(void)
{
    CLEANUP_FREE char *line = mem_printf("cp %s/ca.crt %s/use.crt", certs, certs);

    assert_int_equal(test_sh(line), 0);
}

/* ---- what is on the wire */

#define WORD "SECRETWORD"
#define PAIRS_MAX 16

/* Passes bytes on between its clients and the server, and looks for a word. */
struct tap {
    pthread_t thread;
    int port, to;                       /* it listens there, the server there */
    struct pollfd p[1 + 2 * PAIRS_MAX]; /* the listener; a client and a server each */
    nfds_t n;
    bool has_seen;
    size_t bytes;
};

static struct sockaddr_in loopback(int port)
{
    return (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)port),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static bool tap_accept(struct tap *t)
{
    struct sockaddr_in to = loopback(t->to);
    int client = accept(t->p[0].fd, NULL, NULL);
    int server = socket(AF_INET, SOCK_STREAM, 0);

    if (client < 0 || t->n + 2 > sizeof(t->p) / sizeof(t->p[0]) ||
        connect(server, (struct sockaddr *)&to, sizeof(to)) < 0)
        return false;
    t->p[t->n++] = (struct pollfd){client, POLLIN, 0};
    t->p[t->n++] = (struct pollfd){server, POLLIN, 0};
    return true;
}

static void tap_pass_on(struct tap *t, nfds_t i)
{
    nfds_t other = ((i - 1) ^ 1) + 1;
    char chunk[65536];
    ssize_t n = recv(t->p[i].fd, chunk, sizeof(chunk), 0);

    if (n <= 0 || send(t->p[other].fd, chunk, (size_t)n, MSG_NOSIGNAL) != n) {
        (void)shutdown(t->p[other].fd, SHUT_RDWR);
        t->p[i].events = 0;
        t->p[i].fd = -1 - t->p[i].fd; /* poll leaves it out */
        return;
    }
    t->has_seen = t->has_seen || memmem(chunk, (size_t)n, WORD, strlen(WORD)) != NULL;
    t->bytes += (size_t)n;
}

static void *tap_run(void *arg)
{
    struct tap *t = arg;

    while (poll(t->p, t->n, -1) > 0) {
        if (t->p[0].revents != 0 && !tap_accept(t))
            break;
        for (nfds_t i = 1; i < t->n; i++)
            if (t->p[i].revents != 0)
                tap_pass_on(t, i);
    }
    return NULL;
}

static void tap_start(struct tap *t, int to)
{
    struct sockaddr_in at = loopback(0);
    socklen_t n = sizeof(at);

    *t = (struct tap){.to = to, .n = 1, .p = {{socket(AF_INET, SOCK_STREAM, 0), POLLIN, 0}}};
    assert_int_equal(bind(t->p[0].fd, (struct sockaddr *)&at, n), 0);
    assert_int_equal(listen(t->p[0].fd, PAIRS_MAX), 0);
    assert_int_equal(getsockname(t->p[0].fd, (struct sockaddr *)&at, &n), 0);
    t->port = ntohs(at.sin_port);
    assert_int_equal(pthread_create(&t->thread, NULL, tap_run, t), 0);
}

static void tap_stop(struct tap *t)
{
    (void)shutdown(t->p[0].fd, SHUT_RDWR); /* its accept fails */
    assert_int_equal(pthread_join(t->thread, NULL), 0);
    for (nfds_t i = 0; i < t->n; i++)
        (void)close(t->p[i].fd < 0 ? -1 - t->p[i].fd : t->p[i].fd);
}

/* Add JOBS jobs whose payloads have the word, by one `later add` through the tap. */
static void add_through(const struct tap *t, const char *scheme, const char *options)
{
    CLEANUP_FREE char *line =
        mem_printf("C=%s; seq %d | sed 's/^/" WORD " /' | $LATER --redis %s://localhost:%d %s "
                   "add work --from - >/dev/null",
                   certs, JOBS, scheme, t->port, options);

    assert_int_equal(test_sh(line), 0);
}

/* The jobs of a producer and of a daemon. */
static void test_nothing_readable_is_on_the_wire(void **state)
{
    CLEANUP_FREE char *yaml = NULL;
    char worker[96];
    static struct tap t; /* a failed assertion leaves the test, but not its thread */

    (void)state;
    trust_the_ca();
    test_install(dir, "tests/handlers/worker", worker);
    yaml =
        mem_printf("queues:\n  work: { mode: stream, handler: [%s, %s/journal] }\n", worker, dir);
    test_redis_load(&redis);
    tap_start(&t, plain_port);
    add_through(&t, "redis", "");
    tap_stop(&t);
    assert_true(t.has_seen); /* the tap works */
    tap_start(&t, tls_port);
    add_through(&t, "rediss", "--tls-ca $C/ca.crt");
    assert_int_equal(test_int(&redis, "HLEN", ROOT ":jobs"), 2 * JOBS);
    start_over_tls(t.port, yaml);
    assert_true(test_until(no_job_is_left, NULL, LONG_MS));
    assert_int_equal(test_laterd_stop(&a), 0);
    tap_stop(&t);
    assert_false(t.has_seen);
    assert_true(t.bytes > 3 * JOBS * strlen(WORD)); /* an add, and two starts */
}

/* ---- certificates and passwords that change */

static void lose_links(void)
{
    reply_free(test_redis_call(&redis, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes", NULL));
    reply_free(test_redis_call(&redis, "CLIENT", "KILL", "TYPE", "pubsub", NULL));
}

/* First the server's certificate, then the CA with it: the links come back, and no job is lost. */
static void test_certificates_are_replaced_under_load(void **state)
{
    CLEANUP_FREE char *use_self = mem_printf("cp %s/self.crt %s/use.crt", certs, certs);

    (void)state;
    trust_the_ca();
    test_handler(dir, "work", "echo ran >>%s", out);
    reply_free(test_redis_call(&redis, "CONFIG", "SET", "tls-auth-clients", "yes", NULL));
    start_over_tls(tls_port, "concurrency: 4\n");
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
    trust_the_ca();
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
                      "printf 'p1\\none\\n' >%s/login",
                      program, dir, dir);
    assert_int_equal(test_sh(yaml), 0);
    trust_the_ca();
    free(yaml);
    reply_free(
        test_redis_call(&redis, "ACL", "SETUSER", "one", "on", ">p1", "~*", "&*", "+@all", NULL));
    yaml = mem_printf("redis_password_command: [%s]\nredis_password_every: 1s\n", program);
    start_over_tls(tls_port, yaml);
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
    /* With a sanitizer, reading all certificates of this system takes a good part of the time that
     * a server has for its answer. */
    assert_int_equal(setenv("SSL_CERT_FILE", "/dev/null", 1), 0);
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
