/*
 * One state of the model: what Redis holds, what each worker knows, which calls are under way, and
 * the past events that a property asks about. A state is plain bytes: it is copied by assignment
 * and compared byte by byte. Some numbers only ever rise (the hybrid clock, links, registrations).
 * state_canon lowers them, so that states that differ only in such numbers become one.
 */
#ifndef MODEL_STATE_H
#define MODEL_STATE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define JOBS_MAX 3
#define WORKERS_MAX 3
#define ENTRIES_MAX 7 /* of R:workers, and epochs without one */
#define STARTS_MAX 15 /* a job with so many starts is not claimed any more */
#define LOCK 0        /* the gate with one permit */
#define SEM 1         /* the gate with two permits */
#define GATES 2

/* What a broken variant leaves out. */
enum variant {
    NO_FENCE = 1,        /* a result is accepted by the id of its job alone */
    NO_LINK = 2,         /* link numbers are not compared */
    SECONDS = 4,         /* silence is counted in time, not in our own accepted beats */
    ATTEMPT_FENCE = 8,   /* attempts are compared instead of start numbers */
    GATE_LEAK = 16,      /* reaping does not free the gates */
    NO_SEEN = 32,        /* a registration does not tell the numbers that its worker knows */
    NO_COUNTER = 64,     /* a reap does not compare the victim's counter */
    NO_DEAD = 128,       /* a reap does not write its victim off before it moves jobs */
    CLOCK_BACK = 256,    /* not an error of the protocol: Redis' clock is behind its own numbers */
    ADOPT_SETTLED = 512, /* a waiting job is adopted though its start may have ended */
    NO_SEEN_RECONCILE = 1024, /* a reconcile does not tell the numbers that its worker knows */
    BACK_ONLY = 2048,         /* with CLOCK_BACK: only workers that are back know numbers */
};

/* How often each event may still happen. */
struct budget {
    uint8_t crash, freeze, cut, outage, rewind, fail, cancel, retry, stop;
};

struct conf {
    const char *name;
    uint8_t jobs, workers;
    uint8_t places;   /* jobs that a worker runs at once */
    uint8_t attempts; /* of each job */
    uint8_t crashes;  /* a job with so many crashes is dead */
    uint8_t silence;  /* own accepted beats without a change until another worker is silent */
    uint8_t lock;     /* the jobs that need the lock, as bits */
    uint8_t sem;      /* the jobs that need the semaphore, as bits */
    bool has_add;     /* the last job is added later; the others exist at the start */
    bool is_early;    /* a rewind loses everything: the snapshot is the empty start */
    bool is_entered;  /* the snapshot is made after all workers have registered */
    bool has_late;    /* a call under way outlives a restart of Redis, unlike in reality */
    struct budget budget;
    unsigned variant;
};

/* ---- Redis */

/* Where a job can be: one bit each, so that a job in two sets can be seen. */
enum job_set { WAITING = 1, RUNNING = 2, DONE = 4, DEAD = 8, CANCELLED = 16 };
#define TERMINAL (DONE | DEAD | CANCELLED)

struct job {
    uint8_t sets;
    uint8_t owner; /* the epoch in R:running */
    uint8_t starts, attempts, crashes;
    uint8_t cancel;      /* it stands in R:cancel */
    uint8_t reaped_from; /* R:errors: this start was reaped from that epoch; 0: no such entry */
};

/* STRANGER: an epoch that holds jobs without being a worker (counter '?' in a beat's answer). */
enum standing { ALIVE = 1, WRITTEN_OFF, STRANGER };

struct entry {
    uint8_t epoch;
    uint8_t standing;
    uint8_t link;
    uint8_t worker, life; /* the token of the process: which worker, and its life number */
    uint8_t seq;
};

struct redis {
    struct job jobs[JOBS_MAX];
    struct entry entries[ENTRIES_MAX];
    uint8_t nentries;
    uint8_t clock;
    uint8_t holders[GATES]; /* the jobs that hold it, as bits */
};

/* ---- calls */

enum call_kind { NO_CALL, REGISTER, BEAT, RECONCILE, SYNC, REAP, LEAVE };
enum status { OK, SAID_DEAD, SAID_UNKNOWN, SAID_LINK, REFUSED };
enum verb { NO_VERB, SAY_DONE, SAY_RETRY, SAY_DEAD, SAY_RELEASE };
/* How the counter in a reap compares to the victim's present one. Counters never repeat, so a beat
 * of the victim turns FRESH into STALE for ever. */
