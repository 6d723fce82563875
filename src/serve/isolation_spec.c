#include "serve/isolation_spec.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/text.h"
#include "conf/conf_isolation.h"

#define ID_MAX INT64_C(4294967294) /* the next number, (uid_t)-1, means "no change" */

static bool is_number(const char *s, int64_t *ret)
{
    return text_parse_int(s, 0, ID_MAX, ret) == 0;
}

/* There is none of that name (errnum 0 or ENOENT), or the system could not tell. */
static int not_found(const char *what, const char *name, int errnum, struct err *err)
{
    if (errnum != 0 && errnum != ENOENT)
        return err_sys(err, errnum, "%s: %s", what, conf_show(name).s);
    return err_set(err, ERR_CONFIG, "%s: there is no %s \"%s\" here", what, what,
                   conf_show(name).s);
}

int isolation_spec_find_user(const char *user, struct isolation_user *ret, struct err *err)
{
    const struct passwd *pw;
    int64_t uid = 0;

    errno = 0;
    pw = is_number(user, &uid) ? getpwuid((uid_t)uid) : getpwnam(user);
    if (pw == NULL)
        return not_found("user", user, errno, err);
    *ret = (struct isolation_user){pw->pw_uid, pw->pw_gid, mem_strdup(pw->pw_name),
                                   mem_strdup(pw->pw_dir), mem_strdup(pw->pw_shell)};
    return 0;
}

void isolation_spec_user_done(struct isolation_user *u)
{
    free(u->name);
    free(u->home);
    free(u->shell);
    *u = (struct isolation_user){0};
}

static int find_group(const char *group, gid_t *ret, struct err *err)
{
    const struct group *gr;
    int64_t gid = 0;

    errno = 0;
    gr = is_number(group, &gid) ? getgrgid((gid_t)gid) : getgrnam(group);
    if (gr == NULL)
        return not_found("group", group, errno, err);
    *ret = gr->gr_gid;
    return 0;
}

/* Sets the groups as well, the user's own first; set_group may put another in front. */
static int set_user(const struct isolation_user *user, struct isolation *i, struct err *err)
{
    int n = ISOLATION_GROUPS_MAX;

    i->has_user = true;
    i->uid = user->uid;
    if (getgrouplist(user->name, user->gid, i->groups, &n) < 0)
        return err_set(err, ERR_CONFIG, "user: \"%s\" has more than %d groups",
                       conf_show(user->name).s, ISOLATION_GROUPS_MAX);
    i->ngroups = (size_t)n;
    return 0;
}

static int set_group(const struct conf_queue *q, struct isolation *i, struct err *err)
{
    gid_t gid = 0;
    size_t at = 0;

    if (find_group(q->group, &gid, err) < 0)
        return -1;
    while (at < i->ngroups && i->groups[at] != gid)
        at++;
    if (at == ISOLATION_GROUPS_MAX)
        return err_set(err, ERR_CONFIG, "group: with it the handler has more than %d groups",
                       ISOLATION_GROUPS_MAX);
    if (at == i->ngroups)
        i->ngroups++;
    memmove(&i->groups[1], &i->groups[0], at * sizeof(i->groups[0]));
    i->groups[0] = gid;
    return 0;
}

static int set_cgroup_limits(const struct conf_queue *q, struct isolation *i, const char **ret_path,
                             struct err *err)
{
    i->cgroup_limits = (struct cgroup_limits){q->memory, q->cpu, q->pids};
    return cgroup_has(&i->cgroup_limits)
               ? cgroup_find(&i->cgroup_limits, i->cgroup_base, ret_path, err)
               : 0;
}

int isolation_spec_of_queue(const struct conf_queue *q, const struct isolation_user *user,
                            struct isolation *ret, const char **ret_path, struct err *err)
{
    *ret = (struct isolation){.umask = -1};
    *ret_path = "user";
    if (user != NULL && set_user(user, ret, err) < 0)
        return -1;
    *ret_path = "group";
    if (q->group[0] != '\0' && set_group(q, ret, err) < 0)
        return -1;
    *ret_path = "umask";
    if (conf_umask_parse(q->umask, &ret->umask, err) < 0)
        return -1;
    *ret_path = "rlimits";
    for (; ret->nlimits < q->rlimits.n; ret->nlimits++) {
        struct isolation_limit *l = &ret->limits[ret->nlimits];

        if (conf_rlimit_parse(q->rlimits.at[ret->nlimits], &l->resource, &l->max, err) < 0)
            return -1;
    }
    if (set_cgroup_limits(q, ret, ret_path, err) < 0)
        return -1;
    ret->nice = (int)q->nice;
    ret->cwd = q->cwd[0] != '\0' ? q->cwd : NULL;
    ret->no_new_privileges = q->no_new_privileges != 0;
    ret->private_tmp = q->private_tmp != 0;
    return isolation_check_rights(ret, ret_path, err);
}
