/*
 * How the processes of each queue are started, as far as the configuration says it. Users are
 * looked up, env_file is read and rights are checked once for each configuration. A change of the
 * handlers folder reads none of it again, so what was in force stays in force. Immutable. Main
 * thread.
 */
#ifndef LATER_SERVE_LAUNCHES_H
#define LATER_SERVE_LAUNCHES_H

#include "base/err.h"
#include "conf/conf.h"
#include "conf/conf_errors.h"

struct launch {
    char **prefix; /* NULL-ended: what stands before the handler and its arguments
                      (run/isolation/isolation.h) */
    char **env;    /* NULL-ended "NAME=value": the same for each job */
};

struct launches;

/*
 * env: environ-like. NULL with code CONFIG: err names the first queue whose settings cannot be
 * used, and where they are written. The configuration must outlive the result.
 */
struct launches *launches_new(const struct conf *conf, char *const *env, struct err *err);
void launches_free(struct launches *s); /* NULL is fine */
/* Append the errors of all queues for which launches_new fails; those that a queue has from the
 * defaults once. */
void launches_find_errors(const struct conf *conf, char *const *env, struct conf_errors *ret);

/* Call it before the first process is started in this way. If handlers are to have cgroups, the
 * daemon moves out of their way (run/isolation/cgroup.h). 0, or -1 with code CONFIG. */
int launches_enter(const struct launches *s, struct err *err);

/* The path of a filter of this queue. The caller frees it. */
char *launches_filter(const struct conf *conf, const struct conf_queue *q, size_t i);

/* q: a queue of the same configuration, or its defaults. Owned by s. */
const struct launch *launches_of(const struct launches *s, const struct conf_queue *q);

#endif
