/*
 * Requests of the scheduler to the shared store, and the replies: plain structs, so that a test can
 * replace Redis. The protocol behind them is in src/lua (private functions, later_v1_* and
 * later_v2_look).
 *
 * All pointers in a request live until the call returns, all in a reply until its event returns.
 */
#ifndef LATER_STORE_STORE_H
#define LATER_STORE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/error_class.h"
#include "job/children.h"
#include "job/job.h"

/* How the store sees this worker. */
enum store_status {
    STORE_OK,
    STORE_GIVEN_UP, /* others gave it up: they take its jobs back */
    STORE_UNKNOWN,  /* Redis forgot it (data loss): register anew, adopt */
    STORE_OLD_LINK, /* the call has an older link number: reconcile first */
};

/* RESULT: done, and the output is the payload of the next job of its chain. CHECKPOINT: the output
 * is where its next attempt goes on. */
enum store_verb {
    STORE_DONE,
    STORE_RETRY,
    STORE_BURY,
    STORE_RELEASE,
    STORE_PROGRESS,
    STORE_RESULT,
    STORE_CHECKPOINT
};

struct store_result {
    const char *id;
    const char *queue;
    int64_t start;
    enum store_verb verb;
    int64_t amount; /* DONE, RESULT: keep ms; RETRY, RELEASE: delay ms; BURY: most dead jobs kept */
    int code;       /* exit status, 128 + n for signal n */
    const char *text;
    const char *output;
    size_t output_len;
    bool is_plain; /* DONE with status 0 and nothing to keep, and the claim was is_small */
    const struct children *children; /* DONE, RESULT: jobs that are added with the end; or NULL */
};

struct store_room {
    const char *queue;
    unsigned room; /* claim at most this many; 0: only tell the head */
    int64_t max_payload;
};

struct store_sync {
    int64_t epoch;
    int64_t link;
    unsigned unended; /* jobs that have not ended, those that syncs under way may bring included */
    unsigned max;     /* most claims */
    const struct store_result *results;
    size_t nresults;
    const struct store_room *rooms;
    size_t nrooms;
    unsigned ahead_ms; /* small jobs without gates may be claimed this long before they are due */
};

/* NOT_HELD: not held under this start number, nothing was changed. UNWRITTEN: send it again.
 * REFUSED: one of its children cannot be added, nothing was changed: the attempt has failed. LEFT:
 * the sync has moved as many bytes as it may, nothing was changed: send it with the next one. */
enum store_answer { STORE_APPLIED, STORE_NOT_HELD, STORE_UNWRITTEN, STORE_REFUSED, STORE_LEFT };

struct store_claim {
    const char *id, *queue;
    int64_t start, attempt, crashes, fence;
    struct wall due;
    const char *record;
    size_t record_len;
    bool is_gated;   /* its end may let in another job of its queue */
    bool is_guarded; /* its handler must end when this worker loses Redis: see struct job */
    bool is_small;   /* its payload is in the record */
};

#define STORE_SYNCS_MAX 2 /* syncs under way at once */

#define STORE_HEAD_NONE INT64_C(-1)
#define STORE_TIMER_NONE INT64_C(-1)
#define STORE_DUE_LATEST_MS INT64_C(100000000000000) /* no job is due later: LATEST */

struct store_sync_reply {
    int64_t now_us; /* Redis TIME in the call */
    enum store_status status;
    const enum store_answer *answers; /* one per result sent; NULL unless status is OK */
    const char *const *answer_texts;  /* for STORE_UNWRITTEN and STORE_REFUSED */
    const struct store_claim *claims;
    size_t nclaims;
    const char *const *checkpoints; /* id, text pairs of claims */
    size_t ncheckpoints;
    const char *const *cancels; /* ids of jobs that this worker runs and should end */
    size_t ncancels;
    const int64_t *heads; /* due ms of the first job left, one per room sent, or STORE_HEAD_NONE */
    const char *const *errors; /* queue, text pairs */
    size_t nerrors;
    bool solo_due;    /* a suspect waits for a worker that runs nothing else */
    int64_t timer_ms; /* Redis time when a gate needs a sync, or STORE_TIMER_NONE */
};

