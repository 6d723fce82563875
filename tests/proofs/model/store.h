/*
 * The side of Redis. Each function is one of src/lua, atomic and pure. Parts that the model does
 * not need are left out (payloads, outcomes, heads, priorities).
 */
#ifndef MODEL_STORE_H
#define MODEL_STORE_H

#include "state.h"

/* Execute a call of a worker. first: the job that a sync considers first. Any order is possible,
 * since due times are not in the model. */
void store_execute(const struct conf *c, struct state *s, unsigned worker, const struct call *call,
                   unsigned first, struct answer *answer);

/* Could a sync with room claim this job now? */
bool store_can_claim(const struct conf *c, const struct state *s, unsigned job);

/* add.lua, cancel.lua, retry.lua. False: refused. */
bool store_add(struct state *s, unsigned job);
bool store_cancel(struct state *s, unsigned job);
bool store_retry(struct state *s, unsigned job);

/* Redis comes back with an earlier state. */
void store_rewind(const struct conf *c, struct state *s);

const struct entry *store_entry(const struct redis *r, uint8_t epoch);

#endif
