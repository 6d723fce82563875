/*
 * Identifies this process among all processes of all hosts. Also tells whether another worker
 * lives, as far as this host can tell from what that worker wrote into Redis.
 */
#ifndef LATER_WORKER_IDENTITY_H
#define LATER_WORKER_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "run/process/origin.h"
#include "store/store.h"

struct identity {
    char host[256];
    char boot[40]; /* /proc/sys/kernel/random/boot_id */
    struct origin_process process;
    char instance[33]; /* random; one per process life */
};

/* Fill in the identity of this process. A field that cannot be read stays empty; host:
 * "unknown". */
void identity_read(struct identity *id);

/*
 * GONE: same boot of the same host, same pid namespace, same user, and no process with that pid and
 * start time: the worker cannot be alive any more. STOPPED: it was stopped by a signal (SIGSTOP).
 * ELSEWHERE: this host cannot tell.
 */
enum identity_sight {
    IDENTITY_ELSEWHERE,
    IDENTITY_LIVES,
    IDENTITY_STOPPED,
    IDENTITY_GONE,
};
enum identity_sight identity_see(const struct identity *me, const struct store_peer *peer);
bool identity_is_gone(const struct identity *me, const struct store_peer *peer);
/* It ran before this boot of a host with our name: nothing of it can be left here. */
bool identity_is_of_other_boot(const struct identity *me, const struct store_peer *peer);

#endif
