#include "run/stream/stream_proc.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "run/isolation/isolation.h"
#include "run/process/offspring_end.h"
#include "run/process/origin.h"
#include "run/process/pidstat.h"
#include "run/stream/stream_jobs.h"

#define READ_BYTES 65536 /* capacity of a pipe */
#define READS_MAX 4      /* in one iteration of the loop, so that other processes get theirs */
#define LAST_READS 17    /* a pipe of 1 MiB, the largest, and one more */
#define LEFT_MS 50       /* wait for the end of what it left in its cgroup */
#define MEMORY_CHECK_MS 1000
#define END_WAIT_MS 10000 /* for the end of all processes that it started */

/* ---- its end */

static void drop(struct stream_proc *p)
{
    loop_fd_free(p->watch_in);
    loop_fd_free(p->watch_out);
    loop_fd_free(p->watch_err);
    loop_fd_free(p->watch_pid);
    loop_timer_free(p->timer);
    exec_pipes_close(&p->pipes);
    buf_done(&p->out);
    lines_done(&p->lines);
    stream_log_done(&p->log);
    free(p);
}

static void be_gone(struct stream_proc *p, const char *why)
{
    p->is_gone = true;
    p->events->gone(p->events->arg, p, why);
}

/* ---- what it says */

static void greet(struct stream_proc *p, const char *line, size_t n)
{
    if (!stream_greeting_parse(line, n, &p->greeting)) {
        stream_log_line(&p->log, LOG_LEVEL_WARN, "stdout", line, n, false);
        stream_core_breach(p, "its first line is not the greeting, later-stream 1");
        return;
    }
    if (p->greeting.version != STREAM_VERSION) {
        stream_core_breach(p, "it speaks another version of the protocol than 1");
        return;
    }
    if (p->greeting.inflight > p->conf->places)
        p->greeting.inflight = p->conf->places;
    p->state = READY;
    p->deadline = MONO_NEVER;
    log_info("event=stream-ready queue=%s pid=%d inflight=%u start_ms=%lld", p->conf->queue,
             (int)p->process.pid, p->greeting.inflight,
             (long long)(mono_until_us(p->born, mono_now()) / 1000));
    p->events->ready(p->events->arg, p);
    stream_core_close_when_idle(p);
}

static void on_line(void *arg, const char *line, size_t n, bool cut)
{
    struct stream_proc *p = arg;

    if (p->state == GREETING)
        greet(p, line, n);
    else
        stream_jobs_line(p, line, n, cut);
}

/* A last line without LF is not taken as an answer: it may be incomplete. */
static void on_half_line(void *arg, const char *line, size_t n, bool cut)
{
    struct stream_proc *p = arg;

    stream_log_line(&p->log, LOG_LEVEL_WARN, "half-line", line, n, cut);
}

/* Read once. False: nothing more to read now. */
static bool read_some(struct stream_proc *p, enum exec_pipe which)
{
    static char buffer[READ_BYTES]; /* main thread only */
    ssize_t n = read(p->pipes.ours[which], buffer, sizeof(buffer));

    if (n < 0)
        return errno == EINTR;
    if (n == 0) {
        struct loop_fd **watch = which == PIPE_OUT ? &p->watch_out : &p->watch_err;

        loop_fd_free(*watch);
        *watch = NULL;
        exec_pipes_close_one(&p->pipes, which);
        return false;
    }
    if (which == PIPE_OUT)
        lines_feed(&p->lines, buffer, (size_t)n, on_line, p);
    else
        stream_log_stderr(&p->log, p->running == 1 ? p->first->id : "-", buffer, (size_t)n);
    return (size_t)n == sizeof(buffer);
}

static void read_pipe(struct stream_proc *p, enum exec_pipe which, int most)
{
    while (most-- > 0 && p->pipes.ours[which] >= 0 && read_some(p, which))
        continue;
}

/* Callbacks may end p. It is freed only when the outermost call leaves. */
static void enter(struct stream_proc *p)
{
    p->depth++;
}

static void leave(struct stream_proc *p)
{
    if (--p->depth == 0 && p->is_gone)
        drop(p);
}

static void on_stdout(void *arg, int events)
{
    struct stream_proc *p = arg;

    (void)events;
    enter(p);
    read_pipe(p, PIPE_OUT, READS_MAX);
    if (p->pipes.ours[PIPE_OUT] < 0) /* we can get no more answers */
        stream_core_expect_end(p, "it closed its standard output");
    stream_core_close_when_idle(p);
    p->events->rest(p->events->arg, p);
    leave(p);
}

static void on_stderr(void *arg, int events)
{
    (void)events;
    read_pipe(arg, PIPE_ERR, READS_MAX);
}

static void wait_for_leader(struct stream_proc *p, siginfo_t *st)
{
    /* Until the leader was waited for, the number of the group cannot be reused. */
    if (p->was_ended || (p->state == CLOSING && p->is_retired))
        (void)kill(-p->process.pid, SIGKILL);
    for (struct stream_item *it = p->first; it != NULL; it = it->next)
        if (it->guard != NULL)
            guard_set_process(it->guard, it->place, 0);
    if (!isolation_ended(p->conf->argv, p->process.pid, LEFT_MS, p->met))
        p->met[0] = '\0';
    while (waitid(P_PID, (id_t)p->process.pid, st, WEXITED) != 0 && errno == EINTR)
        continue;
    (void)close(p->process.pidfd);
    stream_core_close_in(p);
}

