#include "run/stream_proc.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "run/exec_pipes.h"
#include "run/lines.h"
#include "run/spawn.h"
#include "run/stream_line.h"
#include "run/stream_log.h"

#define READ_BYTES 65536 /* one whole pipe */
#define READS_MAX 4      /* in one turn of the loop: the others want theirs */
#define KEEP_BYTES 65536 /* a larger buffer is given back once it is written */
#define MEMORY_LOOK_MS 1000

enum state { LAUNCHING, GREETING, READY, CLOSING, ENDING };

/* A job in the process, in the order in which they were given. */
struct item {
    struct item *next, *before;
    char id[STREAM_ID_LEN + 1];
    unsigned place;
    struct guard *guard; /* NULL: it holds no lock */
    int64_t timeout_ms;
    struct mono started, heard;
    enum run_end cause;  /* why it was told to end; RUN_EXITED: it was not */
    bool is_silent;      /* TIMED_OUT: by `heartbeat` */
    struct mono kill_at; /* it was told by `cancel`: then its process ends */
};

struct stream_proc {
    struct pool_task task; /* first: the launch */
    struct loop *loop;
    const struct stream_conf *conf;
    const struct stream_proc_events *events;
    enum state state;
    bool is_retired, is_killed; /* asked for while it was LAUNCHING, or while jobs run */
    bool was_ended;             /* by us */
    char why[256];              /* the cause of its end, if it was ours */
    int64_t fence;
    struct exec_pipes pipes;
    struct spawned child;
    struct err err; /* of the launch */
    struct loop_fd *watch_in, *watch_out, *watch_err, *watch_pid;
    struct loop_timer *timer;
    struct mono armed, deadline; /* what the timer is set for; of the state */
    struct buf out;              /* to be written */
    size_t sent;
    struct lines lines;
    struct stream_log log;
    struct stream_greeting greeting;
    struct item *first, *last;
    unsigned running;
    int64_t served;
    struct mono born, looked; /* looked: at its memory */
    bool is_large;
    unsigned depth; /* of calls that still use it */
    bool is_gone;
};

/* ---- its jobs */

static struct item *find_id(const struct stream_proc *p, const char *id)
{
    for (struct item *it = p->first; it != NULL; it = it->next) {
        if (strcmp(it->id, id) == 0)
            return it;
    }
    return NULL;
}

static struct item *find_place(const struct stream_proc *p, unsigned place)
{
    for (struct item *it = p->first; it != NULL; it = it->next) {
        if (it->place == place)
            return it;
    }
    return NULL;
}

static void unlink_item(struct stream_proc *p, struct item *it)
{
    *(it->before != NULL ? &it->before->next : &p->first) = it->next;
    *(it->next != NULL ? &it->next->before : &p->last) = it->before;
    p->running--;
}

/* It is free before done is called. */
static void finish(struct stream_proc *p, struct item *it, struct run_result *ret)
{
    unsigned place = it->place;

    ret->started = it->started;
    ret->duration_us = mono_until_us(it->started, mono_now());
    if (it->guard != NULL)
        guard_clear(it->guard, place);
    unlink_item(p, it);
    free(it);
    p->events->done(p->events->arg, place, ret);
    run_result_done(ret);
}

/* ---- its end */

static void arm(struct stream_proc *p, struct mono at)
{
    int64_t us = mono_until_us(mono_now(), at);

    if (!mono_before(at, p->armed))
        return;
    p->armed = at;
    loop_timer_set(p->timer, us > 0 ? (us + 999) / 1000 : 0);
}

static void set_deadline(struct stream_proc *p, int64_t ms)
{
    p->deadline = mono_add_ms(mono_now(), ms);
    arm(p, p->deadline);
}

static void tell_group(const struct stream_proc *p, int sig)
{
    (void)kill(-p->child.pid, sig);
    /* A stopped process does not see the signal before it is continued. */
    (void)kill(-p->child.pid, SIGCONT);
}

