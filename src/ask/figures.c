#include "ask/figures.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"

#define PAGES_MAX 100000 /* a cursor that runs in a circle would make us ask for ever */

/* later_v1_metrics: the elements of its reply. */
enum { NOW, CURSOR, RUNNING, RECORDS, QUEUES, COUNTERS, MORE };

/* The elements of a queue behind its name, and of MORE. */
#define OF_QUEUE (FIGURE_CANCELLED + 1)
enum { MORE_PARKED, MORE_ADOPTED = 3, MORE_TENANTS };

/* Read a negative or huge number as 0: somebody overwrote the field. */
static int64_t count_of(const struct reply *r)
{
    int64_t n = reply_int(r);

    return n > 0 && n < INT64_MAX / 64 ? n : 0;
}

/* How long ago this instant is; 0 for none. */
static int64_t age_of(const struct reply *r, int64_t now_ms)
{
    int64_t at = reply_int(r);

    return reply_kind(r) == REPLY_INT && at < now_ms ? now_ms - at : 0;
}

static void take_queue(struct figures *f, const struct reply *r, const struct reply *more)
{
    struct queue_figures *q;

    if (reply_count(r) != 1 + OF_QUEUE ||
        !text_is_queue_name(reply_str(reply_at(r, 0)), reply_len(reply_at(r, 0))))
        return;
    f->queues = mem_grow(f->queues, f->n + 1, sizeof(*f->queues));
    q = &f->queues[f->n++];
    *q = (struct queue_figures){.name = ""};
    text_copy(q->name, sizeof(q->name), reply_str(reply_at(r, 0)));
    for (size_t i = 0; i < OF_QUEUE; i++)
        q->value[i] = count_of(reply_at(r, 1 + i));
    q->value[FIGURE_OLDEST_DUE] = age_of(reply_at(r, 1 + FIGURE_OLDEST_DUE), f->now_ms);
    q->value[FIGURE_OLDEST_PARKED] = age_of(reply_at(more, MORE_PARKED), f->now_ms);
    q->value[FIGURE_ADOPTED] = count_of(reply_at(more, MORE_ADOPTED));
    q->value[FIGURE_TENANTS] = count_of(reply_at(more, MORE_TENANTS));
    q->is_fair = reply_kind(reply_at(more, MORE_TENANTS)) == REPLY_INT;
}

/* Read one page at cursor, and set cursor to the next page. The first page also brings the counters
 * of all queues together. */
static int take_page(struct figures *f, struct ask_server *s, char cursor[32], struct err *err)
{
    bool is_first = strcmp(cursor, "0") == 0;
    struct reply *r =
        ask_words(s, err, "later_v1_metrics", cursor, is_first ? "retried" : NULL, "unheard", NULL);

    if (r == NULL)
        return -1;
    f->now_ms = reply_int(reply_at(r, NOW));
    for (size_t i = 0; i < reply_count(reply_at(r, QUEUES)); i++)
        take_queue(f, reply_at(reply_at(r, QUEUES), i), reply_at(reply_at(r, MORE), i));
    if (is_first) {
        f->retried = count_of(reply_at(reply_at(r, COUNTERS), 0));
        f->unheard = count_of(reply_at(reply_at(r, COUNTERS), 1));
    }
    f->running = reply_int(reply_at(r, RUNNING));
    f->records = reply_int(reply_at(r, RECORDS));
    text_copy(cursor, 32, reply_str(reply_at(r, CURSOR)));
    reply_free(r);
    return 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct queue_figures *)a)->name, ((const struct queue_figures *)b)->name);
}

/* Sort the queues and drop duplicates. A set that grows or shrinks meanwhile returns some queues
 * twice, but Prometheus refuses a series that occurs twice. */
static void sort_queues(struct figures *f)
{
    size_t kept = 0;

    if (f->n > 1)
        qsort(f->queues, f->n, sizeof(*f->queues), by_name);
    for (size_t i = 0; i < f->n; i++) {
        if (kept == 0 || strcmp(f->queues[kept - 1].name, f->queues[i].name) != 0)
            f->queues[kept++] = f->queues[i];
    }
    f->n = kept;
}

int figures_read(struct figures *f, struct ask_server *s, struct err *err)
{
    char cursor[32] = "0";
    int pages = 0;

    *f = (struct figures){.n = 0};
    do {
        if (take_page(f, s, cursor, err) < 0)
            return -1;
        if (++pages == PAGES_MAX || cursor[0] == '\0')
            return err_set(err, ERR_DATA, "the list of queues does not end");
    } while (strcmp(cursor, "0") != 0);
    sort_queues(f);
    return 0;
}

void figures_done(struct figures *f)
{
    free(f->queues);
    *f = (struct figures){.n = 0};
}
