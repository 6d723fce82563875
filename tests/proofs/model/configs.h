/*
 * The configurations that are explored: those that must hold, and the variants that must fail.
 */
#ifndef MODEL_CONFIGS_H
#define MODEL_CONFIGS_H

#include "state.h"

struct variant_of {
    const char *name;
    const char *breaks; /* the property */
    const char *text;
    struct conf conf; /* the smallest one that shows it */
};

extern const struct conf configs_quick[], configs_full[];
extern const unsigned nconfigs_quick, nconfigs_full;
extern const struct variant_of variants[];
extern const unsigned nvariants;

#endif
