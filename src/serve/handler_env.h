/*
 * The environment of a queue's handlers, as far as it is the same for each job: some variables of
 * the service, those of `env_pass`, then what the handler's user has, `env_file` and `env`; of two
 * of one name the later one holds. What is told of a job comes behind it (serve/invocation.h).
 */
#ifndef LATER_SERVE_HANDLER_ENV_H
#define LATER_SERVE_HANDLER_ENV_H

#include "base/err.h"
#include "conf/conf.h"
#include "serve/isolation_spec.h"

#define HANDLER_ENV_FILE_MAX 65536
/* Bytes of all of them: one text of an execve has 128 KiB at most, all together more. */
#define HANDLER_ENV_MAX 98304

/* user: the handler's, NULL where it is the daemon's. "NAME=value", NULL-ended; mem_free_list. NULL
 * with code CONFIG: env_file, its line, or too many; *ret_path is the row that is to blame. */
char **handler_env(const struct conf_queue *q, const struct isolation_user *user, char *const *env,
                   const char **ret_path, struct err *err);

#endif
