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
#include "run/exec/output.h"
#include "run/handler/program.h"
#include "run/isolation/isolation.h"
#include "run/process/offspring_end.h"
#include "run/process/spawn.h"
#include "run/stream/stream_line.h"

#define BUSY_TRIES 3 /* more tries of a start that fails with ETXTBSY */
#define BUSY_WAIT_MS 50
#define END_WAIT_MS 10000 /* for the end of all processes that it started */
#define YOUNG_MS 3        /* for so long after the start only the end is polled, not the output */

/*
 * RUN    The process runs until it ends by itself (then DRAIN) or we end it (then TERM).
 * TERM   The process group got SIGTERM. KILL follows when the grace is over, or when the leader has
 *        ended and all pipes are closed. The leader stays a zombie until then, so that the number
 *        of the group cannot be reused.
 * KILL   All processes with its fence have ended, and the group got SIGKILL. When the leader has
 *        ended, DRAIN follows.
 * DRAIN  The leader was waited for. What is left in the pipes is read, for EXEC_DRAIN_MS at most.
 */
enum phase { PHASE_RUN, PHASE_TERM, PHASE_KILL, PHASE_DRAIN };

struct attempt {
    const struct exec_order *order;
    struct exec_slot *slot;
    const struct exec_hooks *hooks;
    struct run_report *ret;
    struct exec_pipes pipes;
    struct spawned process;
    struct output output;
    struct control_fd control;
    enum phase phase;
    struct mono deadline; /* of the current phase */
    struct mono tick;     /* when control_fd_tick is due */
    enum run_end cause;   /* why we ended it; RUN_EXITED: it ended by itself */
    bool leader_gone;
    bool grace_over; /* kill_grace_ms has passed, so KILL was needed */
    bool at_once;    /* KILL was asked for, or the start came too late */
    bool is_alone;   /* a search found no other process with its fence */
    bool has_met;    /* it met a limit of its cgroup: */
    char met[96];    /* which one, in words */
    siginfo_t status;
};

/* ---- the end, in words ---- */

#define FILTER_BYTES 64 /* of its name */

/* The words of the handler say more than its exit status, which is kept beside them. */
static void tell_reason(const struct attempt *r)
{
    CLEANUP_BUF struct buf error = BUF_INIT;

    if (r->control.reason.len > 0) {
        run_report_reason(r->ret, r->control.reason.data, r->control.reason.len);
        return;
    }
    output_last_error(&r->output, &error);
    run_report_reason(r->ret, buf_str(&error), error.len);
}

/* A handler without filters may write the word, too; it means nothing then. */
static bool has_filters(const struct exec_order *o)
{
    for (char *const *arg = o->argv; *arg != NULL && strcmp(*arg, "--") != 0; arg++)
        if (strncmp(*arg, "filter=", strlen("filter=")) == 0)
            return true;
    return false;
}

/* It was a filter that has failed. */
static void name_filter(const struct attempt *r)
{
    const struct buf *filter = &r->control.filter;
    char text[sizeof(r->ret->text)];

    if (filter->len == 0 || r->ret->code == 0 || !has_filters(r->order))
        return;
    text_copy(text, sizeof(text), r->ret->text);
    (void)snprintf(r->ret->text, sizeof(r->ret->text), "filter %.*s: %.180s",
                   (int)(filter->len < FILTER_BYTES ? filter->len : FILTER_BYTES), filter->data,
                   text);
}

