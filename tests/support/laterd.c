#include "laterd.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "redis/client.h"
#include "env.h"

#define START_MS 60000 /* a sanitized build on a loaded machine */

void test_folder_make(char dir[64])
{
    CLEANUP_FREE char *handlers = NULL;

    (void)strcpy(dir, "/tmp/laterd-test.XXXXXX");
    if (mkdtemp(dir) == NULL)
        test_die("mkdtemp");
    handlers = mem_printf("%s/handlers", dir);
    if (chmod(dir, 0755) < 0 || mkdir(handlers, 0755) < 0)
        test_die(dir);
}

void test_folder_remove(const char *dir)
{
    char *argv[] = {(char *)(uintptr_t) "rm", (char *)(uintptr_t) "-rf", (char *)(uintptr_t)dir,
                    NULL};

    if (proc_run(argv, NULL, 0, NULL, NULL) != 0)
        test_die("rm");
}

static void write_file(const char *path, const char *text, size_t n, mode_t mode)
{
    CLEANUP_FREE char *tmp = mem_printf("%s.new~", path);
    int fd = open(tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);

    if (fd < 0 || write(fd, text, n) != (ssize_t)n || fchmod(fd, mode) < 0)
        test_die(path);
    (void)close(fd);
    /* Renamed, so that neither a daemon nor exec sees half a file or one open for writing. */
    if (rename(tmp, path) < 0)
        test_die(path);
}

void test_install(const char *dir, const char *program, char path[96])
{
    CLEANUP_FREE char *from = mem_printf("%s/%s", test_build_dir(), program);
    const char *slash = strrchr(program, '/');
    char *argv[] = {(char *)(uintptr_t) "install", (char *)(uintptr_t) "-m755", from, path, NULL};

    (void)snprintf(path, 96, "%s/%s", dir, slash != NULL ? slash + 1 : program);
    if (proc_run(argv, NULL, 0, NULL, NULL) != 0)
        test_die(from);
}

void test_handler(const char *dir, const char *name, const char *body, ...)
{
    CLEANUP_FREE char *path = mem_printf("%s/handlers/%s", dir, name);
    CLEANUP_FREE char *text = NULL;
    CLEANUP_FREE char *script = NULL;
    const char *ca = getenv("SSL_CERT_FILE"); /* a handler does not inherit it (scripts/over-tls) */
    va_list ap;

    va_start(ap, body);
    if (vasprintf(&text, body, ap) < 0)
        test_die("memory");
    va_end(ap);
    script = ca != NULL ? mem_printf("#!/bin/sh\nexport SSL_CERT_FILE='%s'\n%s\n", ca, text)
                        : mem_printf("#!/bin/sh\n%s\n", text);
    write_file(path, script, strlen(script), 0755);
}

void test_laterd_conf(struct test_laterd *d, const char *dir, const char *name, const char *redis,
                      const char *yaml)
{
    CLEANUP_FREE char *text =
        mem_printf("redis: %s\nstate_dir: %s/state-%s\nhandlers_dir: %s/handlers\n%s%s\n", redis,
                   dir, name, dir, strstr(yaml, "log_rate:") != NULL ? "" : "log_rate: 0\n", yaml);

    memset(d, 0, sizeof(*d));
    (void)snprintf(d->name, sizeof(d->name), "%s", name);
    (void)snprintf(d->dir, sizeof(d->dir), "%s", dir);
    (void)snprintf(d->conf, sizeof(d->conf), "%s/%s.yaml", dir, name);
    (void)snprintf(d->log, sizeof(d->log), "%s/%s.log", dir, name);
    write_file(d->conf, text, strlen(text), 0644);
}

void test_laterd_launch(struct test_laterd *d)
{
    CLEANUP_FREE char *program = mem_printf("%s/laterd", test_build_dir());
    char *argv[] = {program, (char *)(uintptr_t) "--config", d->conf, NULL};

    (void)unlink(d->log);
    proc_start(&d->proc, argv, NULL, d->log);
    d->runs = true;
}

bool test_laterd_says(struct test_laterd *d, const char *text, int deadline_ms)
{
    struct proc_log log = {&d->proc, text};

    return test_until(proc_log_has, &log, deadline_ms);
}

void test_laterd_start(struct test_laterd *d)
{
    test_laterd_launch(d);
    if (!test_laterd_says(d, "event=registered", START_MS)) {
        CLEANUP_BUF struct buf log = BUF_INIT;

        test_read(d->log, &log);
        (void)fprintf(stderr, "laterd did not register:\n%s\n", buf_str(&log));
        abort();
    }
}

void test_laterd_kill(struct test_laterd *d, int sig)
{
    proc_signal(&d->proc, sig);
}

void test_laterd_reload(struct test_laterd *d, const char *redis, const char *yaml)
{
    struct test_laterd edited;

    test_laterd_conf(&edited, d->dir, d->name, redis, yaml);
    test_laterd_kill(d, SIGHUP);
}

