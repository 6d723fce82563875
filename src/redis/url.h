/*
 * Where a Redis server is, as written in the configuration: redis://[USER@]HOST[:PORT][/DB],
 * the same with TLS as rediss://, or unix:[USER@]/PATH[?db=N]. unix://[USER@]/PATH[?db=N] is the
 * same: so redis-py and go-redis write it. Nothing is percent-decoded; a path has no question mark.
 * Or who knows where it is: sentinel://[USER@]HOST[:PORT],…/MASTER[/DB], with TLS to the sentinels
 * and to Redis sentinels://; the user is the one of Redis (redis/sentinel.h). Or nodes of a
 * cluster: cluster://[USER@]HOST[:PORT],…, with TLS clusters:// (redis/cluster.h).
 *
 * A password must not be in a URL, which ps and logs show: USER:SECRET@… and ?password=… are
 * refused; the errors tell what to do instead and show no secret.
 */
#ifndef LATER_REDIS_URL_H
#define LATER_REDIS_URL_H

#include <stdbool.h>

#include "base/err.h"

/* What TLS needs beside the address. "": not given. */
struct tls_settings {
    char ca[1024];   /* certificates of those who may sign: a file, or a folder of hashed names */
    char cert[1024]; /* our own, for a server that asks for one, with the chain */
    char key[1024];
    char name[256]; /* that the server's certificate has, where it is not the host's */
};

struct url;
/* Fetch the password that is valid now. Called on the thread that connects; may block. 1: set, 0:
 * there is no source, -1 with err. */
typedef int url_password_f(struct url *url, struct err *err);

#define URL_PORT 6379
#define URL_SENTINEL_PORT 26379
#define URL_LIST_MAX 512

struct url {
    bool is_unix;
    bool is_tls;
    struct tls_settings tls;
    char sentinels[URL_LIST_MAX]; /* HOST[:PORT],… to ask at each connect; then host is "" */
    char master[64];              /* what they call it */
    char nodes[URL_LIST_MAX];     /* of a cluster: the same; the owner of `slot` is wanted */
    unsigned slot;                /* of the namespace */
    char name[256]; /* the host as it was written; `host` may be replaced by its address */
    char host[256]; /* name or address, without brackets; or the socket's path */
    int port;
    int db;
    char user[64];                /* "" for the default user */
    char password[512];           /* "" for none; from a file or the environment, never shown */
    url_password_f *ask_password; /* NULL: password stays what it is */
};

/* AUTH with the user and password of url, for a call. The texts stay the url's. -> how many
 * arguments; 0: it has neither */
int url_login(const struct url *url, const char *argv[3]);
/* Take over user and password. */
void url_set_login(struct url *url, const struct url *from);

/* The settings of TLS, NULL or "" for those that are not given. 0, or -1 with code CONFIG where the
 * address is not rediss://, or a path is too long. */
int url_set_tls(struct url *url, const char *ca, const char *cert, const char *key,
                const char *name, struct err *err);

/* 0, or -1 with code CONFIG. The password is left empty. */
int url_parse(const char *text, struct url *ret, struct err *err);

/* Read the first line of the file, which must belong to us or root and give group and others no
 * rights. 0, or -1 with code CONFIG, DENIED or SYSTEM. */
int url_read_password(const char *path, struct url *url, struct err *err);

/* The same for a credential of the service manager, which may have group bits: they are the mask of
 * an access list, and that has nobody but the service in it. */
int url_read_credential(const char *path, struct url *url, struct err *err);

/* The namespace whose slot is wanted of a cluster. */
void url_set_namespace(struct url *url, const char *ns);

/* Must others be asked at each connect where the server is? */
bool url_is_guided(const struct url *url);

/* The next of a list HOST[:PORT],… into host (also as name) and port; *at moves behind it, and is
 * at the end of the list after the last one. 0, or -1 with code CONFIG. */
int url_next_host(const char **at, int default_port, struct url *ret, struct err *err);

/* How many a list has, and host i of it, as url_next_host. */
size_t url_list_count(const char *list);
int url_list_host(const char *list, size_t i, int default_port, struct url *ret, struct err *err);

/* For messages: "redis at 127.0.0.1:6379" without secrets. */
const char *url_show(const struct url *url, char out[320]);

#endif
