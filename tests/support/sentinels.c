#include "sentinels.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/mem.h"
#include "laterd.h"
#include "shell.h"

#define DOWN_MS 700
#define PATIENT_MS 600000
#define REPLICAOF_AT 10 /* in the arguments of a node */

static void die(const char *what)
{
    (void)fprintf(stderr, "sentinels: %s\n", what);
    abort();
}

static void call(struct sentinels *s, int i, const char *verb, const char *a, const char *b,
                 const char *c)
{
    struct reply *r = test_redis_call(&s->nodes[i].redis, verb, a, b, c, NULL);

    if (r == NULL)
        die(verb);
    reply_free(r);
}

/* ---- servers */

static void start_node(struct sentinels *s, int i)
{
    const char *args[] = {"--port",
                          s->nodes[i].port,
                          "--bind",
                          "127.0.0.1",
                          "--repl-diskless-sync-delay",
                          "0",
                          "--replica-announce-ip",
                          "127.0.0.1",
                          "--replica-announce-port",
                          s->nodes[i].announced,
                          NULL,
                          "127.0.0.1",
                          s->nodes[i].master,
                          NULL};

    (void)snprintf(s->nodes[i].port, sizeof(s->nodes[i].port), "%d", test_free_port());
    (void)strcpy(s->nodes[i].announced, "0");
    memcpy(s->nodes[i].args, args, sizeof(args));
    test_redis_start(&s->nodes[i].redis, s->nodes[i].args);
    proxy_start(&s->nodes[i].proxy, &s->nodes[i].redis);
    (void)snprintf(s->nodes[i].announced, sizeof(s->nodes[i].announced), "%d",
                   (int)proxy_tell(&s->nodes[i].proxy, "port"));
    call(s, i, "CONFIG", "SET", "replica-announce-port", s->nodes[i].announced);
    if (i > 0)
        call(s, i, "REPLICAOF", "127.0.0.1", s->nodes[0].announced, NULL);
}

struct replicated {
    struct sentinels *s;
    int master; /* -1: ask the sentinels each time */
};

static bool has_replicas(void *arg)
{
    struct replicated *want = arg;
    int master = want->master >= 0 ? want->master : sentinels_master(want->s);
    struct reply *r = test_redis_call(&want->s->nodes[master].redis, "INFO", "replication", NULL);
    const char *at = r != NULL ? reply_str(r) : "";
    int online = 0;

    while ((at = strstr(at, "state=online")) != NULL) {
        at++;
        online++;
    }
    reply_free(r);
    return online == SENTINELS - 1;
}

static void until_replicated(struct sentinels *s, int master)
{
    struct replicated want = {s, master};

    if (!test_until(has_replicas, &want, SENTINELS_WAIT_MS))
        die("the master has no two replicas");
}

/* ---- sentinels */

int sentinels_cli(int port, const char *command)
{
    CLEANUP_FREE char *line = mem_printf("redis-cli -p %d %s", port, command);

    return test_sh(line);
}

static void tell_all(struct sentinels *s, const char *command)
{
    for (int i = 0; i < SENTINELS; i++)
        if (sentinels_cli(s->at[i].port, command) != 0)
            die(command);
}

void sentinel_start(struct sentinel *one, const char *dir, const char *name, const char *conf)
{
    char *argv[] = {(char *)(uintptr_t) "redis-server", one->conf, (char *)(uintptr_t) "--sentinel",
                    NULL};
    FILE *f;

    (void)snprintf(one->conf, sizeof(one->conf), "%s/%s.conf", dir, name);
    (void)snprintf(one->log, sizeof(one->log), "%s/%s.log", dir, name);
    f = fopen(one->conf, "w");
    if (f == NULL || fprintf(f, "bind 127.0.0.1\ndir %s\n%s\n", dir, conf) < 0 || fclose(f) != 0)
        die(one->conf);
    proc_start(&one->proc, argv, NULL, one->log);
}

static void launch(struct sentinels *s, struct sentinel *one, const char *name, int master,
                   const char *more)
{
    CLEANUP_FREE char *conf = NULL;

    one->port = test_free_port();
    conf = mem_printf("port %d\nsentinel monitor m 127.0.0.1 %s 2\n"
                      "sentinel down-after-milliseconds m %d\nsentinel failover-timeout m 2000\n"
                      "sentinel parallel-syncs m 2\n%s",
                      one->port, s->nodes[master].announced, PATIENT_MS, more);
    sentinel_start(one, s->dir, name, conf);
}

void sentinels_add(struct sentinels *s, struct sentinel *one, const char *name, const char *more)
{
    launch(s, one, name, sentinels_master(s), more);
}

/* Each sentinel knows the two others and both replicas. */
static bool all_know_all(void *arg)
{
    struct sentinels *s = arg;

    for (int i = 0; i < SENTINELS; i++) {
        CLEANUP_FREE char *line =
            mem_printf("redis-cli -p %d sentinel master m | paste - - | grep -cx "
                       "'num-slaves.2\\|num-other-sentinels.2' | grep -qx 2",
                       s->at[i].port);

        if (test_sh(line) != 0)
            return false;
    }
    return true;
}

