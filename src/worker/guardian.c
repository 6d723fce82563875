#include "worker/guardian.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"

#define RESTART_FIRST_MS 100 /* before the second restart; doubles. The first one is at once */
#define HEALTHY_US INT64_C(10000000) /* a guard that lived longer is restarted at once */
#define RESTART_MAX_MS 5000

struct guardian {
    struct loop *loop;
    struct guard *guard;
    struct loop_fd *watch;
    struct loop_timer *restart;
    int64_t restart_ms;
    struct mono started;
};

static void start(void *arg);

static void start_later(struct guardian *g)
{
    loop_timer_set(g->restart, g->restart_ms);
    g->restart_ms = wait_next_ms(g->restart_ms, RESTART_FIRST_MS, RESTART_MAX_MS);
}

static void on_end(void *arg, int events)
{
    struct guardian *g = arg;
    pid_t pid = guard_pid(g->guard);

    (void)events;
    loop_fd_free(g->watch);
    g->watch = NULL;
    log_err(
        "event=guard state=died pid=%d code=%d effect=\"jobs that hold a lock do not start until "
        "there is another\"",
        (int)pid, guard_ended(g->guard));
    if (mono_until_us(g->started, mono_now()) > HEALTHY_US)
        g->restart_ms = 0;
    start_later(g);
}

static void start(void *arg)
{
    struct guardian *g = arg;
    struct err err = ERR_INIT;

    if (guard_start(g->guard, &err) < 0) {
        log_err("event=guard state=missing reason=\"%s\" effect=\"jobs that hold a lock do not "
                "start\"",
                err.text);
        start_later(g);
        return;
    }
    g->started = mono_now();
    g->watch = loop_fd_new(g->loop, guard_pidfd(g->guard), LOOP_READ, on_end, g);
    log_info("event=guard state=started pid=%d", (int)guard_pid(g->guard));
}

struct guardian *guardian_new(struct loop *loop, unsigned places, struct err *err)
{
    struct guardian *g = mem_new(sizeof(*g));

    g->loop = loop;
    g->guard = guard_new(places, 0, err);
    if (g->guard == NULL) {
        guardian_free(g);
        return NULL;
    }
    g->restart = loop_timer_new(loop, start, g);
    start(g);
    return g;
}

void guardian_free(struct guardian *g)
{
    if (g == NULL)
        return;
    loop_fd_free(g->watch);
    loop_timer_free(g->restart);
    guard_free(g->guard);
    free(g);
}

struct guard *guardian_guard(struct guardian *g)
{
    return g->guard;
}
