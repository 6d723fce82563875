/*
 * What must be true: a model of every job. Each call that Redis executed changes the model, whoever
 * made the call and whether or not its reply arrived. A reply that does not fit breaks a property
 * by name:
 *
 *   I1  no job is lost, each is in exactly one set       I5  an end is left only by an operator
 *   I2  one start per start number, never two live runs  I6  every later start has a cause
 *   I3  only the holder's results count                  I8  the indexes of Redis agree (audit.h)
 *   I4  attempts are counted and never exceeded          I9  after the trouble all jobs end
 *   I7  no two run under one lock, and as many under a semaphore as it has permits
 *   I11 each end of a job causes exactly what its chain, its handler and its batch say (chain.h,
 *       batch.h)
 *   schedule-… each occurrence of a schedule is added once, or counted as skipped or missed
 *       (schedule.h)
 *   topic-copies  what is published has a copy for each queue, once
 *   broadcast-all, -target, -gone  each worker or host has a job of a broadcast, runs it itself,
 *       and it is cancelled only when that is gone (broadcast.h)
 *   foreign-once  each member of a foreign queue is in its set, or became one job (foreign.h)
 *   fair-turn, -debt, -left  a waiting job of a fair queue is one of its tenant, and nothing is
 * left of a tenant without jobs (fair.h) LockToken   the fences of a lock rise            I10
 * nothing is left behind GcraWindow  no more starts in any time than burst + rate * time early no
 * start before its time by Redis' clock
 *
 * When Redis loses data, the model goes back with it and forgives what follows from the loss.
 */
#ifndef LATER_TESTS_SIMULATION_LEDGER_H
#define LATER_TESTS_SIMULATION_LEDGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "job/job.h"
#include "redis/reply.h"
#include "worker.h"

#define LEDGER_ATTEMPTS 5 /* settings of the workers */
#define LEDGER_CRASHES 3

enum where { WAITING, RUNNING, DONE, DEAD, CANCELLED };

/* What a job causes: the queues that follow, with commas between them, and the queue that is told
 * of its death; "" for none. Then how often it was done and died, and how many jobs that has
 * caused. */
struct chain {
    char then[4 * (JOB_QUEUE_MAX + 1)], on_dead[JOB_QUEUE_MAX + 1];
    unsigned ends, deaths, followed, told;
    unsigned children, born; /* the children of its ends, and those that were met */
};

struct entry {
    char id[JOB_ID_LEN + 1];
    char queue[JOB_QUEUE_MAX + 1];
    enum where where;
    int64_t start, attempts, crashes;
    int64_t epoch;         /* RUNNING */
    int64_t not_before_ms; /* by Redis' clock */
    int64_t attempts_max;
    int lock; /* 0: none */
    bool has_sem, has_rate;
    bool is_cancelling;
    bool may_expire;
    bool ran;            /* a handler was started with this start number */
    bool is_rolled_back; /* by a loss of data, and not claimed since */
    struct chain chain;
    int batch; /* 0: none */
    bool is_child, has_died;
    int schedule;    /* its number, from 1; 0: none */
    int member;      /* of the foreign queue, from 1; 0: none */
    char target[72]; /* w<epoch> or h<host>: of a broadcast to it */
    int64_t occurrence_ms;
    bool is_ahead;      /* an occurrence was added while it was still to come */
    int64_t checkpoint; /* that Redis has; 0: none */
};

/* A raw member that waits. */
struct raw {
    char payload[32];
    char queue[JOB_QUEUE_MAX + 1];
    int64_t due_ms;
};

void ledger_begin(void);
void ledger_end(void);

/* Redis executed a call of `by`, sent at sent_us. */
void ledger_executed(const struct owner *by, int64_t sent_us, int argc, const char *const *argv,
                     const struct reply *reply);
/* A handler starts; the numbers are those of its environment. checkpoint: -1 for none */
void ledger_run_started(const struct worker *w, const char *id, int64_t fence, int64_t attempt,
                        int64_t attempts_max, int64_t checkpoint);
/* The handler with this fence tells its worker where the next attempt goes on. */
void ledger_checkpoint_told(int64_t fence, int64_t checkpoint);
void ledger_run_ended(int64_t fence);

/* Call these together with server_save and server_lose. */
void ledger_save(void);
void ledger_lose(void);

/* A new job, in the model. The pointer is valid until the next one. */
struct entry *ledger_add(const char *id, const char *queue);
/* A raw member becomes a job when it is claimed, in a fair queue when a sync sees it. NULL: there
 * is no such member. */
struct entry *ledger_meet_raw(const char *id, const char *record);
/* The job is among the dead now. */
void ledger_die(struct entry *e);
/* The job is cancelled with its batch, if it has not ended. */
void ledger_cancel(struct entry *e);
size_t ledger_index(const struct entry *e); /* ledger_at(i) is e */

size_t ledger_count(void);
struct entry *ledger_at(size_t i);
struct entry *ledger_find(const char *id);
const struct raw *ledger_raws(size_t *n);
bool ledger_knows_worker(int64_t epoch);
/* The worker of this epoch, as long as Redis takes it for alive; NULL: none. */
const struct worker *ledger_process(int64_t epoch);
/* The epoch of this worker while Redis takes it for alive; 0: it does not. */
int64_t ledger_epoch(const struct worker *w);
/* How many of the workers that Redis knows have died? */
size_t ledger_dead_workers(void);
size_t ledger_workers(void);
const char *where_name(enum where where);

#endif
