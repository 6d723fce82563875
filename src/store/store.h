/*
 * What the scheduler asks of the shared store and what it is told: plain structs, so that a test
 * can stand in for Redis. The protocol behind them is in src/lua (private functions, later_v1_*).
 *
 * All pointers in a request live until the call returns, all in a reply until the handler returns.
 */
#ifndef LATER_STORE_STORE_H
#define LATER_STORE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "job/job.h"

/* How the store sees this worker. */
enum store_status {
    STORE_OK,
    STORE_DEAD,    /* it was given up: its jobs are somebody else's now */
    STORE_UNKNOWN, /* it was forgotten (data loss): register anew, adopt */
    STORE_LINK,    /* an older link number: reconcile first */
};

enum store_verb { STORE_DONE, STORE_RETRY, STORE_BURY, STORE_RELEASE, STORE_PROGRESS };

struct store_result {
    const char *id;
    const char *queue;
    int64_t start;
    enum store_verb verb;
    int64_t amount; /* DONE: keep ms; RETRY, RELEASE: delay ms; BURY: most dead jobs kept */
    int code;       /* exit status, 128 + n for signal n */
    const char *text;
    const char *tail;
    size_t tail_len;
    bool is_plain; /* DONE with status 0 and nothing to keep, of a job that was claimed as small */
};

struct store_room {
    const char *queue;
    unsigned room; /* claim at most so many; 0: only tell the head */
    int64_t max_payload;
};

struct store_step {
    int64_t epoch;
    int64_t link;
    unsigned held; /* running after these results */
    unsigned max;
    const struct store_result *results;
    size_t nresults;
    const struct store_room *rooms;
    size_t nrooms;
    unsigned ahead_ms; /* plain jobs may be claimed so early */
};

enum store_answer { STORE_APPLIED, STORE_SETTLED, STORE_FAILED };

struct store_claim {
    const char *id, *queue;
    int64_t start, attempt, crashes, fence;
    struct wall due;
    const char *record;
    size_t record_len;
    bool is_gated; /* its end may let in another job of its queue */
    bool has_lock; /* its handler must end when this worker loses Redis */
    bool is_small; /* its payload is in the record */
};

#define STORE_STEPS_MAX 2 /* steps under way at once */

#define STORE_HEAD_NONE INT64_C(-1)

struct store_step_reply {
    int64_t now_us; /* Redis TIME in the call */
    enum store_status status;
    const enum store_answer *answers; /* as many as results were sent; absent unless status is OK */
    const char *const *answer_texts;  /* for STORE_FAILED */
    const struct store_claim *claims;
    size_t nclaims;
    const char *const *cancels; /* ids this worker runs and should end */
    size_t ncancels;
    const int64_t *heads; /* due ms of the first job left, one per room sent, or STORE_HEAD_NONE */
    const char *const *errors; /* queue, text pairs */
    size_t nerrors;
    bool solo_due;
    int64_t timer_ms; /* Redis time when a gate wants a step, or STORE_HEAD_NONE */
};

/* What a look at queues tells. */
struct store_look_reply {
    int64_t now_us;
    int64_t timer_ms;          /* as of a step */
    const char *const *queues; /* those that a step has to name */
    size_t n;
};

struct store_held {
    const char *id;
    int64_t start;
};

struct store_register {
    int64_t seen;
    int64_t seq;
    int64_t old_epoch;
    const struct store_held *held; /* to adopt */
    size_t nheld;
};

/* Another worker, as it wrote itself down. */
struct store_peer {
    int64_t epoch;
    const char *counter; /* beats, or "dead" */
    const char *host, *boot, *pidns, *pid, *pstart;
};

enum store_adopt { STORE_ADOPTED, STORE_GONE, STORE_TAKEN };

struct store_register_reply {
    int64_t now_us;
    struct boot sent; /* the question that this answers; it counts as a beat */
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
    bool quiet;
    const struct store_peer *peers; /* epoch and counter only; counter "?" for a stranger */
    size_t npeers;
    struct boot sent; /* the question that this answers: an earlier one may have been given up */
};

struct store_reconcile_reply {
    enum store_status status;
    int64_t link;
    int64_t released;
    const char *const *lost;
    size_t nlost;
    bool rewound; /* Redis lost data since we last saw it */
};

/* To what a configuration says of gates. */
struct store_declare_reply {
    const char *error;            /* it was refused: why; else NULL */
    const char *const *differing; /* limits that hold otherwise: name, definition in force pairs */
    size_t n;
};

/* To a program that asks for its place at a gate. */
struct gate_enter_reply {
    enum store_status status; /* the rest counts only with OK */
    bool is_granted;
    int64_t fence; /* 0 for semaphores */
};

/* When the last beat of each worker came, all by the clock of Redis; 0: it has not said. */
struct gate_beats_reply {
    int64_t now_ms;
    const int64_t *beats_ms;
    size_t n;
};

enum store_reap { STORE_REAP_MORE, STORE_REAP_CLEAR, STORE_REAP_ALIVE, STORE_REAP_REFUSED };

#endif
