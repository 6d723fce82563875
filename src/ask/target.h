/*
 * Which Redis server and namespace a command uses, and which source named them.
 *
 * The first of these names the server: --redis URL or --config FILE; LATER_REDIS_URL;
 * ~/.config/later.yaml; the daemon's file (or the one that LATERD_CONFIG names) with its LATERD_
 * variables; redis://127.0.0.1:6379. With a URL, the namespace is --namespace, LATER_NAMESPACE or
 * `default`, and the password is REDISCLI_AUTH. A file also sets the namespace (--namespace wins;
 * LATER_NAMESPACE wins unless --config named the file), and the password file or command
 * (REDISCLI_AUTH wins) and the files of TLS. For rediss://, --tls-ca and the others, and then
 * LATER_TLS_CA and the others, win over what a file says. Who the sentinels know us as, with a URL,
 * is LATER_SENTINEL_USER and LATER_SENTINEL_PASSWORD_FILE.
 *
 * How many shards the namespace is cut into: --shards; LATER_SHARDS beside LATER_NAMESPACE; what
 * the file says beside its own namespace. Another namespace, such as that of one shard, is whole.
 */
#ifndef LATER_ASK_TARGET_H
#define LATER_ASK_TARGET_H

#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/shard.h"
#include "redis/url.h"

struct target_flags {
    const char *redis, *config, *ns, *shards; /* NULL: not given */
    const char *tls_ca, *tls_cert, *tls_key, *tls_name;
};

struct target {
    struct url url;
    char ns[SHARD_ROOT_MAX]; /* the text between the braces of all keys */
    char base[65];           /* the namespace: ns, or what the shards of this target are cut from */
    int shards;              /* 0: it is whole */
    char from[4200];         /* "from /etc/laterd/laterd.yaml" */
    int64_t timeout_ms;
    int64_t password_every_ms; /* how often a program that stays connected asks for it; 0: never */
    struct err warning;        /* what else is wrong with the file; code NONE: nothing */
};

/* 0, or -1 with code USAGE (contradicting flags, a bad namespace), CONFIG, INPUT (--config or
 * LATERD_CONFIG: no such file), DENIED. */
int target_find(const struct target_flags *flags, struct target *ret, struct err *err);

/* Mean this shard of a target that has some: its keys, and its slot of a cluster. */
void target_use_shard(struct target *t, int shard);

/* The user of Redis that we are: "default" where none was named. */
const char *target_user(const struct target *t);

/* Append "redis at 127.0.0.1:6379 (from /etc/laterd/laterd.yaml)". */
void target_show(const struct target *t, struct buf *out);

#endif
