#include "cli/hold/lock.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "cli/complain.h"
#include "cli/hold/command.h"
#include "cli/hold/keeper_answers.h"
#include "cli/hold/lock_start.h"
#include "cli/hold/lock_token.h"
#include "redis/error_reply.h"
#include "redis/link.h"
#include "run/process/offspring_end.h"
#include "run/process/origin.h"
#include "store/gate_redis.h"
#include "store/store_redis.h"
#include "worker/guardian.h"
#include "worker/identity.h"
#include "worker/orphans.h"

#define PLACE 0 /* of the guard's table, for the command */
/* For the jobs of a laterd that died, whose settings are not known here. A job that kills all
 * workers has to end, but preferably by a laterd that knows after how many crashes. */
#define REAP_CRASHES 10
#define REAP_DEAD_MAX 10000
/* Shorter than the time from our KILL until another holder may get the permit. */
#define KILL_WAIT_MS 2000

extern char **environ;

struct lock {
    const struct lock_order *order;
    struct cli *cli;
    struct loop *loop;
    struct loop_alarm *alarm;
    struct guardian *guardian;
    struct guard *guard; /* owned by the guardian */
    struct link *link;
    struct store_redis *store;
    struct gate_redis *gate;
    struct orphans *orphans;
    struct keeper *keeper;
    struct command *child;
    struct identity me;
    struct err last_err; /* the last refusal of a call, with its cure */
    struct err failed;   /* why there is no permit */
    enum keeper_end end;
    struct boot acked; /* when the last acknowledged beat was sent */
    int64_t fence;
    bool must_end;
    int status;  /* of the command */
    int stopped; /* the last signal that this process got */
};

/* ---- what the keeper asks of Redis */

static int op_reg(void *ctx, const struct store_register *req)
{
    struct lock *l = ctx;
    const char *fields[] = {"host",    l->me.host,
                            "boot",    l->me.boot,
                            "pidns",   l->me.process.pidns,
                            "pid",     l->me.process.pid,
                            "pstart",  l->me.process.pstart,
                            "version", PACKAGE_VERSION,
                            "places",  "0",
                            "queues",  ""};

    return store_register(l->store, req, l->me.instance, &(struct store_fields){fields, 8},
                          &(struct store_fields){NULL, 0});
}

static int op_ask_limit(void *ctx)
{
    return gate_ask_limit(((struct lock *)ctx)->gate);
}

static int op_beat(void *ctx, int64_t epoch)
{
    return store_beat(((struct lock *)ctx)->store, epoch, NULL);
}

static int op_enter(void *ctx, int64_t epoch, bool is_waiting)
{
    return gate_enter(((struct lock *)ctx)->gate, epoch, is_waiting);
}

static int op_ask_beats(void *ctx)
{
    return gate_ask_beats(((struct lock *)ctx)->gate);
}

static int op_clear(void *ctx, int64_t victim)
{
    return orphans_end(((struct lock *)ctx)->orphans, victim, false);
}

static int op_reap(void *ctx, int64_t epoch, int64_t victim, const char *counter)
{
    return store_reap(((struct lock *)ctx)->store, epoch, victim, counter, REAP_CRASHES,
                      REAP_DEAD_MAX);
}

static int op_ask_done(void *ctx)
{
    struct lock *l = ctx;

    return gate_ask_done(l->gate, l->order->done);
}

static int op_tell_done(void *ctx)
{
    struct lock *l = ctx;

    return gate_tell_done(l->gate, l->order->done, l->me.host, l->order->per_ms);
}

static int op_leave(void *ctx, int64_t epoch)
{
    return store_leave(((struct lock *)ctx)->store, epoch);
}

static void op_relink(void *ctx, enum error_class class, const char *text)
{
    link_reset(((struct lock *)ctx)->link, class, text);
}

/* ---- its other effects */

static bool op_is_gone(void *ctx, const struct store_peer *peer)
{
    return identity_is_gone(&((struct lock *)ctx)->me, peer);
}

static bool op_admits(void *ctx, int64_t fence)
{
    struct lock *l = ctx;

    guard_set(l->guard, PLACE, fence);
    return guard_admits(l->guard);
}

