/*
 * Start a process the one right way: posix_spawn (never fork), own session, descriptors 0-3 given
 * and all others closed, signal mask empty and dispositions default, and a pidfd to wait on.
 *
 * Blocks the calling thread until exec: call it from a pool thread, or before the loop turns.
 */
#ifndef LATER_RUN_PROCESS_SPAWN_H
#define LATER_RUN_PROCESS_SPAWN_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"

/* argv[0]: the file that runs, whatever has its name by now. */
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
 * argv[0] is an absolute path. 0, or -1 with err->errnum set to what posix_spawn or pidfd_open
 * said. A process that was started but could not be watched for a second is killed and reaped
 * first; its pid stands in *ret then, with pidfd -1. Else *ret is not touched on failure.
 */
int spawn(char *const *argv, char *const *envp, const struct spawn_fds *fds, const char *cwd,
          struct spawned *ret, struct err *err);

/*
 * A command of the person who called us, as a shell would run it: found by PATH, in our folder and
 * session, with our descriptors that are not close-on-exec, in a process group of its own. 0, or -1
 * as spawn. Blocks until exec.
 */
struct spawn_command {
    int tty;              /* its group becomes the foreground of this terminal; -1: it does not */
    const sigset_t *mask; /* the signal mask it is to have */
    const sigset_t *defaults; /* signals whose disposition becomes the default one */
};
int spawn_command(char *const *argv, char *const *envp, const struct spawn_command *how,
                  struct spawned *ret, struct err *err);

/* EAGAIN, ENOMEM, EMFILE, ENFILE: the host is short of something; not the handler's fault. */
bool spawn_is_host_fault(int errnum);

#endif
