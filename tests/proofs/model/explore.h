/*
 * All states that can be reached, breadth first, so that the first violation has the shortest
 * trace. Of a state that was seen only a hash of 64 bits and its parent are kept; the states
 * themselves only while they wait for their turn. The trace is found again from the start.
 */
#ifndef MODEL_EXPLORE_H
#define MODEL_EXPLORE_H

#include <stdio.h>

#include "properties.h"

struct limits {
    size_t states; /* stop after so many */
    unsigned depth;
    size_t bytes;   /* most memory */
    bool is_silent; /* no trace */
    bool is_double; /* look at each state as it was and as its representative: both must go on alike
                     */
};

struct result {
    size_t states, transitions;
    unsigned depth;  /* of the last state */
    unsigned rounds; /* the longest way to the end of all jobs without faults */
    bool is_whole;   /* no limit was met */
    bool is_unlike;  /* with is_double: a representative went on in another way */
    double seconds;
    const struct property *broken; /* NULL: all hold */
};

void explore(const struct conf *c, const struct limits *limits, FILE *trace, struct result *ret);

#endif
