#include "stage.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "../support/env.h"
#include "../support/fsck.h"
#include "base/mem.h"

static unsigned seed;

void stage_begin(struct stage *s)
{
    memset(s, 0, sizeof(*s));
    test_folder_make(s->dir);
    (void)snprintf(s->out, sizeof(s->out), "%s/out", s->dir);
    (void)snprintf(s->clock_path, sizeof(s->clock_path), "%s/clock", s->dir);
    s->clock = test_clock_make(s->clock_path);
    ledger_open(&s->ledger, s->dir);
}

int stage_end(struct stage *s)
{
    int status;

    stage_plain();
    status = test_laterd_stop(&s->a) + test_laterd_stop(&s->b);
    if (s->redis.pid != 0 && s->unsound == NULL)
        status += test_fsck(&s->redis);
    test_redis_stop(&s->redis);
    test_clock_free(s->clock);
    ledger_close(&s->ledger);
    test_folder_remove(s->dir);
    return status;
}

int stage_setup(void **stage)
{
    struct stage *s = *stage;

    stage_begin(s);
    test_redis_start(&s->redis, NULL);
    return 0;
}

int stage_teardown(void **stage)
{
    return stage_end(*stage);
}

void stage_preload(const char *name, const char *variable, const char *value)
{
    CLEANUP_FREE char *path = mem_printf("%s/tests/support/preload/%s.so", test_build_dir(), name);

    if (access(path, R_OK) < 0)
        test_die(path);
    (void)setenv("LD_PRELOAD", path, 1);
    if (variable != NULL)
        (void)setenv(variable, value, 1);
}

void stage_clock(struct stage *s)
{
    stage_preload("clock", "LATER_TEST_CLOCK", s->clock_path);
}

void stage_plain(void)
{
    (void)unsetenv("LD_PRELOAD");
    (void)unsetenv("LATER_TEST_CLOCK");
    (void)unsetenv("LATER_TEST_POINT");
}

/* ---- daemons */

void stage_start_plain(struct stage *s, struct test_laterd *d, const char *name, const char *yaml)
{
    test_laterd_conf(d, s->dir, name, s->redis.url, yaml);
    test_laterd_start(d);
}

void stage_start(struct stage *s, struct test_laterd *d, const char *name, const char *yaml)
{
    CLEANUP_BUF struct buf all = BUF_INIT;

    ledger_yaml(&s->ledger, &all, "work", 20, 50);
    buf_puts(&all, yaml);
    stage_start_plain(s, d, name, buf_str(&all));
}

void stage_kill(struct stage *s, struct test_laterd *d)
{
    test_laterd_kill(d, SIGKILL);
    (void)test_laterd_wait(d, STAGE_WAIT_MS);
    ledger_log(&s->ledger, d->log);
}

int stage_stop(struct stage *s, struct test_laterd *d)
{
    int status;

    if (!d->runs)
        return 0;
    status = test_laterd_stop(d);
    ledger_log(&s->ledger, d->log);
    return status;
}

/* ---- jobs */

char *stage_add(struct stage *s, const char *queue, const char *option, const char *value)
{
    char *id = test_add(&s->redis, queue, option, value, "x");

    if (id == NULL)
        abort();
    return id;
}

bool stage_until_drained(struct stage *s, int deadline_ms)
{
    return test_until_int(&s->redis, "HLEN", STAGE_ROOT ":jobs", 0, deadline_ms);
}

bool stage_until_fair(struct stage *s, int queues)
{
    return test_until_int(&s->redis, "HLEN", STAGE_ROOT ":fair", queues, STAGE_WAIT_MS);
}

bool stage_tenants_are_gone(struct stage *s, const char *queue)
{
    static const char *const rows[] = {"fair", "fair-next", "fair-debts", "fair-jobs"};
    bool are_gone = true;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        CLEANUP_FREE char *key = mem_printf("%s:%s:%s", STAGE_ROOT, rows[i], queue);
        int64_t n = test_int(&s->redis, "ZCARD", key);

        if (n > 0)
            (void)fprintf(stderr, "stage: %s has %lld rows\n", key, (long long)n);
        are_gone = are_gone && n == 0;
    }
    return are_gone;
}

bool stage_is_sound(struct stage *s, struct ledger_sum *ret, int drain_ms)
{
    bool is_drained = stage_until_drained(s, drain_ms);
    int status = stage_stop(s, &s->a) + stage_stop(s, &s->b);

    if (!is_drained)
        (void)fprintf(stderr, "stage: not drained after %d ms\n", drain_ms);
    if (status != 0)
        (void)fprintf(stderr, "stage: a daemon ended with %d\n", status);
    return ledger_is_sound(&s->ledger, LEDGER_WITH_CAUSE, ret) && is_drained && status == 0;
}

/* ---- short and long form */

int stage_number(const char *name, int of_short, int of_long)
{
    const char *text = getenv(name);

    if (text != NULL)
        return (int)strtol(text, NULL, 10);
    return test_is_long() ? of_long : of_short;
}

unsigned stage_seed(void)
{
    const char *text = getenv("LATER_SEED");
    struct timespec now = {0, 0};

    (void)clock_gettime(CLOCK_REALTIME, &now);
    seed = text != NULL ? (unsigned)strtoul(text, NULL, 10)
                        : (unsigned)now.tv_sec * 1000003U ^ (unsigned)now.tv_nsec;
    (void)printf("seed %u (LATER_SEED)\n", seed);
    srandom(seed);
    return seed;
}

int stage_random(int from, int to)
{
    return from + (int)(random() % (to - from + 1));
}