int test_laterd_wait(struct test_laterd *d, int deadline_ms)
{
    int status = proc_wait(&d->proc, deadline_ms);

    if (status < 0) {
        (void)fprintf(stderr, "laterd %s still runs after %d ms\n", d->name, deadline_ms);
        abort();
    }
    /* The end of the log has a sanitizer's report, or whatever else made it fail. */
    if (status != 0 && status != 128 + SIGKILL) {
        (void)fprintf(stderr, "laterd %s ended with %d:\n", d->name, status);
        test_show_end(d->log);
    }
    proc_done(&d->proc);
    d->runs = false;
    return status;
}

int test_laterd_stop(struct test_laterd *d)
{
    if (!d->runs)
        return 0;
    test_laterd_kill(d, SIGCONT);
    test_laterd_kill(d, SIGTERM);
    return test_laterd_wait(d, 40000);
}

void test_show_end(const char *path)
{
    CLEANUP_BUF struct buf text = BUF_INIT;

    test_read(path, &text);
    (void)fprintf(stderr, "%s\n", buf_str(&text) + (text.len > 8000 ? text.len - 8000 : 0));
}

void test_read(const char *path, struct buf *ret)
{
    CLEANUP_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n;

    buf_clear(ret);
    while (fd >= 0 && (n = read(fd, buf_reserve(ret, 65536), 65536)) > 0)
        ret->len += (size_t)n;
    (void)buf_str(ret);
}

int test_lines(const char *path, const char *text)
{
    CLEANUP_BUF struct buf all = BUF_INIT;
    char *save = NULL;
    int n = 0;

    test_read(path, &all);
    if (all.len == 0)
        return 0;
    for (char *l = strtok_r(all.data, "\n", &save); l != NULL; l = strtok_r(NULL, "\n", &save))
        n += text == NULL || strstr(l, text) != NULL;
    return n;
}

struct lines {
    const char *path, *text;
    int n;
};

static bool has_lines(void *arg)
{
    const struct lines *l = arg;

    return test_lines(l->path, l->text) >= l->n;
}

bool test_until_lines(const char *path, const char *text, int n, int deadline_ms)
{
    struct lines l = {path, text, n};

    return test_until(has_lines, &l, deadline_ms);
}

int64_t test_now_ms(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_REALTIME, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

struct reply *test_fcall(struct test_redis *r, const char *function, ...)
{
    const char *argv[32];
    struct err err = ERR_INIT;
    struct client *c = test_redis_client(r, &err);
    struct reply *reply;
    int argc = 0;
    va_list ap;

    va_start(ap, function);
    while (argc < 32 && (argv[argc] = va_arg(ap, const char *)) != NULL)
        argc++;
    va_end(ap);
    if (c == NULL) {
        (void)fprintf(stderr, "test_fcall %s: %s\n", function, err.text);
        return NULL;
    }
    reply = client_fcall(c, "default", function, argc, argv, NULL, &err);
    if (reply == NULL)
        (void)fprintf(stderr, "test_fcall %s: %s\n", function, err.text);
    client_close(c);
    return reply;
}

char *test_add(struct test_redis *r, const char *queue, const char *name, const char *value,
               const char *payload)
{
    struct reply *reply = name != NULL
                              ? test_fcall(r, "later_add", queue, name, value, payload, NULL)
                              : test_fcall(r, "later_add", queue, payload, NULL);
    char *id = reply != NULL ? mem_strdup(reply_str(reply_at(reply, 0))) : NULL;

    reply_free(reply);
    return id;
}

bool test_state_is(struct test_redis *r, const char *id, const char *state)
{
    struct reply *reply = test_fcall(r, "later_result", id, NULL);
    bool same = reply_is(reply_at(reply, 0), state);

    reply_free(reply);
    return same;
}

struct wanted {
    struct test_redis *redis;
    const char *id, *state;
};

static bool has_state(void *arg)
{
    const struct wanted *w = arg;

    return test_state_is(w->redis, w->id, w->state);
}

bool test_until_state(struct test_redis *r, const char *id, const char *state, int deadline_ms)
{
    struct wanted w = {r, id, state};

    return test_until(has_state, &w, deadline_ms);
}

char *test_shown(struct test_redis *redis, const char *id, const char *name)
{
    struct reply *r = test_fcall(redis, "later_show", id, NULL);
    const struct reply *v = reply_named(r, name);
    char *text =
        v != NULL && reply_kind(v) == REPLY_STR ? mem_dup(reply_str(v), reply_len(v)) : NULL;

    if (text == NULL)
        text = v != NULL && reply_kind(v) == REPLY_INT ? mem_printf("%lld", (long long)reply_int(v))
                                                       : mem_strdup("");
    reply_free(r);
    return text;
}

int64_t test_int(struct test_redis *r, const char *command, const char *key)
{
    struct reply *reply = test_redis_call(r, command, key, NULL);
    int64_t n = reply_int(reply);

    reply_free(reply);
    return n;
}

struct count {
    struct test_redis *redis;
    const char *command, *key;
    int64_t n;
};

static bool is_count(void *arg)
{
    const struct count *c = arg;
    struct reply *r = test_redis_call(c->redis, c->command, c->key, NULL);
    bool is_it = r != NULL && reply_int(r) == c->n; /* an error reply is not 0 */

    reply_free(r);
    return is_it;
}

bool test_until_int(struct test_redis *r, const char *command, const char *key, int64_t n,
                    int deadline_ms)
{
    struct count c = {r, command, key, n};

    return test_until(is_count, &c, deadline_ms);
}
