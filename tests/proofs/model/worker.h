/*
 * The side of the worker: src/sched/ and the admission of serve/policy.c.
 * Pure; each function is one event or one decision of that machine.
 */
#ifndef MODEL_WORKER_H
#define MODEL_WORKER_H

#include "state.h"

/* Every way a handler may end. */
enum ending { SUCCEEDS, FAILS, IS_KILLED };

/* What it may do when it is ready and no call is out; false: there is no cause for it. */
bool worker_send_step(const struct conf *c, struct state *s, unsigned w);
bool worker_send_beat(struct worker *w);
bool worker_send_reap(struct worker *w);
bool worker_send_leave(const struct conf *c, struct worker *w);

/* The link is up again: register, or the beat that comes first. */
void worker_enter(const struct conf *c, struct worker *w);
/* The link broke, or a call was refused. What was out is unknown. */
void worker_trouble(const struct conf *c, struct worker *w);
/* Its process is gone, and with it all that it knew. */
void worker_die(struct worker *w);

/* Its own beat or registration was executed: one more look at the others' counters. The look is
 * taken when the answer is made; until it arrives nothing asks what came of it, and if it is lost
 * so is the look (worker_trouble). */
void worker_look(const struct conf *c, struct state *s, unsigned w, uint8_t own_epoch);
/* Time passes (only where silence is counted in it). */
void worker_wait(const struct conf *c, struct worker *w);

/* The answer arrives. knows_dead: the host tells that its predecessor is gone. */
void worker_deliver(const struct conf *c, struct state *s, unsigned w, bool knows_dead);
/* Is there a predecessor that the host could tell of? */
bool worker_has_predecessor(const struct state *s, unsigned w);

bool worker_end(const struct conf *c, struct state *s, unsigned w, unsigned j, enum ending how);
bool worker_end_lost(struct worker *w, unsigned j);

/* A run that is its own, by what it knows. */
bool worker_holds(const struct worker *w, unsigned j);

#endif
