/*
 * Makes a connection for the loop, on a thread of its own, since all of it would block: name
 * resolution, connecting, TLS, login; and, before a worker uses a server, its version, settings,
 * rights and function library. One at a time. If its owner is freed or cancels it, what is under
 * way finishes in the background and is dropped.
 */
#ifndef LATER_REDIS_PROBE_H
#define LATER_REDIS_PROBE_H

#include "base/error_class.h"
#include "loop/loop.h"
#include "redis/lib.h"
#include "redis/preflight.h"
#include "redis/url.h"

struct probe_result {
    enum error_class class; /* ERROR_CLASS_NONE: reachable, logged in, library there */
    char text[256];         /* why not */
    struct url url;         /* with the numeric address that answered, and the password */
    struct lib_state lib;
    char server[32];      /* redis_version */
    char replid[48];      /* master_replid; "" where the server does not tell */
    bool has_moved;       /* PROBE_MASTER: another server is named */
    bool is_promoted;     /* it was a replica once, and has taken over */
    bool has_failed_over; /* by the link: from the server of its last link */
    struct preflight preflight;
    struct wire *wire; /* connected and logged in; who takes it writes NULL here */
};

struct probe;
typedef void probe_f(void *arg, struct probe_result *result);

struct probe *probe_new(struct loop *loop, probe_f *cb, void *arg); /* NULL: no descriptor */
void probe_free(struct probe *p);
enum probe_what {
    PROBE_SERVER,   /* connect, and check the server for a worker of this namespace */
    PROBE_CONNECT,  /* only connect */
    PROBE_PASSWORD, /* only ask for the password */
    PROBE_MASTER,   /* only ask the sentinels of url whether name and port are still the master; or
                     * of a cluster's nodes whether they are still the owner's, and load the library
                     * on every primary */
};

/* Its result comes on the loop. If one is under way, do nothing. -1: no thread could be made. */
int probe_start(struct probe *p, enum probe_what what, const struct url *url, const char *ns,
                int64_t timeout_ms);
/* No result comes of the one that is under way. */
void probe_cancel(struct probe *p);

#endif
