#include "scene.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "../support/env.h"
#include "../support/fsck.h"
#include "base/mem.h"
#include "usage.h"

/* ---- open and close */

void scene_open(struct scene *s, const char *const *redis_args)
{
    memset(s, 0, sizeof(*s));
    (void)signal(SIGPIPE, SIG_IGN); /* servers die while we are connected */
    test_redis_start(&s->redis, redis_args);
    test_folder_make(s->dir);
    ledger_open(&s->ledger, s->dir);
    ledger_script(&s->ledger, "work", "");
    ledger_script(&s->ledger, "slow", "sleep 1");
}

int scene_close(struct scene *s)
{
    int status = 0;

    if (s->redis.pid != 0)
        test_redis_kill(&s->redis, SIGCONT);
    if (s->proxy.proc.pid != 0)
        (void)proxy_tell(&s->proxy, "pass");
    for (int i = 0; i < SCENE_DAEMONS; i++)
        status += scene_stop(s, i);
    proxy_stop(&s->proxy);
    if (s->unsound == NULL)
        status += test_fsck(&s->redis);
    test_redis_stop(&s->redis);
    ledger_close(&s->ledger);
    test_folder_remove(s->dir);
    return status == 0 ? 0 : -1;
}

void scene_proxy(struct scene *s)
{
    proxy_start(&s->proxy, &s->redis);
}

void scene_launch(struct scene *s, int i, const char *url, const char *yaml)
{
    CLEANUP_FREE char *all = mem_printf(
        "%s%s", strstr(yaml, "redis_timeout") == NULL ? "redis_timeout: 2s\n" : "", yaml);
    char name[16];

    if (url == NULL)
        url = s->proxy.proc.pid != 0 ? s->proxy.url : s->redis.url;
    (void)snprintf(name, sizeof(name), "d%d", i);
    test_laterd_conf(&s->d[i], s->dir, name, url, all);
    test_laterd_launch(&s->d[i]);
}

void scene_daemon(struct scene *s, int i, const char *url, const char *yaml)
{
    scene_launch(s, i, url, yaml);
    if (!test_laterd_says(&s->d[i], "event=registered", SCENE_LONG_MS))
        fail_msg("daemon %d did not register", i);
}

int scene_stop(struct scene *s, int i)
{
    return test_laterd_stop(&s->d[i]);
}

int scene_setup(void **scene)
{
    scene_open(*scene, NULL);
    return 0;
}

int scene_setup_aof(void **scene)
{
    static const char *const aof[] = {"--appendonly", "yes", NULL};

    scene_open(*scene, aof);
    return 0;
}

int scene_setup_proxy(void **scene)
{
    scene_open(*scene, NULL);
    scene_proxy(*scene);
    return 0;
}

int scene_teardown(void **scene)
{
    return scene_close(*scene);
}

/* ---- adding */

struct client *scene_client(struct scene *s)
{
    struct err err = ERR_INIT;

    return test_redis_client(&s->redis, &err);
}

void scene_add_large(struct scene *s, const char *queue, int n, int bytes)
{
    struct client *c = scene_client(s);

    for (int i = 0; i < n; i++)
        if (!ledger_try_add(&s->ledger, c, queue, s->ledger.njobs, bytes))
            fail_msg("an add was not taken");
    client_close(c);
}

void scene_add(struct scene *s, const char *queue, int n)
{
    scene_add_large(s, queue, n, 0);
}

int scene_later_add(struct scene *s, struct buf *out)
{
    CLEANUP_FREE char *program = mem_printf("%s/later", test_build_dir());
    CLEANUP_FREE char *number = mem_printf("%d", s->ledger.njobs);
    char *argv[] = {program,
                    (char *)(uintptr_t) "--redis",
                    s->redis.url,
                    (char *)(uintptr_t) "add",
                    (char *)(uintptr_t) "work",
                    number,
                    NULL};
    int status = proc_run(argv, NULL, 0, out, out);

    ledger_note(&s->ledger, s->ledger.njobs, status == 0 ? "" : NULL);
    return status;
}

/* ---- the ledger */

static bool drained(void *arg)
{
    struct scene *s = arg;
    struct ledger_sum sum;

    if (test_int(&s->redis, "HLEN", SCENE_ROOT ":jobs") > 0)
        return false;
    ledger_sum(&s->ledger, &sum);
    return sum.lost == 0;
}

bool scene_is_drained(struct scene *s, int deadline_ms)
{
    return test_until(drained, s, deadline_ms);
}

void scene_drained(struct scene *s, int again)
{
    CLEANUP_BUF struct buf text = BUF_INIT;
    bool is_drained = scene_is_drained(s, 2 * SCENE_LONG_MS);
    struct ledger_sum sum;
    bool is_sound = ledger_is_sound(&s->ledger, again, &sum);

    ledger_print(&sum, &text);
    print_message("%s\n", buf_str(&text));
    assert_true(is_drained);
    assert_true(is_sound);
}

/* Milliseconds from the add of one more job to its end. */
static int64_t time_of_a_job(struct scene *s)
{
    struct mono begin = mono_now();
    int before = ledger_lines(&s->ledger, " end");

    scene_add(s, "work", 1);
    if (!ledger_until(&s->ledger, " end", before + 1, SCENE_LONG_MS))
        fail_msg("no job is run any more");
    return test_ms_since(begin);
}

int64_t scene_works(struct scene *s, int within_ms)
{
    int64_t ms = time_of_a_job(s);

    /* Allow for a slow machine: up to five times what a job takes without a fault. */
    if (ms > within_ms && ms - 5 * time_of_a_job(s) > within_ms)
        fail_msg("work went on after %lld ms only", (long long)ms);
    return ms;
}

/* ---- watching */

struct scene_load scene_watch(struct scene *s, int i, int ms)
{
    int lines = scene_log(s, i, NULL);
    int64_t cpu = usage_cpu_ms(s->d[i].proc.pid);

    test_pause(ms);
    return (struct scene_load){(int)((usage_cpu_ms(s->d[i].proc.pid) - cpu) * 1000 / ms),
                               scene_log(s, i, NULL) - lines};
}

void scene_is_calm(struct scene *s, int i, int ms, int lines)
{
    struct scene_load load = scene_watch(s, i, ms);

    print_message("%d ms of trouble: %d.%d %% of a processor, %d lines\n", ms,
                  load.cpu_permille / 10, load.cpu_permille % 10, load.lines);
    assert_in_range(load.cpu_permille, 0, 49);
    assert_in_range(load.lines, 0, lines);
}

int scene_log(struct scene *s, int i, const char *text)
{
    return test_lines(s->d[i].log, text);
}

bool scene_says(struct scene *s, int i, const char *text, int deadline_ms)
{
    return test_laterd_says(&s->d[i], text, deadline_ms);
}

void scene_redis(struct scene *s, const char *command, ...)
{
    const char *argv[16] = {command};
    struct client *c = scene_client(s);
    struct err err = ERR_INIT;
    struct reply *r = NULL;
    int argc = 1;
    va_list ap;

    va_start(ap, command);
    while (argc < 16 && (argv[argc] = va_arg(ap, const char *)) != NULL)
        argc++;
    va_end(ap);
    if (c == NULL || (r = client_call(c, argc, argv, NULL, &err)) == NULL)
        fail_msg("%s: %s", command, err.text);
    reply_free(r);
    client_close(c);
}
