/*
 * The process that becomes a handler (run/isolation/isolation.h). Single-threaded. Its settings
 * come as arguments, in the order in which they must be applied: those that need rights come before
 * those that give them up.
 */
#include "run/isolation/isolation.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "run/isolation/caps.h"
#include "run/isolation/filters.h"

extern char **environ;

/* Applies one setting. 0, or -1 with errno. */
typedef int do_f(const char *value);

static const char *part; /* which part of a setting failed; NULL: its name says enough */

static int do_cgroup(const char *value)
{
    struct cgroup_limits limits;
    const char *base;

    if (!isolation_read_cgroup(value, &limits, &base)) {
        errno = EINVAL;
        return -1;
    }
    return cgroup_join(base, &limits, &part);
}

static int do_tmp(const char *value)
{
    static const char *const folders[] = {"/tmp", "/var/tmp"};
    char here[PATH_MAX];

    (void)value;
    if (getcwd(here, sizeof(here)) == NULL)
        return -1;
    /* We see what others mount later, and they see nothing of ours. */
    if (unshare(CLONE_NEWNS) < 0 || mount("", "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
        return -1;
    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
        if (mount("tmpfs", folders[i], "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777") < 0)
            return -1;
    /* Enter the folder again: it may be below one of the new mounts, and then it is hidden. */
    return chdir(here) == 0 || chdir("/") == 0 ? 0 : -1;
}

static int do_limit(const char *value)
{
    char *rest;
    long resource = strtol(value, &rest, 10);
    unsigned long long max = *rest == ':' ? strtoull(rest + 1, NULL, 10) : 0;
    rlim_t to = max == UINT64_MAX ? RLIM_INFINITY : (rlim_t)max;

    return setrlimit((__rlimit_resource_t)resource, &(struct rlimit){to, to});
}

static int do_nice(const char *value)
{
    errno = 0;
    (void)nice((int)strtol(value, NULL, 10));
    return errno == 0 ? 0 : -1;
}

static int do_groups(const char *value)
{
    gid_t groups[ISOLATION_GROUPS_MAX];
    size_t n = 0;
    char *rest = NULL;

    do
        groups[n++] = (gid_t)strtoul(value, &rest, 10);
    while (n < ISOLATION_GROUPS_MAX && *rest == ',' && (value = rest + 1) != NULL);
    if (setgroups(n, groups) < 0)
        return -1;
    return setresgid(groups[0], groups[0], groups[0]);
}

/* Let the new user open our pipes, and files without a name, through /dev/stdin and the like. Only
 * processes that have them open can do so. */
static void open_to_all(int fd)
{
    struct stat st;

    if (fstat(fd, &st) == 0 && (S_ISFIFO(st.st_mode) || (S_ISREG(st.st_mode) && st.st_nlink == 0)))
        (void)fchmod(fd, 0666);
}

static int do_uid(const char *value)
{
    uid_t uid = (uid_t)strtoul(value, NULL, 10);

    for (int fd = 0; fd <= 3; fd++)
        open_to_all(fd);
    return setresuid(uid, uid, uid);
}

static int do_umask(const char *value)
{
    (void)umask((mode_t)strtol(value, NULL, 10));
    return 0;
}

static int do_cwd(const char *value)
{
    return chdir(value);
}

static int do_nnp(const char *value)
{
    (void)value;
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

/* They run when all settings are applied. */
static char *filters[FILTERS_MAX];
static size_t nfilters, filter_bytes;

static int do_print(const char *value)
{
    filter_bytes = strtoull(value, NULL, 10);
    return 0;
}

static int do_filter(const char *value)
{
    if (nfilters == FILTERS_MAX || value[0] != '/') {
        errno = EINVAL;
        return -1;
    }
    filters[nfilters++] = (char *)(uintptr_t)value;
    return 0;
}

/* 0, or -1 with errno; EINVAL for an unknown word. *ret_what: the setting's name in the
 * configuration. */
static int apply(const char *arg, const char **ret_what)
{
    static const struct {
        const char *name;
        do_f *apply;
        const char *setting;
    } words[] = {{"cgroup=", do_cgroup, "memory, cpu, pids"},
                 {"tmp=", do_tmp, "private_tmp"},
                 {"limit=", do_limit, "rlimits"},
                 {"nice=", do_nice, "nice"},
                 {"groups=", do_groups, "group"},
                 {"uid=", do_uid, "user"},
                 {"umask=", do_umask, "umask"},
                 {"cwd=", do_cwd, "cwd"},
                 {"nnp=", do_nnp, "no_new_privileges"},
                 {"print=", do_print, "filters"},
                 {"filter=", do_filter, "filters"}};

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        size_t n = strlen(words[i].name);

        *ret_what = words[i].setting;
        if (strncmp(arg, words[i].name, n) == 0)
            return words[i].apply(arg + n);
    }
    *ret_what = arg;
    errno = EINVAL;
    return -1;
}

static int complain(const char *what, int status)
{
    (void)fprintf(stderr, "laterd: before the handler: %s: %s%s%s\n", what,
                  part != NULL ? part : "", part != NULL ? ": " : "", strerror(errno));
    return status;
}

/* Give the handler's variables their own names, and remove the program's own. */
static void show(char **envp)
{
    char **to = envp;

    for (; *envp != NULL; envp++) {
        if ((*envp)[0] == ISOLATION_VAR)
            *to++ = *envp + 1;
        else if (strncmp(*envp, "LATER_", 6) == 0)
            *to++ = *envp;
    }
    *to = NULL;
}

int isolation_main(int argc, char **argv)
{
    const char *what;
    int i = 2, status;

    for (; i < argc && strcmp(argv[i], "--") != 0; i++, part = NULL)
        if (apply(argv[i], &what) < 0)
            return complain(what, ISOLATION_EXIT);
    if (i + 1 >= argc) {
        errno = EINVAL;
        return complain("no handler", ISOLATION_EXIT);
    }
    if (caps_drop() < 0)
        return complain("capabilities", ISOLATION_EXIT);
    show(environ);
    status = nfilters > 0 ? filters_run(filters, nfilters, filter_bytes, environ) : 0;
    if (status != 0)
        return status;
    (void)execve(argv[i + 1], &argv[i + 1], environ);
    return complain(argv[i + 1], errno == ENOENT ? 127 : 126);
}
