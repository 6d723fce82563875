#include "run/process/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run/process/pidwatch.h"

#define NFDS 4 /* 0, 1, 2 and the control descriptor */
#define WATCH_TRIES 20
#define WATCH_WAIT_MS 50

/*
 * The descriptors that the new process dups. A source that is itself 0-3 (the daemon was started
 * with closed stdio) could be overwritten before it is dup'ed. So it is duplicated above them
 * first; we close these duplicates.
 */
struct sources {
    int fd[NFDS];
    bool lifted[NFDS];
};

static void sources_done(const struct sources *s)
{
    for (int i = 0; i < NFDS; i++)
        if (s->lifted[i])
            (void)close(s->fd[i]);
}

static int sources_init(struct sources *s, const struct spawn_fds *fds)
{
    *s = (struct sources){{fds->in, fds->out, fds->err, fds->ctl}, {false}};
    for (int i = 0; i < NFDS; i++) {
        int high;

        if (s->fd[i] < 0 || s->fd[i] >= NFDS)
            continue;
        high = fcntl(s->fd[i], F_DUPFD_CLOEXEC, NFDS);
        if (high < 0)
            return errno;
        s->fd[i] = high;
        s->lifted[i] = true;
    }
    return 0;
}

static int actions_fill(posix_spawn_file_actions_t *fa, const struct sources *s, const char *cwd)
{
    bool ctl = s->fd[3] >= 0;
    int e = 0;

    for (int i = 0; e == 0 && i < (ctl ? NFDS : 3); i++) {
        if (s->fd[i] >= 0)
            e = posix_spawn_file_actions_adddup2(fa, s->fd[i], i);
        else
            e = posix_spawn_file_actions_addopen(fa, i, "/dev/null", O_RDWR, 0);
    }
    if (e == 0)
        e = posix_spawn_file_actions_addclosefrom_np(fa, ctl ? NFDS : 3);
    if (e == 0 && cwd != NULL)
        e = posix_spawn_file_actions_addchdir_np(fa, cwd);
    return e;
}

int spawn_clean_signals(posix_spawnattr_t *attr, int flags)
{
    sigset_t none, all;
    int e;

    (void)sigemptyset(&none);
    /* Not sigfillset: it leaves out the signals that libc keeps for its threads, and posix_spawn
     * would then start the program with those ignored. */
    memset(&all, 0xff, sizeof(all));
    e = posix_spawnattr_setsigmask(attr, &none);
    if (e == 0)
        e = posix_spawnattr_setsigdefault(attr, &all);
    if (e == 0)
        e = posix_spawnattr_setflags(
            attr, (short)(flags | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF));
    return e;
}

/* What posix_spawn needs; both parts exist or none. */
struct making {
    posix_spawn_file_actions_t fa;
    posix_spawnattr_t attr;
};

static int making_init(struct making *h)
{
    int e = posix_spawn_file_actions_init(&h->fa);

    if (e != 0)
        return e;
    e = posix_spawnattr_init(&h->attr);
    if (e != 0)
        (void)posix_spawn_file_actions_destroy(&h->fa);
    return e;
}

static void making_done(struct making *h)
{
    (void)posix_spawnattr_destroy(&h->attr);
    (void)posix_spawn_file_actions_destroy(&h->fa);
}

static int start(char *const *argv, char *const *envp, const struct sources *s, const char *cwd,
                 pid_t *pid)
{
    struct making h;
    int e = making_init(&h);

    if (e != 0)
        return e;
    e = actions_fill(&h.fa, s, cwd);
    if (e == 0)
        e = spawn_clean_signals(&h.attr, POSIX_SPAWN_SETSID);
    if (e == 0)
        e = posix_spawn(pid, argv[0], &h.fa, &h.attr, argv, envp);
    making_done(&h);
    return e;
}

/* Retry while descriptors are short, which may be over soon: the process runs already. */
static int watch(pid_t pid)
{
    for (int tries = 1;; tries++) {
        int pidfd = pidwatch_open(pid);

        if (pidfd >= 0 || tries == WATCH_TRIES || !spawn_is_host_ill(errno))
            return pidfd;
        (void)poll(NULL, 0, WATCH_WAIT_MS);
    }
}

/* Without a pidfd we could not notice its end, so it must not run. */
static void undo(pid_t pid)
{
    (void)kill(-pid, SIGKILL);
    (void)kill(pid, SIGKILL); /* it may be in our group */
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        continue;
}

/* Finish a start; e is the error of posix_spawn, 0: none. */
static int made(const char *name, int e, pid_t pid, struct spawned *ret, struct err *err)
{
    int pidfd;

    if (e != 0)
        return err_sys(err, e, "%.200s", name);
    pidfd = watch(pid);
    *ret = (struct spawned){pid, pidfd};
    if (pidfd < 0) {
        e = errno;
        undo(pid);
        return err_sys(err, e, "watching %.200s", name);
    }
    return 0;
}

int spawn(char *const *argv, char *const *envp, const struct spawn_fds *fds, const char *cwd,
          struct spawned *ret, struct err *err)
{
    struct sources sources;
    pid_t pid = -1;
    int e;

    e = sources_init(&sources, fds);
    if (e == 0)
        e = start(argv, envp, &sources, cwd, &pid);
    sources_done(&sources);
    return made(argv[0], e, pid, ret, err);
}

static int command_attr(posix_spawnattr_t *attr, const struct spawn_command *how)
{
    short group = how->is_in_our_group ? 0 : POSIX_SPAWN_SETPGROUP;
    int e = posix_spawnattr_setsigmask(attr, how->mask);

    if (e == 0)
        e = posix_spawnattr_setsigdefault(attr, how->defaults);
    if (e == 0)
        e = posix_spawnattr_setpgroup(attr, 0);
    if (e == 0)
        e = posix_spawnattr_setflags(
            attr, (short)(group | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF));
    return e;
}

static int start_command(char *const *argv, char *const *envp, const struct spawn_command *how,
                         pid_t *pid)
{
    struct making h;
    int e = making_init(&h);

    if (e != 0)
        return e;
    e = command_attr(&h.attr, how);
    if (e == 0 && how->tty >= 0)
        e = posix_spawn_file_actions_addtcsetpgrp_np(&h.fa, how->tty);
    if (e == 0 && how->out >= 0)
        e = posix_spawn_file_actions_adddup2(&h.fa, how->out, STDOUT_FILENO);
    if (e == 0)
        e = posix_spawnp(pid, argv[0], &h.fa, &h.attr, argv, envp);
    making_done(&h);
    return e;
}

int spawn_command(char *const *argv, char *const *envp, const struct spawn_command *how,
                  struct spawned *ret, struct err *err)
{
    pid_t pid = -1;
    int e = start_command(argv, envp, how, &pid);

    return made(argv[0], e, pid, ret, err);
}

bool spawn_is_host_ill(int errnum)
{
    return errnum == EAGAIN || errnum == ENOMEM || errnum == EMFILE || errnum == ENFILE;
}