static void close_in(struct stream_proc *p)
{
    loop_fd_free(p->watch_in);
    p->watch_in = NULL;
    exec_pipes_close_one(&p->pipes, PIPE_IN);
    buf_done(&p->out);
    p->sent = 0;
}

/* TERM, and KILL after the grace. `why` is that of the first time. */
static void end(struct stream_proc *p, const char *why)
{
    if (p->state == ENDING)
        return;
    if (p->why[0] == '\0')
        (void)snprintf(p->why, sizeof(p->why), "%s", why);
    p->was_ended = true;
    if (p->state == LAUNCHING) { /* when it is there */
        p->is_killed = true;
        return;
    }
    p->state = ENDING;
    close_in(p);
    tell_group(p, SIGTERM);
    set_deadline(p, p->conf->kill_grace_ms);
    p->events->ending(p->events->arg, p);
}

/* Once it is retired. */
static void close_when_idle(struct stream_proc *p)
{
    if (!p->is_retired || p->running > 0 || (p->state != READY && p->state != GREETING))
        return;
    p->state = CLOSING;
    close_in(p);
    set_deadline(p, p->conf->kill_grace_ms);
}

static void describe_status(const siginfo_t *st, char *out, size_t size)
{
    const char *name = sigdescr_np(st->si_status);

    if (st->si_pid == 0)
        (void)snprintf(out, size, "ended, but somebody else took its exit status");
    else if (st->si_code == CLD_EXITED)
        (void)snprintf(out, size, "exit status %d", st->si_status);
    else
        (void)snprintf(out, size, "killed by signal %d%s%s%s", st->si_status,
                       name != NULL ? " (" : "", name != NULL ? name : "", name != NULL ? ")" : "");
}

/* Why the job was told to end. */
static void describe_cause(const struct stream_proc *p, const struct item *it, char *out,
                           size_t size)
{
    char length[24];

    if (it->cause == RUN_TIMED_OUT)
        (void)snprintf(
            out, size, "%s %s", it->is_silent ? "said nothing for" : "timed out after",
            text_duration(it->is_silent ? p->conf->heartbeat_ms : it->timeout_ms, length));
    else
        (void)snprintf(out, size, "%s", it->cause == RUN_CANCELLED ? "cancelled" : "stopped");
}

/* What the end of the process means for a job that had no answer yet. */
static void judge(const struct stream_proc *p, const struct item *it, const siginfo_t *st,
                  struct run_result *ret)
{
    char status[96];

    describe_status(st, status, sizeof(status));
    ret->code = st->si_pid != 0 && st->si_status != 0 ? st->si_status : SIGKILL;
    if (it->cause != RUN_EXITED) {
        char cause[64];

        describe_cause(p, it, cause, sizeof(cause));
        ret->end = it->cause;
        (void)snprintf(ret->text, sizeof(ret->text), "%s: process ended, %s", cause, status);
    } else if (it->guard != NULL && !p->was_ended && guard_has_killed(it->guard, it->place)) {
        ret->end = RUN_STOPPED;
        (void)snprintf(ret->text, sizeof(ret->text),
                       "killed by the guard: it held a lock, and no beat of its worker was "
                       "acknowledged");
    } else if (p->was_ended) {
        ret->end = RUN_STOPPED;
        (void)snprintf(ret->text, sizeof(ret->text), "its process was ended: %.200s", p->why);
    } else if (st->si_pid != 0 && st->si_code == CLD_EXITED) {
        ret->end = RUN_SAID_FAIL;
        ret->code = 1;
        (void)snprintf(ret->text, sizeof(ret->text), "its process ended without an answer: %s",
                       status);
    } else {
        ret->end = RUN_SIGNALED;
        (void)snprintf(ret->text, sizeof(ret->text), "its process died: %s", status);
    }
}

static void drop(struct stream_proc *p)
{
    if (p->depth > 0)
        return;
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
    drop(p);
}

/* ---- what it says */

