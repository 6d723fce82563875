/*
 * The side of the worker: src/sched/ and the admission of serve/policy.c. Pure; each function is
 * one event or one decision of that machine.
 */
#ifndef MODEL_WORKER_H
#define MODEL_WORKER_H

#include "state.h"

/* The ways in which a handler may end. */
enum ending { SUCCEEDS, FAILS, IS_KILLED };

/* What a worker may send when it is ready and no call is under way. False: it has no reason to. */
bool worker_send_sync(const struct conf *c, struct state *s, unsigned w);
bool worker_send_beat(struct worker *w);
bool worker_send_reap(struct worker *w);
bool worker_send_leave(const struct conf *c, struct worker *w);

/* The link is up again: register, or send the beat that comes first. */
void worker_enter(const struct conf *c, struct worker *w);
/* The link broke, or a call was refused. What happened to the calls under way is unknown. */
void worker_trouble(const struct conf *c, struct worker *w);
/* The process has died, and all that it knew is lost. */
void worker_die(struct worker *w);

/* The worker's own beat or registration was executed: count once more which counters of others have
 * not moved. This happens when the answer is made, not when it arrives: nothing depends on it in
 * between, and if the answer is lost, worker_trouble drops the count. */
void worker_watch(const struct conf *c, struct state *s, unsigned w, uint8_t own_epoch);
/* Time passes (used only by the variant that counts silence in time). */
void worker_wait(const struct conf *c, struct worker *w);

/* The answer arrives. knows_dead: the host knows that its predecessor has died. */
void worker_deliver(const struct conf *c, struct state *s, unsigned w, bool knows_dead);
/* Is there a predecessor whose death the host could know? */
bool worker_has_predecessor(const struct state *s, unsigned w);

bool worker_end(const struct conf *c, struct state *s, unsigned w, unsigned j, enum ending how);
bool worker_end_lost(struct worker *w, unsigned j);

/* Does the worker hold this job, as far as it knows? */
bool worker_holds(const struct worker *w, unsigned j);

#endif
