#include "redis.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <fcntl.h>
#include <ftw.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "env.h"
#include "laterd.h"
#include "lua/lua_lib.h"
#include "redis/client.h"
#include "redis/lib.h"
#include "shell.h"

#define ARGS_MAX 64
#define START_MS 60000 /* a machine with many tests at once */
#define STOP_MS 30000

static void die(const struct test_redis *r, const char *what)
{
    CLEANUP_FREE char *log = mem_printf("%s/redis.log", r->dir);

    (void)fprintf(stderr, "test support: redis-server in %s: %s\n", r->dir, what);
    test_show_end(log); /* mostly that its port is taken */
    abort();
}

struct client *test_redis_client(const struct test_redis *r, struct err *err)
{
    struct url url;

    if (url_parse(r->url, &url, err) < 0)
        return NULL;
    return client_open(&url, TEST_CALL_MS, err);
}

/* It answers PING: it listens and has loaded its data. */
static bool is_ready(void *arg)
{
    static const char *const ping[] = {"PING"};
    struct err err = ERR_INIT;
    struct client *c = test_redis_client(arg, &err);
    struct reply *pong;
    bool ready;

    if (c == NULL)
        return false;
    pong = client_call(c, 1, ping, NULL, &err);
    ready = reply_is(pong, "PONG");
    reply_free(pong);
    client_close(c);
    return ready;
}

/* LATER_SERVER: the path of another server, or valkey. */
static const char *program(void)
{
    const char *server = getenv("LATER_SERVER");

    if (server == NULL || server[0] == '\0')
        return "redis-server";
    return strcmp(server, "valkey") == 0 ? "valkey-server" : server;
}

/* The arguments for a port with TLS. -> how many; 0: it is not wanted */
static size_t use_tls(const struct test_redis *r, const char *argv[])
{
    static char port[8], cert[128], key[128];
    const char *dir = getenv("LATER_TEST_TLS");
    const char *const args[] = {"--tls-port",     port, "--tls-cert-file",    cert,
                                "--tls-key-file", key,  "--tls-auth-clients", "no"};

    if (r->tls_port == 0)
        return 0;
    (void)snprintf(port, sizeof(port), "%d", r->tls_port);
    (void)snprintf(cert, sizeof(cert), "%s/server.crt", dir);
    (void)snprintf(key, sizeof(key), "%s/server.key", dir);
    memcpy(argv, args, sizeof(args));
    return sizeof(args) / sizeof(args[0]);
}

static void launch(struct test_redis *r, bool waits)
{
    const char *argv[ARGS_MAX + 1] = {program(), "--port", "0",   "--unixsocket",
                                      r->sock,   "--save", "",    "--appendonly",
                                      "no",      "--dir",  r->dir};
    char log[96];
    size_t n = 11;

    n += use_tls(r, argv + n);
    for (size_t i = 0; r->extra_args != NULL && r->extra_args[i] != NULL; i++) {
        if (n == ARGS_MAX)
            die(r, "too many arguments");
        argv[n++] = r->extra_args[i];
    }
    (void)snprintf(log, sizeof(log), "%s/redis.log", r->dir);
    proc_start(&r->proc, (char *const *)argv, NULL, log);
    r->pid = r->proc.pid;
    if (waits && !test_until(is_ready, r, START_MS))
        die(r, "does not answer");
}

void test_redis_start(struct test_redis *r, const char *const *extra_args)
{
    memset(r, 0, sizeof(*r));
    r->proc.out = -1;
    r->extra_args = extra_args;
    (void)strcpy(r->dir, "/tmp/later-test-XXXXXX");
    if (mkdtemp(r->dir) == NULL)
        die(r, "no folder");
    (void)snprintf(r->sock, sizeof(r->sock), "%s/redis.sock", r->dir);
    if (getenv("LATER_TEST_TLS") != NULL) {
        r->tls_port = test_free_port();
        (void)snprintf(r->url, sizeof(r->url), "rediss://localhost:%d", r->tls_port);
    } else {
        (void)snprintf(r->url, sizeof(r->url), "unix:%s", r->sock);
    }
    launch(r, true);
}

