/*
 * Is this server fit to hold jobs? Which of its settings can lose them, and which rights our user
 * lacks: checked before the first job is claimed, shown by `later health`, refused with `strict`.
 */
#ifndef LATER_REDIS_PREFLIGHT_H
#define LATER_REDIS_PREFLIGHT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "redis/client.h"

#define PREFLIGHT_MAX 10

struct preflight_finding {
    const char *check; /* eviction persistence disk memory replica cluster, info rights commands
                          acl; constant */
    char text[200];    /* what it means, and the cure */
};

struct preflight {
    struct preflight_finding at[PREFLIGHT_MAX];
    size_t n;
};

/* Append what the text of INFO (all default sections) shows to be wrong. Pure. */
void preflight_read(struct preflight *p, const char *info);

/* The same of the server of this address, and that it is a node of a cluster where the address
 * names it alone. Pure. */
void preflight_server(struct preflight *p, const char *info, const struct url *by);

/* Append that the library could not be loaded on a primary of the cluster. Pure. */
void preflight_not_loaded(struct preflight *p, const struct url *at, const char *why);

/* The value of a line "name:value" of INFO, cut to fit; "" when there is none. Pure. */
void preflight_value(const char *info, const char *name, char *ret, size_t size);

/* Append that the server does not tell its settings. Pure. */
void preflight_unknown(struct preflight *p);

/* Append the rights that this user lacks in the namespace, and the commands that the server has
 * renamed; the library must be there. Blocking.
 * 0, or -1 when the call failed. */
int preflight_rights(struct preflight *p, struct client *c, const char *ns, struct err *err);

/* Whether both found the same. */
bool preflight_equal(const struct preflight *a, const struct preflight *b);

#endif
