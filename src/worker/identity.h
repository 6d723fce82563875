/*
 * Who this process is among all processes of all hosts, and whether another one that wrote itself
 * down here lives, as far as this host can tell.
 */
#ifndef LATER_WORKER_IDENTITY_H
#define LATER_WORKER_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "store/store.h"

struct identity {
    char host[256];
    char boot[40]; /* /proc/sys/kernel/random/boot_id */
    /* Which processes it sees and may look at: the inode of its pid namespace, since pids compare
     * only inside one, its user, and + if it may become others ("4026531836.1000"). */
    char pidns[48];
    char pid[16];
    char pstart[24];   /* start time of the process in clock ticks since boot */
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

/* LATER_WORKER of what a worker starts, by which it is found when that is gone (run/fenced.h). */
#define IDENTITY_MARK 96
void identity_mark(const struct store_peer *peer, char out[IDENTITY_MARK]);
void identity_own_mark(char out[IDENTITY_MARK]);

#endif
