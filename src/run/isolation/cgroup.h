/*
 * Control groups (cgroup v2): one of its own for the processes of each handler that has a limit of
 * memory, processor time or processes, gone with the handler and with all that it left behind.
 *
 * They stand beside the daemon's in one that was delegated to it: BASE/.laterd and
 * BASE/job.DAEMON.PID. * The base is the daemon's own cgroup at its start. Linux 5.14 or later
 * (cgroup.kill).
 */
#ifndef LATER_RUN_ISOLATION_CGROUP_H
#define LATER_RUN_ISOLATION_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

#define CGROUP_PATH 512

/* 0: no such limit. */
struct cgroup_limits {
    int64_t memory; /* bytes, swap included: there is none */
    int64_t cpu;    /* per cent of one processor */
    int64_t pids;   /* processes and threads */
};

bool cgroup_has(const struct cgroup_limits *l);

/*
 * Where groups with these limits can be made by this process; changes nothing. 0, or -1 with code
 * CONFIG: what is missing (kernel, controller, delegation), the cure, and in *ret_limit the name of
 * the limit that wants it.
 */
int cgroup_find(const struct cgroup_limits *l, char base[CGROUP_PATH], const char **ret_limit,
                struct err *err);

/*
 * The daemon leaves the base for BASE/.laterd with all that is in there, and the controllers are
 * switched on; what daemons that died left in the base is killed. Again: nothing more. 0, or -1
 * with code CONFIG: the base is not laterd's alone.
 */
int cgroup_enter(const char *base, struct err *err);

/* In the process that becomes the handler: make its group, with these limits, and enter it. 0, or
 * -1 with errno and in *ret_what the file it is about. */
int cgroup_join(const char *base, const struct cgroup_limits *l, const char **ret_what);

struct cgroup_met {
    bool memory; /* the kernel killed it for that */
    bool pids;   /* some fork was refused for that */
};

/*
 * The first process of this group has ended and is not reaped yet, so the number is its own. What
 * is left in the group is killed, and the group removed, if that takes no longer than wait_ms; else
 * its empty folder stays until the next start of a daemon.
 */
void cgroup_end(const char *base, const struct cgroup_limits *l, pid_t pid, int wait_ms,
                struct cgroup_met *ret);

#endif
