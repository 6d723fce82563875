/*
 * From an address to a connected socket. Blocks: on the probe's thread or in the command only.
 */
#ifndef LATER_REDIS_DIAL_H
#define LATER_REDIS_DIAL_H

#include <stdbool.h>

#include "base/clock.h"
#include "base/err.h"
#include "redis/url.h"

#define DIAL_PEER_MAX 64

/*
 * Connect to the first address of the name that answers; each gets its share of the time. The
 * descriptor does not block and is closed in new processes. peer: the numeric address. -1 with code
 * UNAVAILABLE.
 */
int dial(const struct url *url, struct mono deadline, char peer[DIAL_PEER_MAX], struct err *err);

/* Wait until the descriptor is ready for these events of poll(2). False: the deadline is over. */
bool dial_wait(int fd, short events, struct mono deadline);

#endif
