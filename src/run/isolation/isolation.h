/*
 * What the process of a handler is beyond its arguments, environment and descriptors: another user,
 * limits, a folder of its own. posix_spawn can do none of it. So the program starts itself first,
 * as ISOLATION_ARG; single-threaded, it does all of it to itself, and becomes the handler. The
 * process keeps its id, session, descriptors and environment. That is one more exec, a millisecond;
 * handlers without such settings do not pay it.
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

#define ISOLATION_ARG "--isolate" /* the program's first argument then */
#define ISOLATION_GROUPS_MAX 256
#define ISOLATION_LIMITS_MAX 16
#define ISOLATION_EXIT 71 /* EX_OSERR: it could not be done; standard error says what */

struct isolation_limit {
    int resource; /* RLIMIT_… */
    uint64_t max; /* soft and hard; UINT64_MAX: unlimited */
};

/* {0} with umask -1 is: nothing. */
struct isolation {
    bool has_user;
    uid_t uid;
    gid_t groups[ISOLATION_GROUPS_MAX]; /* all of them; the first is the one of its files */
    size_t ngroups;                     /* 0: the daemon's */
    int umask;                          /* -1: the daemon's */
    int nice;                           /* added to the daemon's */
    const char *cwd;                    /* NULL: the daemon's; the caller's */
    struct isolation_limit limits[ISOLATION_LIMITS_MAX];
    size_t nlimits;
    bool no_new_privileges, private_tmp;
    struct cgroup_limits group; /* of it and all that it starts */
    char cgroup[CGROUP_PATH];   /* set where group has a limit: the base (run/isolation/cgroup.h) */
};

/* 0: this process has the rights for it. -1: err says what is missing (code CONFIG), and *ret_what
 * which setting wants it. Those of a cgroup: cgroup_find. */
int isolation_check_rights(const struct isolation *i, const char **ret_what, struct err *err);

/* What stands before the handler and its arguments: nothing where isolation is. NULL-ended; the
 * caller frees it (mem_free_list). */
char **isolation_prefix(const struct isolation *i);

/*
 * spawn (spawn.h) of a handler, be there a prefix or not. The variables of a handler may be
 * anything, also what the dynamic linker listens to, and the process still has rights while it
 * isolates itself: so they are given to it under names that mean nothing, and get their own back
 * when it becomes the handler.
 */
int isolation_spawn(char *const *argv, char *const *envp, const struct spawn_fds *fds,
                    struct spawned *ret, struct err *err);

/*
 * The process that was started so has ended, and is not reaped yet. What is left in its cgroup is
 * killed; wait_ms is for that. True if it met a limit of that: then text says which.
 */
bool isolation_ended(char *const *argv, pid_t pid, int wait_ms, char text[96]);

/* What comes behind cgroup= in the arguments. False: it is not of that form. base points into it.
 */
bool isolation_read_cgroup(const char *value, struct cgroup_limits *limits, const char **base);

#define ISOLATION_VAR '.' /* in front of a name; LATER_… keep theirs */

/*
 * What the program does with ISOLATION_ARG, before anything else. Returns only when it could not
 * become the handler: with the exit status, ISOLATION_EXIT, or 126 or 127 as a shell has it.
 */
int isolation_main(int argc, char **argv);

#endif
