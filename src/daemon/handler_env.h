/*
 * The environment of a queue's handlers, as far as it is the same for each job: some variables of
 * the service, those of `env_pass`, then what the handler's user has, `env_file` and `env`; of two
 * of one name the later one holds. What is told of a job comes behind it (daemon/order.h).
 */
#ifndef LATER_DAEMON_HANDLER_ENV_H
#define LATER_DAEMON_HANDLER_ENV_H

#include "base/err.h"
#include "conf/conf.h"

#define HANDLER_ENV_FILE_MAX 65536
#define HANDLER_ENV_MAX                                                                            \
    98304 /* bytes of all of them: one execve takes 128 KiB in a text, more in all */

/* "NAME=value", NULL-ended; mem_free_list. NULL with code CONFIG: env_file, its line, or user. */
char **handler_env(const struct conf_queue *q, char *const *env, struct err *err);

#endif
