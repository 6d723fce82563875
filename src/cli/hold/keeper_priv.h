/*
 * Inside of the keeper, for keeper*.c only.
 */
#ifndef LATER_CLI_HOLD_KEEPER_PRIV_H
#define LATER_CLI_HOLD_KEEPER_PRIV_H

#include "cli/hold/keeper.h"
#include "sched/peers.h"
#include "sched/session.h"

#define KEEPER_RETRY_MS 1000 /* after an error reply, or if a question could not be sent */
#define KEEPER_GOES_ON "the permit was lost; the command goes on (on_lost: keep)"
#define KEEPER_NOT_TOLD "Redis could not be told that it is done: it may run again"
#define KEEPER_NOT_LEFT                                                                            \
    "Redis could not be told of the end: the permit comes free when others miss this program, in " \
    "half a minute"

enum stage { OUTSIDE, GRANTED, INSIDE, ENDING, GONE };

enum call {
    CALL_NONE,
    CALL_REGISTER,
    CALL_ASK_LIMIT,
    CALL_BEAT,
    CALL_ENTER,
    CALL_ASK_BEATS,
    CALL_REAP,
    CALL_ASK_DONE,
    CALL_TELL_DONE,
    CALL_LEAVE
};

/* Why there is no answer, until there is one. */
struct trouble {
    enum error_class class; /* NONE: there is no trouble. LINK: no link, or a silent one */
    enum call call;         /* what Redis refused last. NONE: there is no link */
    int times;              /* refused in a row */
    char text[256];
};

struct keeper {
    struct keeper_conf conf;
    const struct keeper_ops *ops;
    void *ctx;
    struct peers *peers;
    enum stage stage;
    enum keeper_end end;
    enum call out;
    struct trouble trouble;
    bool is_up, was_up;
    struct session me;
    int64_t fence;
    bool knows_limit;               /* the semaphore's definition was read */
    bool is_kept;                   /* the semaphore says on_lost: keep */
    bool is_regaining;              /* the command runs, but Redis does not know of its permit */
    bool is_unsure;                 /* is_regaining: it may know of it, there was a failover */
    bool is_lost;                   /* the command is being killed */
    bool may_run;                   /* conf.is_once: it was not done when we got the permit */
    bool is_success;                /* conf.is_once: it was done, and Redis does not know yet */
    bool is_patient;                /* a holder may be gone: go on asking after the time is up */
    bool wants_permit, wants_beats; /* send ENTER or BEATS next, if still needed then */
    int pressed;                    /* the last signal that we sent it ourselves, 0: none */
    struct mono sent;               /* when the call under way was sent */
    struct mono acked;              /* when the last acknowledged beat was sent */
    struct mono beat_at;            /* when the next beat is due */
    struct mono kill_at;            /* when KILL follows our TERM */
    int64_t redis_ms;               /* Redis' clock when we registered, */
    struct mono redis_at;           /* and ours */
    struct mono give_up_at, ttl_at, leave_at, away_at, retry_at;
};

/* Stop asking for the permit, or give it back: from here on only tell Redis. */
void keeper_leave(struct keeper *k, struct mono now, enum keeper_end end);
void keeper_fail(struct keeper *k, struct mono now, enum error_class class, const char *text);
/* The same with the trouble that we are in. */
void keeper_fail_by_trouble(struct keeper *k, struct mono now);
/* Nothing more to do. */
void keeper_be_gone(struct keeper *k);
/* Others may get the permit: kill the command now. */
void keeper_lose(struct keeper *k, const char *why);
/* The permit is ours: start the command, unless the guard says that the last beat is too old. */
void keeper_try_to_start(struct keeper *k, struct mono now);
/* The same, and ask for a beat then. */
void keeper_start_or_beat(struct keeper *k, struct mono now);
/* -n: it does not wait for the silence of a holder. */
bool keeper_is_hurried(const struct keeper *k);
/* The time is up, or there is none. Ask for the beats: the holder may be gone. With -n a worker
 * that is known to be gone is reaped first; one that waits has done so. */
void keeper_give_up(struct keeper *k, struct mono now);
/* Redis does not know us any more, or gave us up. */
void keeper_forgotten(struct keeper *k, bool is_given_up);

#endif
