/*
 * Who this process is among all processes of all hosts, and whether another one that wrote itself
 * down here lives, as far as this host can tell.
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
    struct origin_place place;
    char instance[33]; /* random; one per process life */
};

void identity_read(struct identity *id);

/*
 * GONE: same boot of the same host, same pid namespace, same user, and no process with that pid and
 * start time: nobody who wrote that can still be alive. STOPPED: it stands still (SIGSTOP).
 * ELSEWHERE: it cannot be told from here.
 */
enum identity_sight {
    IDENTITY_ELSEWHERE,
    IDENTITY_LIVES,
    IDENTITY_STOPPED,
    IDENTITY_GONE,
};
enum identity_sight identity_look(const struct identity *me, const struct store_peer *peer);
bool identity_is_gone(const struct identity *me, const struct store_peer *peer);
/* It ran before this boot of this host: nothing of it can be left. */
bool identity_is_of_other_boot(const struct identity *me, const struct store_peer *peer);

#endif
