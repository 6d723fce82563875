/*
 * How the processes of each queue are started, as far as the configuration says it: users are
 * looked up, env_file is read and rights are looked at once for a configuration, so that a handlers
 * folder that changes reads none of it again, and what was in force stays so. Immutable. Main
 * thread.
 */
#ifndef LATER_DAEMON_STARTS_H
#define LATER_DAEMON_STARTS_H

#include "base/err.h"
#include "conf/conf.h"

struct start {
    char **
        prefix; /* NULL-ended: what stands before the handler and its arguments (run/isolation.h) */
    char **env; /* NULL-ended "NAME=value": the same for each job */
};

struct starts;

/*
 * env: environ-like. NULL with code CONFIG: the first queue that cannot be as it says, and where it
 * says so. The configuration must outlive it.
 */
struct starts *starts_new(const struct conf *conf, char *const *env, struct err *err);
void starts_free(struct starts *s); /* NULL is fine */

/* Before the first process is started so: where some are to have cgroups, the daemon makes room for
 * them (run/cgroup.h). 0, or -1 with code CONFIG. */
int starts_enter(const struct starts *s, struct err *err);

/* q: of that configuration. */
const struct start *starts_of(const struct starts *s, const struct conf_queue *q);

#endif
