/*
 * Sentinels that are dead, locked, hung, wrong or lie have a sentence each, and one that is well
 * beside them is found. TLS and passwords, to them and to the servers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "../support/certs.h"
#include "../support/shell.h"
#include "sentinel_fixture.h"

static int nobody; /* a port that nobody listens on */

static int open_all(void **state)
{
    (void)state;
    open_sentinels();
    nobody = test_free_port();
    return 0;
}

/* ---- what is told */

/* `later stats` by this address, with this in its configuration, says this. */
static void says(const char *yaml, const char *address, int status, const char *text)
{
    /* A slow machine has to succeed, too. What fails by its time has to do so soon. */
    CLEANUP_FREE char *line = mem_printf("printf 'redis: %%s\\nredis_timeout: %s\\n%s' '%s' "
                                         ">$DIR/c.yaml; $LATER --config $DIR/c.yaml stats",
                                         status == 0 ? "20s" : "1s", yaml, address);

    test_says(line, status, text);
}

static void by_one(int port, const char *master, int status, const char *text)
{
    CLEANUP_FREE char *url =
        mem_printf("sentinel://127.0.0.1:%d,127.0.0.1:%d/%s", nobody, port, master);

    says("", url, status, text);
}

/* sentinel 0 is told what is wrong under this name */
static void lie(const char *name, int port)
{
    CLEANUP_FREE char *command = mem_printf("sentinel monitor %s 127.0.0.1 %d 3", name, port);

    assert_int_equal(sentinels_cli(s.at[0].port, command), 0);
}

static void test_each_fault_has_its_sentence(void **state)
{
    CLEANUP_FREE char *none = mem_printf("sentinel://127.0.0.1:%d,localhost:%d/m", nobody, nobody);
    CLEANUP_FREE char *map = mem_printf("announce: {\"127.0.0.1:%s\": \"127.0.0.1:%d\"}\\n",
                                        s.nodes[0].announced, nobody);
    CLEANUP_FREE char *unknown =
        mem_printf("sentinel://127.0.0.1:%d,127.0.0.1:%d/other", s.at[0].port, s.at[1].port);

    (void)state;
    says("", s.by, 0, "");
    by_one(s.at[0].port, "m", 0, "");
    says("", none, 69, "no sentinel answers for 'm': 127.0.0.1:");
    says("", none, 69, ": the same");
    says("", unknown, 78, "no sentinel knows a master 'other'");
    by_one(s.at[0].port, "other", 69, "and not all answer");
    by_one(atoi(s.nodes[0].announced), "m", 78, "it is no sentinel");
    lie("replica", atoi(s.nodes[1].announced));
    lie("itself", s.at[0].port);
    lie("another", s.at[1].port);
    lie("nothing", nobody);
    by_one(s.at[0].port, "replica", 69, "but it is a replica of 127.0.0.1");
    by_one(s.at[0].port, "itself", 69, "but it is a sentinel itself");
    by_one(s.at[0].port, "another", 69, "but it is a sentinel itself");
    by_one(s.at[0].port, "nothing", 69, "Connection refused");
    says(map, s.by, 69, "Connection refused");
    says("announce: {\"x\": \"127.0.0.1:1\"}\\n", s.by, 78, "announce");
}

static bool asks_for_a_password(void *arg)
{
    CLEANUP_FREE char *line =
        mem_printf("redis-cli -p %d ping | grep -q NOAUTH", ((struct sentinel *)arg)->port);

    return test_sh(line) == 0;
}

