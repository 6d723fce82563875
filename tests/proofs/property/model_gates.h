/*
 * Gates in the model: locks, semaphores, rates and their waiters (doc/architecture.md;
 * src/lua/gates/, and lock.lua, limit.lua and throttle.lua of src/lua/public/).
 *
 * What Redis keeps twice is kept once here: which queues wait for a gate, and with which ticket,
 * follows from the parked jobs.
 */
#ifndef LATER_TESTS_PROPERTY_MODEL_GATES_H
#define LATER_TESTS_PROPERTY_MODEL_GATES_H

#include "model.h"
#include "rows.h"

#define GATES_MAX 96
#define PERMITS_MAX 512
#define STARTS_MAX 4096
#define OUTSIDERS_MAX 64
#define LIMITS_MAX 32
#define TIMERS_MAX 128
#define UNIQUES_MAX 64
#define TOUCHED_MAX 1024
#define MODEL_TIMER_ID (MODEL_GATE_ID + 48) /* a kind, perhaps a holder, and a gate */
#define NO_END INT64_MAX /* of a permit that its holder keeps as long as it lives */
/* A job that was passed over so often reserves gates. Fewer than in production, so that short
 * sequences get there. */
#define MODEL_PASSED_OVER_MAX 2

enum gate_kind { KIND_LOCK, KIND_SEM, KIND_RATE };
enum algorithm { RATE_GCRA, RATE_SLIDING, RATE_FIXED, RATE_COUNT };

struct model_limit {
    char name[MODEL_NAME];
    bool is_sem, kills; /* kills: on_lost kill */
    enum algorithm algorithm;
    int64_t n, per_ms, burst;
};

struct model_holder {
    char who[32];
    int64_t until, since; /* since: of a holder without a lease */
    bool is_earlier;      /* a start that was reserved before the rate was defined anew */
};

/* Starts that passed a rate: when, by a clock that is never set back, and how many. */
struct model_start {
    int64_t at_us, n;
};

struct model_gate {
    char id[MODEL_GATE_ID];
    const char *name; /* in id */
    enum gate_kind kind;
    bool is_held; /* the key of the lock exists */
    char holder[32], token[16];
    bool has_token;
    int64_t fence, depth, until, since; /* until: 0: without end */
    /* Holders of a semaphore; of a rate: starts that are reserved for granted jobs. */
    struct model_holder permit[PERMITS_MAX];
    size_t permits;
    bool has_tat, has_window;
    int64_t tat_base, tat_end, window, count, window_end;
    double tat_behind;          /* the theoretical arrival time */
    int64_t log[STARTS_MAX][2]; /* us, number */
    size_t logged;
    int64_t log_end;
    bool is_aside[MODEL_QUEUES];
    /* To check the promises. */
    int64_t last_fence;
    char last_holder[32];
    size_t last_permits;
    struct model_start start[STARTS_MAX];
    size_t starts;
};

struct model_outsider {
    bool is_there;
    char who[32];
    struct model_gate *gate;
    int64_t ticket, until; /* until: 0 for ever */
};

struct model_timer {
    bool is_there;
    char what[MODEL_TIMER_ID];
    int64_t at;
};

struct model_unique {
    bool is_there;
    int queue;
    const char *key;
    char id[16];
    int64_t end; /* MODEL_NONE: none */
};

struct model_gates {
    struct model_gate gate[GATES_MAX];
    size_t n;
    struct model_limit limit[LIMITS_MAX];
    size_t limits;
    char template[LIMITS_MAX][MODEL_NAME]; /* in the order of R:limits {} */
    size_t templates;
    struct model_outsider outsider[OUTSIDERS_MAX];
    struct model_timer timer[TIMERS_MAX];
    struct model_unique unique[UNIQUES_MAX];
    size_t touched;
    struct model_gate *touch[TOUCHED_MAX];
    int called;                    /* jobs and outsiders that this call has let in or passed over */
    int64_t room[MODEL_QUEUES];    /* of the present sync; -1: the sync did not name the queue */
    int64_t syncer;                /* the worker of the present sync; 0: another call */
    bool is_granted[MODEL_QUEUES]; /* got a grant: workers are told at the end of the call */
    int64_t elapsed_us;            /* by a clock that is never set back */
    bool was_set_back;
    const char *broken; /* a promise that was broken during the call */
};

/* ---- gates (model_gates.c) */

void gates_reset(struct model *m);
/* When the last lease of a semaphore ends; NO_END: a holder has no lease; 0: nobody holds it. */
int64_t sem_ends(const struct model_gate *g);
/* The clock moved from was_us to m->now_us: drop the keys that have expired. */
void gates_set_time(struct model *m, int64_t was_us);
struct model_gate *gate_of(struct model *m, const char *id);
struct model_gate *gate_named(struct model *m, enum gate_kind kind, const char *name);
const struct model_limit *limit_of(struct model *m, enum gate_kind kind, const char *name);
/* Does the name fit the template? */
bool limit_fits(const char *template, const char *name);
/* Returns the free permits. If there are none, *opens_ms is when one becomes free by itself, or
 * MODEL_NONE. */
int64_t gate_permits(struct model *m, struct model_gate *g, int64_t *opens_ms);
/* until: NO_END for a holder without a lease. */
void gate_take(struct model *m, struct model_gate *g, const char *who, int64_t fence, int64_t until,
               bool is_reserved);
bool gate_drop(struct model *m, struct model_gate *g, const char *who);
/* Reserve the gate for a job that is to be claimed. A rate counts only at the claim (gate_spend);
 * until then it keeps the start. */