static bool is_ours(const char *variable)
{
    static const char *const names[] = {"LATER_FENCE=", ORIGIN_NAME, LOCK_TOKENS "="};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strncmp(variable, names[i], strlen(names[i])) == 0)
            return true;
    }
    return false;
}

/* Our environment with the variables that tell of the permit. The caller frees it. */
static char **make_env(const struct lock *l, int64_t epoch, int64_t fence)
{
    const char *gate = l->order->gate;
    const char *named = l->order->keeper.is_sem ? "LATER_SEM=" : "LATER_LOCK=";
    size_t n = 0, all = 0;
    char **env;

    while (environ[all] != NULL)
        all++;
    env = mem_new((all + 5) * sizeof(*env));
    env[n++] = mem_printf("LATER_FENCE=%lld", (long long)fence);
    env[n++] = origin_env(fence, "");
    for (size_t i = 0; i < all; i++) {
        if (!is_ours(environ[i]) && strncmp(environ[i], named, strlen(named)) != 0)
            env[n++] = mem_strdup(environ[i]);
    }
    env[n++] = mem_printf("%s%s", named, strchr(gate, ':') + 1);
    env[n++] = lock_token_env(epoch, l->me.instance, gate);
    return env;
}

static int op_start(void *ctx, int64_t epoch, int64_t fence, bool must_end)
{
    struct lock *l = ctx;
    /* From then on the command would get TERM anyway. The guard kills only later (15 s). */
    int64_t until_us = must_end ? l->acked.us + KEEPER_TERM_MS * INT64_C(1000) : INT64_MAX;
    char **env = make_env(l, epoch, fence), **argv = lock_start_argv(until_us, l->order->argv);
    struct err err = ERR_INIT;
    pid_t pid = command_start(l->child, argv, env, &err);

    mem_free_list(argv);
    mem_free_list(env);
    if (pid < 0) {
        guard_clear(l->guard, PLACE);
        l->status = command_not_run(l->order->argv[0], &err);
        complain(l->cli, &err);
        return -1;
    }
    l->fence = fence;
    l->must_end = must_end;
    if (must_end)
        guard_set_process(l->guard, PLACE, pid);
    else
        guard_clear(l->guard, PLACE);
    return 0;
}

void lock_tell(const char *gate, const char *text)
{
    CLEANUP_BUF struct buf name = BUF_INIT;

    text_escape(&name, gate, strlen(gate));
    (void)fprintf(stderr, "later: %s: %s\n", buf_str(&name), text);
}

static void op_tell(void *ctx, const char *text)
{
    lock_tell(((struct lock *)ctx)->order->gate, text);
}

/* KILL is for all that the command has started, in any process group. Once the command has ended,
 * its permit goes to the next holder; so wait here until what it left is gone. */
static void op_kill(void *ctx, int sig)
{
    struct lock *l = ctx;
    bool is_left =
        sig == SIGKILL && !offspring_end_one(l->fence, mono_add_ms(mono_now(), KILL_WAIT_MS));

    command_kill(l->child, sig);
    if (is_left)
        op_tell(ctx, "what the command has started was killed, and is not dead yet");
}

static void op_fail(void *ctx, enum error_class class, const char *text)
{
    struct lock *l = ctx;
    bool is_refused = class == ERROR_CLASS_CALL || class == ERROR_CLASS_TYPE;

    if (is_refused && l->last_err.code != ERR_NONE)
        l->failed = l->last_err;
    else
        (void)err_set(&l->failed, class == ERROR_CLASS_DENIED ? ERR_DENIED : ERR_UNAVAILABLE,
                      "%.250s", text);
}

static void op_arm(void *ctx, struct mono at)
{
    loop_alarm_set(((struct lock *)ctx)->alarm, at);
}

static void op_over(void *ctx, enum keeper_end end)
{
    struct lock *l = ctx;

    l->end = end;
    loop_stop(l->loop);
}

