/*
 * Where the password of Redis comes from, asked anew for each connection and every
 * redis_password_every: the output of a program, a file, or the credential "redis-password" of the
 * service manager (LoadCredential=, systemd.exec(5)).
 *
 * There is one server for a process, so this is one source for a process. Set it before any other
 * thread exists.
 */
#ifndef LATER_WORKER_PASSWORD_H
#define LATER_WORKER_PASSWORD_H

#include "base/err.h"
#include "redis/url.h"

/* Reads the variable that names the folder of credentials, and removes it from the environment, so
 * that no handler has it, whatever its env_pass says. */
void password_init(void);

/* file: redis_password_file, "" for none. command: redis_password_command, NULL-ended; NULL or
 * empty for none. Both are copied. */
void password_use(const char *file, char *const *command);

/*
 * As url_password_f; blocks for ten seconds at most. 1: url->password is set (and url->user, if the
 * program printed a second line). 0: there is no source, *url is unchanged. -1 with code CONFIG,
 * DENIED or SYSTEM.
 */
int password_ask(struct url *url, struct err *err);

#endif
