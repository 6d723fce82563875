/*
 * Which queues this daemon serves, and with what: the handlers folder and the configuration joined.
 * Immutable once built; rebuilt whole when either changes. Main thread.
 */
#ifndef LATER_DAEMON_SERVED_H
#define LATER_DAEMON_SERVED_H

#include <stddef.h>

#include "conf/conf.h"
#include "daemon/starts.h"

struct served_queue {
    char name[65];
    char **argv;      /* NULL-ended: the handler, which was checked, or what becomes it */
    char *file;       /* the handler's own */
    char *const *env; /* NULL-ended "NAME=value": the same for each job; of starts */
    const struct conf_queue *conf; /* of the conf it was built from */
};

struct served {
    struct served_queue *at; /* sorted by name */
    size_t n;
    bool is_incomplete; /* the host was short of something: build it again soon */
};

/* Told what is not served, or served in spite of a warning, and why. is_warning: it is served. */
typedef void served_report_f(void *arg, const char *what, const char *reason, bool is_warning);

/* starts: of that configuration; both must outlive it. Never fails: what cannot be served is
 * reported. */
struct served *served_build(const struct conf *conf, const struct starts *starts,
                            served_report_f *report, void *arg);
/* The same names? a may be NULL: no. */
bool served_equal(const struct served *a, const struct served *b);
void served_free(struct served *s); /* NULL is fine */
const struct served_queue *served_find(const struct served *s, const char *queue);

#endif
