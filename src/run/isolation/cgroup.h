/*
 * Control groups (cgroup v2). Each handler with a limit of memory, processor time or processes gets
 * a cgroup for its processes. It is removed when the handler ends; what the handler left in it is
 * killed.
 *
 * The cgroups are in a base that was delegated to the daemon: BASE/.laterd for the daemon itself,
 * BASE/job.DAEMON.PID for a handler. The base is the cgroup in which the daemon was started. Needs
 * Linux 5.14 (cgroup.kill).
 */
#ifndef LATER_RUN_ISOLATION_CGROUP_H
#define LATER_RUN_ISOLATION_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

#define CGROUP_PATH 512

/* 0: no limit. */
struct cgroup_limits {
    int64_t memory; /* bytes; the cgroup may not swap */
    int64_t cpu;    /* per cent of one processor */
    int64_t pids;   /* processes and threads */
};

/* Is any limit set? */
bool cgroup_has(const struct cgroup_limits *l);

/*
 * Find the base in which this process can make cgroups with these limits; changes nothing. 0, or -1
 * with code CONFIG: what is missing (kernel, controller, delegation) and the cure; *ret_limit is
 * the name of the limit that needs it.
 */
int cgroup_find(const struct cgroup_limits *l, char base[CGROUP_PATH], const char **ret_limit,
                struct err *err);

/*
 * Move the daemon, with all other processes of the base, to BASE/.laterd, and switch the
 * controllers on. Kill what daemons that died left in the base. May be called again. 0, or -1 with
 * err; code CONFIG: other programs are in the base.
 */
int cgroup_enter(const char *base, struct err *err);

/* In the process that becomes the handler: make its cgroup with these limits and enter it. 0, or -1
 * with errno; *ret_what is the file that failed. */
int cgroup_join(const char *base, const struct cgroup_limits *l, const char **ret_what);

struct cgroup_met {
    bool memory; /* the kernel killed it for lack of memory */
    bool pids;   /* the kernel refused a fork */
};

/*
 * Call it when the handler, process pid, has ended but was not waited for yet, so that its pid is
 * not reused. Kills what is left in its cgroup and removes it. If that takes longer than wait_ms,
 * the empty folder stays until a daemon starts the next time.
 */
void cgroup_end(const char *base, const struct cgroup_limits *l, pid_t pid, int wait_ms,
                struct cgroup_met *ret);

#endif
