/*
 * What the answers alone tell of one namespace: every accepted job, every start, every result with
 * its answer, and who was given which lock for how long. The ledger says where a job may be, never
 * how the library put it there.
 */
#ifndef LATER_TESTS_CHAOS_LEDGER_H
#define LATER_TESTS_CHAOS_LEDGER_H

#include <stdbool.h>
#include <stdint.h>

#include "names.h"

#define LEDGER_JOBS 16384
#define LEDGER_WORKERS 512
#define LEDGER_RAWS 4096
#define LEDGER_BATCHES 2048
#define LEDGER_CHILDREN 8192
#define LEDGER_NONE (-1)

/* Where a job may be. WAITS: waiting, parked or let in. RUNS: running. DEAD, DONE, GONE:
 * ended. */
enum state { WAITS = 1, RUNS = 2, DEAD = 4, DONE = 8, GONE = 16 };

#define CHAIN_MAX 3
#define STEPS 3

/* What the ends of a job cause: the queues that follow, and the one that is told of its death. */
struct chain {
    int then[CHAIN_MAX];
    int n;
    int on_dead; /* or LEDGER_NONE */
};

/* How a job ended, as its batch tells it. */
enum end { END_NONE, END_DONE, END_DEAD, END_CANCELLED, ENDS };

struct job {
    char id[16];
    int queue;
    int may;         /* the states that are possible, as bits */
    bool may_expire; /* it has an expiry: it may die while it waits */
    bool cancelling; /* it was cancelled while it ran */
    bool is_unheard; /* its claim was lost on the way to the worker */
    int checkpoint;  /* the last one that was accepted, by its serial, or LEDGER_NONE */
    int step[STEPS]; /* the outputs that were kept, the same */
    bool is_big;     /* its payload is stored apart, so its end is never told in a group */
    int64_t start;   /* number of its last start; 0: it never started */
    int64_t crashes;
    int64_t epoch; /* of the worker that runs it */
    int64_t fence;
    int unique; /* LEDGER_NONE: no key; the same for the gates below */
    int lock, limit_sem, limit_rate;
    struct chain chain;
    int ends, deaths;   /* how often it was done, and died */
    int followed, told; /* how many jobs were caused by that */
    bool is_told;       /* its present death is counted */
    bool has_died;      /* at least once */
    int batch;          /* of the ledger, or LEDGER_NONE */
    int ended;          /* how it may have ended, as bits 1 << enum end */
};

/* A job without options. */
#define LEDGER_PLAIN                                                                               \
    ((struct job){.may = WAITS,                                                                    \
                  .unique = LEDGER_NONE,                                                           \
                  .lock = LEDGER_NONE,                                                             \
                  .limit_sem = LEDGER_NONE,                                                        \
                  .limit_rate = LEDGER_NONE,                                                       \
                  .chain.on_dead = LEDGER_NONE,                                                    \
                  .batch = LEDGER_NONE,                                                            \
                  .checkpoint = LEDGER_NONE,                                                       \
                  .step = {LEDGER_NONE, LEDGER_NONE, LEDGER_NONE},                                 \
                  .ended = 1 << END_NONE})

/* A child of a job (child.h). */
struct child {
    int serial;
    int parent; /* the job whose child it is */
    struct job job;
    bool is_due; /* it was added */
    int met;     /* how many such jobs there were */
};

enum callback { ON_END, ON_ALL_DONE, ON_DEATH, CALLBACKS };

/* Members of a batch: all of them, then by how they ended. */
struct tally {
    int total, of[ENDS];
};

/* One batch of a name. Its payload is `batch <serial>`, and its callbacks go to different
 * queues. */
struct batch {
    int name, serial;
    int callback[CALLBACKS];   /* queues, or LEDGER_NONE */
    int64_t keep_ms, until_ms; /* until_ms: when it is forgotten; 0: it has not ended */
    bool is_there, is_sealed, is_cancelled;
    bool has_ended;   /* at least once */
    bool is_hindered; /* a foreign key may have kept it from what it owes; a seal adds that */
    int called[CALLBACKS];
    struct tally told[CALLBACKS];
    bool is_new[CALLBACKS]; /* told, and not looked at */
};