static void test_a_sentinel_with_a_password(void **state)
{
    CLEANUP_FREE char *url = NULL;
    CLEANUP_FREE char *right = mem_printf("sentinel_password_file: %s/right\\n", dir);
    CLEANUP_FREE char *wrong = mem_printf("sentinel_password_file: %s/wrong\\n", dir);

    struct sentinel locked;

    (void)state;
    sentinels_add(&s, &locked, "locked", "requirepass right");
    url = mem_printf("sentinel://127.0.0.1:%d/m", locked.port);
    assert_true(test_until(asks_for_a_password, &locked, LONG_MS));
    assert_int_equal(test_sh("umask 077 && echo right >$DIR/right && echo wrong >$DIR/wrong"), 0);
    says("", url, 77, "NOAUTH");
    says(wrong, url, 77, "WRONGPASS");
    says(right, url, 0, "");
    says("", s.by, 0, ""); /* the others have none */
    proc_done(&locked.proc);
}

/* ---- TLS everywhere, and a password of the sentinels beside that of Redis */

static struct {
    struct test_redis redis;
    char port[8], cert[96], key[96], ca[96];
    const char *args[32];
} secure[2];

static void start_secure(int i)
{
    const char *args[] = {"--tls-port",
                          secure[i].port,
                          "--tls-cert-file",
                          secure[i].cert,
                          "--tls-key-file",
                          secure[i].key,
                          "--tls-ca-cert-file",
                          secure[i].ca,
                          "--tls-replication",
                          "yes",
                          "--repl-diskless-sync-delay",
                          "0",
                          "--masterauth",
                          "of-redis",
                          i > 0 ? "--replicaof" : NULL,
                          "127.0.0.1",
                          secure[0].port,
                          NULL};

    (void)snprintf(secure[i].port, sizeof(secure[i].port), "%d", test_free_port());
    (void)snprintf(secure[i].cert, sizeof(secure[i].cert), "%s/server.crt", dir);
    (void)snprintf(secure[i].key, sizeof(secure[i].key), "%s/server.key", dir);
    (void)snprintf(secure[i].ca, sizeof(secure[i].ca), "%s/ca.crt", dir);
    memcpy(secure[i].args, args, sizeof(args));
    test_redis_start(&secure[i].redis, secure[i].args);
    reply_free(test_redis_call(&secure[i].redis, "CONFIG", "SET", "requirepass", "of-redis", NULL));
}

/* A sentinel looks for new replicas only every 10 s. */
static bool secure_is_replicated(void *arg)
{
    CLEANUP_FREE char *line =
        mem_printf("REDISCLI_AUTH=of-redis redis-cli -s %s info replication | grep -q state=online",
                   secure[0].redis.sock);

    (void)arg;
    return test_sh(line) == 0;
}

static void start_secure_sentinel(struct sentinel *one)
{
    CLEANUP_FREE char *conf = NULL;

    one->port = test_free_port();
    conf = mem_printf("port 0\ntls-port %d\ntls-cert-file %s/server.crt\ntls-key-file "
                      "%s/server.key\ntls-ca-cert-file %s/ca.crt\ntls-replication yes\n"
                      "requirepass of-sentinel\nsentinel monitor m 127.0.0.1 %s 1\n"
                      "sentinel auth-pass m of-redis",
                      one->port, dir, dir, dir, secure[0].port);
    sentinel_start(one, dir, "secure", conf);
}

/* redis-cli at this port says so. */
#define SECURE_CLI                                                                                 \
    "REDISCLI_AUTH=%s redis-cli -p %d --tls --cacert $DIR/ca.crt --cert $DIR/client.crt --key "    \
    "$DIR/client.key %s 2>&1 | tr '\\n' ' ' | grep -q '%s'"

static bool secure_is_ready(void *arg)
{
    CLEANUP_FREE char *line =
        mem_printf(SECURE_CLI, "of-sentinel", *(int *)arg, "sentinel master m", "num-slaves 1 ");

    return test_sh(line) == 0;
}

static bool secure_has_moved(void *arg)
{
    CLEANUP_FREE char *line = mem_printf(SECURE_CLI, "of-sentinel", *(int *)arg,
                                         "sentinel get-master-addr-by-name m", secure[1].port);

    return test_sh(line) == 0;
}

