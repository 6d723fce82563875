#include "gate_stage.h"

#include <setjmp.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/mem.h"
#include "redis/client.h"

#define ARGS 32
#define BATCH 500
#define HANDLER_US 1000 /* duration of a handler without work on an idle machine */

static void die(const char *what, const char *why)
{
    (void)fprintf(stderr, "gate stage: %s: %s\n", what, why);
    abort();
}

void gates_begin(struct gates *g)
{
    struct err err = ERR_INIT;
    struct url url;

    memset(g, 0, sizeof(*g));
    stage_begin(&g->s);
    test_redis_start(&g->s.redis, NULL);
    test_redis_load(&g->s.redis);
    (void)snprintf(g->path, sizeof(g->path), "%s/gates", g->s.dir);
    (void)snprintf(g->referee, sizeof(g->referee), "%s/referee", g->s.dir);
    test_install(g->s.dir, "tests/gates/gate_handler", g->handler);
    {
        /* Empty, and for all users: handlers of several append to it. */
        char *argv[] = {(char *)(uintptr_t) "install", (char *)(uintptr_t) "-m666",
                        (char *)(uintptr_t) "/dev/null", g->path, NULL};

        if (proc_run(argv, NULL, 0, NULL, NULL) != 0)
            die(g->path, "cannot be made");
    }
    if (mkdir(g->referee, 0777) < 0 || chmod(g->referee, 0777) < 0)
        die(g->referee, "cannot be made");
    if (url_parse(g->s.redis.url, &url, &err) < 0 ||
        (g->c = client_open(&url, 60000, &err)) == NULL)
        die(g->s.redis.url, err.text);
}

int gates_end(struct gates *g)
{
    int clashes = test_lines(g->path, " clash ");

    if (clashes > 0)
        (void)fprintf(stderr, "gate stage: %d started beside another of their key\n", clashes);
    client_close(g->c);
    return stage_end(&g->s) + clashes;
}

/* ---- daemons */

struct gates gates;

int gates_setup(void **state)
{
    (void)state;
    gates_begin(&gates);
    return 0;
}

int gates_teardown(void **state)
{
    (void)state;
    return gates_end(&gates);
}

static void queue_line(const struct gates *g, struct buf *ret, const char *queue, int min_ms,
                       int max_ms, const char *referee, const char *more)
{
    buf_printf(ret, "  %s: { handler: [%s, %s, \"%d\", \"%d\"%s%s]%s }\n", queue, g->handler,
               g->path, min_ms, max_ms, *referee != '\0' ? ", " : "", referee, more);
}

void gates_yaml(const struct gates *g, struct buf *ret, const char *queue, int min_ms, int max_ms,
                const char *more)
{
    queue_line(g, ret, queue, min_ms, max_ms, "", more);
}

void gates_yaml_alone(const struct gates *g, struct buf *ret, const char *queue, int min_ms,
                      int max_ms, const char *more)
{
    queue_line(g, ret, queue, min_ms, max_ms, g->referee, more);
}

void gates_start(struct gates *g, struct test_laterd *d, const char *name, int places,
                 const char *yaml)
{
    CLEANUP_FREE char *all = mem_printf("concurrency: %d\n%s", places, yaml);

    stage_start_plain(&g->s, d, name, all);
}

/* ---- Redis */

static struct reply *call(struct gates *g, struct err *err, const char *function, va_list ap)
{
    const char *argv[ARGS];
    int argc = 0;

    if (function != NULL) {
        argv[argc++] = "FCALL";
        argv[argc++] = function;
        argv[argc++] = "1";
        argv[argc++] = STAGE_ROOT;
    }
    while (argc < ARGS && (argv[argc] = va_arg(ap, const char *)) != NULL)
        argc++;
    return client_call(g->c, argc, argv, NULL, err);
}