/* why: "" or what stands before its own text. */
static void say(struct run_result *ret, const char *why, const struct stream_answer *a,
                const char *otherwise)
{
    CLEANUP_BUF struct buf shown = BUF_INIT;

    buf_puts(&shown, why);
    if (a->len > 0)
        text_quote(&shown, a->text, a->len);
    else
        buf_puts(&shown, otherwise);
    text_cut(&shown, sizeof(ret->text) - 1);
    (void)snprintf(ret->text, sizeof(ret->text), "%s", buf_str(&shown));
}

static void on_answer(struct stream_proc *p, struct item *it, const struct stream_answer *a)
{
    static const struct {
        enum run_end end;
        int code;
        const char *otherwise;
    } means[] = {[STREAM_OK] = {RUN_SAID_OK, 0, "ok"},
                 [STREAM_RETRY] = {RUN_SAID_RETRY, 75, "it asked for another try"},
                 [STREAM_FAIL] = {RUN_SAID_FAIL, 1, "it failed"},
                 [STREAM_DEAD] = {RUN_SAID_DEAD, 65, "it will never work"}};
    struct run_result ret;
    char cause[64];

    run_result_init(&ret);
    ret.end = means[a->word].end;
    ret.code = means[a->word].code;
    ret.retry_in_ms = a->retry_in_ms;
    if (a->word == STREAM_OK) {
        buf_add(&ret.result, a->text, a->len);
        (void)snprintf(ret.text, sizeof(ret.text), "ok");
    } else if (it->cause != RUN_EXITED && a->word != STREAM_DEAD) {
        /* Told to end, it gave up. Its own word holds where it says more than that. */
        describe_cause(p, it, cause, sizeof(cause) - 2);
        (void)strcat(cause, ": ");
        ret.end = it->cause;
        ret.code = SIGTERM;
        say(&ret, cause, a, means[a->word].otherwise);
    } else {
        say(&ret, "", a, means[a->word].otherwise);
    }
    p->served++;
    finish(p, it, &ret);
}

static void on_progress(struct stream_proc *p, const struct item *it, const struct stream_answer *a)
{
    CLEANUP_FREE char *text = mem_dup(a->text, a->len);

    p->events->progress(p->events->arg, it->place, text);
}

static void greet(struct stream_proc *p, const char *line, size_t n)
{
    if (!stream_greeting_parse(line, n, &p->greeting)) {
        stream_log_line(&p->log, LOG_LEVEL_WARN, "stdout", line, n, false);
        end(p, "its first line is no greeting: later-stream 1");
        return;
    }
    if (p->greeting.version != STREAM_VERSION) {
        end(p, "it speaks another version of the protocol than 1");
        return;
    }
    if (p->greeting.inflight > p->conf->places)
        p->greeting.inflight = p->conf->places;
    p->state = READY;
    p->deadline = MONO_NEVER;
    log_info("event=stream-ready queue=%s pid=%d inflight=%u start_ms=%lld", p->conf->queue,
             (int)p->child.pid, p->greeting.inflight,
             (long long)(mono_until_us(p->born, mono_now()) / 1000));
    p->events->ready(p->events->arg, p);
    close_when_idle(p);
}

static void on_line(void *arg, const char *line, size_t n, bool cut)
{
    struct stream_proc *p = arg;
    struct stream_answer a;
    struct item *it;

    if (p->state == GREETING) {
        greet(p, line, n);
        return;
    }
    stream_answer_parse(line, n, &a);
    it = a.id[0] != '\0' ? find_id(p, a.id) : NULL;
    if (a.word == STREAM_ALIVE && a.id[0] == '\0') {
        for (it = p->first; it != NULL; it = it->next)
            it->heard = mono_now();
    } else if (a.word == STREAM_OTHER || it == NULL) {
        stream_log_line(&p->log, a.word == STREAM_OTHER ? LOG_LEVEL_INFO : LOG_LEVEL_WARN,
                        a.word == STREAM_OTHER ? "stdout" : "answer-without-job", line, n, cut);
    } else if (a.word == STREAM_ALIVE || a.word == STREAM_PROGRESS) {
        it->heard = mono_now();
        if (a.word == STREAM_PROGRESS)
            on_progress(p, it, &a);
    } else {
        on_answer(p, it, &a);
    }
}