#define TLS_YAML                                                                                   \
    "redis_tls_ca: %s/ca.crt\\nredis_tls_cert: %s/client.crt\\nredis_tls_key: %s/client.key\\n"
#define PASSWORDS "sentinel_password_file: %s/of-sentinel\\nredis_password_file: %s/of-redis\\n"

/* The same text with line ends. */
static char *plain_yaml(const char *yaml)
{
    CLEANUP_FREE char *line = mem_printf("printf '%s'", yaml);
    struct buf said = BUF_INIT;

    assert_int_equal(test_sh_out(line, &said), 0);
    return said.data;
}

static void tell_faults(const struct sentinel *one, const char *all)
{
    CLEANUP_FREE char *url = mem_printf("sentinels://127.0.0.1:%d/m", one->port);
    CLEANUP_FREE char *plain = mem_printf("sentinel://127.0.0.1:%d/m", one->port);
    CLEANUP_FREE char *both = mem_printf(PASSWORDS, dir, dir);
    CLEANUP_FREE char *other_ca = mem_printf("redis_tls_ca: %s/other.crt\\n%s", dir, both);
    CLEANUP_FREE char *no_cert = mem_printf("redis_tls_ca: %s/ca.crt\\n%s", dir, both);
    CLEANUP_FREE char *of_redis =
        mem_printf(TLS_YAML "redis_password_file: %s/of-redis\\n", dir, dir, dir, dir);
    CLEANUP_FREE char *swapped =
        mem_printf(TLS_YAML "redis_password_file: %s/of-redis\\nsentinel_password_file: "
                            "%s/of-redis\\n",
                   dir, dir, dir, dir, dir);
    CLEANUP_FREE char *of_sentinel =
        mem_printf(TLS_YAML "sentinel_password_file: %s/of-sentinel\\n", dir, dir, dir, dir);

    says(all, url, 0, "");
    says(both, plain, 69, "if it speaks TLS, write sentinels://");
    says(other_ca, url, 78, "not known here: give the CA's certificate as redis_tls_ca");
    says(no_cert, url, 78, "wants a certificate of its clients: give one as redis_tls_cert");
    says(of_redis, url, 77, "NOAUTH, it wants a password: sentinel_password_file");
    says(swapped, url, 77, "WRONGPASS: look into sentinel_password_file");
    says(of_sentinel, url, 77, "give a password: redis_password_file");
}

static void test_tls_and_two_passwords(void **state)
{
    struct sentinel one;
    CLEANUP_FREE char *url = NULL;
    CLEANUP_FREE char *all = mem_printf(TLS_YAML PASSWORDS, dir, dir, dir, dir, dir);
    CLEANUP_FREE char *yaml = plain_yaml(all);
    CLEANUP_FREE char *conf = mem_printf("$LATER --config %s/c.yaml add work x", dir);
    CLEANUP_FREE char *fail_over = NULL;

    (void)state;
    assert_int_equal(certs_make(dir), 0);
    assert_int_equal(test_sh("cd $DIR && umask 077 && echo of-redis >of-redis && echo of-sentinel "
                             ">of-sentinel"),
                     0);
    start_secure(0);
    start_secure(1);
    assert_true(test_until(secure_is_replicated, NULL, LONG_MS));
    start_secure_sentinel(&one);
    assert_true(test_until(secure_is_ready, &one.port, LONG_MS));
    tell_faults(&one, all);
    url = mem_printf("sentinels://127.0.0.1:%d/m", one.port);
    says(all, url, 0, "");
    test_handler(dir, "work", "echo ran >>%s", out);
    test_laterd_conf(&a, dir, "a", url, yaml);
    test_laterd_start(&a);
    assert_int_equal(test_sh(conf), 0);
    assert_true(test_until_lines(out, "ran", 1, LONG_MS));
    fail_over = mem_printf(SECURE_CLI, "of-sentinel", one.port, "sentinel failover m", "OK");
    assert_int_equal(test_sh(fail_over), 0);
    assert_true(test_until(secure_has_moved, &one.port, LONG_MS));
    assert_true(test_laterd_says(&a, "event=failover", LONG_MS));
    assert_int_equal(test_sh(conf), 0);
    assert_true(test_until_lines(out, "ran", 2, LONG_MS));
    assert_int_equal(test_laterd_stop(&a), 0);
    proc_done(&one.proc);
    test_redis_stop(&secure[0].redis);
    test_redis_stop(&secure[1].redis);
}

