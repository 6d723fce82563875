/*
 * The reply of a step with groups (later_v2_step, later_v1_step with NG) in the shape of one
 * without, so that the model has to know one shape only. What may not be so begins with '!' there.
 */
#ifndef LATER_TESTS_PROPERTY_SHORT_H
#define LATER_TESTS_PROPERTY_SHORT_H

#include "server.h"

/* How many came in groups since the program began: a run that saw none of them has shown nothing.
 */
struct short_counts {
    uint64_t claims, ends, refused;
};

/* Writes r, the reply to a, any call, as the model would. */
void short_render(const struct args *a, const struct reply *r, struct buf *out);

const struct short_counts *short_counts(void);

#endif
