/*
 * Where a Redis server is, as written in the configuration: redis://[USER@]HOST[:PORT][/DB] or
 * unix:PATH[?db=N]. rediss:// is refused with the recipe. Passwords never stand in a URL (it is
 * shown by ps and in logs): redis://USER:SECRET@… is refused with the cure.
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

/* First line of the file, which must be ours or root's and not readable by others; code CONFIG or
 * DENIED. */
int url_read_password(const char *path, struct url *url, struct err *err);

/* The same of a credential of the service manager: what looks like the rights of a group is the
 * mask of an access list there, in which nobody but the service stands. */
int url_read_credential(const char *path, struct url *url, struct err *err);

/* For messages: "redis at 127.0.0.1:6379" without secrets. */
const char *url_show(const struct url *url, char out[320]);

#endif
