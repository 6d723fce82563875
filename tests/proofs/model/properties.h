/*
 * What must hold in every state, each a function that looks at one: true when it holds. The names
 * are those of doc/guarantees.md.
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

/* The first that does not hold, or NULL. */
const struct property *properties_check(const struct conf *c, const struct state *s);

/* Those that are about what will happen; see calm.h. */
extern const struct property eventually_terminal, reaper_progress;

#endif