/* Like call, but an error ends the program. */
static struct reply *must(struct gates *g, const char *function, va_list ap)
{
    struct err err = ERR_INIT;
    struct reply *r = call(g, &err, function, ap);

    if (r == NULL)
        die(function != NULL ? function : "a command", err.text);
    return r;
}

struct reply *gates_fcall(struct gates *g, const char *function, ...)
{
    struct reply *r;
    va_list ap;

    va_start(ap, function);
    r = must(g, function, ap);
    va_end(ap);
    return r;
}

struct reply *gates_call(struct gates *g, ...)
{
    struct reply *r;
    va_list ap;

    va_start(ap, g);
    r = must(g, NULL, ap);
    va_end(ap);
    return r;
}

int64_t gates_int(struct gates *g, ...)
{
    struct reply *r;
    int64_t n;
    va_list ap;

    va_start(ap, g);
    r = must(g, NULL, ap);
    va_end(ap);
    n = reply_int(r);
    reply_free(r);
    return n;
}

void gates_do(struct gates *g, const char *function, ...)
{
    va_list ap;

    va_start(ap, function);
    reply_free(must(g, function, ap));
    va_end(ap);
}

bool gates_is_refused(struct gates *g, const char *code, const char *function, ...)
{
    struct err err = ERR_INIT;
    struct reply *r;
    bool is_so;
    va_list ap;

    va_start(ap, function);
    r = call(g, &err, function, ap);
    va_end(ap);
    is_so = r == NULL && strstr(err.text, code) != NULL;
    if (!is_so)
        (void)fprintf(stderr, "gate stage: %s: %s, not %s\n", function,
                      r == NULL ? err.text : reply_str(r), code);
    reply_free(r);
    return is_so;
}

void gates_add(struct gates *g, char id[16], const char *queue, ...)
{
    const char *argv[ARGS] = {"FCALL", "later_add", "1", STAGE_ROOT, queue};
    struct err err = ERR_INIT;
    struct reply *r;
    int argc = 5;
    va_list ap;

    va_start(ap, queue);
    while (argc < ARGS - 1 && (argv[argc] = va_arg(ap, const char *)) != NULL)
        argc++;
    va_end(ap);
    argv[argc++] = "x";
    r = client_call(g->c, argc, argv, NULL, &err);
    if (r == NULL)
        die("later_add", err.text);
    if (id != NULL)
        (void)snprintf(id, 16, "%s", reply_str(reply_at(r, 0)));
    reply_free(r);
}

void gates_add_many(struct gates *g, const char *queue, int n)
{
    const char *argv[BATCH + 5] = {"FCALL", "later_add_many", "1", STAGE_ROOT, queue};
    struct err err = ERR_INIT;

    for (int i = 0; i < BATCH; i++)
        argv[5 + i] = "x";
    for (int done = 0; done < n; done += BATCH) {
        struct reply *r =
            client_call(g->c, 5 + (n - done < BATCH ? n - done : BATCH), argv, NULL, &err);

        if (r == NULL)
            die("later_add_many", err.text);
        reply_free(r);
    }
}

/* ---- waiting */

struct wanted {
    struct gates *g;
    const char *id, *text;
};

static bool is_declared(void *arg)
{
    const struct wanted *w = arg;

    return gates_int(w->g, "HEXISTS", STAGE_ROOT ":queues", w->text, NULL) == 1;
}

void gates_until_declared(struct gates *g, const char *queue)
{
    struct wanted w = {.g = g, .text = queue};

    if (!test_until(is_declared, &w, GATE_WAIT_MS))
        die(queue, "has no gates");
}

bool gates_until_jobs(struct gates *g, int64_t n, int deadline_ms)
{
    return test_until_int(&g->s.redis, "HLEN", STAGE_ROOT ":jobs", n, deadline_ms);
}

bool gates_until_parked(struct gates *g, const char *queue, int64_t n, int deadline_ms)
{
    CLEANUP_FREE char *key = mem_printf("%s:parked:%s", STAGE_ROOT, queue);

    return test_until_int(&g->s.redis, "ZCARD", key, n, deadline_ms);
}