/* It has ended. Answers that are still in the pipe count, but a greeting is too late. */
static void conclude(struct pool_task *task)
{
    struct stream_proc *p = (struct stream_proc *)task;
    bool was_kept = stream_core_is_kept(p);
    siginfo_t st = {0};
    char why[sizeof(p->why) + STREAM_STATUS + 2], status[STREAM_STATUS];

    enter(p);
    wait_for_leader(p, &st);
    p->state = GONE; /* no job is started in it from here on */
    read_pipe(p, PIPE_OUT, LAST_READS);
    lines_end(&p->lines, on_half_line, p);
    read_pipe(p, PIPE_ERR, READS_MAX);
    stream_log_end(&p->log);
    stream_jobs_end(p, &st);
    stream_jobs_status(p, &st, status);
    /* If it ended by itself, p->why is not the reason. */
    (void)snprintf(why, sizeof(why), "%s%s%s", p->was_ended ? p->why : "",
                   p->was_ended && p->why[0] != '\0' ? ": " : "", status);
    if (was_kept)
        p->events->ending(p->events->arg, p);
    p->events->rest(p->events->arg, p);
    be_gone(p, why);
    leave(p);
}

static void end_all(struct pool_task *task)
{
    const struct stream_proc *p = (const struct stream_proc *)task;

    if (!offspring_end_one(p->number, mono_add_ms(mono_now(), END_WAIT_MS)))
        log_warn("event=left-running queue=%s fence=%lld reason=\"killed, but not dead after %d s: "
                 "the gates of its jobs go on all the same\"",
                 p->conf->queue, (long long)p->number, END_WAIT_MS / 1000);
}

/* If we or the guard ended it, its jobs end only when all that it started has ended. The leader
 * stays a zombie until then. */
static void on_pid(void *arg, int events)
{
    struct stream_proc *p = arg;
    bool was_kept = stream_core_is_kept(p);

    (void)events;
    if (!p->was_ended && !stream_jobs_by_guard(p)) {
        conclude(&p->task);
        return;
    }
    loop_fd_free(p->watch_pid);
    p->watch_pid = NULL;
    stream_core_close_in(p);
    p->deadline = MONO_NEVER;
    p->state = DYING;
    if (was_kept)
        p->events->ending(p->events->arg, p);
    p->task.run = end_all;
    p->task.done = conclude;
    pool_do(p->pool, &p->task);
}

/* ---- what it is told */

static void on_stdin(void *arg, int events)
{
    (void)events;
    stream_core_flush(arg);
}

static void on_timer(void *arg)
{
    struct stream_proc *p = arg;
    struct mono now = mono_now();

    p->armed = MONO_NEVER;
    if (p->state < ENDING)
        stream_jobs_check(p, now);
    if (mono_before(now, p->deadline)) {
        stream_core_arm(p, p->deadline);
        return;
    }
    p->deadline = MONO_NEVER;
    if (p->state == GREETING)
        stream_core_breach(p, "it did not greet within start_timeout: is its output buffered?");
    else if (p->state == CLOSING)
        stream_core_end(p, "it did not end at the end of its input");
    else if (p->state == ENDING)
        stream_core_signal(p, SIGKILL);
}

/* ---- its start */

static void launch(struct pool_task *task)
{
    struct stream_proc *p = (struct stream_proc *)task;
    CLEANUP_FREE char *origin = origin_env(p->number, "");
    CLEANUP_FREE char **envp = NULL;
    struct spawn_fds fds;
    size_t n = 0;

    while (p->conf->envp[n] != NULL)
        n++;
    envp = mem_new((n + 2) * sizeof(*envp));
    memcpy(envp, p->conf->envp, n * sizeof(*envp));
    envp[n] = origin;
    if (exec_pipes_open(&p->pipes, &p->err) != 0)
        return;
    exec_pipes_close_one(&p->pipes, PIPE_CTL);
    fds = (struct spawn_fds){p->pipes.theirs[PIPE_IN], p->pipes.theirs[PIPE_OUT],
                             p->pipes.theirs[PIPE_ERR], -1};
    (void)isolation_spawn(p->conf->argv, envp, &fds, &p->process, &p->err);
    exec_pipes_close_theirs(&p->pipes);
}

