/*
 * The queues that this worker serves: when the first job of each is due, as far as is known, how
 * many of its jobs run here, and which queue is next. Functions ignore the name of a queue that is
 * not served. Pure.
 *
 * Turns follow stride scheduling (Waldspurger and Weihl, 1995): each claim moves its queue back by
 * 1/weight, and the queue that is furthest in front is named first.
 *
 * Queues with room are kept in a heap by their heads. Cost: a plan O(due queues), an event O(log
 * n), queues_set and queues_clear O(n).
 */
#ifndef LATER_SCHED_QUEUES_H
#define LATER_SCHED_QUEUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/clock.h"
#include "store/store.h"

#define QUEUES_ERROR_MS 5000 /* a queue whose keys are broken is named again after this */

struct queue_spec {
    const char *name;
    unsigned max_at_once; /* so many jobs of it may run here at once */
    unsigned weight;
    int64_t max_payload;
    bool is_fair; /* its tenants take turns */
};

struct queues;
struct queues *queues_new(void);
void queues_free(struct queues *qs);

/* Serve these queues (sorted by name) from now on. A queue that was served before keeps what is
 * known of it; a new one has to be looked at. */
void queues_set(struct queues *qs, const struct queue_spec *specs, size_t n);
void queues_set_max_at_once(struct queues *qs, const char *name, unsigned n);
size_t queues_count(const struct queues *qs);
/* i < queues_count. The name lives until the next queues_set. */
const char *queues_name(const struct queues *qs, size_t i);
/* "mail,report" */
void queues_names(const struct queues *qs, struct buf *out);
bool queues_has(struct queues *qs, const char *name);

/* A job of the queue may be due. A sync that was planned before does not answer this. */
void queues_wake(struct queues *qs, const char *name);
/* A look found something in the queue. Any name, any number of times: they come from Redis. */
void queues_found(struct queues *qs, const char *name);
/* A job of the queue passed a gate: when a gate opens by time, another may pass. */
void queues_gated(struct queues *qs, const char *name);
/* A gate opens: wake the queues of which a job passed a gate lately. */
void queues_wake_gated(struct queues *qs);

/* Do the tenants of this queue take turns? */
bool queues_is_fair(struct queues *qs, const char *name);
/* A job of the queue was claimed, or has ended. */
void queues_claimed(struct queues *qs, const char *name);
void queues_ended(struct queues *qs, const char *name);
/* Count the running jobs again: queues_clear, then queues_took for each of them. */
void queues_clear(struct queues *qs);
void queues_took(struct queues *qs, const char *name);

/*
 * The queues that a sync with `free` places names: the due ones with room, in the order of their
 * turns. Places are dealt out turn by turn, so the shares are those of the weights. With
 * `suspected` the queues that may have a suspect follow, due or not; a queue without room gets 0.
 * The rooms may then add up to more than `free`: the sync must be told how many jobs it may claim.
 * Names live until the next queues_set. -> how many queues, `most` at most
 */
size_t queues_plan(struct queues *qs, struct mono now, unsigned free, bool suspected,
                   struct store_room *out, size_t most);

/* The sync with these rooms was answered: places that it did not use are free. queues_unanswered:
 * no sync under way will be answered. */
void queues_answered(struct queues *qs, const struct store_room *rooms, size_t n);
void queues_unanswered(struct queues *qs);

/* The heads that a sync told; any number, since they come from Redis. now: when its reply came. */
void queues_heads(struct queues *qs, const struct store_room *rooms, const int64_t *heads, size_t n,
                  int64_t now_us, struct mono now);
/* A sync that named these queues told whether one of them has a suspect that is due. */
void queues_suspect(struct queues *qs, const struct store_room *rooms, size_t n, bool is_due);
size_t queues_suspected(const struct queues *qs); /* queues that may have a suspect */
/* A key of the queue is broken: name it again after QUEUES_ERROR_MS. */
void queues_failed(struct queues *qs, const char *name, struct mono now);
/* A due queue gave no job: do not name it again before a wake, or before ms have passed. */
void queues_defer(struct queues *qs, const char *name, struct mono now, int64_t ms);

/* The earliest head among queues with room; in the past when something may be due now. */
struct mono queues_next(const struct queues *qs);

/* How many queues all plans so far have checked. For tests: no more than were due. */
uint64_t queues_examined(const struct queues *qs);

#endif
