#include "serve/served_queues.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "run/handler/handler.h"
#include "run/process/spawn.h"

struct building {
    const struct conf *conf;
    const struct launches *launches;
    served_queues_report_f *report;
    void *arg;
    struct served_queues *out;
};

static enum handler_check how(const struct conf *conf)
{
    static const enum handler_check map[] = {HANDLER_CHECK_STRICT, HANDLER_CHECK_WARN,
                                             HANDLER_CHECK_OFF};

    return map[conf->check_permissions];
}

/* The isolation prefix, then the handler and its arguments. */
static char **join(char *const *prefix, char *const *argv, size_t argc)
{
    size_t n;
    char **all = mem_dup_list(prefix, argc, &n);

    for (size_t i = 0; i < argc; i++)
        all[n + i] = mem_strdup(argv[i]);
    return all;
}

/* May they be trusted, as handlers are? */
static bool has_fine_filters(const struct building *b, const char *queue,
                             const struct conf_queue *conf)
{
    for (size_t i = 0; i < conf->filters.n; i++) {
        CLEANUP_FREE char *path = launches_filter(b->conf, conf, i);
        struct err err = ERR_INIT;
        int rc = handler_check(path, how(b->conf), &err);

        if (err.code != ERR_NONE)
            b->report(b->arg, queue, err.text, rc == 0);
        if (rc < 0)
            return false;
    }
    return true;
}

static void add(struct building *b, const char *queue, char *const *argv, size_t argc)
{
    const struct conf_queue *conf = conf_queue(b->conf, queue);
    const struct launch *launch = launches_of(b->launches, conf);
    struct served_queues *s = b->out;
    struct served_queue *q;

    if (!has_fine_filters(b, queue, conf))
        return;
    s->at = mem_grow(s->at, s->n + 1, sizeof(*s->at));
    q = &s->at[s->n++];
    *q = (struct served_queue){.argv = join(launch->prefix, argv, argc),
                               .file = mem_strdup(argv[0]),
                               .env = launch->env,
                               .conf = conf};
    memcpy(q->name, queue, strlen(queue));
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

    static const char mark[] = "warning: ";
    bool is_warning = strncmp(reason, mark, sizeof(mark) - 1) == 0;

    b->report(b->arg, file, is_warning ? reason + sizeof(mark) - 1 : reason, is_warning);
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
        b->out->is_incomplete = spawn_is_host_ill(err.errnum);
    } else if (err.code != ERR_NONE) {
        b->report(b->arg, b->conf->handlers_dir, err.text, true);
    }
}

static int compare(const void *a, const void *b)
{
    return strcmp(((const struct served_queue *)a)->name, ((const struct served_queue *)b)->name);
}

/* The configuration may come before the handler: with the mode in force, the first start of the
 * handler is the right one. */
static void report_missing(const struct building *b, const char *queue)
{
    if (b->conf->handlers_dir[0] == '\0')
        b->report(b->arg, queue, "no handler, and no handlers_dir: name one as handler", false);
    else
        b->report(b->arg, queue,
                  "no handler yet: the queue is served when an executable of its name is in "
                  "handlers_dir, or when handler names one",
                  true);
}

struct served_queues *served_queues_build(const struct conf *conf, const struct launches *launches,
                                          served_queues_report_f *report, void *arg)
{
    struct building b = {conf, launches, report, arg, mem_new(sizeof(struct served_queues))};
    struct handler_dir dir = {0};

    scan(&b, &dir);
    for (size_t i = 0; i < dir.n; i++) {
        /* If the configuration names a handler for this queue, the file is not used. */
        if (conf_queue(conf, dir.at[i].queue)->handler.n == 0)
            add(&b, dir.at[i].queue, &dir.at[i].path, 1);
    }
    for (size_t i = 0; i < conf->nqueues; i++) {
        if (conf->queues[i].handler.n > 0)
            add_configured(&b, &conf->queues[i]);
        else if (!has_file(&dir, conf->queues[i].name))
            report_missing(&b, conf->queues[i].name);
    }
    handler_dir_done(&dir);
    if (b.out->n > 1)
        qsort(b.out->at, b.out->n, sizeof(*b.out->at), compare);
    return b.out;
}

bool served_queues_equal(const struct served_queues *a, const struct served_queues *b)
{
    if (a == NULL || a->n != b->n)
        return false;
    for (size_t i = 0; i < a->n; i++) {
        if (strcmp(a->at[i].name, b->at[i].name) != 0)
            return false;
    }
    return true;
}

void served_queues_free(struct served_queues *s)
{
    if (s == NULL)
        return;
    for (size_t i = 0; i < s->n; i++) {
        mem_free_list(s->at[i].argv);
        free(s->at[i].file);
    }
    free(s->at);
    free(s);
}

const struct served_queue *served_queues_find(const struct served_queues *s, const char *queue)
{
    struct served_queue key = {0};

    if (s->n == 0 || strlen(queue) >= sizeof(key.name))
        return NULL;
    memcpy(key.name, queue, strlen(queue));
    return bsearch(&key, s->at, s->n, sizeof(*s->at), compare);
}
