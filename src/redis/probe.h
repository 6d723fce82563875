/*
 * Does what would block before a connection, on a thread of its own: name resolution, login,
 * version, settings, rights, the function library. One probe at a time. If its owner is freed, a
 * probe under way finishes in the background and its result is dropped.
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
    struct url url;         /* with the numeric address that answered */
    struct lib_state lib;
    char server[32]; /* redis_version */
    struct preflight preflight;
};

struct probe;
typedef void probe_f(void *arg, const struct probe_result *result);

struct probe *probe_new(struct loop *loop, probe_f *cb, void *arg); /* NULL: no descriptor */
void probe_free(struct probe *p);
/* Start one for this namespace; its result comes on the loop. If one is under way, do nothing. -1:
 * no thread could be made. */
int probe_start(struct probe *p, const struct url *url, const char *ns, int64_t timeout_ms);

#endif
