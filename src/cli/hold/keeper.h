/*
 * The keeper: how `later lock` and `later sem` get a permit of a gate, keep it while the command
 * runs, and give it back. A state machine like the daemon's scheduler: events and the time go in,
 * effects come out through a table of operations. It reads no clock, calls no Redis and starts no
 * process.
 *
 * It is a worker without queues: it registers, beats every 5 s, watches the other workers and reaps
 * those after their silence, so that a holder that died is found even where no laterd runs. The
 * states of the permit: OUTSIDE (asking, or waiting) -> GRANTED (ours, but the last beat is too old
 * to start) -> INSIDE (the command runs) -> ENDING (Redis is told) -> GONE.
 *
 * One question at a time is under way. An operation that asks returns 0 if the question was sent,
 * else -1. The answer is one keeper_on_* event, keeper_on_error or keeper_link_down.
 */
#ifndef LATER_CLI_HOLD_KEEPER_H
#define LATER_CLI_HOLD_KEEPER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/error_class.h"
#include "store/store.h"

#define KEEPER_BEAT_MS 5000
#define KEEPER_TERM_MS 12000     /* so long without an acknowledged beat: the command gets TERM */
#define KEEPER_KILL_MS 15000     /* and KILL; the guard kills then, too */
#define KEEPER_STALE_MS 15000    /* a worker without a beat for so long may be gone: go on asking */
#define KEEPER_PATIENCE_MS 40000 /* for so long, even if the time of -w is up */
#define KEEPER_REAP_MS 1000      /* so long for a holder that is known to be gone, also with -n */
#define KEEPER_AWAY_MS 30000     /* after waiting so long without a link, give up */
#define KEEPER_LEAVE_MS 5000     /* limit for telling Redis that the command has ended */
#define KEEPER_TTL_KILL_MS 5000  /* from TERM to KILL after --ttl */
#define KEEPER_OVERRUN_TEXT "--ttl is over: the command gets TERM, and KILL after 5 s more"

enum keeper_end {
    KEEPER_RAN,      /* the command ended, or could not be run; its status counts */
    KEEPER_BUSY,     /* no permit at once (-n) or in time (-w) */
    KEEPER_REPEATED, /* is_once: the command was done already */
    KEEPER_LOST,     /* the permit was lost while the command ran */
    KEEPER_OVERRAN,  /* the command ran longer than it was allowed to */
    KEEPER_STOPPED,  /* a signal came before the command ran */
    KEEPER_FAILED,   /* fail() was called with the reason */
};

/* How the command ended. */
enum keeper_command { KEEPER_SUCCEEDED, KEEPER_ENDED, KEEPER_KILLED_BY_GUARD };

/* Effects. ctx is that of keeper_new. */
struct keeper_ops {
    int (*reg)(void *ctx, const struct store_register *req);
    int (*ask_limit)(void *ctx);
    int (*beat)(void *ctx, int64_t epoch);
    int (*enter)(void *ctx, int64_t epoch, bool is_waiting);
    int (*ask_beats)(void *ctx);
    int (*clear)(void *ctx, int64_t victim); /* end what it left running (worker/orphans.h) */
    int (*reap)(void *ctx, int64_t epoch, int64_t victim, const char *counter);
    int (*ask_done)(void *ctx);  /* is_once: was the command done already? */
    int (*tell_done)(void *ctx); /* is_once: it is done now */
    int (*leave)(void *ctx, int64_t epoch);
    /* Reconnect. Calls keeper_link_down before it returns. */
    void (*relink)(void *ctx, enum error_class class, const char *text);

    /* Whether this host can tell for certain that the peer's process is gone. */
    bool (*is_gone)(void *ctx, const struct store_peer *peer);
    /* Give the fence to the guard. Whether the command may start (run/guard/guard.h). */
    bool (*admits)(void *ctx, int64_t fence);
    /* Start the command. must_end: when the link is lost for long, as under a lock. 0, or -1: it
     * cannot be run, which counts as its end. */
    int (*start)(void *ctx, int64_t epoch, int64_t fence, bool must_end);
    void (*kill)(void *ctx, int sig); /* signal the command's group; KILL also ends
                                            what it left behind, and waits for that */
    void (*tell)(void *ctx, const char *text);
    void (*fail)(void *ctx, enum error_class class, const char *text); /* why there is no permit */
    void (*arm)(void *ctx, struct mono at);       /* call keeper_on_timer then */
    void (*over)(void *ctx, enum keeper_end end); /* the last effect */
};

struct keeper_conf {
    bool is_sem;
    bool is_once; /* run the command only if it was not done already, then tell that it is done */
    int64_t wait_ms; /* 0: do not wait; -1: for ever */
    int64_t ttl_ms;  /* 0: the command may run for ever */
};

struct keeper;
/* Copies conf; ops must outlive it. */
struct keeper *keeper_new(const struct keeper_conf *conf, const struct keeper_ops *ops, void *ctx,
                          struct mono now);
void keeper_free(struct keeper *k); /* NULL is fine */

/* Events, beside the answers (keeper_answers.h). */
void keeper_link_up(struct keeper *k, struct mono now);
/* Before keeper_link_up: a replica has taken over. The permit may be lost, so it is asked for
 * again; and nothing starts until it has accepted a call and SESSION_FAILOVER_MS have passed
 * (sched/sched.h). */
void keeper_failed_over(struct keeper *k);
void keeper_link_down(struct keeper *k, struct mono now, enum error_class class, const char *text);
void keeper_on_wake(struct keeper *k, struct mono now, const char *text);
void keeper_on_subscribed(struct keeper *k, struct mono now);
void keeper_on_timer(struct keeper *k, struct mono now);
void keeper_on_end(struct keeper *k, struct mono now, enum keeper_command how);
/* This process got a signal that ends programs. */
void keeper_on_signal(struct keeper *k, struct mono now, int sig);

#endif
