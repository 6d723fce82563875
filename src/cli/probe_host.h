/*
 * The daemons of one namespace on this host, asked by their sockets (daemon/probe_socket.h) how
 * they stand: without Redis, without files, without rights. Found in /proc/net/unix; who listens
 * there is told by the kernel (SO_PEERCRED), so that no other user can pass for a daemon.
 */
#ifndef LATER_CLI_PROBE_HOST_H
#define LATER_CLI_PROBE_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

#define PROBE_HOST_MAX 64 /* more are not asked */

struct probe_daemon {
    pid_t pid;
    uid_t uid;
    bool has_answered; /* else its loop does not turn, and the rest is 0 */
    bool is_linked, is_registered, is_quiet, is_stopping;
    int64_t epoch, queues;
};

/*
 * Ask those of our user and of root, or for root all; at most wait_ms for all answers. The list is
 * the caller's (free), n may be 0. -1 with SYSTEM: sockets cannot be listed.
 */
int probe_host(const char *ns, int wait_ms, struct probe_daemon **ret, size_t *ret_n,
               struct err *err);

#endif
