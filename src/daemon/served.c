#include "daemon/served.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "daemon/handler_env.h"
#include "daemon/isolate.h"
#include "run/handler.h"
#include "run/spawn.h"

struct building {
    const struct conf *conf;
    char *const *env;
    served_report_f *report;
    void *arg;
    struct served *out;
};

static enum handler_check how(const struct conf *conf)
{
    static const enum handler_check map[] = {HANDLER_CHECK_STRICT, HANDLER_CHECK_WARN,
                                             HANDLER_CHECK_OFF};

    return map[conf->check_permissions];
}

/* What stands in a plug-in's place of arguments is not started. */
static int prepare(const struct building *b, struct served_queue *q, char *const *argv, size_t argc,
                   struct err *err)
{
    struct isolation isolation = {.umask = -1};

    if (q->conf->mode != CONF_MODE_PLUGIN && isolate_queue(q->conf, &isolation, err) < 0)
        return -1;
    q->env = handler_env(q->conf, b->env, err);
    if (q->env == NULL)
        return -1;
    q->argv = isolation_argv(&isolation, argv, argc);
    q->file = mem_strdup(argv[0]);
    return 0;
}

static void add(struct building *b, const char *queue, char *const *argv, size_t argc)
{
    struct served *s = b->out;
    struct served_queue q = {.conf = conf_queue(b->conf, queue)};
    struct err err = ERR_INIT;

    memcpy(q.name, queue, strlen(queue));
    if (prepare(b, &q, argv, argc, &err) < 0) {
        b->report(b->arg, queue, err.text, false);
        return;
    }
    s->at = mem_grow(s->at, s->n + 1, sizeof(*s->at));
    s->at[s->n++] = q;
}

static void add_configured(struct building *b, const struct conf_queue *q)
{
    struct err err = ERR_INIT;

    if ((q->mode == CONF_MODE_PLUGIN ? handler_check_object
                                     : handler_check)(q->handler.at[0], how(b->conf), &err) < 0) {
        b->report(b->arg, q->name, err.text, false);
        return;
    }
    if (err.code != ERR_NONE)
        b->report(b->arg, q->name, err.text, true);
    add(b, q->name, q->handler.at, q->handler.n);
}

static void on_refused(void *arg, const char *file, const char *reason)
{
    struct building *b = arg;

    b->report(b->arg, file, reason, strncmp(reason, "warning: ", 9) == 0);
}

static int compare_file(const void *queue, const void *file)
{
    return strcmp(queue, ((const struct handler_file *)file)->queue);
}

static bool has_file(const struct handler_dir *dir, const char *queue)
{
    return dir->n > 0 && bsearch(queue, dir->at, dir->n, sizeof(*dir->at), compare_file) != NULL;
}

static void scan(struct building *b, struct handler_dir *dir)
{
    struct err err = ERR_INIT;

    if (b->conf->handlers_dir[0] == '\0')
        return;
    if (handler_scan(b->conf->handlers_dir, how(b->conf), on_refused, b, dir, &err) < 0) {
        b->report(b->arg, b->conf->handlers_dir, err.text, false);
        b->out->is_incomplete = spawn_is_host_fault(err.errnum);
    } else if (err.code != ERR_NONE) {
        b->report(b->arg, b->conf->handlers_dir, err.text, true);
    }
}

static int compare(const void *a, const void *b)
{
    return strcmp(((const struct served_queue *)a)->name, ((const struct served_queue *)b)->name);
}

struct served *served_build(const struct conf *conf, char *const *env, served_report_f *report,
                            void *arg)
{
    struct building b = {conf, env, report, arg, mem_new(sizeof(struct served))};
    struct handler_dir dir = {0};

    scan(&b, &dir);
    for (size_t i = 0; i < dir.n; i++) {
        /* A handler that the configuration names for this queue takes the place of the file. */
        if (conf_queue(conf, dir.at[i].queue)->handler.n == 0)
            add(&b, dir.at[i].queue, &dir.at[i].path, 1);
    }
    for (size_t i = 0; i < conf->nqueues; i++) {
        if (conf->queues[i].handler.n > 0)
            add_configured(&b, &conf->queues[i]);
        else if (!has_file(&dir, conf->queues[i].name))
            report(arg, conf->queues[i].name,
                   "no handler: put an executable of that name into handlers_dir, or name one as "
                   "handler",
                   false);
    }
    handler_dir_done(&dir);
    if (b.out->n > 1)
        qsort(b.out->at, b.out->n, sizeof(*b.out->at), compare);
    return b.out;
}

bool served_equal(const struct served *a, const struct served *b)
{
    if (a == NULL || a->n != b->n)
        return false;
    for (size_t i = 0; i < a->n; i++) {
        if (strcmp(a->at[i].name, b->at[i].name) != 0)
            return false;
    }
    return true;
}

void served_free(struct served *s)
{
    if (s == NULL)
        return;
    for (size_t i = 0; i < s->n; i++) {
        mem_free_list(s->at[i].argv);
        mem_free_list(s->at[i].env);
        free(s->at[i].file);
    }
    free(s->at);
    free(s);
}

const struct served_queue *served_find(const struct served *s, const char *queue)
{
    struct served_queue key = {0};

    if (s->n == 0 || strlen(queue) >= sizeof(key.name))
        return NULL;
    memcpy(key.name, queue, strlen(queue));
    return bsearch(&key, s->at, s->n, sizeof(*s->at), compare);
}

/* ---- before any of it is built */

/* What *err says starts with the row it is about. */
static int blame(const struct conf *conf, const struct conf_queue *q, struct err *err)
{
    static const char *const rows[] = {"user", "group",   "env_file",
                                       "nice", "rlimits", "private_tmp"};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (strncmp(err->text, rows[i], strlen(rows[i])) == 0)
            return conf_blame(conf, q, rows[i], err);
    return -1;
}

static int check_one(const struct conf *conf, const struct conf_queue *q, char *const *env,
                     struct err *err)
{
    struct isolation unused;
    char **vars = NULL;

    if (q->mode != CONF_MODE_PLUGIN && isolate_queue(q, &unused, err) < 0)
        return blame(conf, q, err);
    vars = handler_env(q, env, err);
    mem_free_list(vars);
    return vars == NULL ? blame(conf, q, err) : 0;
}

int served_check(const struct conf *conf, char *const *env, struct err *err)
{
    if (check_one(conf, &conf->defaults, env, err) < 0)
        return -1;
    for (size_t i = 0; i < conf->nqueues; i++)
        if (check_one(conf, &conf->queues[i], env, err) < 0)
            return -1;
    return 0;
}
