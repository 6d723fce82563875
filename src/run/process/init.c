#include "run/process/init.h"

#include <limits.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "run/process/spawn.h"

bool init_is_needed(void)
{
    return getpid() == 1;
}

/* Our own path, not SPAWN_SELF, so that the list of processes shows our name. */
static void find_self(char path[PATH_MAX])
{
    ssize_t n = readlink(SPAWN_SELF, path, PATH_MAX - 1);

    path[n > 0 ? n : 0] = '\0';
}

/* Wait for all child processes that have ended. True: `child` was among them. */
static bool wait_for_ended(pid_t child, int *ret_status)
{
    bool is_over = false;
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        if (pid != child)
            continue;
        is_over = true;
        *ret_status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
    return is_over;
}

int init_main(char **argv, char *const *env, struct err *err)
{
    char path[PATH_MAX];
    struct spawned child;
    sigset_t all, none, was;
    struct spawn_command how = {.tty = -1, .out = -1, .mask = &was, .defaults = &none};
    int status = 0;

    find_self(path);
    if (path[0] == '\0')
        return err_set(err, ERR_SYSTEM, "as process 1 it needs /proc");
    argv[0] = path;
    /* Block all signals, so that they wait for sigwaitinfo: process 1 loses signals that it neither
     * blocks nor handles. */
    (void)sigemptyset(&none);
    (void)sigfillset(&all);
    (void)sigprocmask(SIG_SETMASK, &all, &was);
    /* The daemon gets a process group of its own: Ctrl-C reaches it once only, through us. */
    if (spawn_command(argv, env, &how, &child, err) < 0)
        return err_wrap(err, "as process 1");
    (void)close(child.pidfd);
    for (;;) {
        int sig = sigwaitinfo(&all, NULL);

        if (sig == SIGCHLD && wait_for_ended(child.pid, &status))
            return status;
        if (sig > 0 && sig != SIGCHLD)
            (void)kill(child.pid, sig);
    }
}
