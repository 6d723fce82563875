/*
 * The queues that this daemon serves, and how: the handlers folder and the configuration joined.
 * Immutable once built; built anew when either changes. Main thread.
 */
#ifndef LATER_SERVE_SERVED_QUEUES_H
#define LATER_SERVE_SERVED_QUEUES_H

#include <stddef.h>

#include "conf/conf.h"
#include "serve/launches.h"

struct served_queue {
    char name[65];
    char **argv;      /* NULL-ended: the isolation prefix, if any, the handler, its arguments */
    char *file;       /* the path of the handler */
    char *const *env; /* NULL-ended "NAME=value": the same for each job; owned by launches */
    const struct conf_queue *conf; /* owned by the conf that it was built from */
};

struct served_queues {
    struct served_queue *at; /* sorted by name */
    size_t n;
    bool is_incomplete; /* the host was short of resources: build it again soon */
};

/* Called for each file or queue that is not served, and for each warning, with the reason.
 * is_warning: it is served in spite of it, or as soon as its handler is there. */
typedef void served_queues_report_f(void *arg, const char *what, const char *reason,
                                    bool is_warning);

/* launches: of the same configuration; both must outlive the result. Never fails: what cannot be
 * served is reported. */
struct served_queues *served_queues_build(const struct conf *conf, const struct launches *launches,
                                          served_queues_report_f *report, void *arg);
/* Do both have the same names? a may be NULL: no. */
bool served_queues_equal(const struct served_queues *a, const struct served_queues *b);
void served_queues_free(struct served_queues *s); /* NULL is fine */
/* NULL: the queue is not served. */
const struct served_queue *served_queues_find(const struct served_queues *s, const char *queue);

#endif