static const struct keeper_ops ops = {
    .reg = op_reg,
    .ask_limit = op_ask_limit,
    .beat = op_beat,
    .enter = op_enter,
    .ask_beats = op_ask_beats,
    .clear = op_clear,
    .reap = op_reap,
    .ask_done = op_ask_done,
    .tell_done = op_tell_done,
    .leave = op_leave,
    .relink = op_relink,
    .is_gone = op_is_gone,
    .admits = op_admits,
    .start = op_start,
    .kill = op_kill,
    .tell = op_tell,
    .fail = op_fail,
    .arm = op_arm,
    .over = op_over,
};

/* ---- events from below */

static void on_alarm(void *arg)
{
    keeper_on_timer(((struct lock *)arg)->keeper, mono_now());
}

static void on_up(void *arg, const struct probe_result *server)
{
    struct lock *l = arg;

    if (server->has_failed_over)
        keeper_failed_over(l->keeper);
    keeper_link_up(l->keeper, mono_now());
}

static void on_down(void *arg, enum error_class class, const char *text)
{
    struct lock *l = arg;

    store_redis_reset(l->store);
    orphans_reset(l->orphans);
    keeper_link_down(l->keeper, mono_now(), class, text);
}

static void on_subscribed(void *arg)
{
    keeper_on_subscribed(((struct lock *)arg)->keeper, mono_now());
}

static void on_wake(void *arg, const char *text, size_t n)
{
    (void)n;
    keeper_on_wake(((struct lock *)arg)->keeper, mono_now(), text);
}

/* Without wake messages, we learn of our turn after the next beat. */
static void on_denied(void *arg, const char *text)
{
    (void)arg;
    (void)text;
}

static void be_alive(struct lock *l, struct boot sent)
{
    guard_alive(l->guard, sent);
    if (sent.us > l->acked.us)
        l->acked = sent;
}

static void on_registered(void *arg, const struct store_register_reply *r)
{
    struct lock *l = arg;

    be_alive(l, r->sent);
    keeper_on_registered(l->keeper, mono_now(), r);
}

static void on_beat(void *arg, const struct store_beat_reply *r)
{
    struct lock *l = arg;

    if (r->status == STORE_OK)
        be_alive(l, r->sent);
    keeper_on_beat(l->keeper, mono_now(), r);
}

static void on_cleared(void *arg, int64_t victim, bool is_clear)
{
    keeper_on_cleared(((struct lock *)arg)->keeper, mono_now(), victim, is_clear);
}

static void on_reaped(void *arg, enum store_reap status, int64_t moved)
{
    keeper_on_reaped(((struct lock *)arg)->keeper, mono_now(), status, moved);
}

static void on_left(void *arg, bool is_clean)
{
    keeper_on_left(((struct lock *)arg)->keeper, mono_now(), is_clean);
}

static void on_entered(void *arg, const struct gate_enter_reply *r)
{
    keeper_on_entered(((struct lock *)arg)->keeper, mono_now(), r);
}

static void on_limit(void *arg, const char *limit)
{
    keeper_on_limit(((struct lock *)arg)->keeper, mono_now(), limit);
}

static void on_beats(void *arg, const struct gate_beats_reply *r)
{
    keeper_on_beats(((struct lock *)arg)->keeper, mono_now(), r);
}

static void on_done_asked(void *arg, bool is_done)
{
    struct lock *l = arg;

    keeper_on_done_asked(l->keeper, mono_now(), is_done && !l->order->is_forced);
}

static void on_done_told(void *arg)
{
    keeper_on_done_told(((struct lock *)arg)->keeper, mono_now());
}

static void on_error(void *arg, enum error_class class, const char *text)
{
    struct lock *l = arg;

    (void)error_reply_err(&l->last_err, text);
    if (ask_is_refusal(&l->last_err, "ELATER_LIMIT") && strstr(text, "there is no ") != NULL)
        (void)err_set(&l->last_err, ERR_REFUSED,
                      "ELATER_LIMIT there is no semaphore of this name: later limits set %.100s "
                      "semaphore N makes it",
                      strchr(l->order->gate, ':') + 1);
    keeper_on_error(l->keeper, mono_now(), class, l->last_err.text);
}

static void on_signal(void *arg, int sig)
{
    struct lock *l = arg;

    l->stopped = sig;
    keeper_on_signal(l->keeper, mono_now(), sig);
}

