#include "run/exec/exec.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "base/text.h"
#include "run/exec/control_fd.h"
#include "run/exec/exec_pipes.h"
#include "run/exec/exec_slot.h"
#include "run/process/offspring_end.h"
#include "run/exec/output.h"
#include "run/handler/program.h"
#include "run/isolation/isolation.h"
#include "run/process/spawn.h"

#define BUSY_TRIES 3 /* of a start that meets ETXTBSY, after the first */
#define BUSY_WAIT_MS 50
#define END_WAIT_MS 10000 /* for the death of all that it has started */
#define YOUNG_MS 3        /* a process this young is watched for its end alone */

/*
 * RUN    until it ends by itself (then DRAIN) or we end it (then TERM)
 * TERM   the group was told to; when the grace is over, or the leader has ended and nobody holds a
 *        pipe any more, KILL. The leader stays a zombie meanwhile, so that the group's number
 *        cannot become anybody else's.
 * KILL   whatever carries its fence is dead, the leader's end is certain, then DRAIN
 * DRAIN  the leader is reaped; what is in the pipes is read, for EXEC_DRAIN_MS at most
 */
enum phase { PHASE_RUN, PHASE_TERM, PHASE_KILL, PHASE_DRAIN };

struct attempt {
    const struct exec_order *order;
    struct exec_slot *slot;
    const struct exec_hooks *hooks;
    struct run_result *ret;
    struct exec_pipes pipes;
    struct spawned child;
    struct output output;
    struct control_fd control;
    enum phase phase;
    struct mono deadline; /* of the phase */
    struct mono tick;     /* of the control descriptor */
    enum run_end cause;   /* why we ended it; RUN_EXITED: we did not */
    bool leader_gone;
    bool grace_over; /* KILL was needed */
    bool at_once;    /* KILL was asked for */
    bool is_alone;   /* nothing else carries its fence any more: it was looked for */
    bool has_met;    /* a limit of its cgroup, */
    char met[96];    /* in words */
    siginfo_t status;
};

/* ---- the end, in words ---- */

static void describe(const struct attempt *r)
{
    struct run_result *ret = r->ret;
    char status[96], cause[64], grace[24];

    run_describe_status(&r->status, status, sizeof(status));
    if (r->cause == RUN_EXITED && r->has_met && ret->code != 0) {
        (void)snprintf(ret->text, sizeof(ret->text), "%s: %s", r->met, status);
        return;
    }
    if (r->cause == RUN_EXITED) {
        text_copy(ret->text, sizeof(ret->text), status);
        return;
    }
    run_describe_cause(r->cause, r->order->timeout_ms, cause, sizeof(cause));
    if (r->at_once)
        (void)snprintf(ret->text, sizeof(ret->text), "%s: killed", cause);
    else if (r->grace_over)
        (void)snprintf(ret->text, sizeof(ret->text), "%s: killed after a grace of %s", cause,
                       text_duration(r->order->kill_grace_ms, grace));
    else if (r->status.si_code == CLD_EXITED)
        (void)snprintf(ret->text, sizeof(ret->text), "%s: terminated (%s)", cause, status);
    else
        (void)snprintf(ret->text, sizeof(ret->text), "%s: terminated", cause);
}

/* Half a payload is no payload: whatever the handler made of it does not count. But it ran, so its
 * attempt is spent. */
static bool is_unfed(const struct attempt *r)
{
    return r->pipes.errnum != 0 && (r->cause == RUN_EXITED || r->cause == RUN_HOST_FAULT);
}

/* Nobody's fault, its own the least; what has ended before it was killed has ended. */
static bool is_guard_killed(const struct attempt *r)
{
    const struct exec_order *o = r->order;

    return o->guard != NULL && r->cause == RUN_EXITED && r->status.si_pid != 0 &&
           r->status.si_code != CLD_EXITED && r->status.si_status == SIGKILL &&
           guard_has_killed(o->guard, o->guard_slot);
}