/* The answer to a look. */
struct store_look_reply {
    int64_t now_us;
    int64_t timer_ms;          /* as in a sync's reply */
    const char *const *queues; /* which of them a sync has to name */
    size_t n;
};

struct store_held {
    const char *id;
    int64_t start;
};

struct store_register {
    int64_t seen;                  /* highest clock number that it knows */
    int64_t seq;                   /* number of this registration of the process */
    int64_t old_epoch;             /* 0: none */
    const struct store_held *held; /* to adopt */
    size_t nheld;
};

/* Another worker, as it registered. */
struct store_peer {
    int64_t epoch;
    const char *counter; /* beats, or "dead" */
    const char *host, *boot, *pidns, *pid, *pstart;
};

enum store_adopt { STORE_ADOPTED, STORE_GONE, STORE_TAKEN };

struct store_register_reply {
    int64_t now_us;
    struct boot sent; /* when the call was sent; it counts as a beat */
    int64_t epoch;
    int64_t link;
    bool rewound;                    /* Redis lost data since we last saw it */
    const enum store_adopt *adopted; /* one per held */
    const struct store_peer *peers;
    size_t npeers;
};

struct store_beat_reply {
    int64_t now_us;
    enum store_status status;
    int64_t link;
    int64_t held;
    bool quiet;                     /* told to claim no more */
    const struct store_peer *peers; /* epoch and counter only; counter "?": holds jobs, no worker */
    size_t npeers;
    struct boot sent;      /* when the answered beat was sent; it may be one that was given up */
    const char *schedules; /* changes with each change of a schedule */
};

struct store_reconcile_reply {
    enum store_status status;
    int64_t link;
    int64_t released;        /* jobs that the worker had never heard of */
    const char *const *lost; /* jobs that it named and does not hold */
    size_t nlost;
    bool rewound; /* Redis lost data since we last saw it */
};

/* The answer to what a configuration says of gates. */
struct store_declare_reply {
    const char *error;            /* why it was refused; else NULL */
    const char *const *differing; /* limits defined otherwise: name, definition in force pairs */
    size_t n;
};

/* The answer to a program that asks for a permit of a gate. */
struct gate_enter_reply {
    enum store_status status; /* the rest counts only with OK */
    bool is_granted;
    int64_t fence; /* 0 for semaphores */
};

/* When the last beat of each worker came, all by the clock of Redis; 0: unknown. */
struct gate_beats_reply {
    int64_t now_ms;
    const int64_t *beats_ms;
    size_t n;
};

enum store_reap { STORE_REAP_MORE, STORE_REAP_DONE, STORE_REAP_ALIVE, STORE_REAP_REFUSED };

/* Where the answers go; arg is the first argument of all. */
struct store_events {
    void (*registered)(void *arg, const struct store_register_reply *r);
    void (*beat)(void *arg, const struct store_beat_reply *r);
    void (*reconciled)(void *arg, const struct store_reconcile_reply *r);
    void (*sync)(void *arg, const struct store_sync_reply *r);
    void (*looked)(void *arg, const struct store_look_reply *r);
    void (*fetched)(void *arg, const char *id, const char *payload, size_t n);
    void (*reaped)(void *arg, enum store_reap status, int64_t moved);
    /* bulks: how many are active */
    void (*tidied)(void *arg, const char *const *unserved, size_t n, int64_t bulks);
    void (*left)(void *arg, bool is_clean); /* not clean: it still holds jobs, or was refused */
    void (*declared)(void *arg, const struct store_declare_reply *r);
    void (*failed)(void *arg, enum error_class class, const char *text);
    void *arg;
};

#endif
