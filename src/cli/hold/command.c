#include "cli/hold/command.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "base/text.h"
#include "cli/signal_set.h"
#include "run/process/spawn.h"

#define SIGNALS_MAX 8
/* Poll for the terminal: since we are running, `fg` in a shell gives it to us without a signal. */
#define ASK_MS 300

struct command {
    struct loop *loop;
    command_signal_f *on_signal;
    command_end_f *on_end;
    void *arg;
    sigset_t inherited; /* our mask before we changed it */
    int signals;        /* signalfd */
    struct loop_fd *watch_signals, *watch_end;
    struct spawned child; /* pid 0: none */
    bool has_terminal;
    struct loop_timer *ask; /* tries again to give the terminal to the stopped command */
    int interrupted;        /* it ended by this signal from the terminal, 0: no */
};

static const int ending[] = {SIGTERM, SIGINT, SIGQUIT, SIGHUP, SIGUSR1, SIGUSR2, SIGALRM};

/* ---- the terminal */

static bool owns_terminal(void)
{
    return tcgetpgrp(STDIN_FILENO) == getpgrp();
}

static void give_terminal(struct command *c)
{
    if (owns_terminal() && tcsetpgrp(STDIN_FILENO, c->child.pid) == 0)
        c->has_terminal = true;
}

/* We are in the background, where this raises SIGTTOU; we ignore it. */
static void take_terminal(struct command *c)
{
    if (c->has_terminal && tcgetpgrp(STDIN_FILENO) == c->child.pid)
        (void)tcsetpgrp(STDIN_FILENO, getpgrp());
    c->has_terminal = false;
}

static void ask_for_terminal(void *arg)
{
    struct command *c = arg;

    if (c->child.pid <= 0)
        return;
    give_terminal(c);
    if (c->has_terminal)
        (void)kill(-c->child.pid, SIGCONT);
    else
        loop_timer_set(c->ask, ASK_MS);
}

static void on_stopped(struct command *c, int sig)
{
    if (sig == SIGTTIN || sig == SIGTTOU) {
        ask_for_terminal(c);
        return;
    }
    if (sig != SIGTSTP || !c->has_terminal)
        return; /* the sender of this signal also sends CONT */
    /* The command stopped itself on Ctrl-Z, as editors do. */
    (void)fputs("later: a program that holds a permit is not stopped\n", stderr);
    (void)kill(-c->child.pid, SIGCONT);
}

static void check_stop(struct command *c)
{
    siginfo_t info = {0};

    if (c->child.pid > 0 && waitid(P_PID, (id_t)c->child.pid, &info, WSTOPPED | WNOHANG) == 0 &&
        info.si_pid != 0)
        on_stopped(c, info.si_status);
}

/* ---- signals */

static void on_one(struct command *c, int sig)
{
    if (sig == SIGCHLD) {
        check_stop(c);
    } else if (sig == SIGCONT) {
        if (c->child.pid > 0) {
            give_terminal(c);
            (void)kill(-c->child.pid, SIGCONT);
        }
    } else {
        c->on_signal(c->arg, sig);
    }
}

static void on_signals(void *arg, int events)
{
    struct command *c = arg;
    struct signalfd_siginfo info[SIGNALS_MAX];
    ssize_t n = read(c->signals, info, sizeof(info));

    (void)events;
    for (size_t i = 0; n > 0 && i < (size_t)n / sizeof(info[0]); i++)
        on_one(c, (int)info[i].ssi_signo);
}

struct command *command_new(struct loop *loop, command_signal_f *on_signal, command_end_f *on_end,
                            void *arg)
{
    struct command *c = mem_new(sizeof(*c));
    sigset_t set;

    c->loop = loop;
    c->on_signal = on_signal;
    c->on_end = on_end;
    c->arg = arg;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGCHLD);
    (void)sigaddset(&set, SIGCONT);
    signal_set_add(&set, ending, sizeof(ending) / sizeof(ending[0]));
    (void)signal(SIGCHLD, SIG_DFL);
    (void)signal(SIGTTOU, SIG_IGN);
    (void)pthread_sigmask(SIG_BLOCK, &set, &c->inherited);
    c->ask = loop_timer_new(loop, ask_for_terminal, c);
    c->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (c->signals < 0) {
        loop_timer_free(c->ask);
        free(c);
        return NULL;
    }
    c->watch_signals = loop_fd_new(loop, c->signals, LOOP_READ, on_signals, c);
    return c;
}

