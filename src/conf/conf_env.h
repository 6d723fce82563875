/*
 * The environment's settings: which row of which scope each LATERD_ name means. Values are not read
 * here. LATERD_CONFIG, which names the file, is skipped; any other unknown name is refused.
 */
#ifndef LATER_CONF_CONF_ENV_H
#define LATER_CONF_CONF_ENV_H

#include <stddef.h>

#include "base/err.h"
#include "conf/conf.h"
#include "conf/conf_errors.h"
#include "conf/conf_row.h"

enum conf_scope {
    CONF_SCOPE_TOP,
    CONF_SCOPE_DEFAULTS,
    CONF_SCOPE_QUEUE,
    CONF_SCOPE_LIMIT,
    CONF_SCOPE_SCHEDULE
};

struct conf_env_setting {
    char *name;        /* owned */
    const char *value; /* within the environ given */
    enum conf_scope scope;
    size_t index; /* with CONF_SCOPE_QUEUE into conf->queues, with CONF_SCOPE_LIMIT into limits */
    const struct conf_row *row;
};

struct conf_env {
    struct conf_env_setting *at;
    size_t n;
};

/*
 * Find out what env (NULL: nothing) sets; conf needs only the names of its queues and limits. only:
 * the settings of the daemon to be looked for (NULL-ended), others are passed over; NULL: all. 0,
 * or -1 with code CONFIG for a name that means nothing or more than one thing; with errors these
 * get it, and the result is 0. Free *ret in any case.
 */
int conf_env_read(char *const *env, const struct conf *conf, const char *const *only,
                  struct conf_errors *errors, struct conf_env *ret, struct err *err);
void conf_env_done(struct conf_env *env);

#endif
