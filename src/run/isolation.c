#include "run/isolation.h"

#include <errno.h>
#include <linux/capability.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/mem.h"
#include "run/caps.h"
#include "run/spawn.h"

bool isolation_is_nothing(const struct isolation *i)
{
    return !i->has_user && i->ngroups == 0 && i->umask < 0 && i->nice == 0 && i->cwd == NULL &&
           i->nlimits == 0 && !i->no_new_privileges && !i->private_tmp;
}

/* ---- rights */

static int missing(const char *setting, const char *cap, struct err *err)
{
    return err_set(
        err, ERR_CONFIG,
        "%s: laterd has not the right to it (%s): run it as root, or let its service give it, "
        "as users.conf does",
        setting, cap);
}

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

int isolation_check_rights(const struct isolation *i, struct err *err)
{
    bool is_other = i->has_user && i->uid != geteuid();

    if (is_other && !caps_has(CAP_SETUID))
        return missing("user", "CAP_SETUID", err);
    if (i->ngroups > 0 && !caps_has(CAP_SETGID))
        return missing(i->has_user ? "user" : "group", "CAP_SETGID", err);
    /* Or a handler that is over its time runs on. */
    if (is_other && !caps_has(CAP_KILL))
        return missing("user", "CAP_KILL", err);
    if (i->nice < 0 && !may_lower_nice())
        return missing("nice", "CAP_SYS_NICE", err);
    if (i->private_tmp && !caps_has(CAP_SYS_ADMIN))
        return missing("private_tmp", "CAP_SYS_ADMIN", err);
    for (size_t k = 0; k < i->nlimits; k++)
        if (!is_lower(&i->limits[k]) && !caps_has(CAP_SYS_RESOURCE))
            return missing("rlimits", "CAP_SYS_RESOURCE: one is above the daemon's own", err);
    return 0;
}

/* ---- as arguments: NAME=VALUE each, then --, then the handler's own */

struct args {
    char **at;
    size_t n;
};

static void add(struct args *a, char *arg)
{
    a->at = mem_grow(a->at, a->n + 2, sizeof(*a->at));
    a->at[a->n++] = arg;
    a->at[a->n] = NULL;
}

static void add_groups(struct args *a, const struct isolation *i)
{
    CLEANUP_BUF struct buf list = BUF_INIT;

    for (size_t k = 0; k < i->ngroups; k++)
        buf_printf(&list, "%s%lu", k > 0 ? "," : "", (unsigned long)i->groups[k]);
    add(a, mem_printf("groups=%s", buf_str(&list)));
}

char **isolation_argv(const struct isolation *i, char *const *argv, size_t n)
{
    struct args a = {NULL, 0};

    if (!isolation_is_nothing(i)) {
        add(&a, mem_strdup(SPAWN_SELF));
        add(&a, mem_strdup(ISOLATION_ARG));
        if (i->private_tmp)
            add(&a, mem_strdup("tmp=1"));
        for (size_t k = 0; k < i->nlimits; k++)
            add(&a, mem_printf("limit=%d:%llu", i->limits[k].resource,
                               (unsigned long long)i->limits[k].max));
        if (i->nice != 0)
            add(&a, mem_printf("nice=%d", i->nice));
        if (i->ngroups > 0)
            add_groups(&a, i);
        if (i->has_user)
            add(&a, mem_printf("uid=%lu", (unsigned long)i->uid));
        if (i->umask >= 0)
            add(&a, mem_printf("umask=%d", i->umask));
        if (i->cwd != NULL)
            add(&a, mem_printf("cwd=%s", i->cwd));
        if (i->no_new_privileges)
            add(&a, mem_strdup("nnp=1"));
        add(&a, mem_strdup("--"));
    }
    for (size_t k = 0; k < n; k++)
        add(&a, mem_strdup(argv[k]));
    return a.at;
}
