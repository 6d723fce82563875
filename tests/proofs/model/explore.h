/*
 * Explores all reachable states, breadth first, so that the first violation has the shortest trace.
 * Only a 64-bit hash and the parent of a visited state are kept; the state itself only while it
 * waits in the queue. A trace is found by searching again from the start.
 */
#ifndef MODEL_EXPLORE_H
#define MODEL_EXPLORE_H

#include <stdio.h>

#include "properties.h"

struct limits {
    size_t states; /* stop after so many */
    unsigned depth;
    size_t bytes;   /* most memory */
    bool is_untold; /* do not print a trace */
    bool is_double; /* check that each state and its representative have the same successors */
};

struct result {
    size_t states, transitions;
    unsigned depth;  /* of the last state */
    unsigned rounds; /* the most rounds until all jobs have ended, without trouble */
    bool is_whole;   /* no limit was reached */
    bool is_unlike;  /* with is_double: a representative had other successors */
    double seconds;
    const struct property *broken; /* NULL: all properties hold */
};

void explore(const struct conf *c, const struct limits *limits, FILE *trace, struct result *ret);

#endif