bool gates_until_lines(struct gates *g, const char *text, int n, int deadline_ms)
{
    return test_until_lines(g->path, text, n, deadline_ms);
}

static bool is_state(void *arg)
{
    const struct wanted *w = arg;
    CLEANUP_FREE char *state = test_shown(&w->g->s.redis, w->id, "state");

    return strcmp(state, w->text) == 0;
}

bool gates_until_state(struct gates *g, const char *id, const char *state)
{
    struct wanted w = {.g = g, .id = id, .text = state};

    return test_until(is_state, &w, GATE_WAIT_MS);
}

int64_t gates_started_us(struct gates *g, const char *id, int deadline_ms)
{
    CLEANUP_FREE char *text = mem_printf(" start %s ", id);
    const struct gate_line *start;
    struct gate_judge b;
    int64_t us;

    if (!gates_until_lines(g, text, 1, deadline_ms))
        fail_msg("job %s has not started", id);
    gate_judge_read(&b, g->path, NULL);
    start = gate_judge_start(&b, id);
    us = start != NULL ? start->us : 0;
    gate_judge_done(&b);
    return us;
}

/* ---- figures */

int64_t gates_info(struct gates *g, const char *section, const char *name)
{
    CLEANUP_FREE char *key = mem_printf("\n%s:", name);
    struct reply *r = gates_call(g, "INFO", section, NULL);
    const char *at = strstr(reply_str(r), key);
    int64_t n = at != NULL ? strtoll(at + strlen(key), NULL, 10) : -1;

    reply_free(r);
    if (n < 0)
        die(name, "is not in INFO");
    return n;
}

/* The sum of one figure over all commands but INFO whose name begins with command. */
static int64_t command_stat(struct gates *g, const char *command, const char *name)
{
    CLEANUP_FREE char *first = mem_printf("cmdstat_%s", command);
    struct reply *r = gates_call(g, "INFO", "commandstats", NULL);
    int64_t sum = 0;

    for (const char *at = reply_str(r); (at = strstr(at, first)) != NULL; at += 8) {
        const char *n = strstr(at, name);

        if (n != NULL && strncmp(at, "cmdstat_info:", 13) != 0)
            sum += strtoll(n + strlen(name), NULL, 10);
    }
    reply_free(r);
    return sum;
}

int64_t gates_commands(struct gates *g)
{
    return command_stat(g, "", "calls=");
}

int64_t gates_calls(struct gates *g)
{
    return command_stat(g, "fcall:", "calls=");
}

int64_t gates_busy_us(struct gates *g)
{
    return command_stat(g, "fcall:", "usec=");
}

/* How long a handler without work takes, in us. */
static double handler_us(const struct gates *g)
{
    char *argv[] = {(char *)(uintptr_t)g->handler, (char *)(uintptr_t) "/dev/null",
                    (char *)(uintptr_t) "0", (char *)(uintptr_t) "0", NULL};
    int64_t begin = gates_now_us();
    int status;
    pid_t pid;

    if (posix_spawn(&pid, argv[0], NULL, NULL, argv, environ) != 0 ||
        waitpid(pid, &status, 0) != pid)
        die(argv[0], "cannot be run");
    return (double)(gates_now_us() - begin);
}

double gates_slowness(const struct gates *g)
{
    double us[15], slow;

    for (int i = 0; i < 15; i++)
        us[i] = handler_us(g);
    slow = gates_median(us, 15) / HANDLER_US;
    return slow > 1 ? slow : 1;
}

int64_t gates_now_us(void)
{
    return mono_now().us;
}

static int by_size(const void *a, const void *b)
{
    const double *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

double gates_median(double *values, int n)
{
    qsort(values, (size_t)n, sizeof(*values), by_size);
    return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}
