/*
 * One state of the model: what Redis holds, what each worker knows, which calls are on their way,
 * and what has happened that a property asks for. Plain bytes: a state is copied by assignment and
 * compared byte by byte. Numbers that only ever rise (the hybrid clock, links, registrations) are
 * brought down by state_canon, so that states that differ in them only are one.
 */
#ifndef MODEL_STATE_H
#define MODEL_STATE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define JOBS_MAX 3
#define WORKERS_MAX 3
#define ENTRIES_MAX 7 /* of R:workers, and epochs without one */
#define STARTS_MAX 15 /* a job that was started so often is claimed no more */
#define LOCK 0        /* the gate with room for one job */
#define SEM 1         /* the gate with room for two */
#define GATES 2

/* What a broken variant leaves out. */
enum variant {
    NO_FENCE = 1,        /* a result counts by the id of its job alone */
    NO_LINK = 2,         /* link numbers are not compared */
    SECONDS = 4,         /* silence is counted in time, not in own accepted beats */
    ATTEMPT_FENCE = 8,   /* attempts are compared where start numbers should be */
    GATE_LEAK = 16,      /* reaping forgets the gates */
    NO_SEEN = 32,        /* a registration tells nothing of the numbers its worker knows */
    NO_COUNTER = 64,     /* a reap does not compare the victim's counter */
    NO_DEAD = 128,       /* reaping marks nobody dead before it moves jobs */
    CLOCK_BACK = 256,    /* no fault of the protocol: Redis' clock is behind what it gave out */
    ADOPT_SETTLED = 512, /* a waiting job is adopted though its start may have ended */
    NO_SEEN_RECONCILE = 1024, /* a reconcile tells nothing of the numbers its worker knows */
    BACK_ONLY = 2048, /* with CLOCK_BACK: what is known to a worker that is not back is not asked */
};

/* How often a thing may still happen. */
struct budget {
    uint8_t crash, freeze, cut, outage, rewind, fail, cancel, retry, stop;
};

struct conf {
    const char *name;
    uint8_t jobs, workers;
    uint8_t places;   /* jobs at once in a worker */
    uint8_t attempts; /* the budget of a job */
    uint8_t crashes;  /* with so many it is dead */
    uint8_t silence;  /* own accepted beats that see the same until another is silent */
    uint8_t lock;     /* jobs that need the lock, a bit each */
    uint8_t sem;      /* jobs that need the semaphore */
    bool has_add;     /* the last job is added on the way, the others are there */
    bool is_early;    /* what is lost is everything: the snapshot is the empty start */
    bool is_entered;  /* what is lost is what came after all workers had registered */
    bool has_late;    /* a call under way outlives the restart of Redis, which kills connections */
    struct budget budget;
    unsigned variant;
};

/* ---- Redis */

/* The places where a job can be; a bit each, so that a job in two of them can be seen. */
enum job_set { WAITING = 1, RUNNING = 2, DONE = 4, DEAD = 8, CANCELLED = 16 };
#define TERMINAL (DONE | DEAD | CANCELLED)

struct job {
    uint8_t sets;
    uint8_t owner; /* the epoch in R:running */
    uint8_t starts, attempts, crashes;
    uint8_t cancel;      /* flagged in R:cancel */
    uint8_t reaped_from; /* R:errors: this very start was reaped from that epoch; 0: says no such */
};

/* STRANGER: no worker, but an epoch that holds jobs (the counter '?' of a beat's answer). */
enum mark { ALIVE = 1, MARKED_DEAD, STRANGER };

struct entry {
    uint8_t epoch;
    uint8_t mark;
    uint8_t link;
    uint8_t worker, life; /* the token of the process: which worker, and which of its lives */
    uint8_t seq;
};

struct redis {
    struct job jobs[JOBS_MAX];
    struct entry entries[ENTRIES_MAX];
    uint8_t nentries;
    uint8_t clock;
    uint8_t holders[GATES]; /* jobs, a bit each */
};

/* ---- calls */

enum call_kind { NO_CALL, REGISTER, BEAT, RECONCILE, STEP, REAP, LEAVE };
enum status { OK, SAID_DEAD, SAID_UNKNOWN, SAID_LINK, REFUSED };
enum verb { NO_VERB, SAY_DONE, SAY_RETRY, SAY_DEAD, SAY_RELEASE };
/* How the counter that a reap carries compares to the victim's now. Counters never repeat, so a
 * beat of the victim makes FRESH into STALE for good. */