static void describe(const struct attempt *r)
{
    struct run_report *ret = r->ret;
    char status[96], cause[64], grace[24];

    run_describe_status(&r->status, status, sizeof(status));
    if (r->cause == RUN_EXITED && r->has_met && ret->code != 0) {
        (void)snprintf(ret->text, sizeof(ret->text), "%s: %s", r->met, status);
        return;
    }
    if (r->cause == RUN_EXITED) {
        text_copy(ret->text, sizeof(ret->text), status);
        if (r->status.si_code == CLD_EXITED && ret->code != 0)
            tell_reason(r);
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

/* True if the handler did not get its whole payload: then its result does not count. But it ran, so
 * its attempt is spent. */
static bool is_unfed(const struct attempt *r)
{
    return r->pipes.errnum != 0 && (r->cause == RUN_EXITED || r->cause == RUN_HOST_ILL);
}

/* A kill by the guard is no failure of the handler. If it ended before, its own end counts. */
static bool is_guard_killed(const struct attempt *r)
{
    const struct exec_order *o = r->order;

    return o->guard != NULL && r->cause == RUN_EXITED && r->status.si_pid != 0 &&
           r->status.si_code != CLD_EXITED && r->status.si_status == SIGKILL &&
           guard_has_killed(o->guard, o->guard_place);
}

static void conclude(const struct attempt *r)
{
    struct run_report *ret = r->ret;

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
    if (r->cause == RUN_EXITED && output_is_greeting(&r->output)) {
        ret->end = RUN_NOT_RUN;
        (void)snprintf(ret->text, sizeof(ret->text),
                       "it is a stream handler (its output begins with " STREAM_GREETING
                       "1): set mode: stream for its queue");
        return;
    }

    ret->code = r->status.si_pid != 0 ? r->status.si_status : SIGKILL; /* unknown: no success */
    if (r->cause != RUN_EXITED)
        ret->end = r->cause;
    else
        ret->end = r->status.si_code == CLD_EXITED ? RUN_EXITED : RUN_SIGNALED;
    describe(r);
    name_filter(r);
}

/* ---- the phases ---- */

static void tell_guard(const struct attempt *r, pid_t pid)
{
    if (r->order->guard != NULL)
        guard_set_process(r->order->guard, r->order->guard_place, pid);
}

static void tell_group(const struct attempt *r, int sig)
{
    (void)kill(-r->process.pid, sig);
    /* A stopped process handles the signal only when it is continued. */
    (void)kill(-r->process.pid, SIGCONT);
}

/* Did we or the guard end it? The guard writes its table before it kills. */
static bool was_ended(const struct attempt *r)
{
    const struct exec_order *o = r->order;

    return r->cause != RUN_EXITED ||
           (o->guard != NULL && guard_has_killed(o->guard, o->guard_place));
}

/* End also processes that left its group and session: the next holder of the lock must not run
 * beside them. */
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
    r->has_met = isolation_ended(r->order->argv, r->process.pid, EXEC_DRAIN_MS, r->met);
    /* si_pid stays 0 if other code waited for it; then it counts as killed, never as success. */
    while (waitid(P_PID, (id_t)r->process.pid, st, WEXITED) != 0 && errno == EINTR)
        continue;
    (void)close(r->process.pidfd);
    r->process.pidfd = -1;
    if (r->hooks->ended != NULL)
        r->hooks->ended(r->hooks->arg);
    exec_pipes_close_one(&r->pipes, PIPE_IN);
    r->phase = PHASE_DRAIN;
    r->deadline = mono_add_ms(mono_now(), EXEC_DRAIN_MS);
}

/* First end_all, which finds processes by their environment and waits for their end: a killed
 * process has no environment any more. */
static void begin_kill(struct attempt *r)
{
    exec_slot_say(r->slot, MONO_NEVER); /* from here on only the kernel can delay the end */
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

/* A process that has ended by itself before our signal was not ended by us. */
static void begin_term(struct attempt *r, enum run_end cause)
{
    struct pollfd p = {r->process.pidfd, POLLIN, 0};

    if (poll(&p, 1, 0) > 0) {
        on_leader_end(r);
        return;
    }
    r->cause = cause;
    tell_group(r, SIGTERM);
    r->phase = PHASE_TERM;
    r->deadline = mono_add_ms(mono_now(), r->order->kill_grace_ms);
}

/* CANCEL outranks STOP: a cancelled job must not run again. */
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
    /* POLLHUP alone: no writer and no data are left, so skip the read. */
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

/* Most processes end within YOUNG_MS and close their pipes just before: polling the pipes would
 * wake this thread twice. What they write meanwhile waits in the pipes. */
static bool is_young(const struct attempt *r)
{
    return r->phase == PHASE_RUN && r->pipes.ours[PIPE_IN] < 0 &&
           mono_until_us(r->ret->started, mono_now()) < YOUNG_MS * 1000;
}

/* Milliseconds for poll, rounded up: waking too early would need a second poll. */
static int wait_ms(const struct attempt *r)
{
    int64_t us = mono_until_us(mono_now(), mono_min(r->deadline, r->tick));

    if (us == INT64_MAX)
        return -1;
    if (us <= 0)
        return 0;
    return us / 1000 >= INT_MAX - 1 ? INT_MAX : (int)((us + 999) / 1000);
}

static void one_round(struct attempt *r)
{
    struct pollfd p[PIPES + 2];
    bool young = is_young(r);
    int ms = wait_ms(r);

    for (int i = 0; i < PIPES; i++)
        p[i] = (struct pollfd){young ? -1 : r->pipes.ours[i], i == PIPE_IN ? POLLOUT : POLLIN, 0};
    p[PIPES] = (struct pollfd){exec_slot_fd(r->slot), POLLIN, 0};
    p[PIPES + 1] = (struct pollfd){r->leader_gone ? -1 : r->process.pidfd, POLLIN, 0};
    if (young && (ms < 0 || ms > YOUNG_MS))
        ms = YOUNG_MS;
    if (poll(p, PIPES + 2, ms) < 0)
        return;
    /* Handle the end of the process first: see begin_term. */
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
    if (r->phase == PHASE_TERM && r->leader_gone && exec_pipes_are_over(&r->pipes))
        begin_kill(r);
}

/* If we were stopped between guard_admits and the start (SIGSTOP, a machine that slept), another
 * job may have its permit by now. Kill the process, if possible before its own first instruction.
 */
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

    tell_guard(r, r->process.pid);
    r->ret->started = mono_now();
    exec_slot_say(r->slot,
                  r->ret->started); /* a start that the kernel delays is no stall of the pool */
    r->phase = PHASE_RUN;
    r->deadline = mono_add_ms(r->ret->started, r->order->timeout_ms);
    r->tick = MONO_NEVER;
    if (r->hooks->spawned != NULL)
        r->hooks->spawned(r->hooks->arg, r->process.pid);
    if (is_late)
        begin_kill(r);
    while (r->phase != PHASE_DRAIN || !exec_pipes_are_over(&r->pipes)) {
        if (is_unfed(r) && r->phase == PHASE_RUN)
            begin_term(r, RUN_HOST_ILL);
        one_round(r);
    }
    control_fd_end(&r->control);
    output_end(&r->output);
    r->ret->output_bytes = r->output.bytes;
    last_bytes_copy(&r->output.last, &r->ret->output);
    conclude(r);
}

/* ---- the start ---- */

/* True if a stop or cancel was asked for before the start. */
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

/* True if the job may not start: it is guarded, and another job may soon get its permit. The fence
 * is written to the table before the check (run/guard/guard.h). */
static bool is_unguarded(struct attempt *r)
{
    const struct exec_order *o = r->order;

    if (o->guard == NULL)
        return false;
    guard_set(o->guard, o->guard_place, o->fence);
    if (guard_admits(o->guard))
        return false;
    r->cause = r->ret->end = RUN_STOPPED;
    (void)snprintf(r->ret->text, sizeof(r->ret->text), "not started: it holds a lock, and %s",
                   guard_is_up(o->guard) ? "no beat was acknowledged lately"
                                         : "there is no guard process");
    return true;
}

/* ETXTBSY: a process is writing the file. Wait BUSY_WAIT_MS, or until a control request comes. */
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
    struct run_report *ret = r->ret;
    struct err why = ERR_INIT;

    /* It ran until it was killed, and that cannot be undone: do not report "not started". */
    if (r->process.pid > 0) {
        end_all(r);
        ret->end = RUN_SIGNALED;
        ret->code = SIGKILL;
        ret->started = mono_now();
        (void)snprintf(ret->text, sizeof(ret->text),
                       "killed: its end could not be heard of: %.180s", err->text);
        return;
    }
    if (spawn_is_host_ill(err->errnum)) {
        ret->end = RUN_HOST_ILL;
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

/* True if the process runs; else r->ret says why not. */
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
    if (r->pipes.errnum != 0) { /* nothing has run yet: an error of the host */
        r->ret->end = RUN_HOST_ILL;
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
        rc = isolation_spawn(o->argv, o->envp, &fds, &r->process, &err);
        if (rc != 0 && !is_still_busy(r, err.errnum, &tries)) {
            refuse(r, &err);
            break;
        }
    } while (rc != 0);
    exec_pipes_close_theirs(&r->pipes);
    return rc == 0;
}

void exec_run(const struct exec_order *order, struct exec_slot *slot,
              const struct exec_hooks *hooks, struct run_report *ret)
{
    static const struct exec_hooks no_hooks = {0};
    struct attempt r = {.order = order, .slot = slot, .hooks = hooks != NULL ? hooks : &no_hooks};

    r.ret = ret;
    r.cause = RUN_EXITED;
    output_init(&r.output, order->id, order->queue);
    control_fd_init(&r.control, &r.output, ret, r.hooks->told, r.hooks->arg);
    for (int i = 0; i < PIPES; i++)
        r.pipes.ours[i] = r.pipes.theirs[i] = -1;
    if (start(&r))
        watch(&r);
    if (order->guard != NULL)
        guard_clear(order->guard, order->guard_place);
    exec_pipes_close(&r.pipes);
    exec_slot_disarm(slot);
    control_fd_done(&r.control);
    output_done(&r.output);
}
