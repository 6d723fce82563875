/*
 * What must hold in every state. A property is a function that checks one state and returns true if
 * it holds. The names are those of doc/guarantees.md.
 */
#ifndef MODEL_PROPERTIES_H
#define MODEL_PROPERTIES_H

#include "state.h"

struct property {
    const char *name;
    const char *text;
    bool (*holds)(const struct conf *c, const struct state *s);
};

extern const struct property properties[];
extern const unsigned nproperties;

/* Returns the first property that does not hold, or NULL. */
const struct property *properties_check(const struct conf *c, const struct state *s);

/* Properties about what must happen later; see calm.h. */
extern const struct property eventually_terminal, reaper_progress;

#endif