/* Who knows how it would have gone on. */
static void on_half_line(void *arg, const char *line, size_t n, bool cut)
{
    struct stream_proc *p = arg;

    stream_log_line(&p->log, LOG_LEVEL_WARN, "half-line", line, n, cut);
}

/* One read; false: nothing more now. */
static bool read_some(struct stream_proc *p, enum exec_pipe which)
{
    static char buffer[READ_BYTES]; /* the main thread's */
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

/* The callbacks may end it: it is freed behind them. */
static void enter(struct stream_proc *p)
{
    p->depth++;
}

static void leave(struct stream_proc *p)
{
    p->depth--;
    if (p->is_gone)
        drop(p);
}

static void on_stdout(void *arg, int events)
{
    struct stream_proc *p = arg;

    (void)events;
    enter(p);
    read_pipe(p, PIPE_OUT, READS_MAX);
    /* Nothing it does can be heard of any more. */
    if (p->pipes.ours[PIPE_OUT] < 0 && (p->state == READY || p->state == GREETING))
        end(p, "it closed its standard output");
    close_when_idle(p);
    p->events->rest(p->events->arg, p);
    leave(p);
}

static void on_stderr(void *arg, int events)
{
    (void)events;
    read_pipe(arg, PIPE_ERR, READS_MAX);
}

/* It has ended: what it said before counts. */
static void on_pid(void *arg, int events)
{
    struct stream_proc *p = arg;
    siginfo_t st = {0};
    char why[256], status[96];

    (void)events;
    enter(p);
    /* While the leader is not reaped, the group's number is nobody else's. */
    if (p->was_ended || p->state == CLOSING)
        (void)kill(-p->child.pid, SIGKILL);
    for (struct item *it = p->first; it != NULL; it = it->next)
        if (it->guard != NULL)
            guard_set_process(it->guard, it->place, 0);
    while (waitid(P_PID, (id_t)p->child.pid, &st, WEXITED) != 0 && errno == EINTR)
        continue;
    (void)close(p->child.pidfd);
    if (p->state == GREETING) /* it may have said it with its last breath: it is too late */
        p->state = CLOSING;
    read_pipe(p, PIPE_OUT, INT32_MAX);
    lines_end(&p->lines, on_half_line, p);
    read_pipe(p, PIPE_ERR, READS_MAX);
    stream_log_end(&p->log);
    while (p->first != NULL) {
        struct run_result ret;

        run_result_init(&ret);
        judge(p, p->first, &st, &ret);
        finish(p, p->first, &ret);
    }
    describe_status(&st, status, sizeof(status));
    (void)snprintf(why, sizeof(why), "%.150s%s%s", p->why, p->why[0] != '\0' ? ": " : "", status);
    p->events->rest(p->events->arg, p);
    be_gone(p, why);
    leave(p);
}

/* ---- what it is told */

static void flush(struct stream_proc *p)
{
    while (p->sent < p->out.len) {
        ssize_t n = write(p->pipes.ours[PIPE_IN], p->out.data + p->sent, p->out.len - p->sent);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN) {
            loop_fd_events(p->watch_in, LOOP_WRITE);
            return;
        }
        if (n < 0) { /* EPIPE: it reads no more */
            end(p, "it closed its standard input");
            return;
        }
        p->sent += (size_t)n;
    }
    loop_fd_events(p->watch_in, 0);
    p->sent = 0;
    if (p->out.cap > KEEP_BYTES)
        buf_done(&p->out);
    else
        buf_clear(&p->out);
}

void stream_proc_flush(struct stream_proc *p)
{
    if (p->out.len > 0 && p->state == READY)
        flush(p);
}

static void on_stdin(void *arg, int events)
{
    (void)events;
    stream_proc_flush(arg);
}

static struct mono deadline_of(const struct stream_proc *p, const struct item *it)
{
    struct mono at = mono_add_ms(it->started, it->timeout_ms);

    if (it->cause != RUN_EXITED)
        return it->kill_at;
    return mono_min(at, mono_add_ms(it->heard, p->conf->heartbeat_ms));
}

