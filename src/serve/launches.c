#include "serve/launches.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/mem.h"
#include "serve/handler_env.h"
#include "serve/isolation_spec.h"

struct launches {
    const struct conf *conf;
    struct launch defaults;
    struct launch *queues;            /* in the order of conf->queues */
    const struct conf_queue *limited; /* the first that wants a cgroup; NULL: none */
    char cgroup_base[CGROUP_PATH];    /* the base of all cgroups */
};

/* NULL-ended; the caller frees it. */
static char **filter_paths(const struct conf *conf, const struct conf_queue *q, size_t *ret_n)
{
    char **paths = NULL;

    *ret_n = 0;
    for (size_t i = 0; i < q->filters.n; i++)
        mem_list_add(&paths, ret_n, launches_filter(conf, q, i));
    return paths;
}

/* For filters the payload is a file. */
static int check_room(const struct conf_queue *q, const struct isolation *i, const char **ret_path,
                      struct err *err)
{
    *ret_path = "rlimits";
    for (size_t k = 0; q->filters.n > 0 && k < i->nlimits; k++)
        if (i->limits[k].resource == RLIMIT_FSIZE && i->limits[k].max < (uint64_t)q->max_payload)
            return err_set(
                err, ERR_CONFIG,
                "rlimits: for filters the payload is a file: fsize must not be less than "
                "max_payload");
    return 0;
}

/* `later` in a handler means the whole namespace: a job with a key may be of another shard. */
static void add_shards(const struct conf *conf, struct launch *launch)
{
    size_t n = 0;

    if (conf->shards == 0)
        return;
    while (launch->env[n] != NULL)
        n++;
    mem_list_add(&launch->env, &n, mem_printf("LATER_SHARDS=%d", (int)conf->shards));
    mem_list_add(&launch->env, &n, mem_printf("LATER_SHARD=%d", (int)conf->shard));
}

static int fill(struct launches *s, const struct conf_queue *q, const struct isolation_user *user,
                char *const *env, struct launch *ret, const char **ret_path, struct err *err)
{
    struct isolation isolation = {.umask = -1};
    char **filters;

    /* A plug-in has no process. */
    if (q->mode != CONF_MODE_PLUGIN &&
        isolation_spec_of_queue(q, user, &isolation, ret_path, err) < 0)
        return -1;
    ret->env = handler_env(q, user, env, ret_path, err);
    if (ret->env == NULL)
        return -1;
    add_shards(s->conf, ret);
    if (check_room(q, &isolation, ret_path, err) < 0)
        return -1;
    filters = filter_paths(s->conf, q, &isolation.nfilters);
    isolation.filters = filters;
    isolation.filter_bytes = q->max_payload;
    ret->prefix = isolation_prefix(&isolation);
    mem_free_list(filters);
    if (s->limited == NULL && cgroup_has(&isolation.cgroup_limits)) {
        s->limited = q;
        memcpy(s->cgroup_base, isolation.cgroup_base, sizeof(s->cgroup_base));
    }
    return 0;
}

/* On failure *ret_path is the row to blame. */
static int prepare(struct launches *s, const struct conf_queue *q, char *const *env,
                   struct launch *ret, const char **ret_path, struct err *err)
{
    bool has_user = q->user[0] != '\0';
    struct isolation_user user = {0};
    int r = has_user ? isolation_spec_find_user(q->user, &user, err) : 0;

    *ret_path = "user";
    if (r == 0)
        r = fill(s, q, has_user ? &user : NULL, env, ret, ret_path, err);
    isolation_spec_user_done(&user);
    return r;
}

static int prepare_or_blame(struct launches *s, const struct conf_queue *q, char *const *env,
                            struct launch *ret, struct err *err)
{
    const char *path;

    return prepare(s, q, env, ret, &path, err) == 0 ? 0 : conf_blame(s->conf, q, path, err);
}

char *launches_filter(const struct conf *conf, const struct conf_queue *q, size_t i)
{
    return mem_printf("%s/%s", conf->filters_dir, q->filters.at[i]);
}

struct launches *launches_new(const struct conf *conf, char *const *env, struct err *err)
{
    struct launches *s = mem_new(sizeof(*s));
    int r;

    s->conf = conf;
    s->queues = mem_new((conf->nqueues + 1) * sizeof(*s->queues));
    r = prepare_or_blame(s, &conf->defaults, env, &s->defaults, err);
    for (size_t i = 0; r == 0 && i < conf->nqueues; i++)
        r = prepare_or_blame(s, &conf->queues[i], env, &s->queues[i], err);
    if (r == 0)
        return s;
    launches_free(s);
    return NULL;
}

int launches_enter(const struct launches *s, struct err *err)
{
    const struct conf_queue *q = s->limited;

    if (q == NULL || cgroup_enter(s->cgroup_base, err) == 0)
        return 0;
    return conf_blame(s->conf, q, q->memory > 0 ? "memory" : q->cpu > 0 ? "cpu" : "pids", err);
}

static void done(struct launch *s)
{
    mem_free_list(s->prefix);
    mem_free_list(s->env);
}

void launches_free(struct launches *s)
{
    if (s == NULL)
        return;
    done(&s->defaults);
    for (size_t i = 0; i < s->conf->nqueues; i++)
        done(&s->queues[i]);
    free(s->queues);
    free(s);
}

const struct launch *launches_of(const struct launches *s, const struct conf_queue *q)
{
    return q == &s->conf->defaults ? &s->defaults : &s->queues[q - s->conf->queues];
}

void launches_find_errors(const struct conf *conf, char *const *env, struct conf_errors *ret)
{
    struct launches s = {.conf = conf};
    struct err of_defaults = ERR_INIT;

    for (size_t i = 0; i <= conf->nqueues; i++) {
        const struct conf_queue *q = i == 0 ? &conf->defaults : &conf->queues[i - 1];
        struct launch launch = {NULL, NULL};
        struct err err = ERR_INIT;
        const char *path;

        if (prepare(&s, q, env, &launch, &path, &err) < 0) {
            bool is_inherited = i > 0 && strcmp(err.text, of_defaults.text) == 0;

            if (i == 0)
                of_defaults = err;
            (void)conf_blame(conf, q, path, &err);
            if (!is_inherited)
                conf_errors_add(ret, 0, &err);
        }
        done(&launch);
    }
}
