/*
 * How the processes of each queue are started, as far as the configuration says it: users are
 * looked up, env_file is read and rights are looked at once for a configuration, so that a handlers
 * folder that changes reads none of it again, and what was in force stays so. Immutable. Main
 * thread.
 */
#ifndef LATER_SERVE_LAUNCHES_H
#define LATER_SERVE_LAUNCHES_H

#include "base/err.h"
#include "conf/conf.h"

struct launch {
    char **prefix; /* NULL-ended: what stands before the handler and its arguments
                      (run/isolation/isolation.h) */
    char **env;    /* NULL-ended "NAME=value": the same for each job */
};

struct launches;

/*
 * env: environ-like. NULL with code CONFIG: the first queue that cannot be as it says, and where it
 * says so. The configuration must outlive it.
 */
struct launches *launches_new(const struct conf *conf, char *const *env, struct err *err);
void launches_free(struct launches *s); /* NULL is fine */

/* Before the first process is started so: where some are to have cgroups, the daemon makes room for
 * them (run/isolation/cgroup.h). 0, or -1 with code CONFIG. */
int launches_enter(const struct launches *s, struct err *err);

/* q: of that configuration. */
const struct launch *launches_of(const struct launches *s, const struct conf_queue *q);

#endif
