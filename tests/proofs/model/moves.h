/*
 * What can happen next: a move of Redis, of a worker, of the network or of the world. The next
 * state depends on the state and the move only.
 */
#ifndef MODEL_MOVES_H
#define MODEL_MOVES_H

#include "state.h"

enum move_kind {
    LINK_UP,
    SEND_SYNC,
    SEND_BEAT,
    SEND_REAP,
    SEND_LEAVE,
    EXECUTE,
    DELIVER,
    END,
    END_LOST,
    TICK,
    /* trouble, and what people do */
    EXECUTE_STRAY,
    CUT,
    CRASH,
    RESTART,
    FREEZE,
    WAKE,
    OUTAGE,
    RECOVER,
    SNAPSHOT,
    REWIND,
    ADD,
    CANCEL,
    RETRY,
    STOP,
    MOVES
};

struct move {
    uint8_t kind;
    uint8_t worker, job;
    uint8_t choice;
};

/* Apply m to s. False: it cannot happen in this state, and s is unchanged. */
bool move_apply(const struct conf *c, struct state *s, const struct move *m);

/* Call visit with every possible next state (a copy of its own, not canonical) until visit returns
 * false. */
typedef bool visit_f(void *arg, const struct move *m, struct state *next);
void moves_each(const struct conf *c, const struct state *s, visit_f *visit, void *arg);

/* Print the move in words. before: the state in which it happens. */
void move_print(const struct conf *c, const struct state *before, const struct move *m, FILE *out);

#endif