static void conclude(const struct attempt *r)
{
    struct run_result *ret = r->ret;

    if (is_guard_killed(r)) {
        ret->end = RUN_STOPPED;
        ret->code = SIGKILL;
        (void)snprintf(ret->text, sizeof(ret->text),
                       "killed by the guard: it held a lock, and no beat of its worker was "
                       "acknowledged");
        return;
    }

    if (is_unfed(r)) {
        ret->end = RUN_SIGNALED;
        ret->code = SIGKILL;
        (void)snprintf(ret->text, sizeof(ret->text), "killed: its payload could not be written: %s",
                       strerrordesc_np(r->pipes.errnum));
        return;
    }
    ret->code = r->status.si_pid != 0 ? r->status.si_status : SIGKILL; /* unknown: no success */
    if (r->cause != RUN_EXITED)
        ret->end = r->cause;
    else
        ret->end = r->status.si_code == CLD_EXITED ? RUN_EXITED : RUN_SIGNALED;
    describe(r);
}

/* ---- the phases ---- */

static void tell_guard(const struct attempt *r, pid_t pid)
{
    if (r->order->guard != NULL)
        guard_set_process(r->order->guard, r->order->guard_slot, pid);
}

static void tell_group(const struct attempt *r, int sig)
{
    (void)kill(-r->child.pid, sig);
    /* A stopped process does not see the signal before it is continued. */
    (void)kill(-r->child.pid, SIGCONT);
}

/* Was it ended by us, or by our guard? It stands in the table before the guard kills. */
static bool was_ended(const struct attempt *r)
{
    const struct exec_order *o = r->order;

    return r->cause != RUN_EXITED ||
           (o->guard != NULL && guard_has_killed(o->guard, o->guard_slot));
}

/* Children that left its group and its session, too: the lock goes to the next one, who must not
 * meet them. */
static void end_all(struct attempt *r)
{
    if (r->is_alone || r->order->fence == 0)
        return;
    r->is_alone = offspring_end_one(r->order->fence, mono_add_ms(mono_now(), END_WAIT_MS));
    if (!r->is_alone)
        log_warn(
            "event=left-running job=%s queue=%s fence=%lld reason=\"killed, but not dead after "
            "%d s: its gates go on all the same\"",
            r->order->id, r->order->queue, (long long)r->order->fence, END_WAIT_MS / 1000);
}

static void begin_drain(struct attempt *r)
{
    siginfo_t *st = &r->status;

    if (was_ended(r))
        end_all(r);
    tell_guard(r, 0);
    r->has_met = isolation_ended(r->order->argv, r->child.pid, EXEC_DRAIN_MS, r->met);
    /* si_pid stays 0 if somebody else reaped it; then it counts as killed, never as success. */
    while (waitid(P_PID, (id_t)r->child.pid, st, WEXITED) != 0 && errno == EINTR)
        continue;
    (void)close(r->child.pidfd);
    r->child.pidfd = -1;
    if (r->hooks->ended != NULL)
        r->hooks->ended(r->hooks->arg);
    exec_pipes_close_one(&r->pipes, PIPE_IN);
    r->phase = PHASE_DRAIN;
    r->deadline = mono_add_ms(mono_now(), EXEC_DRAIN_MS);
}

/* First those who are known by their environment: the dead have none, and are to be waited for. */
static void begin_kill(struct attempt *r)
{
    exec_slot_say(r->slot, MONO_NEVER); /* from here on it is the kernel's */
    end_all(r);
    tell_group(r, SIGKILL);
    r->phase = PHASE_KILL;
    r->deadline = MONO_NEVER;
    if (r->leader_gone)
        begin_drain(r);
}

static void on_leader_end(struct attempt *r)
{
    r->leader_gone = true;
    r->ret->duration_us = mono_until_us(r->ret->started, mono_now());
    if (r->phase != PHASE_TERM)
        begin_drain(r);
}

