/*
 * What is known of one namespace from the answers alone: every job that was taken, every start that
 * was handed out, every result and its answer, who was given which lock and for how long. It says
 * where a job may be, never how the library came to put it there.
 */
#ifndef LATER_TESTS_CHAOS_LEDGER_H
#define LATER_TESTS_CHAOS_LEDGER_H

#include <stdbool.h>
#include <stdint.h>

#include "names.h"

#define LEDGER_JOBS 16384
#define LEDGER_WORKERS 512
#define LEDGER_RAWS 4096
#define LEDGER_NONE (-1)

/* Where a job may be: waiting, in line or let in; running; ended in one of three ways. */
enum place { WAITS = 1, RUNS = 2, DEAD = 4, DONE = 8, GONE = 16 };

struct job {
    char id[16];
    int queue;
    int may;         /* places */
    bool may_expire; /* it may die by itself while it waits */
    bool cancelling; /* it was told so while it ran */
    bool is_unheard; /* its claim was lost on the way to the worker */
    bool is_big;     /* its payload stands by itself: its end is told with all that belongs to it */
    int64_t start;   /* number of its last start, 0: never */
    int64_t crashes;
    int64_t epoch; /* who runs it */
    int64_t fence;
    int unique; /* LEDGER_NONE: no key; so for its gates */
    int lock, limit_sem, limit_rate;
};

struct worker {
    int64_t epoch, link, counter;
    bool is_there, is_dead; /* registered; marked as dead, and reaped in part */
    bool is_program;        /* later lock, later sem */
    int gate; /* of a program: index in names_lock, or LOCKS + index in names_limited */
    bool holds;
    int seq, instance;
};

/* A caller's lease. */
struct lease {
    bool is_held;
    int64_t until_ms;
    int64_t fence;
};

struct limit {
    enum { LIMIT_NONE, LIMIT_SEM, LIMIT_RATE } kind;
    int algorithm; /* index in names_algorithm */
    int64_t n, per_ms, burst;
};

struct raw {
    char payload[24];
    int queue;
    bool waits;
    bool may_go; /* it may have been purged */
};

struct ledger {
    int space;
    const char *root;
    struct job job[LEDGER_JOBS];
    int jobs, alive; /* alive: may wait or run, counted when looked at */
    int slot[2 * LEDGER_JOBS];
    struct worker worker[LEDGER_WORKERS];
    int workers;
    struct raw raw[LEDGER_RAWS];
    int raws;
    struct lease lock[LOCKS][OWNERS], sem[LIMITED][OWNERS];
    struct limit limit[DEFINED];
    int queue_lock[QUEUES], queue_sem[QUEUES], queue_rate[QUEUES]; /* or LEDGER_NONE */
    int64_t fence;                                                 /* the highest that was told */
    int64_t seats[LIMITED]; /* the most places of a semaphore that may be taken now */
};

void ledger_clear(struct ledger *l, int space);

/* ---- jobs */

struct job *ledger_find(struct ledger *l, const char *id); /* or NULL */
/* A new one, which waits; NULL and a verdict if there was one of this id. */
struct job *ledger_add(struct ledger *l, const char *id, int queue);
/* It was handed out. */
void ledger_start(struct ledger *l, struct job *j, int64_t epoch, int64_t start, int64_t fence);
/* Names of places, for a text; good until the next but one. */
const char *ledger_places(int may);
bool ledger_is_live(const struct job *j);
/* It runs no more and did not end: it waits again, or it ends after all, since that was told to it
 * or since another has its unique key. */
int ledger_back(const struct ledger *l, const struct job *j);
/* Does it need this lock or this semaphore, of its own or of its queue's? */
bool ledger_needs_lock(const struct ledger *l, const struct job *j, int lock);
bool ledger_needs_sem(const struct ledger *l, const struct job *j, int limited);
bool ledger_needs_rate(const struct ledger *l, const struct job *j, int limited);

/* ---- limits */

/* What holds for a name: its own definition or that of the template. */
const struct limit *ledger_limit(const struct ledger *l, int limited);
/* A call was made under the limits as they are: so many places may have been taken. */
void ledger_seat(struct ledger *l);

/* ---- callers */

/* Leases that are over now are over for good: the clock may be set back. */
void ledger_end_leases(struct ledger *l, int64_t now_ms);

/* ---- workers */

struct worker *ledger_worker(struct ledger *l, int64_t epoch);
/* A number that has to be above all told before. */
void ledger_fence(struct ledger *l, int64_t fence, const char *what);

#endif