static void on_end(void *arg, int status)
{
    struct lock *l = arg;
    enum keeper_command how = status == 0 ? KEEPER_SUCCEEDED : KEEPER_ENDED;

    if (l->must_end && guard_has_killed(l->guard, PLACE))
        how = KEEPER_KILLED_BY_GUARD;
    l->status = status;
    guard_clear(l->guard, PLACE);
    keeper_on_end(l->keeper, mono_now(), how);
}

/* ---- start and end */

static int build(struct lock *l, struct err *err)
{
    const struct target *t = &l->cli->server.target;
    struct link_events link_events = {on_up, on_down,   on_subscribed, on_wake,
                                      NULL,  on_denied, NULL,          l};
    struct store_events store_events = {.registered = on_registered,
                                        .beat = on_beat,
                                        .reaped = on_reaped,
                                        .left = on_left,
                                        .failed = on_error,
                                        .arg = l};
    struct gate_events gate_events = {.entered = on_entered,
                                      .limit = on_limit,
                                      .beats = on_beats,
                                      .done_asked = on_done_asked,
                                      .done_told = on_done_told,
                                      .failed = on_error,
                                      .arg = l};

    identity_read(&l->me);
    l->loop = loop_new();
    if (l->loop == NULL)
        return err_set(err, ERR_SYSTEM, "no descriptors: raise the limit (ulimit -n)");
    l->child = command_new(l->loop, on_signal, on_end, l);
    l->alarm = loop_alarm_new(l->loop, on_alarm, l);
    l->link = link_new(l->loop, &t->url, t->ns, t->timeout_ms, &link_events);
    if (l->child == NULL || l->alarm == NULL || l->link == NULL)
        return err_set(err, ERR_SYSTEM, "no descriptors: raise the limit (ulimit -n)");
    l->guardian = guardian_new(l->loop, 1, err);
    if (l->guardian == NULL)
        return -1;
    l->guard = guardian_guard(l->guardian);
    if (!guard_is_up(l->guard))
        return err_set(err, ERR_SYSTEM, "without its guard no command is run");
    l->orphans = orphans_new(l->loop, l->link, t->ns, &l->me, on_cleared, l);
    if (l->orphans == NULL)
        return err_set(err, ERR_SYSTEM, "no descriptors: raise the limit (ulimit -n)");
    l->store = store_redis_new(l->link, t->ns, &store_events);
    l->gate = gate_redis_new(l->link, t->ns, l->order->gate, &gate_events);
    l->keeper = keeper_new(&l->order->keeper, &ops, l, mono_now());
    return 0;
}

static void take_apart(struct lock *l)
{
    link_free(l->link);
    orphans_free(l->orphans);
    store_redis_free(l->store);
    gate_redis_free(l->gate);
    keeper_free(l->keeper);
    guardian_free(l->guardian);
    command_free(l->child);
    loop_alarm_free(l->alarm);
    loop_free(l->loop);
}

static int status_of(struct lock *l, struct err *err)
{
    switch (l->end) {
    case KEEPER_RAN:
        if (command_interrupted(l->child) != 0)
            command_die(l->child, command_interrupted(l->child));
        return l->status;
    case KEEPER_BUSY:
    case KEEPER_REPEATED:
        return l->order->busy_status;
    case KEEPER_LOST:
        return LOCK_LOST_STATUS;
    case KEEPER_OVERRAN:
        return LOCK_OVERRAN_STATUS;
    case KEEPER_STOPPED:
        command_die(l->child, l->stopped);
        return 128 + l->stopped;
    case KEEPER_FAILED:
        break;
    }
    *err = l->failed;
    return -1;
}

int lock_run(struct cli *cli, const struct lock_order *order, struct err *err)
{
    struct lock l = {.order = order, .cli = cli};
    int status = -1;

    if (ask_target(&cli->server, err) < 0)
        return -1;
    log_init(LOG_LEVEL_ERR);
    if (build(&l, err) == 0) {
        link_renew_password(l.link, cli->server.target.password_every_ms);
        link_start(l.link);
        loop_run(l.loop);
        guard_clear(l.guard, PLACE);
        status = status_of(&l, err);
    }
    take_apart(&l);
    return status;
}