enum counter { FRESH = 1, STALE, WAS_DEAD, WAS_STRANGER };
enum word { NO_WORD, KEPT, GONE, TAKEN };

struct call {
    uint8_t kind;
    uint8_t is_answered; /* executed, and the answer is on its way */
    uint8_t epoch, link;
    uint8_t life, seq, seen, old; /* REGISTER; seen: RECONCILE too */
    uint8_t victim, counter;      /* REAP */
    uint8_t running, room;        /* STEP: HELD, MAX */
    uint8_t start[JOBS_MAX];      /* of each result or each job that is held, 0: none */
    uint8_t attempt[JOBS_MAX];
    uint8_t verb[JOBS_MAX];
};

struct answer {
    uint8_t status;
    uint8_t number; /* a new epoch, the highest fence, of a reap how many jobs it moved */
    uint8_t link;
    uint8_t count;      /* BEAT: jobs held; REAP: whether there is more */
    uint8_t is_rewound; /* REGISTER */
    uint8_t seen;       /* REGISTER, BEAT: the highest epoch that is listed */
    uint8_t cancels;    /* STEP: jobs, a bit each */
    uint8_t word[JOBS_MAX];
    uint8_t start[JOBS_MAX]; /* STEP: of each job claimed, 0: none */
    uint8_t attempt[JOBS_MAX];
    uint8_t crashes[JOBS_MAX];
};

/* ---- workers */

enum process { UP, FROZEN, DOWN };
enum sched_state { OFFLINE, REGISTERING, BEATING, RECONCILING, READY, LEAVING };
enum slot_state { NONE, RUNS, ENDED, SENT };

/* One job that a worker holds: struct held_job of the daemon. */
struct slot {
    uint8_t state;
    uint8_t start, attempt;
    uint8_t verb;
    uint8_t is_killed, is_forgotten, is_solo;
};

struct worker {
    uint8_t process;
    uint8_t state;
    uint8_t life; /* how often it was started */
    uint8_t epoch, link, seq, seen;
    uint8_t is_stopping;
    uint8_t is_ailing;  /* cut off, frozen or crashed since its last accepted beat */
    uint8_t has_beaten; /* in this round of time */
    uint8_t victim, counter, is_certain; /* whom it wants to reap */
    struct slot slots[JOBS_MAX];
    uint8_t lost[JOBS_MAX]; /* 1: a run that is not its own any more still ends */
    /* Of each entry: 0 when its counter moved since the last look (or there was none), else the
     * number of looks that saw it there. */
    uint8_t watch[ENTRIES_MAX];
    struct call call;
    struct answer answer;
    struct call stray; /* a call of a link that broke: may still be executed, nobody hears of it */
};

/* ---- what happened, for the properties */

enum wrong {
    STARTED_TWICE = 1,
    TAKEN_LATE = 2,
    SETTLED_TWICE = 4,
    UNCAUSED = 8,
    NOT_DEAD = 16,
    TICKED_TWICE = 32,
    TOKEN_FELL = 64,
    OVERFLOW = 128, /* a bound of the model was met */
};

struct history {
    uint16_t started[JOBS_MAX]; /* start numbers that were used up, a bit each */
    uint16_t settled[JOBS_MAX]; /* start numbers with a result that was applied */
    uint8_t open[JOBS_MAX];     /* the start whose process has no recorded end */
    uint8_t ended[JOBS_MAX];    /* the terminal set that it came to */
    uint8_t added;              /* jobs whose add was acknowledged and not rolled back */
    uint8_t issued;             /* the highest number of the hybrid clock ever given out */
    uint8_t token[GATES];       /* fence of the last grant */
    uint8_t wrong;
};

struct state {
    struct history history;
    struct redis redis;
    struct redis snapshot;
    uint8_t has_snapshot;
    uint8_t is_out; /* Redis cannot be reached by anybody */
    struct budget left;
    struct worker workers[WORKERS_MAX];
};

#define BIT(i) ((uint8_t)(1U << (i)))

void state_init(const struct conf *c, struct state *s);
/* The representative of all states that behave as this one. */
void state_canon(const struct conf *c, struct state *s);
/* Of it, what is said about history: marks what can never be asked for again. */
void state_tidy_history(const struct conf *c, struct state *s);
uint64_t state_hash(const struct state *s);
/* One line or two about it. */
void state_print(const struct conf *c, const struct state *s, FILE *out);

#endif
