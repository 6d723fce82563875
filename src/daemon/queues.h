/*
 * The queues this worker serves: when the first job of each is due, as far as we know, how many of
 * its jobs run here, and whose turn it is. Pure.
 *
 * Turns follow stride scheduling (Waldspurger and Weihl, 1995): each claim moves its queue back by
 * 1/weight, the queue that is furthest in front is named first.
 *
 * Those with room are kept in a heap by their heads: a plan costs by the queues that are due, each
 * event the logarithm of all; a sweep alone, and what says so, costs by all.
 */
#ifndef LATER_DAEMON_QUEUES_H
#define LATER_DAEMON_QUEUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/clock.h"
#include "store/store.h"

#define QUEUES_ERROR_MS 5000   /* a queue whose keys are broken is looked at again after this */
#define QUEUES_NAMED_ALWAYS 64 /* of more a sweep names each once in so many: */
#define QUEUES_LOOK_TURNS 16
#define QUEUES_HIT_SWEEPS 60 /* one in which a look found something is named in so many */

/* Which queues a step names: those that are due; all of a sweep; or those of a sweep that will not
 * do to be looked at (queues_to_look_at). */
enum queues_sweep { QUEUES_DUE, QUEUES_ALL, QUEUES_OTHERS };

struct queue_spec {
    const char *name;
    unsigned limit; /* jobs at once here */
    unsigned weight;
    int64_t max_payload;
};

struct queues;
struct queues *queues_new(void);
void queues_free(struct queues *qs);

/* Serve these from now on (sorted by name). What is known of a name that stays, stays. */
void queues_set(struct queues *qs, const struct queue_spec *specs, size_t n);
void queues_set_limit(struct queues *qs, const char *name, unsigned limit);
size_t queues_count(const struct queues *qs);
/* "mail,report" */
void queues_names(const struct queues *qs, struct buf *out);
bool queues_has(struct queues *qs, const char *name);

/* Something may be due: look. Outlives the heads of a step that was planned before. */
void queues_wake(struct queues *qs, const char *name);
/* Whatever was told of heads may be old. Each of few queues is taken for due until a step has named
 * it; of many, most of which are not, the sweep that has to follow tells, by its looks. */
void queues_forget_heads(struct queues *qs, bool may_look);
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
 * A sweep: the queues from *cursor on, due or not, those without room with 0; *cursor is moved on,
 * to 0 when its end was reached. At most `most` in all. Names live as long as the table is not set
 * anew. The rooms of a sweep may add up to more than `free`: the step itself must be told how many
 * it may claim.
 */
size_t queues_plan(struct queues *qs, struct mono now, unsigned free, enum queues_sweep sweep,
                   size_t *cursor, struct store_room *out, size_t most);

/*
 * Those of many that the next sweep need not name if they are looked at: in most there is nothing
 * to do. Not those that may be due, those in which the last looks found something, which is mostly
 * there for longer, and each at its turn: a look does not find a head that was lost in Redis.
 * -> how many names are in out, which has room for all queues
 */
size_t queues_to_look_at(const struct queues *qs, struct mono now, const char **out);
/* A look found something in it (any name, and again and again: they come from Redis). */
void queues_found(struct queues *qs, const char *name);

/* The step that was planned so has been answered: what it brought is claimed, the rest is free. Or
 * none of those under way will be. */
void queues_answered(struct queues *qs, const struct store_room *rooms, size_t n);
void queues_unanswered(struct queues *qs);

/* The heads that a step told (any number: they come from Redis), `now` being when its reply came.
 */
void queues_heads(struct queues *qs, const struct store_room *rooms, const int64_t *heads, size_t n,
                  int64_t now_us, struct mono now);
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
