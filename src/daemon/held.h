/*
 * The jobs this worker holds, from the claim until Redis has confirmed their end. Pure.
 *
 * States, and who moves a job on:
 *   READYING  claimed, its payload, a beat or a place comes       -> RUNNING | ENDED
 *   RUNNING   given to the pool                                   -> ENDED
 *   ENDED     its verdict is known, not yet sent                  -> SENT
 *   SENT      part of the step under way                          -> gone | ENDED (not taken)
 */
#ifndef LATER_DAEMON_HELD_H
#define LATER_DAEMON_HELD_H

#include <stdbool.h>
#include <stddef.h>

#include "daemon/verdict.h"
#include "job/job.h"
#include "store/store.h"

enum held_state { HELD_READYING, HELD_RUNNING, HELD_ENDED, HELD_SENT };

struct held {
    struct held *next, *before;  /* in the list of all held jobs, the newest first */
    struct held *chain;          /* the next job in the same slot of the table */
    struct held *behind, *ahead; /* READYING: the neighbours in the line for a place */
    bool is_in_line;
    struct job job;
    enum held_state state;
    struct verdict verdict; /* from ENDED on */
    char *tail;             /* owned; output sent with the verdict; NULL: none */
    size_t tail_len;
    char progress[256];
    bool has_progress;      /* not sent yet */
    struct mono start_at;   /* READYING: claimed ahead, it is due then; us 0: now */
    bool awaits_beat;       /* READYING: its payload is there, it holds a lock */
    bool is_killed;         /* the pool was told to end it: cancelled, lost, stopped */
    bool is_lost;           /* another worker may hold it: its result is dropped */
    bool is_forgotten;      /* Redis lost its record: it may run to its end, and does not count */
    bool is_refused;        /* Redis could not write its result: it keeps its queue's place */
    bool is_gated;          /* its end may let in another job of its queue */
    bool is_small;          /* its payload came with the claim */
    bool is_solo;           /* suspected of killing workers: runs alone (held_mark_solo) */
    struct mono not_before; /* ENDED: Redis could not write its result, send it again then */
    struct mono claimed_at;
    struct mono started_at; /* RUNNING */
    int64_t late_us;        /* how long after its due time it was claimed, by Redis' clock */
};

#define HELD_TABLE 1024 /* a power of two; about as many as there may be */

struct held_list {
    struct held *first;
    struct held *table[HELD_TABLE]; /* by id */
    size_t n;
    size_t running;               /* READYING and RUNNING */
    size_t ended;                 /* ENDED */
    size_t solos;                 /* jobs that run alone, of all */
    struct held *line, *line_end; /* READYING: jobs that wait for a place, the oldest first */
    size_t waiting;
};

/* Takes over the job's payload. */
struct held *held_add(struct held_list *l, const struct job *job);
/* READYING or RUNNING: the job runs alone. */
void held_mark_solo(struct held_list *l, struct held *h);
/* READYING: the job waits for a place, behind all others. held_end and held_remove take it out of
 * the line. */
void held_queue_up(struct held_list *l, struct held *h);
void held_leave_line(struct held_list *l, struct held *h);
void held_remove(struct held_list *l, struct held *h);
void held_clear(struct held_list *l);
/* The held job of this id, and no lost one: a lost job whose process still ends may have it too. */
struct held *held_find(const struct held_list *l, const char *id);
/* The lost job of this id whose process still ends here. */
struct held *held_find_lost(const struct held_list *l, const char *id);
/* The job of this id in the pool, lost or not; the caller makes sure that there is only one. */
struct held *held_in_pool(const struct held_list *l, const char *id);
/* READYING or RUNNING -> ENDED; tail is copied. */
void held_end(struct held_list *l, struct held *h, const struct verdict *v, const char *tail,
              size_t tail_len);

/* Fill out with up to max results (ends first, then progress); ENDED -> SENT. */
size_t held_collect(struct held_list *l, struct mono now, struct store_result *out, size_t max);
bool held_has_results(const struct held_list *l, struct mono now);
/* Redis answered that it could not write this result: SENT -> ENDED. */
void held_refused(struct held_list *l, struct held *h);
/* The step that carried the results failed: SENT -> ENDED. */
void held_unsend(struct held_list *l);
/* All jobs that Redis should count for this worker, for reconcile and adoption; the caller frees
 * the array. */
size_t held_names(const struct held_list *l, struct store_held **ret);
bool held_is_named(const struct held *h);

#endif
