/*
 * The present run: its dice, its time, its ledgers, and the call that is being made.
 */
#ifndef LATER_TESTS_CHAOS_WORLD_H
#define LATER_TESTS_CHAOS_WORLD_H

#include "arena.h"
#include "call.h"
#include "dice.h"
#include "ledger.h"

struct world {
    struct dice dice;
    int64_t now_us, latest_us; /* latest: the highest now_us so far */
    struct ledger *space[SPACES];
    struct ledger *l; /* the ledger of the namespace that is called */
    struct call call;
    bool is_printed;   /* print each call with its answer */
    bool is_disturbed; /* a foreign key is there */
    bool is_refused;   /* the last call was refused */
    bool has_no_roles; /* the default user makes all calls */
    int serial;        /* for names that are used once */
    uint64_t calls;
};

#define NOW_MS(w) ((w)->now_us / 1000)

void world_init(struct world *w);
/* Begin a run: an empty server, and queue settings chosen by the seed. */
void world_clear(struct world *w, uint64_t seed);
/* Move the clock by us, forwards or back, but never before the start of the run. */
void world_move_clock(struct world *w, int64_t us);

/* Begin an FCALL of this function in the present namespace; add arguments with call_text and
 * others. */
void world_begin(struct world *w, const char *function);
/* Send the call. Returns the reply, owned by the caller; NULL for a refusal. A refusal that the
 * library should not have made goes to finding_break. */
struct reply *world_ask(struct world *w, enum role role);
/* The same, ignoring the reply. */
void world_tell(struct world *w, enum role role);
/* Call judge_all, unless a foreign key is there. */
void world_judge(struct world *w);

#endif