struct worker {
    int64_t epoch, link, counter;
    bool is_there, is_dead; /* registered; written off, and reaped in part */
    bool is_program;        /* a `later lock` or `later sem` */
    int gate; /* of a program: index in names_lock, or LOCKS + index in names_limited */
    bool holds;
    int seq, instance;
};

/* A lease of a caller of the bare functions. */
struct lease {
    bool is_held;
    int64_t until_ms;
    int64_t fence;
};

struct limit {
    enum { LIMIT_NONE, LIMIT_SEM, LIMIT_RATE } kind;
    int algorithm; /* index in `algorithms` of moves_gates.c */
    int64_t n, per_ms, burst;
};

struct raw {
    char payload[24];
    int queue;
    bool waits;
    bool may_go; /* a purge may have removed it */
};

struct ledger {
    int space;
    const char *root;
    struct job job[LEDGER_JOBS];
    int jobs, alive; /* alive: jobs that may wait or run, counted by judge_all */
    int slot[2 * LEDGER_JOBS];
    struct worker worker[LEDGER_WORKERS];
    int workers;
    struct raw raw[LEDGER_RAWS];
    int raws;
    struct batch batch[LEDGER_BATCHES];
    int batches;
    struct child child[LEDGER_CHILDREN];
    int children;
    int64_t latest_ms; /* of the clock */
    struct lease lock[LOCKS][OWNERS], sem[LIMITED][OWNERS];
    struct limit limit[DEFINED];
    int queue_lock[QUEUES], queue_sem[QUEUES], queue_rate[QUEUES]; /* or LEDGER_NONE */
    int64_t fence;            /* the highest one in any answer */
    bool is_blurred;          /* not all that happened since the last look can be known */
    int64_t permits[LIMITED]; /* the most permits of a semaphore that may be taken now */
};

void ledger_clear(struct ledger *l, int space);

/* ---- jobs */

struct job *ledger_find(struct ledger *l, const char *id); /* or NULL */
/* Add a new job that waits. NULL, and a broken rule, if there was a job with this id. */
struct job *ledger_add(struct ledger *l, const char *id, int queue);
/* The job was handed out: check its start number and fence, and note the start. */
void ledger_start(struct ledger *l, struct job *j, int64_t epoch, int64_t start, int64_t fence);
/* The job has kept nothing any more. */
void ledger_anew(struct job *j);
/* Is it known what the job has kept? An add with its unique key may have put another in its
 * place. */
bool ledger_knows_kept(const struct job *j);
/* The names of these states, for a text. The result is valid until the second call after this
 * one. */
const char *ledger_states(int may);
bool ledger_is_live(const struct job *j);
/* Where a job may be that runs no longer without having ended. It waits again; or it ends after
 * all, since it was cancelled or another job has its unique key. */
int ledger_back(const struct ledger *l, const struct job *j);
/* Does the job need this gate, by its own options or by those of its queue? */
bool ledger_needs_lock(const struct ledger *l, const struct job *j, int lock);
bool ledger_needs_sem(const struct ledger *l, const struct job *j, int limited);
bool ledger_needs_rate(const struct ledger *l, const struct job *j, int limited);

/* ---- limits */

/* The limit that holds for a name: its own definition or that of the template. */
const struct limit *ledger_limit(const struct ledger *l, int limited);
/* Call this after each call to Redis: as many permits as the present limits allow may now be
 * taken. */
void ledger_permit(struct ledger *l);

/* ---- callers */

/* Note leases that are over at now_ms as ended for good, since the clock may be set back later. */
void ledger_end_leases(struct ledger *l, int64_t now_ms);

/* ---- workers */

struct worker *ledger_worker(struct ledger *l, int64_t epoch);
/* Check that this fence or epoch is above all earlier ones. what: its owner, for the message. */
void ledger_fence(struct ledger *l, int64_t fence, const char *what);

#endif