static void on_launched(struct pool_task *task)
{
    struct stream_proc *p = (struct stream_proc *)task;
    char why[256];

    if (p->process.pidfd < 0) {
        bool was_kept = stream_core_is_kept(p);

        (void)snprintf(why, sizeof(why), "cannot start: %.200s", p->err.text);
        p->state = GONE;
        if (was_kept)
            p->events->ending(p->events->arg, p);
        enter(p);
        be_gone(p, why);
        leave(p);
        return;
    }
    p->state = GREETING;
    p->born = p->measured = mono_now();
    p->watch_in = loop_fd_new(p->loop, p->pipes.ours[PIPE_IN], 0, on_stdin, p);
    p->watch_out = loop_fd_new(p->loop, p->pipes.ours[PIPE_OUT], LOOP_READ, on_stdout, p);
    p->watch_err = loop_fd_new(p->loop, p->pipes.ours[PIPE_ERR], LOOP_READ, on_stderr, p);
    p->watch_pid = loop_fd_new(p->loop, p->process.pidfd, LOOP_READ, on_pid, p);
    stream_log_start(&p->log, p->process.pid);
    stream_core_set_deadline(p, p->conf->start_timeout_ms);
    if (p->is_killed) {
        stream_core_end(p, "");
        stream_core_signal(p, SIGKILL);
    } else {
        stream_core_close_when_idle(p);
    }
}

/* Stands for a fence in the origin of the process: a number that no fence reaches (they stay below
 * 2^52) and that no other process has. */
static int64_t make_number(void)
{
    uint64_t random = 0;

    /* No random bytes yet: time and pid make a number that differs by moment and by daemon. */
    if (getrandom(&random, sizeof(random), GRND_NONBLOCK) != (ssize_t)sizeof(random))
        random = (uint64_t)mono_now().us << 24 ^ (uint64_t)getpid();
    return (int64_t)(random >> 2 | UINT64_C(1) << 61);
}

struct stream_proc *stream_proc_new(struct loop *loop, struct pool *pool,
                                    const struct stream_conf *conf,
                                    const struct stream_proc_events *events)
{
    struct stream_proc *p = mem_new(sizeof(*p));

    p->loop = loop;
    p->pool = pool;
    p->conf = conf;
    p->events = events;
    p->number = make_number();
    p->process.pidfd = -1;
    p->armed = p->deadline = MONO_NEVER;
    p->timer = loop_timer_new(loop, on_timer, p);
    for (int i = 0; i < PIPES; i++)
        p->pipes.ours[i] = p->pipes.theirs[i] = -1;
    lines_init(&p->lines, STREAM_LINE_BYTES);
    stream_log_init(&p->log, conf->queue);
    p->task.run = launch;
    p->task.done = on_launched;
    pool_do(pool, &p->task);
    return p;
}

/* ---- what is asked about it */

unsigned stream_proc_free_places(const struct stream_proc *p)
{
    if (p->state != READY || p->is_retired || p->greeting.inflight < p->running)
        return 0;
    return p->greeting.inflight - p->running;
}

unsigned stream_proc_inflight(const struct stream_proc *p)
{
    return p->greeting.inflight;
}

unsigned stream_proc_running(const struct stream_proc *p)
{
    return p->running;
}

int64_t stream_proc_served(const struct stream_proc *p)
{
    return p->served;
}

bool stream_proc_is_ready(const struct stream_proc *p)
{
    return p->state == READY && !p->is_retired;
}

bool stream_proc_is_kept(const struct stream_proc *p)
{
    return stream_core_is_kept(p);
}

bool stream_proc_is_retired(const struct stream_proc *p)
{
    return p->is_retired;
}

bool stream_proc_has_failed(const struct stream_proc *p)
{
    return p->served == 0 && (p->is_in_breach || !p->was_ended);
}

pid_t stream_proc_pid(const struct stream_proc *p)
{
    return p->process.pid;
}

int64_t stream_proc_number(const struct stream_proc *p)
{
    return p->number;
}

bool stream_proc_is_worn(struct stream_proc *p)
{
    const struct stream_conf *c = p->conf;
    struct mono now;

    if (p->state != READY || p->is_retired)
        return false;
    if (c->recycle_jobs > 0 && p->served >= c->recycle_jobs)
        return true;
    if (c->recycle_age_ms == INT64_MAX && c->recycle_memory == 0)
        return false;
    now = mono_now();
    if (!mono_before(now, mono_add_ms(p->born, c->recycle_age_ms)))
        return true;
    if (c->recycle_memory > 0 && !mono_before(now, mono_add_ms(p->measured, MEMORY_CHECK_MS))) {
        p->measured = now;
        p->is_large = pidstat_memory(p->process.pid) > c->recycle_memory;
    }
    return p->is_large;
}

void stream_proc_start(struct stream_proc *p, const struct stream_job *job)
{
    stream_jobs_start(p, job);
}

void stream_proc_flush(struct stream_proc *p)
{
    stream_core_flush(p);
}

bool stream_proc_control(struct stream_proc *p, unsigned place, enum exec_control what)
{
    return stream_jobs_control(p, place, what);
}

void stream_proc_retire(struct stream_proc *p)
{
    p->is_retired = true;
    stream_core_close_when_idle(p);
}

void stream_proc_kill(struct stream_proc *p)
{
    for (struct stream_item *it = p->first; it != NULL; it = it->next)
        it->cause = RUN_STOPPED;
    stream_core_end(p, "the worker stops");
    if (p->state == ENDING)
        stream_core_signal(p, SIGKILL);
}