void test_redis_start_with_users(struct test_redis *r, const char *dir)
{
    static char file[128];
    static const char *const args[] = {"--aclfile", file, NULL};
    CLEANUP_FREE char *line = NULL;

    (void)snprintf(file, sizeof(file), "%s/users.acl", dir);
    line = mem_printf("sed 's/^\\(user [a-z]*\\) off/\\1 on >secret/' %s/etc/users.acl >%s",
                      test_source_dir(), file);
    if (test_sh(line) != 0)
        abort();
    test_redis_start(r, args);
    test_redis_load(r);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

void test_redis_stop(struct test_redis *r)
{
    if (r->dir[0] == '\0')
        return;
    /* A process that is stopped (SIGSTOP) does not get TERM. */
    proc_signal(&r->proc, SIGCONT);
    proc_signal(&r->proc, SIGTERM);
    (void)proc_wait(&r->proc, STOP_MS);
    proc_done(&r->proc);
    r->pid = 0;
    (void)nftw(r->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    r->dir[0] = '\0';
}

void test_redis_kill(struct test_redis *r, int sig)
{
    proc_signal(&r->proc, sig);
    if (sig == SIGKILL || sig == SIGTERM) {
        if (proc_wait(&r->proc, STOP_MS) < 0)
            die(r, "does not end");
        r->pid = 0;
    }
}

void test_redis_restart(struct test_redis *r)
{
    proc_done(&r->proc);
    r->pid = 0;
    launch(r, true);
}

void test_redis_launch(struct test_redis *r)
{
    proc_done(&r->proc);
    r->pid = 0;
    launch(r, false);
}

struct reply *test_redis_call(struct test_redis *r, ...)
{
    struct err err = ERR_INIT;
    struct client *c = test_redis_client(r, &err);
    const char *argv[ARGS_MAX];
    struct reply *reply;
    int argc = 0;
    va_list ap;

    if (c == NULL)
        die(r, err.text);
    va_start(ap, r);
    while (argc < ARGS_MAX && (argv[argc] = va_arg(ap, const char *)) != NULL)
        argc++;
    va_end(ap);
    reply = client_call(c, argc, argv, NULL, &err);
    if (reply == NULL)
        (void)fprintf(stderr, "test_redis_call: %s\n", err.text);
    client_close(c);
    return reply;
}

void test_redis_load(struct test_redis *r)
{
    struct err err = ERR_INIT;
    struct client *c = test_redis_client(r, &err);
    struct lib_state state;

    if (c == NULL || lib_ensure(c, "default", LIB_ENSURE, &state, &err) < 0)
        die(r, err.text);
    client_close(c);
}

bool test_library_calls(const char *command)
{
    static const char *const ways[] = {"call('", "db('", "at_once('"};
    char name[64];

    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        size_t n = (size_t)snprintf(name, sizeof(name), "%s%s'", ways[i], command);

        for (size_t k = strlen(ways[i]); k < n && k < sizeof(name); k++)
            name[k] = (char)toupper((unsigned char)name[k]);
        if (strstr(lua_lib_text, name) != NULL)
            return true;
    }
    return false;
}

/* Ports that the kernel gives to nobody by itself. */
#define PORT_FIRST 20000
#define PORT_LAST 32000

static bool can_listen(int port)
{
    CLEANUP_CLOSE int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

    return bind(fd, (struct sockaddr *)&at, sizeof(at)) == 0;
}

/* Each port is a byte of a file, and its lock ends with this program. So no two tests have the same
 * one, also before its server listens and while it is restarted. */
int test_free_port(void)
{
    static int locks = -1, port = 0;
    char path[48];

    (void)snprintf(path, sizeof(path), "/tmp/later-test-ports.%u", (unsigned)geteuid());
    if (locks < 0)
        locks = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (port == 0)
        port = PORT_FIRST + getpid() % (PORT_LAST - PORT_FIRST);
    for (int i = PORT_FIRST; i < PORT_LAST; i++) {
        struct flock lock = {.l_type = F_WRLCK, .l_start = port, .l_len = 1};
        int mine = port;

        port = port + 1 < PORT_LAST ? port + 1 : PORT_FIRST;
        if (fcntl(locks, F_SETLK, &lock) == 0 && can_listen(mine))
            return mine;
    }
    perror("test support: no free port");
    abort();
}

void test_redis_sweep(struct test_redis *r)
{
    static const char library[] = "#!lua name=sweep\nredis.register_function('sweep', function() "
                                  "return collectgarbage('collect') end)";

    reply_free(test_redis_call(r, "FUNCTION", "LOAD", library, NULL));
    reply_free(test_redis_call(r, "FCALL", "sweep", "0", NULL));
    reply_free(test_redis_call(r, "FUNCTION", "DELETE", "sweep", NULL));
}