void sentinels_start(struct sentinels *s, const char *dir)
{
    char names[SENTINELS][16];

    memset(s, 0, sizeof(*s));
    s->dir = dir;
    for (int i = 0; i < SENTINELS; i++)
        start_node(s, i);
    until_replicated(s, 0); /* a sentinel looks for new replicas only every 10 s */
    for (int i = 0; i < SENTINELS; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "sentinel%d", i);
        launch(s, &s->at[i], names[i], 0, "");
    }
    (void)snprintf(s->by, sizeof(s->by), "sentinel://127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:%d/m",
                   s->at[0].port, s->at[1].port, s->at[2].port);
    (void)snprintf(s->announce, sizeof(s->announce),
                   "announce: {\"127.0.0.1:%s\": \"127.0.0.1:%s\", \"127.0.0.1:%s\": "
                   "\"127.0.0.1:%s\", \"127.0.0.1:%s\": \"127.0.0.1:%s\"}\n",
                   s->nodes[0].announced, s->nodes[0].port, s->nodes[1].announced, s->nodes[1].port,
                   s->nodes[2].announced, s->nodes[2].port);
    if (!test_until(all_know_all, s, SENTINELS_WAIT_MS))
        die("they do not know each other");
}

void sentinels_stop(struct sentinels *s)
{
    for (int i = 0; i < SENTINELS; i++)
        proc_done(&s->at[i].proc);
    for (int i = 0; i < SENTINELS; i++)
        proxy_stop(&s->nodes[i].proxy);
    for (int i = 0; i < SENTINELS; i++)
        test_redis_stop(&s->nodes[i].redis);
}

int sentinels_master(struct sentinels *s)
{
    struct buf port = BUF_INIT;
    CLEANUP_FREE char *line =
        mem_printf("redis-cli -p %d sentinel get-master-addr-by-name m | tail -n 1", s->at[1].port);
    int found = -1;

    (void)test_sh_out(line, &port);
    for (int i = 0; i < SENTINELS; i++)
        if (strncmp(buf_str(&port), s->nodes[i].announced, strlen(s->nodes[i].announced)) == 0)
            found = i;
    if (found < 0)
        die(buf_str(&port));
    buf_done(&port);
    return found;
}

/* ---- failovers */

struct moved {
    struct sentinels *s;
    int old;
};

static bool has_moved(void *arg)
{
    struct moved *m = arg;

    return sentinels_master(m->s) != m->old;
}

void sentinels_until_moved(struct sentinels *s, int old)
{
    struct moved m = {s, old};

    if (!test_until(has_moved, &m, SENTINELS_WAIT_MS))
        die("no failover");
}

/* It is refused while a failover is under way, or a replica is not ready. */
static bool is_begun(void *arg)
{
    struct sentinels *s = arg;
    CLEANUP_FREE char *line =
        mem_printf("redis-cli -p %d sentinel failover m | grep -qx OK", s->at[1].port);

    return test_sh(line) == 0;
}

/* A server that is silent for longer is taken for dead. */
static void be_patient(struct sentinels *s, int ms)
{
    CLEANUP_FREE char *command = mem_printf("sentinel set m down-after-milliseconds %d", ms);

    tell_all(s, command);
}

int sentinels_break(struct sentinels *s, enum way way)
{
    int old = sentinels_master(s);

    if (way == BY_KILL) {
        test_redis_kill(&s->nodes[old].redis, SIGKILL);
    } else if (way == BY_STOP) {
        test_redis_kill(&s->nodes[old].redis, SIGSTOP);
    } else if (way == BY_PLAN) {
        if (!test_until(is_begun, s, SENTINELS_WAIT_MS))
            die("no planned failover");
    } else {
        be_patient(s, PATIENT_MS);
        (void)proxy_tell(&s->nodes[old].proxy, "mode stall");
    }
    return old;
}

void sentinels_promote(struct sentinels *s)
{
    be_patient(s, DOWN_MS);
}

void sentinels_heal(struct sentinels *s, enum way way, int old, bool is_slow)
{
    int master = sentinels_master(s);

    s->nodes[old].args[REPLICAOF_AT] = "--replicaof";
    (void)strcpy(s->nodes[old].master, s->nodes[master].announced);
    if (way == BY_KILL)
        test_redis_restart(&s->nodes[old].redis);
    else if (way == BY_STOP)
        test_redis_kill(&s->nodes[old].redis, SIGCONT);
    else if (way == BY_CUT)
        (void)proxy_tell(&s->nodes[old].proxy, "pass");
    if (!is_slow)
        call(s, old, "REPLICAOF", "127.0.0.1", s->nodes[master].announced, NULL);
    until_replicated(s, -1);
}

/* "7:X 27 Nov 2026 22:27:12.345 # +promoted-slave …": in local time. */
static int64_t promoted_ms(const char *line)
{
    struct tm tm = {.tm_isdst = -1};
    const char *at = strchr(line, ' ');
    const char *rest = at != NULL ? strptime(at + 1, "%d %b %Y %H:%M:%S", &tm) : NULL;

    return rest != NULL ? (int64_t)mktime(&tm) * 1000 + strtol(rest + 1, NULL, 10) : 0;
}

int64_t sentinels_promoted_ms(const struct sentinels *s)
{
    int64_t last = 0;

    for (int i = 0; i < SENTINELS; i++) {
        struct buf log = BUF_INIT;

        test_read(s->at[i].log, &log);
        for (char *line = strtok(log.data, "\n"); line != NULL; line = strtok(NULL, "\n")) {
            int64_t ms = strstr(line, "+promoted-slave") != NULL ? promoted_ms(line) : 0;

            last = ms > last ? ms : last;
        }
        buf_done(&log);
    }
    return last;
}