void gate_promise(struct model *m, struct model_gate *g, const char *who);
void gate_spend(struct model *m, struct model_gate *g, const char *who, int64_t fence);
void rate_take(struct model *m, struct model_gate *g, const struct model_limit *l, int64_t n);
/* When n starts can pass; MODEL_NONE: never. */
int64_t rate_opens(struct model *m, struct model_gate *g, const struct model_limit *l, int64_t n);
/* Returns how many starts could pass now. */
int64_t rate_seen(struct model *m, struct model_gate *g, const struct model_limit *l,
                  int64_t *reset_us);
bool lock_is_over(const struct model *m, const struct model_gate *g);
/* False: the name contains {key} and there is no key. */
bool fill_key(char out[MODEL_NAME * 2], const char *name, const char *key);
void gate_touch(struct model *m, struct model_gate *g);
/* Give back the gates of a job that ends or waits again. */
void gates_let_go(struct model *m, struct model_job *j, bool is_end);
/* Its limit has changed: a sliding rate keeps its claims for as long as it counts them now. */
void gate_keep_claims(struct model *m, struct model_gate *g);

/* ---- unique keys (model_unique.c) */

struct model_unique *unique_of(struct model *m, int q, const char *key);
void unique_take(struct model *m, const struct model_job *j);
void unique_lock(char name[MODEL_NAME], const struct model *m, const struct model_job *j);
/* The next job with the unique key of this running job has to wait for its end. */
void unique_succeed(struct model *m, struct model_job *runs);
void unique_free(struct model *m, int q, const char *key, const char *id, int64_t until);
void unique_end(struct model *m, const struct model_job *j);

/* ---- waiters (model_waiters.c) */

/* Collect the gates that this job has to pass, in order. False: it cannot run. why: at least 160
 * characters. */
bool spot_fill(struct model *m, const struct model_job *j, struct model_spot *spot, char *why);
/* The gate has waiters: set the timer to when it opens by itself. */
void waiters_arm_gate(struct model *m, struct model_gate *g);
/* The limit of this name or template changed: call the waiters, and tell the queues among them. */
void waiters_limit_changed(struct model *m, bool is_sem, const char *name);
bool waiters_pass(struct model *m, struct model_job *j, struct model_spot *spot, int64_t due,
                  int64_t fence);
void waiters_arm(struct model *m, const char *kind, const char *name, int64_t at);
void waiters_disarm(struct model *m, const char *kind, const char *name);
/* A parked job leaves its gate; the caller gives it another state. */
void waiters_unpark(struct model *m, struct model_job *j, bool keeps);
bool waiters_must_end(struct model *m, const struct model_spot *spot);
/* Set R:holds of a job that has passed `taken` of these gates. is_started: also its unique key. */
void waiters_hold(struct model *m, struct model_job *j, const struct model_spot *spot, int taken,
                  bool is_started);
bool waiters_regain(struct model *m, struct model_job *j);
void waiters_rejoin(struct model *m, int q);
void waiters_hand_on(struct model *m);
/* The same in three steps, for a call that claims: timers are handled first, workers are told
 * last. */
void waiters_hand_on_first(struct model *m);
void waiters_hand_on_again(struct model *m);
void waiters_hand_on_last(struct model *m);
int64_t waiters_next_timer(const struct model *m);
/* Who is called first at a gate: a job or an outsider. False: nobody waits. */
bool waiters_first(struct model *m, const struct model_gate *g, struct model_job **j,
                   struct model_outsider **o);
/* Returns how many waiters are before this ticket. */
int64_t waiters_before(struct model *m, const struct model_gate *g, int64_t ticket);
size_t waiters_granted(struct model *m, int q, struct model_job **row);
struct model_outsider *outsider_of(struct model *m, const struct model_gate *g, const char *who);
/* The number of the first gate that lets nobody in, whatever was reserved; 0: none. */
int waiters_closed(struct model *m, const struct model_spot *spot);
/* Let a granted job wait for this gate again. at 0: nobody has claimed it in time. */
void waiters_take_back(struct model *m, struct model_job *j, int at);
const char *outsider_name(const struct model_outsider *o);
void outsider_leave(struct model *m, struct model_gate *g, const char *who);
/* A worker that held or waited for a gate goes. Returns whether it held the gate. */
bool worker_leave_gate(struct model *m, const struct model_worker *w);
/* Would a worker take a job of this queue? (model_worker.c) */
bool workers_have_room(struct model *m, int q);

/* ---- output and promises (model_promises.c) */

/* "semaphore <n> <on_lost>" or "rate <algorithm> <n> <per ms> <burst>" */
void limit_text(const struct model_limit *l, struct buf *out);
void gates_render(struct model *m, struct rows *rows);
const char *gates_broken(struct model *m);

/* ---- functions (model_lock.c) */

void model_lock(struct model *m, enum gate_kind kind, const char *name, const char *owner,
                int64_t ttl, int64_t wait, struct buf *out);
void model_unlock(struct model *m, enum gate_kind kind, const char *name, const char *owner,
                  const char *token, struct buf *out);
void model_renew(struct model *m, enum gate_kind kind, const char *name, const char *owner,
                 int64_t ttl, struct buf *out);
void model_throttle(struct model *m, const char *name, int64_t n, struct buf *out);
void model_fence_check(struct model *m, const char *name, int64_t fence, struct buf *out);
void model_limit_set(struct model *m, const struct model_limit *l, bool if_missing,
                     struct buf *out);
void model_limit_del(struct model *m, const char *name, struct buf *out);
void model_limits(struct model *m, struct buf *out);
void model_enter(struct model *m, int64_t epoch, enum gate_kind kind, const char *name, bool waits,
                 struct buf *out);
void model_exit(struct model *m, int64_t epoch, struct buf *out);

#endif
