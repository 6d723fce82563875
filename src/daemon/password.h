/*
 * Reads the password of Redis: from the file that the configuration names, else from the credential
 * "redis-password" of the service manager (LoadCredential=, systemd.exec(5)).
 */
#ifndef LATER_DAEMON_PASSWORD_H
#define LATER_DAEMON_PASSWORD_H

#include "base/err.h"
#include "redis/url.h"

/* Reads the variable that names the folder of credentials, and removes it from the environment, so
 * that no handler has it, whatever its env_pass says. Call it once, before any thread exists. */
void password_init(void);

/*
 * file: redis_password_file, "" for none. 1: url->password is set. 0: there is none, *url is
 * unchanged. -1 with code CONFIG, DENIED or SYSTEM.
 */
int password_read(const char *file, struct url *url, struct err *err);

#endif
