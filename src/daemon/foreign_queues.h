/*
 * Delay queues of other programs that queues of this daemon adopt (`adopt` in the configuration):
 * when a member is due, this daemon asks Redis to make it a job (src/lua/calls/collect.lua). Every
 * daemon that adopts a queue does so, and a member becomes one job, whoever comes first.
 *
 * The next due time of each is known, and all are asked about once a second, since a member may
 * come at any time; with keyspace events at once. Where nothing is adopted, no command is sent. All
 * functions but foreign_queues_new take NULL. Main thread.
 */
#ifndef LATER_DAEMON_FOREIGN_QUEUES_H
#define LATER_DAEMON_FOREIGN_QUEUES_H

#include "loop/loop.h"
#include "redis/link.h"
#include "serve/served_queues.h"

struct foreign_queues;

/* answer_ms: how long an answer may take at most. NULL: no descriptors. */
struct foreign_queues *foreign_queues_new(struct loop *loop, struct link *link, const char *ns,
                                          int64_t answer_ms);
void foreign_queues_free(struct foreign_queues *f);

/* The queues that this daemon serves have changed, or their settings. Nothing of them is kept. */
void foreign_queues_set(struct foreign_queues *f, const struct served_queues *served);
void foreign_queues_registered(struct foreign_queues *f, int64_t epoch);
/* An answer tells the time of Redis. The more often, the more exact the next member is. */
void foreign_queues_note_time(struct foreign_queues *f, int64_t now_us);
/* A beat was answered: the link is up. */
void foreign_queues_beat(struct foreign_queues *f);
/* Redis says that this key has an earlier member, or a later one. */
void foreign_queues_changed(struct foreign_queues *f, const char *key);
/* Answers that have not come will not come. */
void foreign_queues_link_down(struct foreign_queues *f);
/* Take no more members: the daemon stops. */
void foreign_queues_stop(struct foreign_queues *f);

#endif
