/*
 * Where the password of Redis is read: from the file that the configuration names, else from the
 * credential "redis-password" of the service manager (LoadCredential=, systemd.exec(5)).
 */
#ifndef LATER_DAEMON_PASSWORD_H
#define LATER_DAEMON_PASSWORD_H

#include "base/err.h"
#include "redis/url.h"

/* Takes the variable that names the folder of credentials: no handler is to be told of it, whatever
 * its env_pass says. Once, before any thread. */
void password_init(void);

/*
 * file: redis_password_file, "" for none. 1: url->password is set. 0: there is none, *url is as it
 * was. -1 with code CONFIG, DENIED or SYSTEM.
 */
int password_read(const char *file, struct url *url, struct err *err);

#endif
