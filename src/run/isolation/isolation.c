#include "run/isolation/isolation.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/mem.h"
#include "base/text.h"
#include "run/isolation/caps.h"

/* ---- rights */

struct want {
    const char *setting;
    bool is_missing;
    const char *what, *cure;
};

#define CURE_USERS "run it as root, or as a service with the drop-in users.conf"
#define CURE_OTHER "its service has to give it, by AmbientCapabilities="

static bool is_lower(const struct isolation_limit *l)
{
    struct rlimit now;

    return getrlimit((__rlimit_resource_t)l->resource, &now) == 0 && l->max <= now.rlim_max;
}

static bool may_lower_nice(void)
{
    struct rlimit now;

    return caps_has(CAP_SYS_NICE) || (getrlimit(RLIMIT_NICE, &now) == 0 && now.rlim_cur >= 40);
}

static bool raises_limits(const struct isolation *i)
{
    for (size_t k = 0; k < i->nlimits; k++)
        if (!is_lower(&i->limits[k]))
            return true;
    return false;
}

static int check_capabilities(const struct isolation *i, const char **ret_what, struct err *err)
{
    bool is_other = i->has_user && i->uid != geteuid();
    const struct want wants[] = {
        {"user", is_other && !caps_has(CAP_SETUID), "CAP_SETUID", CURE_USERS},
        {i->has_user ? "user" : "group", i->ngroups > 0 && !caps_has(CAP_SETGID), "CAP_SETGID",
         CURE_USERS},
        /* Without it we could not end a handler that exceeds its time. */
        {"user", is_other && !caps_has(CAP_KILL), "CAP_KILL", CURE_USERS},
        {"nice", i->nice < 0 && !may_lower_nice(), "CAP_SYS_NICE", CURE_OTHER},
        {"private_tmp", i->private_tmp && !caps_has(CAP_SYS_ADMIN), "CAP_SYS_ADMIN", CURE_OTHER},
        {"rlimits", raises_limits(i) && !caps_has(CAP_SYS_RESOURCE),
         "CAP_SYS_RESOURCE, since one is above the daemon's own", CURE_OTHER}};

    for (size_t k = 0; k < sizeof(wants) / sizeof(wants[0]); k++)
        if (wants[k].is_missing) {
            *ret_what = wants[k].setting;
            return err_set(err, ERR_CONFIG, "%s: laterd lacks the right to it (%s): %s",
                           wants[k].setting, wants[k].what, wants[k].cure);
        }
    return 0;
}

int isolation_check_rights(const struct isolation *i, const char **ret_what, struct err *err)
{
    /* A root process has all capabilities: a laterd with three of them would grant the others. */
    if (i->has_user && i->uid != geteuid() && i->uid == 0) {
        *ret_what = "user";
        return err_set(err, ERR_CONFIG,
                       "user: only a laterd that runs as root starts handlers as root");
    }
    return check_capabilities(i, ret_what, err);
}

/* ---- settings as arguments: NAME=VALUE each, then --, then the handler and its arguments */

struct arg_list {
    char **at;
    size_t n;
};

static void add(struct arg_list *a, char *arg)
{
    mem_list_add(&a->at, &a->n, arg);
}

static void add_groups(struct arg_list *a, const struct isolation *i)
{
    CLEANUP_BUF struct buf list = BUF_INIT;

    for (size_t k = 0; k < i->ngroups; k++)
        buf_printf(&list, "%s%lu", k > 0 ? "," : "", (unsigned long)i->groups[k]);
    add(a, mem_printf("groups=%s", buf_str(&list)));
}

