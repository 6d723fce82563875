/*
 * The scheduler: one worker's side of the protocol, as a state machine. Events and the time go in,
 * effects come out through a table of operations; it touches no clock, no Redis and no process, so
 * that tests drive it with virtual ones.
 *
 * States: OFFLINE --link up--> REGISTERING (the first time) or BEATING -> RECONCILING --> READY.
 * After an error reply the worker backs off and is BEATING again: the first call after an error is
 * a beat. LEAVING and GONE follow a stop. In READY one sync is under way, or two that overlap; each
 * carries results and asks for claims. sched_move (sched_state.c) is the one writer of the state.
 *
 * An operation that calls the store returns 0 when the call was sent. Its answer comes as exactly
 * one of these: the sched_on_* event of the call, sched_on_error, or sched_link_down. The operation
 * returns -1 when nothing was sent: the scheduler waits and tries again. Answers come in the order
 * of the calls.
 */
#ifndef LATER_SCHED_SCHED_H
#define LATER_SCHED_SCHED_H

#include <stdbool.h>

#include "base/clock.h"
#include "base/error_class.h"
#include "sched/held_jobs.h"
#include "sched/queues.h"
#include "store/store.h"

#define SCHED_BEAT_MS 5000
#define SCHED_LOOK_MS 1000
/* How early small jobs without gates are claimed. Most round trips take less, also on a busy
 * machine. */
#define SCHED_AHEAD_US 2000
#define SCHED_TIDY_MS 10000     /* each queue is tidied once in this time */
#define SCHED_TIDY_QUEUES 64    /* most queues in one call; for more, calls come more often */
#define SCHED_TIDY_LEAST_MS 250 /* least time between two calls */
#define SCHED_SYNC_JOBS 192     /* results a sync carries, and claims it may return */
/* A suspect that has waited for WAIT makes this worker claim nothing for DRY, once in EVERY. */
#define SCHED_SOLO_WAIT_MS 10000
#define SCHED_SOLO_DRY_MS 30000
#define SCHED_SOLO_EVERY_MS 300000

struct sched;

/* Effects. ctx is the first argument of all. */
struct sched_ops {
    int (*reg)(void *ctx, const struct store_register *req);
    int (*beat)(void *ctx, int64_t epoch, const char *queues);
    int (*reconcile)(void *ctx, int64_t epoch, int64_t link, int64_t seen,
                     const struct store_held *held, size_t nheld);
    int (*sync)(void *ctx, const struct store_sync *sync);
    /* Which of these queues does a sync have to name, now or within soon_ms? */
    int (*look)(void *ctx, int64_t soon_ms, const char *const *queues, size_t n);
    int (*fetch)(void *ctx, const char *id);       /* payload of a big job */
    int (*end_orphans)(void *ctx, int64_t victim); /* end what it left (worker/orphans.h) */
    int (*reap)(void *ctx, int64_t epoch, int64_t victim, const char *counter);
    int (*tidy)(void *ctx, int64_t epoch);
    int (*leave)(void *ctx, int64_t epoch);
    /* Close the link and connect again. sched_link_down is called before it returns. */
    void (*relink)(void *ctx, enum error_class class, const char *text);

    /* May this job start? If not, its verdict. Called once per claim, before start. */
    bool (*admit)(void *ctx, const struct job *job, struct verdict *refusal);
    /* Redis cannot add the children of this job, which has ended well. -> its verdict */
    void (*refuse)(void *ctx, const struct job *job, const char *why, struct verdict *verdict);
    /* Run the job. sched_job_ended tells of its end, never before start has returned. The caller
     * makes sure that there is a place, and that no other run of the job is in the pool. */
    void (*start)(void *ctx, struct held_job *held);
    /* End the job: TERM, and KILL after the grace period; or KILL at once. */
    void (*kill)(void *ctx, const struct held_job *held, bool at_once);
    /* Is the process of this worker gone for certain? Only its own host can tell. */
    bool (*is_gone)(void *ctx, const struct store_peer *peer);

    /* One timer for everything: sched_on_timer at this instant. */
    void (*arm)(void *ctx, struct mono at);
    void (*registered)(void *ctx, int64_t epoch);
    void (*gone)(void *ctx); /* stopped, everything confirmed or given up */
    uint32_t (*random)(void *ctx);

    /* A guarded job (job/job.h) starts only when both are true. has_guard: the guard process lives
     * (run/guard/guard.h). is_fresh: the beat that was acknowledged last was sent less than 5 s
     * ago, the sleep of the machine counted. A moment is taken off these 5 s, since the pool's
     * thread asks again later. */
    bool (*has_guard)(void *ctx);
    bool (*is_fresh)(void *ctx);
    /* The worker begins to claim nothing, to become idle for a suspect; or that is over. */
    void (*emptying)(void *ctx, bool is_begun);
};

