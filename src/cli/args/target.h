/*
 * Which Redis server and namespace a command means, and who said so.
 *
 * In this order: --redis URL or --config FILE; LATER_REDIS_URL; ~/.config/later.yaml; the daemon's
 * file (or what LATERD_CONFIG names) with its LATERD_ variables; redis://127.0.0.1:6379. A server
 * named by URL brings nothing along: its namespace is --namespace, LATER_NAMESPACE or `default`,
 * its password REDISCLI_AUTH. A file brings its namespace (LATER_NAMESPACE wins unless the file was
 * named by --config) and its password file (REDISCLI_AUTH wins).
 */
#ifndef LATER_CLI_ARGS_TARGET_H
#define LATER_CLI_ARGS_TARGET_H

#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "redis/url.h"

struct target_flags {
    const char *redis, *config, *ns; /* NULL: not given */
};

struct target {
    struct url url;
    char ns[65];
    char from[4200]; /* "from /etc/laterd/laterd.yaml" */
    int64_t timeout_ms;
};

/* 0, or -1 with code USAGE (flags that contradict), CONFIG, INPUT (--config: no such file), DENIED.
 */
int target_find(const struct target_flags *flags, struct target *ret, struct err *err);

/* Append "redis at 127.0.0.1:6379 (from /etc/laterd/laterd.yaml)". */
void target_show(const struct target *t, struct buf *out);

#endif
