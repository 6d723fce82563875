/*
 * Converts the reply of a sync, which has its claims in groups, into one with each claim by itself,
 * so that the model needs to know nothing of groups. What is wrong begins with '!' there.
 */
#ifndef LATER_TESTS_PROPERTY_SHORT_H
#define LATER_TESTS_PROPERTY_SHORT_H

#include "server.h"

/* What came in groups since the program started. If there was nothing, the run has shown
 * nothing. */
struct short_counts {
    uint64_t claims, ends, refused;
};

/* Append r, the reply to the call a (any call), as the model would write it. */
void short_render(const struct args *a, const struct reply *r, struct buf *out);

const struct short_counts *short_counts(void);

#endif