void command_free(struct command *c)
{
    if (c == NULL)
        return;
    loop_timer_free(c->ask);
    loop_fd_free(c->watch_end);
    loop_fd_free(c->watch_signals);
    (void)close(c->signals);
    free(c);
}

/* ---- start and end */

static void on_end(void *arg, int events)
{
    struct command *c = arg;
    siginfo_t info = {0};
    bool had_terminal = c->has_terminal;
    int status;

    (void)events;
    while (waitid(P_PID, (id_t)c->child.pid, &info, WEXITED) < 0 && errno == EINTR)
        continue;
    take_terminal(c);
    loop_fd_free(c->watch_end);
    c->watch_end = NULL;
    (void)close(c->child.pidfd);
    c->child.pid = 0;
    status = info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
    if (had_terminal && info.si_code != CLD_EXITED &&
        (info.si_status == SIGINT || info.si_status == SIGQUIT)) {
        /* Signal the rest of our own group. SIG_IGN does not keep the signal from us: it is
         * blocked, so it is queued all the same, for on_signals. */
        c->interrupted = info.si_status;
        (void)signal(info.si_status, SIG_IGN);
        (void)kill(0, info.si_status);
    }
    c->on_end(c->arg, status);
}

static pid_t start(struct command *c, char *const *argv, char *const *envp, struct err *err)
{
    struct spawn_command how = {.tty = -1, .out = -1, .mask = &c->inherited};
    sigset_t ours;

    (void)sigemptyset(&ours);
    (void)sigaddset(&ours, SIGPIPE);
    (void)sigaddset(&ours, SIGXFSZ);
    (void)sigaddset(&ours, SIGTTOU);
    how.defaults = &ours;
    c->has_terminal = isatty(STDOUT_FILENO) == 1 && owns_terminal();
    if (c->has_terminal)
        how.tty = STDIN_FILENO;
    if (spawn_command(argv, envp, &how, &c->child, err) < 0) {
        c->child.pid = 0;
        return -1;
    }
    return c->child.pid;
}

pid_t command_start(struct command *c, char *const *argv, char *const *envp, struct err *err)
{
    pid_t pid;

    /* If we were stopped, other workers would give us up. The command inherits this: a shell
     * that is just making a process cannot stop, but that process can, and nobody would notice. */
    (void)signal(SIGTSTP, SIG_IGN);
    pid = start(c, argv, envp, err);
    if (pid < 0) {
        /* The process that failed to run the command may have become the foreground. */
        if (c->has_terminal)
            (void)tcsetpgrp(STDIN_FILENO, getpgrp());
        c->has_terminal = false;
        return -1;
    }
    c->watch_end = loop_fd_new(c->loop, c->child.pidfd, LOOP_READ, on_end, c);
    return pid;
}

void command_kill(const struct command *c, int sig)
{
    if (c->child.pid <= 0)
        return;
    (void)kill(-c->child.pid, sig);
    /* A stopped command would not handle the signal. */
    if (sig != SIGKILL)
        (void)kill(-c->child.pid, SIGCONT);
}

int command_interrupted(const struct command *c)
{
    return c->interrupted;
}

void command_die(struct command *c, int sig)
{
    (void)signal(sig, SIG_DFL);
    (void)raise(sig);
    (void)pthread_sigmask(SIG_SETMASK, &c->inherited, NULL);
}

int command_not_run(const char *command, struct err *err)
{
    int errnum = err->errnum;
    CLEANUP_BUF struct buf name = BUF_INIT;

    text_escape(&name, command, strlen(command));
    text_cut(&name, 120);
    (void)err_sys(err, errnum, "cannot run %s", buf_str(&name));
    if (errnum == ENOENT)
        return 127;
    return errnum == EAGAIN || errnum == ENOMEM || errnum == EMFILE || errnum == ENFILE ? 71 : 126;
}