/* What has ended by itself in the very moment was not ended by us. */
static void begin_term(struct attempt *r, enum run_end cause)
{
    struct pollfd p = {r->child.pidfd, POLLIN, 0};

    if (poll(&p, 1, 0) > 0) {
        on_leader_end(r);
        return;
    }
    r->cause = cause;
    tell_group(r, SIGTERM);
    r->phase = PHASE_TERM;
    r->deadline = mono_add_ms(mono_now(), r->order->kill_grace_ms);
}

/* A cancelled job must not come back; that outranks a stop. */
static enum run_end asked_cause(unsigned asked)
{
    return (asked & EXEC_CONTROL_CANCEL) ? RUN_CANCELLED : RUN_STOPPED;
}

static void on_control(struct attempt *r)
{
    unsigned asked = exec_slot_take(r->slot);

    if (asked == 0 || r->phase == PHASE_DRAIN)
        return;
    if (r->phase == PHASE_RUN)
        begin_term(r, asked_cause(asked));
    else if (r->cause == RUN_STOPPED)
        r->cause = asked_cause(asked);
    if ((asked & EXEC_CONTROL_KILL) && r->phase == PHASE_TERM) {
        r->at_once = true;
        begin_kill(r);
    }
}

static void on_deadline(struct attempt *r)
{
    switch (r->phase) {
    case PHASE_RUN:
        begin_term(r, RUN_TIMED_OUT);
        break;
    case PHASE_TERM:
        r->grace_over = true;
        begin_kill(r);
        break;
    case PHASE_DRAIN:
        exec_pipes_close(&r->pipes);
        break;
    case PHASE_KILL:
        break;
    }
}

/* ---- the loop of one attempt ---- */

static void on_output(struct attempt *r, enum exec_pipe which, int events)
{
    char *buffer = exec_slot_buffer(r->slot);
    /* Nobody writes any more, and nothing is left: no need to read that. */
    ssize_t n = (events & (POLLIN | POLLHUP)) == POLLHUP
                    ? 0
                    : read(r->pipes.ours[which], buffer, EXEC_SLOT_BUFFER);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0)
        exec_pipes_close_one(&r->pipes, which);
    else if (which == PIPE_CTL)
        control_fd_add(&r->control, buffer, (size_t)n);
    else
        output_add(&r->output, which == PIPE_OUT ? OUTPUT_STDOUT : OUTPUT_STDERR, buffer,
                   (size_t)n);
}

/* Most processes end within a moment, and close their pipes a moment before they end: who listens
 * to the pipes is woken twice. What is written meanwhile waits in them. */
static bool is_young(const struct attempt *r)
{
    return r->phase == PHASE_RUN && r->pipes.ours[PIPE_IN] < 0 &&
           mono_until_us(r->ret->started, mono_now()) < YOUNG_MS * 1000;
}

/* Milliseconds for poll, rounded up so that nothing is looked at too early and then again. */
static int wait_ms(const struct attempt *r)
{
    int64_t us = mono_until_us(mono_now(), mono_min(r->deadline, r->tick));

    if (us == INT64_MAX)
        return -1;
    if (us <= 0)
        return 0;
    return us / 1000 >= INT_MAX - 1 ? INT_MAX : (int)((us + 999) / 1000);
}

