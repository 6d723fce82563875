#include "cli/args/queue_name.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ask/replies.h"
#include "base/cleanup.h"
#include "base/mem.h"
#include "base/text.h"
#include "cli/show/out.h"

enum { KNOWN, SERVED };

/* The nearest name of all queues, NULL: none is near. Points into stats. */
static const char *nearest(const char *queue, const struct reply *stats)
{
    const struct reply *rows = reply_at(stats, STATS_QUEUES);
    size_t n = reply_count(rows) / QUEUE_VALUES;
    CLEANUP_FREE const char **names = mem_new((n + 1) * sizeof(*names));

    for (size_t i = 0; i < n; i++)
        names[i] = reply_str(reply_at(rows, i * QUEUE_VALUES + QUEUE_NAME));
    return text_nearest(queue, names);
}

static int not_known(struct cli *cli, const char *queue, struct err *err)
{
    struct err ignored = ERR_INIT;
    struct reply *stats = ask_words(&cli->server, &ignored, "later_stats", NULL);
    const char *near = nearest(queue, stats);

    if (near != NULL)
        (void)err_set(err, ERR_INPUT, "there is no queue %.130s: did you mean %.100s?", queue,
                      near);
    else
        (void)err_set(err, ERR_INPUT,
                      "there is no queue %.130s: it never had a job, and no worker serves it",
                      queue);
    reply_free(stats);
    return -1;
}

int queue_name_check(struct cli *cli, const char *queue, struct err *err)
{
    struct err ignored = ERR_INIT;
    struct reply *r = ask_words(&cli->server, &ignored, "later_v1_known", queue, NULL);
    bool is_known = r == NULL || reply_int(reply_at(r, KNOWN)) == 1;

    reply_free(r);
    return is_known ? 0 : not_known(cli, queue, err);
}

/* The nearest queue that a live worker serves, which the caller frees; NULL: none is near. */
static char *nearest_served(struct cli *cli, const char *queue)
{
    struct ask_call call = {.n = 0};
    struct reply *r = ask_aside(&cli->server, "later_v1_workers", &call);
    CLEANUP_BUF struct buf list = BUF_INIT;
    const char **names;
    char *rest, *name, *near = NULL;
    size_t n = 0;

    for (size_t i = 1; i < reply_count(r); i++) {
        const struct reply *w = reply_at(r, i), *serves = reply_at(w, WORKER_SERVES);

        if (!reply_is(reply_at(w, WORKER_COUNTER), "dead"))
            buf_printf(&list, "%s,", reply_str(serves));
    }
    reply_free(r);
    names = mem_new((list.len + 2) * sizeof(*names));
    rest = buf_take(&list);
    for (char *at = rest; (name = strsep(&at, ",")) != NULL;) {
        if (name[0] != '\0')
            names[n++] = name;
    }
    if (text_nearest(queue, names) != NULL)
        near = mem_strdup(text_nearest(queue, names));
    free(names);
    free(rest);
    return near;
}

void queue_name_warn(struct cli *cli, const char *queue, const char *what)
{
    struct ask_call call = {.n = 0};
    struct reply *r;

    ask_call_puts(&call, queue);
    (void)out_flush();
    r = ask_aside(&cli->server, "later_v1_known", &call);
    if (r != NULL && reply_int(reply_at(r, SERVED)) == 0) {
        CLEANUP_FREE char *near = nearest_served(cli, queue);

        (void)fprintf(stderr, "later: no running worker serves queue %s: %s until one does%s%s%s\n",
                      queue, what, near != NULL ? "; did you mean " : "", near != NULL ? near : "",
                      near != NULL ? "?" : "");
    }
    reply_free(r);
}
