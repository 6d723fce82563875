/*
 * The run that is made: its dice, its time, the ledgers, and the one call that is at hand.
 */
#ifndef LATER_TESTS_CHAOS_WORLD_H
#define LATER_TESTS_CHAOS_WORLD_H

#include "arena.h"
#include "call.h"
#include "dice.h"
#include "ledger.h"

struct world {
    struct dice dice;
    int64_t now_us, latest_us; /* latest: the clock was there, and may have been set back */
    struct ledger *space[SPACES];
    struct ledger *l; /* of the call at hand */
    struct call call;
    bool is_printed;   /* each call, with its answer */
    bool is_disturbed; /* a foreign key is there, or a key is away */
    bool is_refused;   /* the call at hand was */
    bool has_no_roles; /* the default user makes all calls */
    int serial;        /* for names that are used once */
    uint64_t calls;
};

#define NOW_MS(w) ((w)->now_us / 1000)

void world_init(struct world *w);
/* A seed begins: an empty server, and what the seed says of all of it. */
void world_clear(struct world *w, uint64_t seed);
/* Time goes on by this, or back; never before the beginning. */
void world_move_clock(struct world *w, int64_t us);

/* FCALL of this function in the namespace at hand; arguments follow by call_text and the like. */
void world_begin(struct world *w, const char *function);
/* NULL for a refusal; one that the library should not have made is a verdict. The reply is the
 * caller's. */
struct reply *world_ask(struct world *w, enum role role);
/* The same for what has no answer of interest. */
void world_tell(struct world *w, enum role role);
/* Look, where nothing is disturbed. */
void world_judge(struct world *w);

#endif