void stream_proc_start(struct stream_proc *p, const struct stream_job *job)
{
    struct item *it = mem_new(sizeof(*it));

    *it = (struct item){.before = p->last,
                        .place = job->place,
                        .guard = job->guard,
                        .timeout_ms = job->timeout_ms,
                        .started = mono_now(),
                        .cause = RUN_EXITED,
                        .kill_at = MONO_NEVER};
    (void)snprintf(it->id, sizeof(it->id), "%s", job->id);
    it->heard = it->started;
    *(p->last != NULL ? &p->last->next : &p->first) = it;
    p->last = it;
    p->running++;
    if (it->guard != NULL) {
        guard_set(it->guard, it->place, p->fence);
        guard_set_process(it->guard, it->place, p->child.pid);
    }
    buf_add(&p->out, job->header, job->header_len);
    buf_add(&p->out, "\n", 1);
    buf_add(&p->out, job->payload, job->payload_len);
    buf_add(&p->out, "\n", 1);
    arm(p, deadline_of(p, it));
}

/* By its word if it knows that one, else by the end of its process. */
static void end_item(struct stream_proc *p, struct item *it, enum run_end cause)
{
    char why[64];

    it->cause = cause;
    if (p->greeting.can_cancel && p->state == READY) {
        buf_printf(&p->out, "cancel %s\n", it->id);
        it->kill_at = mono_add_ms(mono_now(), p->conf->kill_grace_ms);
        arm(p, it->kill_at);
        flush(p);
        return;
    }
    (void)snprintf(why, sizeof(why), "job %s in it %s", it->id,
                   cause == RUN_TIMED_OUT   ? "timed out"
                   : cause == RUN_CANCELLED ? "was cancelled"
                                            : "was stopped");
    end(p, why);
}

bool stream_proc_control(struct stream_proc *p, unsigned place, enum exec_control what)
{
    struct item *it = find_place(p, place);

    if (it == NULL)
        return false;
    if (what == EXEC_CONTROL_KILL) {
        it->cause = RUN_STOPPED;
        end(p, "a job in it was killed");
        tell_group(p, SIGKILL);
    } else if (it->cause == RUN_EXITED) {
        end_item(p, it, what == EXEC_CONTROL_CANCEL ? RUN_CANCELLED : RUN_STOPPED);
    }
    return true;
}

static void check_items(struct stream_proc *p, struct mono now)
{
    for (struct item *it = p->first, *next; it != NULL; it = next) {
        next = it->next;
        if (mono_before(now, deadline_of(p, it))) {
            arm(p, deadline_of(p, it));
        } else if (it->cause == RUN_EXITED) {
            it->is_silent = mono_before(now, mono_add_ms(it->started, it->timeout_ms));
            end_item(p, it, RUN_TIMED_OUT);
        } else {
            it->kill_at = MONO_NEVER;
            end(p, "it did not answer a cancel");
        }
    }
}

static void on_timer(void *arg)
{
    struct stream_proc *p = arg;
    struct mono now = mono_now();

    p->armed = MONO_NEVER;
    if (p->state != ENDING)
        check_items(p, now);
    if (mono_before(now, p->deadline)) {
        arm(p, p->deadline);
        return;
    }
    p->deadline = MONO_NEVER;
    if (p->state == GREETING)
        end(p, "it did not greet within start_timeout: is its output buffered?");
    else if (p->state == CLOSING)
        end(p, "it did not end at the end of its input");
    else if (p->state == ENDING)
        tell_group(p, SIGKILL);
}

/* ---- its start */

