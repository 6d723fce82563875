/*
 * Who this process is among all processes of all hosts, and whether another one that wrote itself
 * down here is certainly gone.
 */
#ifndef LATER_WORKER_IDENTITY_H
#define LATER_WORKER_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "store/store.h"

struct identity {
    char host[256];
    char boot[40];  /* /proc/sys/kernel/random/boot_id */
    char pidns[32]; /* inode of the pid namespace: pids compare only inside one */
    char pid[16];
    char pstart[24];   /* start time of the process in clock ticks since boot */
    char instance[33]; /* random; one per process life */
};

void identity_read(struct identity *id);

/*
 * Same boot of the same host, same pid namespace, and no process with that pid and start time:
 * nobody who wrote that can still be alive. Anything less certain is false.
 */
bool identity_is_gone(const struct identity *me, const struct store_peer *peer);

#endif
