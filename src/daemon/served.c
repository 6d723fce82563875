#include "daemon/served.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
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

/* ---- the environment */

static bool passes(const struct conf_queue *conf, const char *entry, size_t name_len)
{
    static const char *const always[] = {"PATH", "HOME", "USER", "LANG", "TZ"};

    for (size_t i = 0; i < sizeof(always) / sizeof(always[0]); i++) {
        if (strlen(always[i]) == name_len && memcmp(entry, always[i], name_len) == 0)
            return true;
    }
    for (size_t i = 0; i < conf->env_pass.n; i++) {
        const char *pattern = conf->env_pass.at[i];
        size_t n = strlen(pattern);

        if (n > 0 && pattern[n - 1] == '*' ? name_len >= n - 1 && memcmp(entry, pattern, n - 1) == 0
                                           : name_len == n && memcmp(entry, pattern, n) == 0)
            return true;
    }
    return false;
}

/* Never passed on, whatever a pattern says: they are the daemon's own or made for each job. */
static bool is_ours(const char *entry)
{
    return strncmp(entry, "LATER_", 6) == 0 || strncmp(entry, "LATERD_", 7) == 0;
}

static char **base_env(const struct conf_queue *conf, char *const *env)
{
    char **out = NULL;
    size_t n = 0;
    bool has_path = false;

    for (; *env != NULL; env++) {
        size_t name_len = strcspn(*env, "=");

        if ((*env)[name_len] != '=' || is_ours(*env) || !passes(conf, *env, name_len))
            continue;
        has_path = has_path || (name_len == 4 && memcmp(*env, "PATH", 4) == 0);
        out = mem_grow(out, n + 3, sizeof(*out));
        out[n++] = mem_strdup(*env);
    }
    out = mem_grow(out, n + 2, sizeof(*out));
    if (!has_path)
        out[n++] = mem_strdup("PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
    out[n] = NULL;
    return out;
}

/* ---- the queues */

static void add(struct building *b, const char *queue, char *const *argv, size_t argc)
{
    struct served *s = b->out;
    struct served_queue *q;

    s->at = mem_grow(s->at, s->n + 1, sizeof(*s->at));
    q = &s->at[s->n++];
    memset(q, 0, sizeof(*q));
    memcpy(q->name, queue, strlen(queue));
    q->conf = conf_queue(b->conf, queue);
    q->argv = mem_new((argc + 1) * sizeof(*q->argv));
    for (size_t i = 0; i < argc; i++)
        q->argv[i] = mem_strdup(argv[i]);
    q->env = base_env(q->conf, b->env);
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
