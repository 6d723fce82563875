/*
 * Which queues this daemon serves, and with what: the handlers folder and the configuration joined.
 * Immutable once built; rebuilt whole when either changes. Main thread.
 */
#ifndef LATER_SERVE_SERVED_QUEUES_H
#define LATER_SERVE_SERVED_QUEUES_H

#include <stddef.h>

#include "conf/conf.h"
#include "serve/launches.h"

struct served_queue {
    char name[65];
    char **argv;      /* NULL-ended: the handler, which was checked, or what becomes it */
    char *file;       /* the handler's own */
    char *const *env; /* NULL-ended "NAME=value": the same for each job; of launches */
    const struct conf_queue *conf; /* of the conf it was built from */
};

struct served_queues {
    struct served_queue *at; /* sorted by name */
    size_t n;
    bool is_incomplete; /* the host was short of something: build it again soon */
};

/* Told what is not served, or served in spite of a warning, and why. is_warning: it is served. */
typedef void served_queues_report_f(void *arg, const char *what, const char *reason,
                                    bool is_warning);

/* launches: of that configuration; both must outlive it. Never fails: what cannot be served is
 * reported. */
struct served_queues *served_queues_build(const struct conf *conf, const struct launches *launches,
                                          served_queues_report_f *report, void *arg);
/* The same names? a may be NULL: no. */
bool served_queues_equal(const struct served_queues *a, const struct served_queues *b);
void served_queues_free(struct served_queues *s); /* NULL is fine */
const struct served_queue *served_queues_find(const struct served_queues *s, const char *queue);

#endif
