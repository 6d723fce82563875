/*
 * Where a Redis server is, as written in the configuration: redis://[USER@]HOST[:PORT][/DB] or
 * unix:[USER@]/PATH[?db=N]. unix://[USER@]/PATH[?db=N] is the same: so redis-py and go-redis write
 * it. Nothing is percent-decoded; a path has no question mark.
 *
 * A password must not be in a URL, which ps and logs show: USER:SECRET@… and ?password=… are
 * refused, and so is rediss:// (TLS); the errors tell what to do instead and show no secret.
 */
#ifndef LATER_REDIS_URL_H
#define LATER_REDIS_URL_H

#include <stdbool.h>

#include "base/err.h"

struct url {
    bool is_unix;
    char host[256]; /* name or address, without brackets; or the socket's path */
    int port;
    int db;
    char user[64];      /* "" for the default user */
    char password[512]; /* "" for none; from a file or the environment, never shown */
};

/* 0, or -1 with code CONFIG. The password is left empty. */
int url_parse(const char *text, struct url *ret, struct err *err);

/* Read the first line of the file, which must belong to us or root and give group and others no
 * rights. 0, or -1 with code CONFIG, DENIED or SYSTEM. */
int url_read_password(const char *path, struct url *url, struct err *err);

/* The same for a credential of the service manager, which may have group bits: they are the mask of
 * an access list, and that has nobody but the service in it. */
int url_read_credential(const char *path, struct url *url, struct err *err);

/* For messages: "redis at 127.0.0.1:6379" without secrets. */
const char *url_show(const struct url *url, char out[320]);

#endif
