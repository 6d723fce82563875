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

void scene_handler(struct scene *s, const char *name, const char *lines)
{
    test_handler(s->dir, name,
                 "read -r n; echo \"start $LATER_ID $LATER_ATTEMPT $n $LATER_FENCE\" >> %s\n%s\n"
                 "echo \"end $LATER_ID $LATER_ATTEMPT $n\" >> %s",
                 s->ledger, lines, s->ledger);
}

void scene_open(struct scene *s, const char *const *redis_args)
{
    memset(s, 0, sizeof(*s));
    (void)signal(SIGPIPE, SIG_IGN); /* servers die while we are connected */
    test_redis_start(&s->redis, redis_args);
    test_folder_make(s->dir);
    (void)snprintf(s->ledger, sizeof(s->ledger), "%s/ledger", s->dir);
    scene_handler(s, "work", "");
    scene_handler(s, "slow", "sleep 1");
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
    struct url url;
    struct err err = ERR_INIT;

    return url_parse(s->redis.url, &url, &err) == 0 ? client_open(&url, 20000, &err) : NULL;
}

static bool try_add(struct scene *s, struct client *c, const char *queue, int number, int pad)
{
    CLEANUP_FREE char *payload = mem_printf("%d\n%*s", number, pad, "");
    char token[24];
    const char *argv[] = {queue, "token", token, payload};
    struct err err = ERR_INIT;
    struct reply *r;

    assert_true(number < SCENE_JOBS);
    (void)snprintf(token, sizeof(token), "token-%d", number);
    if (number >= s->njobs)
        s->njobs = number + 1;
    if (s->fate[number] == SCENE_NEVER)
        s->fate[number] = SCENE_UNKNOWN;
    r = c != NULL ? client_fcall(c, "default", "later_add", 4, argv, NULL, &err) : NULL;
    if (r == NULL)
        return false;
    (void)snprintf(s->id[number], sizeof(s->id[0]), "%s", reply_str(reply_at(r, 0)));
    s->fate[number] = SCENE_ACKED;
    reply_free(r);
    return true;
}

bool scene_try_add(struct scene *s, struct client *c, const char *queue, int number)
{
    return try_add(s, c, queue, number, 0);
}

void scene_add_large(struct scene *s, const char *queue, int n, int bytes)
{
    struct client *c = scene_client(s);

    for (int i = 0; i < n; i++)
        if (!try_add(s, c, queue, s->njobs, bytes))
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
    CLEANUP_FREE char *number = mem_printf("%d", s->njobs);
    char *argv[] = {program,
                    (char *)(uintptr_t) "--redis",
                    s->redis.url,
                    (char *)(uintptr_t) "add",
                    (char *)(uintptr_t) "work",
                    number,
                    NULL};
    int status = proc_run(argv, NULL, 0, out, out);

    s->fate[s->njobs++] = status == 0 ? SCENE_ACKED : SCENE_UNKNOWN;
    return status;
}

/* ---- the ledger */

struct entry {
    char id[16];
    int attempt;
    int number;
};

static int by_id(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    int order = strcmp(x->id, y->id);

    return order != 0 ? order : (x->attempt > y->attempt) - (x->attempt < y->attempt);
}

/* The lines that begin with word, sorted by id and attempt; the array is the caller's to free. */
static struct entry *entries(struct scene *s, const char *word, int *n)
{
    CLEANUP_BUF struct buf all = BUF_INIT;
    struct entry *list;
    char *save = NULL;

    test_read(s->ledger, &all);
    list = mem_new((all.len / 8 + 1) * sizeof(*list));
    *n = 0;
    for (char *l = all.len > 0 ? strtok_r(all.data, "\n", &save) : NULL; l != NULL;
         l = strtok_r(NULL, "\n", &save)) {
        struct entry *e = &list[*n];
        char what[8];

        if (sscanf(l, "%7s %15s %d %d", what, e->id, &e->attempt, &e->number) == 4 &&
            strcmp(what, word) == 0)
            ++*n;
    }
    qsort(list, (size_t)*n, sizeof(*list), by_id);
    return list;
}