struct sched_conf {
    unsigned places;  /* concurrency */
    int64_t ahead_us; /* small jobs without gates are claimed this long before they are due, and
                         start when due */
    int64_t stop_timeout_ms;
    bool prefetches; /* claims more jobs than it has places, see sched/prefetch.h */
};

struct sched *sched_new(const struct sched_conf *conf, const struct sched_ops *ops, void *ctx);
void sched_free(struct sched *s);

/* Settings that may change while it runs. */
void sched_set_queues(struct sched *s, struct mono now, const struct queue_spec *specs, size_t n);
/* How many jobs of a served queue may run here at once. */
void sched_set_max_at_once(struct sched *s, struct mono now, const char *queue, unsigned n);
void sched_set_stop_timeout(struct sched *s, int64_t ms);
/* Owned by s. */
struct queues *sched_queues(struct sched *s);

/* Events. */
/* The first one, or one after sched_link_down. */
void sched_link_up(struct sched *s, struct mono now);
/* Before sched_link_up: a replica has taken over from the server that we were linked to. What had
 * not reached it is lost, so we register, with adoption, in place of reconciling. For
 * SESSION_FAILOVER_MS (sched/session.h) from then on no guarded job starts. */
void sched_failed_over(struct sched *s);
void sched_link_down(struct sched *s, struct mono now);
void sched_on_timer(struct sched *s, struct mono now);
/* text: the name of a queue, "!cancel" or "!beat"; anything else is ignored. One that comes while a
 * call of its kind is under way makes the worker send another. */
void sched_on_wake(struct sched *s, struct mono now, const char *text);
void sched_on_subscribed(struct sched *s, struct mono now);
void sched_on_registered(struct sched *s, struct mono now, const struct store_register_reply *r);
void sched_on_beat(struct sched *s, struct mono now, const struct store_beat_reply *r);
void sched_on_reconciled(struct sched *s, struct mono now, const struct store_reconcile_reply *r);
void sched_on_sync(struct sched *s, struct mono now, const struct store_sync_reply *r);
void sched_on_looked(struct sched *s, struct mono now, const struct store_look_reply *r);
void sched_on_fetched(struct sched *s, struct mono now, const char *id, const char *payload,
                      size_t n);
/* This is no answer of the store: it may come at any time, and not at all after a lost link. */
void sched_on_orphans_ended(struct sched *s, struct mono now, int64_t victim, bool is_clear);
void sched_on_reaped(struct sched *s, struct mono now, enum store_reap status, int64_t moved);
void sched_on_tidied(struct sched *s, struct mono now);
void sched_on_left(struct sched *s, struct mono now);
/* A call was answered by an error, and has changed nothing. */
void sched_on_error(struct sched *s, struct mono now, enum error_class class, const char *text);
void sched_job_ended(struct sched *s, struct mono now, const char *id, const struct verdict *v,
                     const struct verdict_data *data);
/* Call this after one or more sched_job_ended, so that one sync carries all these ends. */
void sched_jobs_ended(struct sched *s, struct mono now);
void sched_job_progress(struct sched *s, const char *id, const char *text);
/* Where the next attempt of a running job goes on; "": nowhere. Redis has it within a second, and
 * before the end of this attempt, unless that is done. */
void sched_job_checkpoint(struct sched *s, struct mono now, const char *id, const char *text);

/* Stop; the second call: do not wait for running jobs. */
void sched_stop(struct sched *s, struct mono now);
/* Claim no more jobs, and stay registered. */
void sched_quiet(struct sched *s, struct mono now);

/* For the status line and the log. */
struct sched_status {
    size_t running, unsent;
    size_t unwritten; /* of the unsent: results that Redis could not write */
    bool is_ready, is_quiet, is_stopping;
    int64_t epoch;
    unsigned places; /* jobs at once now: fewer than configured where the host bears no more */
};
void sched_status(const struct sched *s, struct sched_status *ret);
struct sched_run {
    const struct job *job; /* valid until the next event */
    int64_t ms;            /* how long it runs */
};
/* The jobs that run for least_ms or longer, at most max: the oldest ones. Returns how many. */
size_t sched_runs(const struct sched *s, struct mono now, int64_t least_ms, struct sched_run *out,
                  size_t max);
/* Free places; 0 while there is any reason not to claim. */
unsigned sched_free_places(const struct sched *s, struct mono now);

#endif
