#include "cli/hold/lock_inside.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "cli/complain.h"
#include "cli/hold/command.h"

extern char **environ;

struct inside {
    const struct lock_order *order;
    struct loop *loop;
    struct loop_timer *timer;
    struct command *child;
    int pressed; /* the last signal that we sent it ourselves, 0: none */
    int status;
};

/* Run the command in this process, and so in the process group of the ancestor's command. */
static int become(struct cli *cli, const struct lock_order *order, struct err *err)
{
    int status;

    (void)signal(SIGPIPE, SIG_DFL);
    (void)signal(SIGXFSZ, SIG_DFL);
    (void)execvp(order->argv[0], order->argv);
    err->errnum = errno;
    status = command_not_run(order->argv[0], err);
    complain(cli, err);
    return status;
}

static void on_time(void *arg)
{
    struct inside *i = arg;

    if (i->pressed == 0) {
        lock_tell(i->order->gate, KEEPER_OVERRUN_TEXT);
        loop_timer_set(i->timer, KEEPER_TTL_KILL_MS);
    }
    i->pressed = i->pressed == 0 ? SIGTERM : SIGKILL;
    command_kill(i->child, i->pressed);
}

static void on_signal(void *arg, int sig)
{
    command_kill(((struct inside *)arg)->child, sig);
}

static void on_end(void *arg, int status)
{
    struct inside *i = arg;

    i->status = i->pressed != 0 ? LOCK_OVERRAN_STATUS : status;
    loop_stop(i->loop);
}

static void watch(struct cli *cli, struct inside *i, struct err *err)
{
    if (command_start(i->child, i->order->argv, environ, err) < 0) {
        i->status = command_not_run(i->order->argv[0], err);
        complain(cli, err);
        return;
    }
    loop_timer_set(i->timer, i->order->keeper.ttl_ms);
    loop_run(i->loop);
    if (command_interrupted(i->child) != 0)
        command_die(i->child, command_interrupted(i->child));
}

static int run_for(struct cli *cli, const struct lock_order *order, struct err *err)
{
    struct inside i = {.order = order, .loop = loop_new(), .status = -1};

    if (i.loop != NULL)
        i.child = command_new(i.loop, on_signal, on_end, &i);
    if (i.child != NULL) {
        i.timer = loop_timer_new(i.loop, on_time, &i);
        watch(cli, &i, err);
    } else {
        (void)err_set(err, ERR_SYSTEM, "no descriptors: raise the limit (ulimit -n)");
    }
    loop_timer_free(i.timer);
    command_free(i.child);
    loop_free(i.loop);
    return i.status;
}

int lock_inside(struct cli *cli, const struct lock_order *order, struct err *err)
{
    return order->keeper.ttl_ms > 0 ? run_for(cli, order, err) : become(cli, order, err);
}
