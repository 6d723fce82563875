/*
 * What becomes of a state when the trouble is over. There is one fair schedule: each worker that is
 * up does whatever it can, then a round of beats is over. Within a number of rounds every job must
 * end, and every epoch without a process must be buried. A worker that is frozen or killed stays
 * so, unless no other is left.
 */
#ifndef MODEL_CALM_H
#define MODEL_CALM_H

#include "moves.h"
#include "properties.h"

struct calm;
struct calm *calm_new(const struct conf *c);
void calm_free(struct calm *calm);

/* NULL, or the property that does not hold from here on. */
const struct property *calm_check(struct calm *calm, const struct state *s);

/* Print the schedule from s in words, at most `most` moves. */
void calm_print(const struct conf *c, const struct state *s, unsigned most, FILE *out);

/* The most rounds that a schedule has needed so far. */
unsigned calm_rounds(const struct calm *calm);
/* Memory in use. */
size_t calm_bytes(const struct calm *calm);

#endif