static void add_settings(struct arg_list *a, const struct isolation *i)
{
    if (cgroup_has(&i->cgroup_limits))
        add(a, mem_printf("cgroup=%lld:%lld:%lld:%s", (long long)i->cgroup_limits.memory,
                          (long long)i->cgroup_limits.cpu, (long long)i->cgroup_limits.pids,
                          i->cgroup_base));
    if (i->private_tmp)
        add(a, mem_strdup("tmp=1"));
    for (size_t k = 0; k < i->nlimits; k++)
        add(a, mem_printf("limit=%d:%llu", i->limits[k].resource,
                          (unsigned long long)i->limits[k].max));
    if (i->nice != 0)
        add(a, mem_printf("nice=%d", i->nice));
    if (i->ngroups > 0)
        add_groups(a, i);
    if (i->has_user)
        add(a, mem_printf("uid=%lu", (unsigned long)i->uid));
    if (i->umask >= 0)
        add(a, mem_printf("umask=%d", i->umask));
    if (i->cwd != NULL)
        add(a, mem_printf("cwd=%s", i->cwd));
    if (i->no_new_privileges)
        add(a, mem_strdup("nnp=1"));
    if (i->nfilters > 0)
        add(a, mem_printf("print=%lld", (long long)i->filter_bytes));
    for (size_t k = 0; k < i->nfilters; k++)
        add(a, mem_printf("filter=%s", i->filters[k]));
}

char **isolation_prefix(const struct isolation *i)
{
    static char *const self[] = {(char *)(uintptr_t)SPAWN_SELF, (char *)(uintptr_t)ISOLATION_ARG,
                                 NULL};
    struct arg_list a = {NULL, 0};
    size_t bare;

    a.at = mem_dup_list(self, 0, &bare);
    a.n = bare;
    add_settings(&a, i);
    if (a.n > bare) {
        add(&a, mem_strdup("--"));
        return a.at;
    }
    mem_free_list(a.at);
    return mem_new(sizeof(*a.at));
}

/* ---- start */

static bool is_isolated(char *const *argv)
{
    return strcmp(argv[0], SPAWN_SELF) == 0 && argv[1] != NULL &&
           strcmp(argv[1], ISOLATION_ARG) == 0;
}

/* Hide the handler's variables. LD_LIBRARY_PATH is our own, since laterd may need it to start. */
static char **hidden(char *const *envp)
{
    const char *libraries = getenv("LD_LIBRARY_PATH");
    struct arg_list a = {NULL, 0};

    for (; *envp != NULL; envp++)
        add(&a, strncmp(*envp, "LATER_", 6) == 0 ? mem_strdup(*envp)
                                                 : mem_printf("%c%s", ISOLATION_VAR, *envp));
    if (libraries != NULL)
        add(&a, mem_printf("LD_LIBRARY_PATH=%s", libraries));
    return a.at;
}

int isolation_spawn(char *const *argv, char *const *envp, const struct spawn_fds *fds,
                    struct spawned *ret, struct err *err)
{
    char **env;
    int rc;

    if (!is_isolated(argv))
        return spawn(argv, envp, fds, NULL, ret, err);
    env = hidden(envp);
    caps_lend();
    rc = spawn(argv, env, fds, NULL, ret, err);
    caps_take_back();
    mem_free_list(env);
    return rc;
}

/* ---- end */

bool isolation_read_cgroup(const char *value, struct cgroup_limits *limits, const char **base)
{
    int64_t *const to[] = {&limits->memory, &limits->cpu, &limits->pids};
    char *rest;

    for (size_t i = 0; i < sizeof(to) / sizeof(to[0]); i++) {
        *to[i] = strtoll(value, &rest, 10);
        if (rest == value || *rest != ':')
            return false;
        value = rest + 1;
    }
    *base = value;
    return true;
}

bool isolation_ended(char *const *argv, pid_t pid, int wait_ms, char text[96])
{
    struct cgroup_limits limits;
    struct cgroup_met met;
    const char *base;
    char size[24];

    /* cgroup= is always the first setting. */
    if (!is_isolated(argv) || argv[2] == NULL || strncmp(argv[2], "cgroup=", 7) != 0 ||
        !isolation_read_cgroup(argv[2] + 7, &limits, &base))
        return false;
    cgroup_end(base, &limits, pid, wait_ms, &met);
    if (met.memory)
        (void)snprintf(text, 96, "over memory limit (%s)", text_size(limits.memory, size));
    else if (met.pids)
        (void)snprintf(text, 96, "over its limit of processes (%lld)", (long long)limits.pids);
    return met.memory || met.pids;
}
