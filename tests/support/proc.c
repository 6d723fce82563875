#include "proc.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"

#define RUN_DEADLINE_MS 60000
#define STEP_MS 10
#define STEP_MAX_MS 100

void test_die(const char *what)
{
    (void)fprintf(stderr, "test support: %s: %s\n", what, strerror(errno));
    abort();
}

void test_pause(int64_t ms)
{
    const struct timespec time = {ms / 1000, ms % 1000 * 1000000L};

    (void)nanosleep(&time, NULL);
}

/* A condition that runs a program takes the processor from what it waits for: a third of it, if it
 * runs up to 50 ms. */
static int pause_behind(int64_t took_ms)
{
    int64_t ms = 2 * took_ms;

    return (int)(ms < STEP_MS ? STEP_MS : ms < STEP_MAX_MS ? ms : STEP_MAX_MS);
}

bool test_until(bool (*cond)(void *arg), void *arg, int deadline_ms)
{
    struct mono deadline = mono_add_ms(mono_now(), deadline_ms), asked = mono_now();

    while (!cond(arg)) {
        if (!mono_before(mono_now(), deadline))
            return false;
        test_pause(pause_behind(test_ms_since(asked)));
        asked = mono_now();
    }
    return true;
}

int64_t test_ms_since(struct mono begin)
{
    return mono_until_us(begin, mono_now()) / 1000;
}

static void change_env(char *const *extra)
{
    for (; extra != NULL && *extra != NULL; extra++)
        if (strchr(*extra, '=') != NULL)
            (void)putenv(*extra);
        else
            (void)unsetenv(*extra);
}

/* Handle signals by default, also those that the test or its caller ignores. */
void proc_default_signals(void)
{
    static const int list[] = {SIGHUP, SIGINT, SIGQUIT, SIGPIPE, SIGTERM};

    for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++)
        (void)signal(list[i], SIG_DFL);
}

static void become(char *const *argv, char *const *env_extra, const int fds[3], pid_t parent)
{
    sigset_t none;

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(127);
    (void)setpgid(0, 0);
    for (int i = 0; i < 3; i++)
        if (fds[i] >= 0 && dup2(fds[i], i) < 0)
            _exit(127);
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    proc_default_signals();
    change_env(env_extra);
    (void)execvp(argv[0], argv);
    (void)fprintf(stderr, "%s: %s\n", argv[0], strerror(errno));
    _exit(127);
}

static pid_t start(char *const *argv, char *const *env_extra, const int fds[3])
{
    pid_t parent = getpid();
    pid_t pid;

    (void)fflush(NULL);
    pid = fork();
    if (pid < 0)
        test_die("fork");
    if (pid == 0)
        become(argv, env_extra, fds, parent);
    (void)setpgid(pid, pid);
    return pid;
}

static int must_open(const char *path, int flags)
{
    int fd = open(path, flags | O_CLOEXEC | O_NOCTTY, 0600);

    if (fd < 0)
        test_die(path);
    return fd;
}

void proc_start(struct proc *p, char *const *argv, char *const *env_extra, const char *log_path)
{
    CLEANUP_CLOSE int null = must_open("/dev/null", O_RDONLY);
    CLEANUP_CLOSE int log =
        log_path != NULL ? must_open(log_path, O_WRONLY | O_CREAT | O_APPEND) : -1;

    p->status = -1;
    p->out = log_path != NULL ? must_open(log_path, O_RDONLY) : -1;
    p->pid = start(argv, env_extra, (const int[3]){null, log, log});
}

static void must_pipe(int fds[2])
{
    if (pipe2(fds, O_CLOEXEC) < 0)
        test_die("pipe");
}

void proc_start_piped(struct proc *p, char *const *argv, int *ret_in, int *ret_out)
{
    int in[2], out[2];

    (void)signal(SIGPIPE, SIG_IGN);
    must_pipe(in);
    must_pipe(out);
    p->status = -1;
    p->out = -1;
    p->pid = start(argv, NULL, (const int[3]){in[0], out[1], -1});
    (void)close(in[0]);
    (void)close(out[1]);
    (void)fcntl(in[1], F_SETFL, O_NONBLOCK);
    (void)fcntl(out[0], F_SETFL, O_NONBLOCK);
    *ret_in = in[1];
    *ret_out = out[0];
}

void proc_signal(const struct proc *p, int sig)
{
    if (p->pid > 0)
        (void)kill(p->pid, sig);
}

void proc_stop(const struct proc *p)
{
    siginfo_t info;

    proc_signal(p, SIGSTOP);
    while (waitid(P_PID, (id_t)p->pid, &info, WSTOPPED) != 0 && errno == EINTR)
        continue;
}

static int status_of(int wstatus)
{
    return WIFEXITED(wstatus) ? WEXITSTATUS(wstatus) : 128 + WTERMSIG(wstatus);
}

