/*
 * The only way to start a process: posix_spawn (never fork), own session, descriptors 0-3 given and
 * all others closed, signal mask empty and dispositions default, and a pidfd to wait on.
 *
 * Blocks the calling thread until exec: call it from a pool thread, or before the loop runs.
 */
#ifndef LATER_RUN_PROCESS_SPAWN_H
#define LATER_RUN_PROCESS_SPAWN_H

#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"

/* As argv[0]: the file of the running program, even if its name now leads to another file. */
#define SPAWN_SELF "/proc/self/exe"

struct spawn_fds {
    int in, out, err; /* become 0, 1, 2; -1: /dev/null */
    int ctl;          /* becomes 3; -1: none */
};

struct spawned {
    pid_t pid; /* also its process group and session */
    int pidfd; /* readable when it has ended (pidwatch.h); owned by the caller; close-on-exec */
};

/*
 * argv[0] is an absolute path. cwd: the folder to start in, NULL: ours. 0, or -1 with err->errnum
 * from posix_spawn or pidfd_open. A process that was started but cannot be watched (retries last
 * for a second) is killed and waited for; then *ret has its pid, and pidfd -1. After any other
 * failure *ret is unchanged.
 */
int spawn(char *const *argv, char *const *envp, const struct spawn_fds *fds, const char *cwd,
          struct spawned *ret, struct err *err);

/*
 * Run a command of our caller as a shell would: found by PATH, in our folder and session, with our
 * descriptors that are not close-on-exec. 0, or -1 as spawn. Blocks until exec.
 */
struct spawn_command {
    bool is_in_our_group; /* else its process group is its own */
    int tty;              /* its group becomes the foreground group of this terminal; -1: none */
    int out;              /* becomes its standard output; -1: ours */
    const sigset_t *mask; /* its signal mask */
    const sigset_t *defaults; /* signals that get their default disposition */
};
int spawn_command(char *const *argv, char *const *envp, const struct spawn_command *how,
                  struct spawned *ret, struct err *err);

/*
 * The program starts with an empty signal mask and default dispositions; flags: POSIX_SPAWN_* to
 * set as well, 0: none. attr is initialised. 0, or an errno.
 */
int spawn_clean_signals(posix_spawnattr_t *attr, int flags);

/* EAGAIN, ENOMEM, EMFILE or ENFILE: the host lacks something; not an error of the handler. */
bool spawn_is_host_ill(int errnum);

#endif