void scene_sum(struct scene *s, struct scene_sum *ret)
{
    CLEANUP_FREE struct entry *starts = NULL;
    CLEANUP_FREE struct entry *ends = NULL;
    CLEANUP_FREE int *ended = mem_new(SCENE_JOBS * sizeof(*ended));

    memset(ret, 0, sizeof(*ret));
    starts = entries(s, "start", &ret->starts);
    ends = entries(s, "end", &ret->ends);
    for (int i = 1; i < ret->starts; i++)
        ret->twice += by_id(&starts[i - 1], &starts[i]) == 0;
    for (int i = 0; i < ret->ends; i++) {
        if (ends[i].number < 0 || ends[i].number >= s->njobs)
            ret->unexpected++;
        else
            ended[ends[i].number]++;
    }
    for (int i = 0; i < s->njobs; i++) {
        ret->attempted += s->fate[i] != SCENE_NEVER;
        ret->acked += s->fate[i] == SCENE_ACKED;
        ret->lost += s->fate[i] == SCENE_ACKED && ended[i] == 0;
        ret->reruns += ended[i] > 1 ? ended[i] - 1 : 0;
    }
}

int scene_lost_by_redis(struct scene *s, int from)
{
    int lost = 0;

    for (int i = from; i < s->njobs; i++) {
        struct reply *r;

        if (s->fate[i] != SCENE_ACKED)
            continue;
        r = test_redis_call(&s->redis, "HEXISTS", SCENE_ROOT ":jobs", s->id[i], NULL);
        if (r != NULL && reply_int(r) == 0 && scene_ends_of(s, i) == 0) {
            s->fate[i] = SCENE_LOST_BY_REDIS;
            lost++;
        }
        reply_free(r);
    }
    return lost;
}

void scene_excuse(struct scene *s, int from)
{
    for (int i = from; i < s->njobs; i++)
        s->fate[i] = SCENE_LOST_BY_REDIS;
}

int scene_ends_of(struct scene *s, int number)
{
    CLEANUP_FREE char *pattern = mem_printf("end %s ", s->id[number]);

    return test_lines(s->ledger, pattern);
}

int scene_ends(struct scene *s)
{
    return test_lines(s->ledger, "end ");
}

bool scene_until_ends(struct scene *s, int n, int deadline_ms)
{
    return test_until_lines(s->ledger, "end ", n, deadline_ms);
}

static bool drained(void *arg)
{
    struct scene *s = arg;
    struct scene_sum sum;

    if (test_int(&s->redis, "HLEN", SCENE_ROOT ":jobs") > 0)
        return false;
    scene_sum(s, &sum);
    return sum.lost == 0;
}

bool scene_is_drained(struct scene *s, int deadline_ms)
{
    return test_until(drained, s, deadline_ms);
}

void scene_drained(struct scene *s, int again)
{
    struct scene_sum sum;
    bool is_drained = scene_is_drained(s, 2 * SCENE_LONG_MS);

    scene_sum(s, &sum);
    print_message("%d acked of %d, %d starts, %d ends: %d lost, %d unexpected, %d started twice, "
                  "%d run again\n",
                  sum.acked, sum.attempted, sum.starts, sum.ends, sum.lost, sum.unexpected,
                  sum.twice, sum.reruns);
    assert_true(is_drained);
    assert_int_equal(sum.lost, 0);
    assert_int_equal(sum.unexpected, 0);
    assert_in_range(sum.twice, 0, again);
    assert_in_range(sum.reruns, 0, again);
}

/* Milliseconds from the add of one more job to its end. */
static int64_t time_of_a_job(struct scene *s)
{
    struct mono begin = mono_now();
    int before = scene_ends(s);

    scene_add(s, "work", 1);
    if (!scene_until_ends(s, before + 1, SCENE_LONG_MS))
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