enum counter { FRESH = 1, STALE, WAS_DEAD, WAS_STRANGER };
enum word { NO_WORD, KEPT, GONE, TAKEN };

struct call {
    uint8_t kind;
    uint8_t is_answered; /* executed; the answer is under way */
    uint8_t epoch, link;
    uint8_t life, seq, seen, old; /* REGISTER; seen: also RECONCILE */
    uint8_t victim, counter;      /* REAP */
    uint8_t running, room;        /* SYNC: HELD, MAX */
    uint8_t start[JOBS_MAX];      /* of each result or held job, 0: none */
    uint8_t attempt[JOBS_MAX];
    uint8_t verb[JOBS_MAX];
};

struct answer {
    uint8_t status;
    uint8_t number; /* a new epoch, or the highest fence; REAP: how many jobs it moved */
    uint8_t link;
    uint8_t count;      /* BEAT: jobs held; REAP: is there more? */
    uint8_t is_rewound; /* REGISTER */
    uint8_t seen;       /* REGISTER, BEAT: the highest epoch in R:workers */
    uint8_t cancels;    /* SYNC: jobs, as bits */
    uint8_t word[JOBS_MAX];
    uint8_t start[JOBS_MAX]; /* SYNC: of each claimed job, 0: none */
    uint8_t attempt[JOBS_MAX];
    uint8_t crashes[JOBS_MAX];
};

/* ---- workers */

enum process { UP, FROZEN, DOWN };
enum sched_state { OFFLINE, REGISTERING, BEATING, RECONCILING, READY, LEAVING };
enum slot_state { NONE, RUNS, ENDED, SENT };

/* A job that a worker holds: struct held_job of the daemon. */
struct slot {
    uint8_t state;
    uint8_t start, attempt;
    uint8_t verb;
    uint8_t is_killed, has_no_record, is_solo;
};

struct worker {
    uint8_t process;
    uint8_t state;
    uint8_t life; /* how often it was started */
    uint8_t epoch, link, seq, seen;
    uint8_t is_stopping;
    uint8_t is_ailing;  /* cut off, frozen or crashed since its last accepted beat */
    uint8_t has_beaten; /* in this round of time */
    uint8_t victim, counter, is_certain; /* the worker that it wants to reap */
    struct slot slots[JOBS_MAX];
    uint8_t lost[JOBS_MAX]; /* 1: a run that the worker has lost is still to end */
    /* For each entry: 0 if its counter has moved since the last check (or there was none), else how
     * many checks found it unchanged. */
    uint8_t watch[ENTRIES_MAX];
    struct call call;
    struct answer answer;
    struct call stray; /* a call of a broken link: may still be executed, without an answer */
};

/* ---- past events, for the properties */

enum wrong {
    STARTED_TWICE = 1,
    TAKEN_LATE = 2,
    SETTLED_TWICE = 4,
    UNCAUSED = 8,
    NOT_DEAD = 16,
    TICKED_TWICE = 32,
    TOKEN_FELL = 64,
    OVERFLOW = 128, /* a limit of the model was reached */
};

struct history {
    uint16_t started[JOBS_MAX]; /* start numbers that were used up, as bits */
    uint16_t settled[JOBS_MAX]; /* start numbers with a result that was applied, as bits */
    uint8_t open[JOBS_MAX];     /* the start whose process has not ended, as far as is noted */
    uint8_t ended[JOBS_MAX];    /* the set in which it ended */
    uint8_t added;              /* jobs whose add was acknowledged and not rolled back */
    uint8_t issued;             /* the highest number that the hybrid clock has given out */
    uint8_t token[GATES];       /* fence of the last grant */
    uint8_t wrong;
};

struct state {
    struct history history;
    struct redis redis;
    struct redis snapshot;
    uint8_t has_snapshot;
    uint8_t is_out; /* nobody can reach Redis */
    struct budget left;
    struct worker workers[WORKERS_MAX];
};

#define BIT(i) ((uint8_t)(1U << (i)))

void state_init(const struct conf *c, struct state *s);
/* Replace s by the representative of all states that behave like it. */
void state_canon(const struct conf *c, struct state *s);
/* The part of state_canon for the history: count starts that no worker can begin any more as used
 * up, and forget results that nothing names any more. */
void state_tidy_history(const struct conf *c, struct state *s);
uint64_t state_hash(const struct state *s);
/* Print the state in one or two lines. */
void state_print(const struct conf *c, const struct state *s, FILE *out);

#endif