/* ---- sentinels that lie */

/* Answers each connection with the same bytes, or not at all, and counts them. */
static struct {
    pthread_t thread;
    int listener, port;
    _Atomic(const char *) says; /* NULL: nothing, the connection stays open */
    atomic_int asked;
} liar;

static void *tell_lies(void *arg)
{
    int silent = -1, client;

    (void)arg;
    while ((client = accept(liar.listener, NULL, NULL)) >= 0) {
        char call[512];
        const char *text = liar.says;

        liar.asked++;
        if (silent >= 0)
            (void)close(silent);
        silent = text == NULL ? client : -1;
        if (text == NULL)
            continue;
        if (recv(client, call, sizeof(call), 0) > 0)
            (void)!send(client, text, strlen(text), MSG_NOSIGNAL);
        (void)close(client);
    }
    if (silent >= 0)
        (void)close(silent);
    return NULL;
}

static void liar_start(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof(at);

    liar.says = NULL;
    liar.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(liar.listener, (struct sockaddr *)&at, n), 0);
    assert_int_equal(listen(liar.listener, 64), 0);
    assert_int_equal(getsockname(liar.listener, (struct sockaddr *)&at, &n), 0);
    liar.port = ntohs(at.sin_port);
    assert_int_equal(pthread_create(&liar.thread, NULL, tell_lies, NULL), 0);
}

static void liar_stop(void)
{
    (void)shutdown(liar.listener, SHUT_RD);
    assert_int_equal(pthread_join(liar.thread, NULL), 0);
    (void)close(liar.listener);
}

/* The answer that names this port; the caller's. */
static char *address_of(int port)
{
    CLEANUP_FREE char *text = mem_printf("%d", port);

    return mem_printf("*2\r\n$9\r\n127.0.0.1\r\n$%zu\r\n%s\r\n", strlen(text), text);
}

/* Alone it has its sentence. With an honest one behind it, the honest one is asked. */
static void test_one_that_lies_is_passed_over(void **state)
{
    int master = sentinels_master(&s);
    CLEANUP_FREE char *of_replica = address_of(atoi(s.nodes[(master + 1) % SENTINELS].announced));
    CLEANUP_FREE char *of_sentinel = address_of(s.at[1].port);
    CLEANUP_FREE char *of_nobody = address_of(nobody);
    CLEANUP_FREE char *of_itself = NULL;
    CLEANUP_FREE char *long_host = mem_printf("*2\r\n$300\r\n%0300d\r\n$1\r\n1\r\n", 0);
    CLEANUP_FREE char *alone = NULL, *first = NULL;

    (void)state;
    liar_start();
    of_itself = address_of(liar.port);
    alone = mem_printf("sentinel://127.0.0.1:%d/m", liar.port);
    first = mem_printf("sentinel://127.0.0.1:%d,127.0.0.1:%d/m", liar.port, s.at[1].port);
    {
        const struct {
            const char *says, *text;
        } lies[] = {
            {of_replica, "but it is a replica of 127.0.0.1"},
            {of_sentinel, "but it is a sentinel itself"},
            {of_nobody, "Connection refused"},
            {of_itself, "does not say that it is a master"},
            {long_host, "what it answers is no address"},
            {"*2\r\n$1\r\nh\r\n$5\r\n70000\r\n", "what it answers is no address"},
            {"+OK\r\n", "what it answers is no address"},
            {"HTTP/1.1 400 Bad Request\r\n", "Protocol error"},
            {"", "it hangs up before any answer"},
            {NULL, "no answer in time"},
        };

        for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
            liar.says = lies[i].says;
            says("", alone, 69, lies[i].text);
            says("", first, 0, "");
        }
    }
    liar_stop();
}

