/*
 * The keeper of a place: how `later lock` and `later sem` come to their place at a gate, keep it
 * while the command runs, and give it back. A state machine like the daemon's scheduler: events and
 * the time go in, effects come out through a table of operations; it touches no clock, no Redis and
 * no process.
 *
 * It is a worker without queues: it registers, beats every 5 s, watches the others and reaps those
 * that fell silent, so that a dead holder is found where no laterd runs. Life of the place:
 * OUTSIDE (asking, or in line) -> GRANTED (ours, but the last beat is too old to start) -> INSIDE
 * (the command runs) -> ENDING (Redis is told) -> GONE.
 *
 * One question at a time is under way. An operation that asks returns 0 when it was sent; the
 * answer is one keeper_on_* event, keeper_on_fault or keeper_link_down.
 */
#ifndef LATER_CLI_HOLD_KEEPER_H
#define LATER_CLI_HOLD_KEEPER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/fault.h"
#include "store/store.h"

#define KEEPER_BEAT_MS 5000
#define KEEPER_TERM_MS 12000    /* without an acknowledged beat the command gets TERM */
#define KEEPER_KILL_MS 15000    /* and KILL; its guard does so too */
#define KEEPER_STALE_MS 15000   /* a worker not heard of for so long may be dead: look on */
#define KEEPER_LOOK_MS 40000    /* so long, whatever -n and -w say */
#define KEEPER_AWAY_MS 30000    /* waiting without a link: give up */
#define KEEPER_LEAVE_MS 5000    /* telling Redis that the command has ended */
#define KEEPER_TTL_KILL_MS 5000 /* KILL so long after TERM */
#define KEEPER_OVERRUN_TEXT "--ttl is over: the command gets TERM, and KILL after 5 s more"

enum keeper_end {
    KEEPER_RAN,     /* the command's status counts */
    KEEPER_BUSY,    /* no place, or not in time */
    KEEPER_LOST,    /* the place was lost while the command ran */
    KEEPER_OVERRAN, /* the command ran longer than it was allowed to */
    KEEPER_STOPPED, /* by a signal, before the command ran */
    KEEPER_FAILED,  /* see fail() */
};

/* Effects. ctx is the first argument of all. */
struct keeper_ops {
    int (*reg)(void *ctx, const struct store_register *req);
    int (*define)(void *ctx);
    int (*beat)(void *ctx, int64_t epoch);
    int (*enter)(void *ctx, int64_t epoch, bool is_waiting);
    int (*beats)(void *ctx);
    int (*clear)(void *ctx, int64_t victim); /* end what it left running (worker/remains.h) */
    int (*reap)(void *ctx, int64_t epoch, int64_t victim, const char *counter);
    int (*leave)(void *ctx, int64_t epoch);
    /* Make the link anew. keeper_link_down follows before it returns. */
    void (*relink)(void *ctx, enum fault fault, const char *text);

    /* Does this process live, as far as this host can tell for certain? */
    bool (*is_gone)(void *ctx, const struct store_peer *peer);
    /* Tell the guard of the fence; may the command start (run/guard/guard.h)? */
    bool (*admits)(void *ctx, int64_t fence);
    /* Start it, 0; or -1: it cannot be run, which counts as its end. */
    int (*start)(void *ctx, int64_t epoch, int64_t fence, bool is_guarded);
    void (*kill)(void *ctx, int sig); /* its group; KILL also all that it left
                                            behind, whose death is waited for */
    void (*tell)(void *ctx, const char *text);
    void (*fail)(void *ctx, enum fault fault, const char *text);
    void (*arm)(void *ctx, struct mono at);
    void (*done)(void *ctx, enum keeper_end end);
};

struct keeper_conf {
    bool is_sem;
    int64_t wait_ms; /* 0: not at all; -1: for ever */
    int64_t ttl_ms;  /* 0: the command may run for ever */
};

struct keeper;
struct keeper *keeper_new(const struct keeper_conf *conf, const struct keeper_ops *ops, void *ctx,
                          struct mono now);
void keeper_free(struct keeper *k); /* NULL is fine */

/* Events. */
void keeper_link_up(struct keeper *k, struct mono now);
void keeper_link_down(struct keeper *k, struct mono now, enum fault fault, const char *text);
void keeper_on_registered(struct keeper *k, struct mono now, const struct store_register_reply *r);
void keeper_on_defined(struct keeper *k, struct mono now, const char *limit);
void keeper_on_beat(struct keeper *k, struct mono now, const struct store_beat_reply *r);
void keeper_on_entered(struct keeper *k, struct mono now, const struct gate_enter_reply *r);
void keeper_on_beats(struct keeper *k, struct mono now, const struct gate_beats_reply *r);
/* No answer to a question: others may be under way. */
void keeper_on_cleared(struct keeper *k, struct mono now, int64_t victim, bool is_clear);
void keeper_on_reaped(struct keeper *k, struct mono now, enum store_reap status, int64_t moved);
void keeper_on_left(struct keeper *k, struct mono now, bool is_clean);
void keeper_on_fault(struct keeper *k, struct mono now, enum fault fault, const char *text);
void keeper_on_wake(struct keeper *k, struct mono now, const char *text);
void keeper_on_subscribed(struct keeper *k, struct mono now);
void keeper_on_timer(struct keeper *k, struct mono now);
/* was_killed: by the guard. */
void keeper_on_end(struct keeper *k, struct mono now, bool was_killed);
/* One of the signals that end a program. */
void keeper_on_signal(struct keeper *k, struct mono now, int sig);

#endif
