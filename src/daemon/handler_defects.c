#include "daemon/handler_defects.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"

#define QUEUES_MAX 16
#define MODES_MAX 100
#define REASON_MAX 200 /* bytes */

void handler_defects_done(struct handler_defects *f)
{
    mem_free_list(f->found);
    mem_free_list(f->before);
    *f = (struct handler_defects){.nfound = 0};
}

void handler_defects_begin(struct handler_defects *f, bool is_news)
{
    mem_free_list(f->before);
    f->before = f->found;
    f->found = NULL;
    f->nfound = 0;
    if (is_news) {
        mem_free_list(f->before);
        f->before = NULL;
    }
}

static bool has(char *const *list, const char *what, const char *reason)
{
    for (; list != NULL && *list != NULL; list += 2) {
        if (strcmp(list[0], what) == 0 && strcmp(list[1], reason) == 0)
            return true;
    }
    return false;
}

void handler_defects_report(void *arg, const char *what, const char *reason, bool is_warning)
{
    struct handler_defects *f = arg;

    f->found = mem_grow(f->found, 2 * f->nfound + 3, sizeof(*f->found));
    f->found[2 * f->nfound] = mem_strdup(what);
    f->found[2 * f->nfound + 1] = mem_strdup(reason);
    f->found[2 * ++f->nfound] = NULL;
    /* A folder may change all the time, and what is wrong in it stays wrong. */
    if (has(f->before, what, reason))
        return;
    if (is_warning)
        log_warn("event=handler what=%s reason=\"%s\"", what, reason);
    else
        log_err("event=handler-refused what=%s reason=\"%s\"", what, reason);
}

static void put(struct buf *out, const char *queue, const char *reason)
{
    CLEANUP_BUF struct buf text = BUF_INIT;

    text_escape(&text, reason, strlen(reason));
    text_cut(&text, REASON_MAX);
    buf_printf(out, "%s %s\n", queue, buf_str(&text));
}

/* The queue that a name of a file or a queue stands for. False: none. */
static bool queue_of(const char *what, char queue[65])
{
    size_t n = strcspn(what, ".");

    if (!text_is_queue_name(what, n))
        return false;
    memcpy(queue, what, n);
    queue[n] = '\0';
    return true;
}

void handler_defects_tell(const struct handler_defects *f, struct runner *runner,
                          const struct served_queues *served, struct buf *out)
{
    size_t told = 0;
    char queue[65];

    for (size_t i = 0; i < f->nfound && told < QUEUES_MAX; i++) {
        if (!queue_of(f->found[2 * i], queue) || served_queues_find(served, queue) != NULL)
            continue;
        put(out, queue, f->found[2 * i + 1]);
        told++;
    }
    for (size_t i = 0; i < served->n && told < QUEUES_MAX; i++) {
        const char *why = runner_defect(runner, &served->at[i]);

        if (why == NULL)
            continue;
        put(out, served->at[i].name, why);
        told++;
    }
}

void handler_defects_modes(const struct served_queues *served, struct buf *out)
{
    size_t told = 0;

    for (size_t i = 0; i < served->n && told < MODES_MAX; i++) {
        const struct served_queue *q = &served->at[i];

        if (q->conf->mode == CONF_MODE_EXEC)
            continue;
        buf_printf(out, "%s%s=%s", told > 0 ? "," : "", q->name,
                   q->conf->mode == CONF_MODE_STREAM ? "stream" : "plugin");
        told++;
    }
}