static void launch(struct pool_task *task)
{
    struct stream_proc *p = (struct stream_proc *)task;
    CLEANUP_FREE char *fence = mem_printf("LATER_FENCE=%lld", (long long)p->fence);
    CLEANUP_FREE char **envp = NULL;
    struct spawn_fds fds;
    size_t n = 0;

    while (p->conf->envp[n] != NULL)
        n++;
    envp = mem_new((n + 2) * sizeof(*envp));
    memcpy(envp, p->conf->envp, n * sizeof(*envp));
    envp[n] = fence;
    if (exec_pipes_open(&p->pipes, &p->err) != 0)
        return;
    exec_pipes_close_one(&p->pipes, PIPE_CTL);
    fds = (struct spawn_fds){p->pipes.theirs[PIPE_IN], p->pipes.theirs[PIPE_OUT],
                             p->pipes.theirs[PIPE_ERR], -1};
    (void)spawn(p->conf->argv, envp, &fds, NULL, &p->child, &p->err);
    exec_pipes_close_theirs(&p->pipes);
}

static void on_launched(struct pool_task *task)
{
    struct stream_proc *p = (struct stream_proc *)task;
    char why[256];

    if (p->child.pidfd < 0) {
        (void)snprintf(why, sizeof(why), "cannot start: %.200s", p->err.text);
        be_gone(p, why);
        return;
    }
    p->state = GREETING;
    p->born = p->looked = mono_now();
    p->watch_in = loop_fd_new(p->loop, p->pipes.ours[PIPE_IN], 0, on_stdin, p);
    p->watch_out = loop_fd_new(p->loop, p->pipes.ours[PIPE_OUT], LOOP_READ, on_stdout, p);
    p->watch_err = loop_fd_new(p->loop, p->pipes.ours[PIPE_ERR], LOOP_READ, on_stderr, p);
    p->watch_pid = loop_fd_new(p->loop, p->child.pidfd, LOOP_READ, on_pid, p);
    stream_log_start(&p->log, p->child.pid);
    set_deadline(p, p->conf->start_timeout_ms);
    if (p->is_killed) {
        end(p, "");
        tell_group(p, SIGKILL);
    } else {
        close_when_idle(p);
    }
}

/* A number that no job's fence ever reaches (they stay below 2^52), and no other process has. */
static int64_t make_fence(void)
{
    uint64_t random = 0;

    while (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
        continue;
    return (int64_t)(random >> 2 | UINT64_C(1) << 61);
}

struct stream_proc *stream_proc_new(struct loop *loop, struct pool *pool,
                                    const struct stream_conf *conf,
                                    const struct stream_proc_events *events)
{
    struct stream_proc *p = mem_new(sizeof(*p));

    p->loop = loop;
    p->conf = conf;
    p->events = events;
    p->fence = make_fence();
    p->child.pidfd = -1;
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

unsigned stream_proc_room(const struct stream_proc *p)
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
    return p->state <= READY && !p->is_retired && !p->is_killed;
}

bool stream_proc_is_retired(const struct stream_proc *p)
{
    return p->is_retired;
}

pid_t stream_proc_pid(const struct stream_proc *p)
{
    return p->child.pid;
}

int64_t stream_proc_fence(const struct stream_proc *p)
{
    return p->fence;
}

/* Resident bytes, 0 when nobody knows. */
static int64_t memory_of(pid_t pid)
{
    char path[32];
    long long pages = 0;
    FILE *f;

    (void)snprintf(path, sizeof(path), "/proc/%d/statm", (int)pid);
    f = fopen(path, "re");
    if (f == NULL)
        return 0;
    if (fscanf(f, "%*d %lld", &pages) != 1)
        pages = 0;
    (void)fclose(f);
    return (int64_t)pages * sysconf(_SC_PAGESIZE);
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
    if (c->recycle_memory > 0 && !mono_before(now, mono_add_ms(p->looked, MEMORY_LOOK_MS))) {
        p->looked = now;
        p->is_large = memory_of(p->child.pid) > c->recycle_memory;
    }
    return p->is_large;
}

void stream_proc_retire(struct stream_proc *p)
{
    p->is_retired = true;
    close_when_idle(p);
}

void stream_proc_kill(struct stream_proc *p)
{
    for (struct item *it = p->first; it != NULL; it = it->next)
        it->cause = RUN_STOPPED;
    end(p, "the worker stops");
    if (p->state == ENDING)
        tell_group(p, SIGKILL);
}