struct asked {
    int n;
};

static bool was_asked(void *arg)
{
    return liar.asked >= ((struct asked *)arg)->n;
}

static void until_asked(int more)
{
    struct asked wanted = {liar.asked + more};

    assert_true(test_until(was_asked, &wanted, LONG_MS));
}

/* It asks them by turns whether the master is still there, and goes by what most say. A name and
 * the address that it stands for are one server. */
static void test_a_daemon_and_one_that_lies(void **state)
{
    int master = sentinels_master(&s), before;
    const char *port = s.nodes[master].announced;
    CLEANUP_FREE char *of_replica = address_of(atoi(s.nodes[(master + 1) % SENTINELS].announced));
    CLEANUP_FREE char *by_name =
        mem_printf("*2\r\n$9\r\nlocalhost\r\n$%zu\r\n%s\r\n", strlen(port), port);
    CLEANUP_FREE char *url = NULL;

    (void)state;
    liar_start();
    liar.says = by_name;
    url = mem_printf("sentinel://127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:%d/m", liar.port, s.at[1].port,
                     s.at[2].port);
    test_laterd_conf(&a, dir, "a", url, "redis_timeout: 1s\n");
    test_laterd_start(&a);
    until_asked(2);
    liar.says = of_replica;
    until_asked(2);
    assert_int_equal(test_lines(a.log, "state=down"), 0);
    /* Nor is it the first that a new link asks. The next two looks are the others' turns. */
    before = liar.asked;
    reply_free(test_redis_call(&s.nodes[master].redis, "CLIENT", "KILL", "TYPE", "normal", NULL));
    assert_true(test_until_lines(a.log, "event=link state=up", 2, LONG_MS));
    assert_int_equal(liar.asked, before);
    assert_int_equal(test_laterd_stop(&a), 0);
    liar_stop();
}

/* Each sentence, no haste, and it goes on as soon as one says the truth. */
static void test_a_daemon_that_only_hears_lies(void **state)
{
    int master = sentinels_master(&s), before;
    CLEANUP_FREE char *of_replica = address_of(atoi(s.nodes[(master + 1) % SENTINELS].announced));
    CLEANUP_FREE char *of_master = address_of(atoi(s.nodes[master].announced));
    CLEANUP_FREE char *url = NULL;

    (void)state;
    liar_start();
    liar.says = of_replica;
    url = mem_printf("sentinel://127.0.0.1:%d/m", liar.port);
    test_laterd_conf(&a, dir, "a", url, "redis_timeout: 1s\n");
    test_laterd_launch(&a);
    assert_true(test_laterd_says(&a, "but it is a replica of 127.0.0.1", LONG_MS));
    until_asked(4); /* the first pauses are short */
    before = liar.asked;
    test_pause(1500);
    assert_in_range(liar.asked - before, 0, 12);
    assert_in_range(test_lines(a.log, "state=down"), 1, 5);
    liar.says = of_master;
    assert_true(test_laterd_says(&a, "event=registered", LONG_MS));
    assert_int_equal(test_laterd_stop(&a), 0);
    liar_stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_fault_has_its_sentence),
        cmocka_unit_test(test_a_sentinel_with_a_password),
        cmocka_unit_test(test_tls_and_two_passwords),
        cmocka_unit_test(test_one_that_lies_is_passed_over),
        cmocka_unit_test(test_a_daemon_and_one_that_lies),
        cmocka_unit_test(test_a_daemon_that_only_hears_lies),
    };

    cmocka_set_test_filter(getenv("LATER_ONLY")); /* a name, with * and ? */
    return cmocka_run_group_tests(tests, open_all, close_sentinels);
}
