/*
 * What comes of a state when the faults are over: one fair schedule, in which each worker that is
 * up does whatever it can and then a round of beats is over. It must bring every job to an end and
 * every epoch that is gone to its burial, within a number of rounds. Who is frozen or killed stays
 * so, unless nobody else is left.
 */
#ifndef MODEL_CALM_H
#define MODEL_CALM_H

#include "moves.h"
#include "properties.h"

struct calm;
struct calm *calm_new(const struct conf *c);
void calm_free(struct calm *calm);

/* NULL, or the property that does not hold from here. */
const struct property *calm_check(struct calm *calm, const struct state *s);

/* The schedule from s in words, as far as `most` moves. */
void calm_print(const struct conf *c, const struct state *s, unsigned most, FILE *out);

/* The longest way that was met so far, in rounds. */
unsigned calm_rounds(const struct calm *calm);
/* Memory in use. */
size_t calm_bytes(const struct calm *calm);

#endif
