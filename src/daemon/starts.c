#include "daemon/starts.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "daemon/handler_env.h"
#include "daemon/isolate.h"

struct starts {
    const struct conf *conf;
    struct start defaults;
    struct start *queues; /* as in conf */
};

/* What *err says starts with the row it is about. */
static int blame(const struct conf *conf, const struct conf_queue *q, struct err *err)
{
    static const char *const rows[] = {"user", "group",   "env_file",   "env",
                                       "nice", "rlimits", "private_tmp"};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (strncmp(err->text, rows[i], strlen(rows[i])) == 0)
            return conf_blame(conf, q, rows[i], err);
    return -1;
}

static int fill(const struct conf_queue *q, const struct isolate_user *user, char *const *env,
                struct start *ret, struct err *err)
{
    struct isolation isolation = {.umask = -1};

    /* A plug-in has no process. */
    if (q->mode != CONF_MODE_PLUGIN && isolate_queue(q, user, &isolation, err) < 0)
        return -1;
    ret->env = handler_env(q, user, env, err);
    if (ret->env == NULL)
        return -1;
    ret->prefix = isolation_prefix(&isolation);
    return 0;
}

static int prepare(const struct conf *conf, const struct conf_queue *q, char *const *env,
                   struct start *ret, struct err *err)
{
    bool has_user = q->user[0] != '\0';
    struct isolate_user user = {0};
    int r = has_user ? isolate_find_user(q->user, &user, err) : 0;

    if (r == 0)
        r = fill(q, has_user ? &user : NULL, env, ret, err);
    isolate_user_done(&user);
    return r == 0 ? 0 : blame(conf, q, err);
}

struct starts *starts_new(const struct conf *conf, char *const *env, struct err *err)
{
    struct starts *s = mem_new(sizeof(*s));
    int r;

    s->conf = conf;
    s->queues = mem_new((conf->nqueues + 1) * sizeof(*s->queues));
    r = prepare(conf, &conf->defaults, env, &s->defaults, err);
    for (size_t i = 0; r == 0 && i < conf->nqueues; i++)
        r = prepare(conf, &conf->queues[i], env, &s->queues[i], err);
    if (r == 0)
        return s;
    starts_free(s);
    return NULL;
}

static void done(struct start *s)
{
    mem_free_list(s->prefix);
    mem_free_list(s->env);
}

void starts_free(struct starts *s)
{
    if (s == NULL)
        return;
    done(&s->defaults);
    for (size_t i = 0; i < s->conf->nqueues; i++)
        done(&s->queues[i]);
    free(s->queues);
    free(s);
}

const struct start *starts_of(const struct starts *s, const struct conf_queue *q)
{
    return q == &s->conf->defaults ? &s->defaults : &s->queues[q - s->conf->queues];
}
