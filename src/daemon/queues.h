/*
 * The queues this worker serves: when the first job of each is due, as far as we know, how many of
 * its jobs run here, and whose turn it is. Pure.
 *
 * Turns follow stride scheduling (Waldspurger and Weihl, 1995): each claim moves its queue back by
 * 1/weight, the queue that is furthest in front is named first.
 *
 * Those with room are kept in a heap by their heads: a plan costs by the queues that are due, each
 * event the logarithm of all; what says so costs by all.
 */
#ifndef LATER_DAEMON_QUEUES_H
#define LATER_DAEMON_QUEUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/clock.h"
#include "store/store.h"

#define QUEUES_ERROR_MS 5000 /* a queue whose keys are broken is named again after this */

struct queue_spec {
    const char *name;
    unsigned limit; /* jobs at once here */
    unsigned weight;
    int64_t max_payload;
};

struct queues;
struct queues *queues_new(void);
void queues_free(struct queues *qs);

/* Serve these from now on (sorted by name). What is known of a name that stays, stays; of a new one
 * nothing is: it has to be looked at. */
void queues_set(struct queues *qs, const struct queue_spec *specs, size_t n);
void queues_set_limit(struct queues *qs, const char *name, unsigned limit);
size_t queues_count(const struct queues *qs);
/* Of the i-th, of queues_count; lives as long as the table is not set anew. */
const char *queues_name(const struct queues *qs, size_t i);
/* "mail,report" */
void queues_names(const struct queues *qs, struct buf *out);
bool queues_has(struct queues *qs, const char *name);

/* Something may be due: look. Outlives the heads of a step that was planned before. */
void queues_wake(struct queues *qs, const char *name);
/* A look found something in it (any name, and again and again: they come from Redis). */
void queues_found(struct queues *qs, const char *name);
/* A job of it came through a gate: when a gate opens by time, the next one may. */
void queues_gated(struct queues *qs, const char *name);
/* One opens: wake those that had a job through a gate in one of the last times. */
void queues_wake_gated(struct queues *qs);

void queues_claimed(struct queues *qs, const char *name);
void queues_ended(struct queues *qs, const char *name);
/* Count anew what runs here: after queues_clear, queues_took for each (its turn was taken before).
 */
void queues_clear(struct queues *qs);
void queues_took(struct queues *qs, const char *name);

/*
 * Whom to name in a step with `free` places: due queues with room in the order of their turns,
 * the places dealt out turn by turn, so that shares are those of the weights in any number of them.
 * Behind them, with `suspected`, those in which a suspect is suspected, due or not, those without
 * room with 0. At most `most` in all. Names live as long as the table is not set anew. The rooms
 * may add up to more than `free` then: the step itself must be told how many it may claim.
 */
size_t queues_plan(struct queues *qs, struct mono now, unsigned free, bool suspected,
                   struct store_room *out, size_t most);

/* The step that was planned so has been answered: what it brought is claimed, the rest is free. Or
 * none of those under way will be. */
void queues_answered(struct queues *qs, const struct store_room *rooms, size_t n);
void queues_unanswered(struct queues *qs);

/* The heads that a step told (any number: they come from Redis), `now` being when its reply came.
 */
void queues_heads(struct queues *qs, const struct store_room *rooms, const int64_t *heads, size_t n,
                  int64_t now_us, struct mono now);
/* A step that named these (any names) told that one of them, or none, has a suspect that is due. */
void queues_suspect(struct queues *qs, const struct store_room *rooms, size_t n, bool is_due);
size_t queues_suspected(const struct queues *qs); /* so many may have one */
void queues_failed(struct queues *qs, const char *name, struct mono now);
/* It was asked and gave nothing: if it is said to be due now, look again only after ms or a wake.
 */
void queues_defer(struct queues *qs, const char *name, struct mono now, int64_t ms);

/* The earliest head among queues with room; in the past when something may be due now. */
struct mono queues_next(const struct queues *qs);

/* How many queues all plans so far have looked at, for tests to hold against those that were due.
 */
uint64_t queues_looked_at(const struct queues *qs);

#endif
