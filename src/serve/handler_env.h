/*
 * The environment of a queue's handlers, as far as it is the same for each job; serve/invocation.h
 * adds the variables of a job. It has some variables of the service, those of `env_pass`, those of
 * the handler's user, then those of `env_file` and of `env`. If two have the same name, the later
 * one holds.
 */
#ifndef LATER_SERVE_HANDLER_ENV_H
#define LATER_SERVE_HANDLER_ENV_H

#include "base/err.h"
#include "conf/conf.h"
#include "serve/isolation_spec.h"

#define HANDLER_ENV_FILE_MAX 65536
/* Most bytes of all variables together. It is below the 128 KiB that execve allows for one string;
 * execve allows more for all together. */
#define HANDLER_ENV_MAX 98304

/* user: the handler's, NULL if it is the daemon's. Returns a NULL-ended list of "NAME=value"; free
 * it with mem_free_list. NULL with code CONFIG: env_file or a line of it cannot be used, or there
 * are too many bytes; *ret_path is the setting that is wrong. */
char **handler_env(const struct conf_queue *q, const struct isolation_user *user, char *const *env,
                   const char **ret_path, struct err *err);

#endif
