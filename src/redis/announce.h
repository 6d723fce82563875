/* Where servers are reached from here, if not where sentinels or a cluster say: the setting
 * `announce`. */
#ifndef LATER_REDIS_ANNOUNCE_H
#define LATER_REDIS_ANNOUNCE_H

#include "redis/url.h"

#define ANNOUNCE_PLACE_MAX 280

/* Before the first connect, on one thread. pairs: NULL, or a NULL-ended list of FROM=TO, each
 * HOST:PORT. It is copied. 0, or -1 with code CONFIG, and all is as before. */
int announce_use(char *const *pairs, struct err *err);

/* Write where it can be reached from here into host, name and port. */
void announce_translate(struct url *url);

/* "HOST:PORT", as it stands in such a list. */
const char *announce_place(const struct url *url, char out[ANNOUNCE_PLACE_MAX]);

#endif
