/*
 * The jobs this worker holds, from the claim until Redis has confirmed their end. Pure.
 *
 * Each job is in one state. held_add sets the first state and held_move all others, and it accepts
 * the moves of this table (held_jobs.c has them as data):
 *
 *   CLAIMED        Redis handed it out just now         -> AWAITS_PLACE | ENDED
 *   AWAITS_PLACE   waits for a free place               -> FETCHING | AHEAD | AWAITS_BEAT | RUNNING
 *                                                          | ENDED
 *   FETCHING       waits for its large payload          -> AHEAD | AWAITS_BEAT | RUNNING | ENDED
 *   AHEAD          claimed early, waits for its due time; or is guarded, and there was a failover
 *                                                       -> AHEAD | AWAITS_BEAT | RUNNING | ENDED
 *   AWAITS_BEAT    is guarded, waits for the answer to a beat  -> RUNNING | ENDED
 *   RUNNING        was given to the runner (`pool` below)  -> ENDED | LOST
 *   LOST           another worker may hold it: its process is being killed, its report is dropped
 *   ENDED          its verdict is known and not sent    -> SENT
 *   SENT           its verdict is in a sync under way   -> ENDED (the sync failed, or Redis could
 *                                                          not take the verdict)
 *
 * held_remove takes a job out of any state: its end is confirmed, or this worker does not hold it
 * any more.
 */
#ifndef LATER_SCHED_HELD_JOBS_H
#define LATER_SCHED_HELD_JOBS_H

#include <stdbool.h>
#include <stddef.h>

#include "job/job.h"
#include "store/store.h"
#include "store/verdict.h"

/* In the order of a life: the comparisons of held_is_* go by it. */
enum held_state {
    HELD_CLAIMED,
    HELD_AWAITS_PLACE,
    HELD_FETCHING,
    HELD_AHEAD,
    HELD_AWAITS_BEAT,
    HELD_RUNNING,
    HELD_LOST,
    HELD_ENDED,
    HELD_SENT,
    HELD_STATES
};

struct held_job {
    struct held_job *next, *before; /* in the list of all held jobs, the newest first */
    struct held_job *in_bucket;     /* the next job in the same bucket of the table */
    struct held_job *awaiting_after, *awaiting_before; /* AWAITS_PLACE: its neighbours */
    struct job job;
    enum held_state state;  /* written by held_move alone */
    struct verdict verdict; /* from ENDED on */
    char *output;           /* owned; output sent with the verdict; NULL: none */
    size_t output_len;
    struct children *children; /* owned; jobs that are added if it is done; NULL: none */
    char progress[256];
    bool has_progress;         /* not sent yet */
    char *checkpoint;          /* owned; the last one of this attempt; NULL: it has told none */
    bool has_checkpoint;       /* not sent yet, or not since the link was lost */
    struct mono checkpoint_at; /* RUNNING: send the next one not before */
    struct mono start_at;      /* AHEAD: not before */
    bool is_killed;            /* the pool was told to end it: cancelled, lost, stopped */
    bool has_no_record;     /* Redis lost its record: it may run to its end, and does not count */
    bool is_unwritten;      /* Redis could not write its result: still counts for its queue */
    bool is_left;           /* a sync left its result for a later one: it still takes a place */
    bool is_gated;          /* its end may let in another job of its queue */
    bool is_small;          /* its payload came with the claim */
    bool is_solo;           /* suspected of killing workers: runs alone (held_set_solo) */
    struct mono not_before; /* ENDED: Redis could not write its result, send it again then */
    struct mono claimed_at; /* or, once it has its place, when it got that */
    struct mono started_at; /* RUNNING */
    int64_t late_us;        /* how late it was at claimed_at, by Redis' clock */
};

#define HELD_CHECKPOINT_MS 500 /* a job's checkpoints are sent at most this often */

#define HELD_TABLE 1024 /* a power of two; about as many as there may be */

struct held_jobs {
    struct held_job *first, *last;      /* the newest, the oldest */
    struct held_job *table[HELD_TABLE]; /* by id */
    size_t n;
    size_t unended;     /* before ENDED: each takes a place, or waits for one */
    size_t ended;       /* ENDED */
    size_t left;        /* is_left */
    size_t solos;       /* jobs that run alone, of unended */
    size_t checkpoints; /* has_checkpoint */
    struct held_job *awaiting, *awaiting_last; /* AWAITS_PLACE, the oldest first */
    size_t nawaiting;
};

/* Is it before ENDED: does it take a place, or wait for one? */
bool held_is_unended(const struct held_job *h);
/* Was it not given to the pool yet? */
bool held_is_unstarted(const struct held_job *h);
/* RUNNING or LOST. */
bool held_is_in_pool(const struct held_job *h);
/* Asserts that the table above has this move. A job that goes to AWAITS_PLACE stands behind all
 * others there. */
void held_move(struct held_jobs *l, struct held_job *h, enum held_state to);

/* Takes over the job's payload. -> CLAIMED */
struct held_job *held_add(struct held_jobs *l, const struct job *job);
/* Before ENDED: the job runs alone. */
void held_set_solo(struct held_jobs *l, struct held_job *h);
/* Frees the job. */
void held_remove(struct held_jobs *l, struct held_job *h);
void held_clear(struct held_jobs *l);
/* The held job of this id that is not LOST: a LOST one may have the same id. */
struct held_job *held_find(const struct held_jobs *l, const char *id);
/* The LOST job of this id, whose process still ends here. */
struct held_job *held_find_lost(const struct held_jobs *l, const char *id);
/* The job of this id in the pool, RUNNING or LOST; the caller makes sure that there is only one. */
struct held_job *held_in_pool(const struct held_jobs *l, const char *id);
/* -> ENDED; the data is copied. */
void held_end(struct held_jobs *l, struct held_job *h, const struct verdict *v,
              const struct verdict_data *data);
/* Redis refuses its children: it has this verdict instead. SENT -> ENDED */
void held_children_refused(struct held_jobs *l, struct held_job *h, const struct verdict *v);

/* A sync left its result for a later one: SENT -> ENDED */
void held_leave(struct held_jobs *l, struct held_job *h);
/* Redis could not write its result, which is sent again then. That may last: it takes no place.
 * SENT -> ENDED */
void held_put_off(struct held_jobs *l, struct held_job *h, struct mono until);

/* The job runs and tells where its next attempt goes on; the text is copied. */
void held_note_checkpoint(struct held_jobs *l, struct held_job *h, const char *text);
/* Redis could not write its checkpoint: send it again. */
void held_resend_checkpoint(struct held_jobs *l, struct held_job *h);
/* When the first checkpoint that was not sent is due; MONO_NEVER: there is none. */
struct mono held_checkpoint_at(const struct held_jobs *l);

/* Fill out with up to max results (checkpoints first; then ends, of these the ones that were left,
 * the oldest first; then progress); ENDED -> SENT. An end waits for its own checkpoint. An end that
 * does not fit beside the others is left. */
size_t held_collect(struct held_jobs *l, struct mono now, struct store_result *out, size_t max);
bool held_has_results(const struct held_jobs *l, struct mono now);
/* The sync that carried the results failed: SENT -> ENDED. */
void held_unsend(struct held_jobs *l);
/* All jobs that Redis should count for this worker, for reconcile and adoption; the caller frees
 * the array. */
size_t held_names(const struct held_jobs *l, struct store_held **ret);
/* Should Redis count this job for this worker? */
bool held_is_named(const struct held_job *h);

#endif