static void turn(struct attempt *r)
{
    struct pollfd p[PIPES + 2];
    bool young = is_young(r);
    int ms = wait_ms(r);

    for (int i = 0; i < PIPES; i++)
        p[i] = (struct pollfd){young ? -1 : r->pipes.ours[i], i == PIPE_IN ? POLLOUT : POLLIN, 0};
    p[PIPES] = (struct pollfd){exec_slot_fd(r->slot), POLLIN, 0};
    p[PIPES + 1] = (struct pollfd){r->leader_gone ? -1 : r->child.pidfd, POLLIN, 0};
    if (young && (ms < 0 || ms > YOUNG_MS))
        ms = YOUNG_MS;
    if (poll(p, PIPES + 2, ms) < 0)
        return;
    /* The end before everything else: see begin_term. */
    if (p[PIPES + 1].revents != 0)
        on_leader_end(r);
    if (p[PIPES].revents != 0)
        on_control(r);
    for (int i = PIPE_OUT; i < PIPES; i++)
        if (p[i].revents != 0 && r->pipes.ours[i] >= 0)
            on_output(r, (enum exec_pipe)i, p[i].revents);
    if (p[PIPE_IN].revents != 0 && r->pipes.ours[PIPE_IN] >= 0)
        exec_pipes_feed(&r->pipes, r->order->payload, r->order->payload_len);
    r->tick = control_fd_tick(&r->control, mono_now());
    if (!mono_before(mono_now(), r->deadline))
        on_deadline(r);
    if (r->phase == PHASE_TERM && r->leader_gone && exec_pipes_silent(&r->pipes))
        begin_kill(r);
}

/* We stood still (SIGSTOP, a machine that slept) between our look and the start: another may have
 * the lock. Killed before its own first instructions, if we are quick. */
static bool kill_late(struct attempt *r)
{
    if (r->order->guard == NULL || guard_admits(r->order->guard))
        return false;
    tell_group(r, SIGKILL);
    r->cause = RUN_STOPPED;
    r->at_once = true;
    return true;
}

static void watch(struct attempt *r)
{
    bool is_late = kill_late(r);

    tell_guard(r, r->child.pid);
    r->ret->started = mono_now();
    exec_slot_say(r->slot,
                  r->ret->started); /* a start that the kernel holds up is not the pool's fault */
    r->phase = PHASE_RUN;
    r->deadline = mono_add_ms(r->ret->started, r->order->timeout_ms);
    r->tick = MONO_NEVER;
    if (r->hooks->spawned != NULL)
        r->hooks->spawned(r->hooks->arg, r->child.pid);
    if (is_late)
        begin_kill(r);
    while (r->phase != PHASE_DRAIN || !exec_pipes_silent(&r->pipes)) {
        if (is_unfed(r) && r->phase == PHASE_RUN)
            begin_term(r, RUN_HOST_FAULT);
        turn(r);
    }
    control_fd_end(&r->control);
    output_end(&r->output);
    r->ret->output_bytes = r->output.bytes;
    last_bytes_copy(&r->output.tail, &r->ret->tail);
    conclude(r);
}

/* ---- the start ---- */

/* True if somebody asked for this attempt's end before it began. */
static bool is_called_off(struct attempt *r)
{
    unsigned asked = exec_slot_take(r->slot);

    if (asked == 0)
        return false;
    r->cause = r->ret->end = asked_cause(asked);
    (void)snprintf(r->ret->text, sizeof(r->ret->text), "%s before it was started",
                   r->cause == RUN_CANCELLED ? "cancelled" : "stopped");
    return true;
}

/* True if it may not be started: it holds a lock that may soon be somebody else's. The fence stands
 * in the table first (run/guard/guard.h). */
static bool is_unguarded(struct attempt *r)
{
    const struct exec_order *o = r->order;

    if (o->guard == NULL)
        return false;
    guard_set(o->guard, o->guard_slot, o->fence);
    if (guard_admits(o->guard))
        return false;
    r->cause = r->ret->end = RUN_STOPPED;
    (void)snprintf(r->ret->text, sizeof(r->ret->text), "not started: it holds a lock, and %s",
                   guard_is_up(o->guard) ? "no beat was acknowledged lately"
                                         : "there is no guard process");
    return true;
}

/* The file is being written or replaced right now: wait a moment for that, or for a control. */
static bool is_still_busy(struct attempt *r, int errnum, int *tries)
{
    struct pollfd p = {exec_slot_fd(r->slot), POLLIN, 0};

    if (errnum != ETXTBSY || (*tries)++ == BUSY_TRIES)
        return false;
    (void)poll(&p, 1, BUSY_WAIT_MS);
    return true;
}

