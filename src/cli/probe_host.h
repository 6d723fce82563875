/*
 * Asks the daemons of one namespace on this host for their status, by their abstract sockets
 * (daemon/probe_socket.h). Needs no Redis, no socket files and no rights. The sockets are found in
 * /proc/net/unix. The kernel says who listens (SO_PEERCRED), so no other user can pose as a daemon.
 */
#ifndef LATER_CLI_PROBE_HOST_H
#define LATER_CLI_PROBE_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

#define PROBE_HOST_MAX 64 /* further daemons are not asked */

struct probe_daemon {
    pid_t pid;
    uid_t uid;
    bool has_answered; /* false: its event loop does not run; the fields below are 0 */
    bool is_linked, is_registered, is_quiet, is_stopping;
    int64_t epoch, queues;
};

/*
 * Ask the daemons of our user and of root. Root asks those of all users, unless it runs one itself.
 * Waits at most wait_ms for all answers. The caller frees the list; n may be 0. -1 with code
 * SYSTEM: the sockets cannot be listed.
 */
int probe_host(const char *ns, int wait_ms, struct probe_daemon **ret, size_t *ret_n,
               struct err *err);

#endif