static bool has_ended(void *arg)
{
    struct proc *p = arg;
    int wstatus;

    if (p->pid == 0)
        return true;
    if (waitpid(p->pid, &wstatus, WNOHANG) != p->pid)
        return false;
    p->pid = 0;
    p->status = status_of(wstatus);
    return true;
}

int proc_wait(struct proc *p, int deadline_ms)
{
    return test_until(has_ended, p, deadline_ms) ? p->status : -1;
}

void proc_done(struct proc *p)
{
    int wstatus;

    if (p->pid > 0) {
        (void)kill(-p->pid, SIGKILL);
        if (waitpid(p->pid, &wstatus, 0) == p->pid)
            p->status = status_of(wstatus);
        p->pid = 0;
    }
    if (p->out > 0)
        (void)close(p->out);
    p->out = -1;
}

bool proc_has_logged(const struct proc *p, const char *text)
{
    CLEANUP_BUF struct buf all = BUF_INIT;
    char part[4096];
    off_t at = 0;
    ssize_t n;

    while ((n = pread(p->out, part, sizeof(part), at)) > 0) {
        buf_add(&all, part, (size_t)n);
        at += n;
    }
    return all.len > 0 && memmem(all.data, all.len, text, strlen(text)) != NULL;
}

bool proc_log_has(void *proc_log)
{
    const struct proc_log *want = proc_log;

    return proc_has_logged(want->proc, want->text);
}

/* The three streams of proc_run: our ends of the pipes; -1 once closed. */
struct streams {
    struct pollfd at[3];
    const char *in;
    size_t in_left;
    struct buf *into[3];
};

static void streams_close(struct pollfd *one)
{
    if (one->fd >= 0)
        (void)close(one->fd);
    one->fd = -1;
}

static void feed(struct streams *s)
{
    ssize_t n = s->in_left > 0 ? write(s->at[0].fd, s->in, s->in_left) : 0;

    if (n > 0) {
        s->in += n;
        s->in_left -= (size_t)n;
    }
    if ((n < 0 && errno != EAGAIN) || s->in_left == 0)
        streams_close(&s->at[0]);
}

static void drain(struct streams *s, int i)
{
    char part[4096];
    ssize_t n = read(s->at[i].fd, part, sizeof(part));

    if (n > 0 && s->into[i] != NULL)
        buf_add(s->into[i], part, (size_t)n);
    if (n <= 0)
        streams_close(&s->at[i]);
}

/* Feed and read until both outputs are closed; false at the deadline. */
static bool pump(struct streams *s, struct mono deadline)
{
    while (s->at[1].fd >= 0 || s->at[2].fd >= 0) {
        int64_t left = mono_until_us(mono_now(), deadline) / 1000;

        if (left <= 0 || poll(s->at, 3, (int)left) < 0)
            return false;
        if (s->at[0].fd >= 0 && s->at[0].revents != 0)
            feed(s);
        for (int i = 1; i < 3; i++)
            if (s->at[i].fd >= 0 && s->at[i].revents != 0)
                drain(s, i);
    }
    return true;
}

int proc_run(char *const *argv, const char *stdin_bytes, size_t n, struct buf *out, struct buf *err)
{
    struct mono deadline = mono_add_ms(mono_now(), RUN_DEADLINE_MS);
    struct streams s = {.in = stdin_bytes, .in_left = n, .into = {NULL, out, err}};
    struct proc p = {0, -1, -1};
    int in[2] = {-1, -1}, o[2], e[2];

    (void)signal(SIGPIPE, SIG_IGN);
    if (stdin_bytes != NULL)
        must_pipe(in);
    else
        in[0] = must_open("/dev/null", O_RDONLY);
    must_pipe(o);
    must_pipe(e);
    p.pid = start(argv, NULL, (const int[3]){in[0], o[1], e[1]});
    (void)close(in[0]);
    (void)close(o[1]);
    (void)close(e[1]);
    s.at[0] = (struct pollfd){in[1], POLLOUT, 0};
    s.at[1] = (struct pollfd){o[0], POLLIN, 0};
    s.at[2] = (struct pollfd){e[0], POLLIN, 0};
    if (in[1] >= 0)
        (void)fcntl(in[1], F_SETFL, O_NONBLOCK);
    if (!pump(&s, deadline) || proc_wait(&p, RUN_DEADLINE_MS) < 0) {
        (void)fprintf(stderr, "test support: %s did not end\n", argv[0]);
        proc_done(&p);
        abort();
    }
    for (int i = 0; i < 3; i++)
        streams_close(&s.at[i]);
    return p.status;
}

static bool is_none(void *arg)
{
    char *argv[] = {(char *)(uintptr_t) "pgrep", (char *)(uintptr_t) "-f", arg, NULL};

    return proc_run(argv, NULL, 0, NULL, NULL) == 1;
}

bool proc_until_none(const char *text, int deadline_ms)
{
    return test_until(is_none, (void *)(uintptr_t)text, deadline_ms);
}