static const char *cure_of(int errnum)
{
    switch (errnum) {
    case ETXTBSY:
        return " (it is open for writing: replace it by rename)";
    case E2BIG:
        return " (its arguments and environment are too large)";
    case ENOENT:
        return " (the loader it asks for is missing: was it built for another system?)";
    default:
        return "";
    }
}

static void refuse(struct attempt *r, const struct err *err)
{
    struct run_result *ret = r->ret;
    struct err why = ERR_INIT;

    /* What it did until then cannot be undone: not as if it had never been started. */
    if (r->child.pid > 0) {
        end_all(r);
        ret->end = RUN_SIGNALED;
        ret->code = SIGKILL;
        ret->started = mono_now();
        (void)snprintf(ret->text, sizeof(ret->text),
                       "killed: its end could not be heard of: %.180s", err->text);
        return;
    }
    if (spawn_is_host_fault(err->errnum)) {
        ret->end = RUN_HOST_FAULT;
        (void)snprintf(ret->text, sizeof(ret->text), "cannot start: %.200s", err->text);
        return;
    }
    ret->end = RUN_NOT_RUN;
    ret->code = err->errnum;
    if (err->errnum != ETXTBSY && program_check(r->order->argv[0], &why) != 0)
        (void)snprintf(ret->text, sizeof(ret->text), "cannot start: %.240s", why.text);
    else
        (void)snprintf(ret->text, sizeof(ret->text), "cannot start: %.160s%s", err->text,
                       cure_of(err->errnum));
}

/* True once the process runs; else *ret says why not. */
static bool start(struct attempt *r)
{
    const struct exec_order *o = r->order;
    struct err err = ERR_INIT;
    struct spawn_fds fds;
    int tries = 0, rc;

    if (is_called_off(r))
        return false;
    if (exec_pipes_open(&r->pipes, &err) != 0) {
        refuse(r, &err);
        return false;
    }
    exec_pipes_feed(&r->pipes, o->payload, o->payload_len);
    if (r->pipes.errnum != 0) { /* nothing has run yet: nobody's fault */
        r->ret->end = RUN_HOST_FAULT;
        (void)snprintf(r->ret->text, sizeof(r->ret->text),
                       "cannot start: its payload could not be written: %s",
                       strerrordesc_np(r->pipes.errnum));
        return false;
    }
    fds = (struct spawn_fds){r->pipes.theirs[PIPE_IN], r->pipes.theirs[PIPE_OUT],
                             r->pipes.theirs[PIPE_ERR], r->pipes.theirs[PIPE_CTL]};
    do {
        if ((tries > 0 && is_called_off(r)) || is_unguarded(r)) {
            rc = -1;
            break;
        }
        rc = isolation_spawn(o->argv, o->envp, &fds, &r->child, &err);
        if (rc != 0 && !is_still_busy(r, err.errnum, &tries)) {
            refuse(r, &err);
            break;
        }
    } while (rc != 0);
    exec_pipes_close_theirs(&r->pipes);
    return rc == 0;
}

void exec_run(const struct exec_order *order, struct exec_slot *slot,
              const struct exec_hooks *hooks, struct run_result *ret)
{
    static const struct exec_hooks no_hooks = {0};
    struct attempt r = {.order = order, .slot = slot, .hooks = hooks != NULL ? hooks : &no_hooks};

    r.ret = ret;
    r.cause = RUN_EXITED;
    output_init(&r.output, order->id, order->queue);
    control_fd_init(&r.control, &r.output, r.hooks, ret);
    for (int i = 0; i < PIPES; i++)
        r.pipes.ours[i] = r.pipes.theirs[i] = -1;
    if (start(&r))
        watch(&r);
    if (order->guard != NULL)
        guard_clear(order->guard, order->guard_slot);
    exec_pipes_close(&r.pipes);
    exec_slot_disarm(slot);
    control_fd_done(&r.control);
    output_done(&r.output);
}
