/*
 * Settings of a handler's process that posix_spawn cannot make: another user, limits, a folder of
 * its own, filters before it. So the program first starts itself with ISOLATION_ARG. That process
 * is single-threaded, applies the settings to itself and becomes the handler. It keeps its pid,
 * session, descriptors and environment. This costs one more exec, a millisecond; handlers without
 * isolation do not pay it.
 */
#ifndef LATER_RUN_ISOLATION_ISOLATION_H
#define LATER_RUN_ISOLATION_ISOLATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "run/isolation/cgroup.h"
#include "run/process/spawn.h"

#define ISOLATION_ARG "--isolate" /* its first argument */
#define ISOLATION_GROUPS_MAX 256
#define ISOLATION_LIMITS_MAX 16
#define ISOLATION_EXIT 71 /* EX_OSERR: a setting failed; standard error says which */

struct isolation_limit {
    int resource; /* RLIMIT_… */
    uint64_t max; /* soft and hard; UINT64_MAX: unlimited */
};

/* {0} with umask -1: nothing to do. */
struct isolation {
    bool has_user;
    uid_t uid;
    gid_t groups[ISOLATION_GROUPS_MAX]; /* all its groups; the first is the primary one */
    size_t ngroups;                     /* 0: the daemon's */
    int umask;                          /* -1: the daemon's */
    int nice;                           /* added to the daemon's */
    const char *cwd;                    /* NULL: the daemon's; owned by the caller */
    struct isolation_limit limits[ISOLATION_LIMITS_MAX];
    size_t nlimits;
    bool no_new_privileges, private_tmp;
    char *const *filters; /* absolute paths (run/isolation/filters.h); owned by the caller */
    size_t nfilters;
    int64_t filter_bytes;               /* most that one may print */
    struct cgroup_limits cgroup_limits; /* of the handler with all that it starts */
    char cgroup_base[CGROUP_PATH];      /* if there is a limit (run/isolation/cgroup.h) */
};

/* 0: this process has the rights for these settings. -1: err says what is missing (code CONFIG),
 * *ret_what names the setting. cgroup_find checks the rights for cgroups. */
int isolation_check_rights(const struct isolation *i, const char **ret_what, struct err *err);

/* The arguments before the handler and its own; empty if there is nothing to do. NULL-ended;
 * the caller frees the list (mem_free_list). */
char **isolation_prefix(const struct isolation *i);

/*
 * spawn (spawn.h) for a handler, with or without a prefix. A handler's variables may be anything,
 * also variables of the dynamic linker, and while the process isolates itself it still has our
 * capabilities. So it gets them under hidden names, and gives them their own names when it becomes
 * the handler.
 */
int isolation_spawn(char *const *argv, char *const *envp, const struct spawn_fds *fds,
                    struct spawned *ret, struct err *err);

/*
 * Call it when a process of isolation_spawn has ended and was not waited for yet. Kills what is
 * left in its cgroup, within wait_ms. True if it met a limit of the cgroup: then text says which.
 */
bool isolation_ended(char *const *argv, pid_t pid, int wait_ms, char text[96]);

/* Parse the value of cgroup=. False: it has another form. *base points into value. */
bool isolation_read_cgroup(const char *value, struct cgroup_limits *limits, const char **base);

#define ISOLATION_VAR '.' /* before a hidden name; LATER_… are not hidden */

/*
 * Become the handler. main calls this before anything else when it is started with ISOLATION_ARG.
 * Returns only on failure, the exit status: ISOLATION_EXIT, or 126 or 127 as shells use them.
 */
int isolation_main(int argc, char **argv);

#endif
