/*
 * A virtual world for the scheduler: a clock, a link, a store with jobs, and a pool whose jobs end
 * when the test says so. Every call of the scheduler is kept in `asked`, in order.
 *
 * The store carries a call out latency/2 after it was sent and answers it at latency, in order. A
 * test may hold answers back, turn them into errors, or cut the link with or without carrying out
 * the calls under way.
 *
 * Every test checks this: at most STORE_SYNCS_MAX syncs and one look under way, never two runs of
 * one job, never more runs than places, no start of a guarded job unless the guard lives and
 * the beat is fresh, and at most FAKE_OPS_PER_MS operations in one virtual millisecond.
 */
#ifndef LATER_TESTS_UNIT_FAKE_STORE_H
#define LATER_TESTS_UNIT_FAKE_STORE_H

#include "sched/sched.h"

#define FAKE_OPS_PER_MS 1000
#define FAKE_JOBS 512
#define FAKE_FRESH_US 5000000
#define FAKE_SPARE_US 100000 /* is_fresh requires this much more than the start itself */
#define FAKE_PEERS 4
#define FAKE_LOOK 1000                       /* most queues in a look */
#define FAKE_BEGIN_MS INT64_C(1767225600000) /* the store's clock when the test begins */

enum fake_kind { REG, BEAT, RECONCILE, SYNC, LOOK, FETCH, REAP, TIDY, LEAVE, KINDS };
#define ALL_KINDS 0x1ffu

struct fake_result {
    char id[JOB_ID_LEN + 1];
    int64_t start, amount;
    enum store_verb verb;
    char text[64];
    enum store_answer answer;
};

struct fake_room {
    char queue[JOB_QUEUE_MAX + 1];
    unsigned room;
    int64_t head;
};

struct fake_claim {
    char id[JOB_ID_LEN + 1];
    char queue[JOB_QUEUE_MAX + 1];
    char record[96];
    int64_t start, attempt, crashes, due_ms;
    bool is_guarded, is_small;
};

/* One call and its answer. */
struct fake_call {
    struct fake_call *next;
    enum fake_kind kind;
    int64_t at_us;   /* when it was sent */
    int64_t boot_us; /* the same by the clock that counts sleep */
    bool is_done, is_answered;
    enum error_class class;

    int64_t epoch, link, victim;
    char text[256]; /* names of a beat, counter of a reap, id of a fetch */
    bool has_text;
    unsigned held, max, ahead_ms;
    struct fake_result *results; /* also the named jobs of a registration or reconcile */
    size_t nresults;
    struct fake_room *rooms; /* also the queues of a look */
    size_t nrooms;
    int64_t soon_ms;
    int64_t timer_ms;

    enum store_status status;
    int64_t now_us, released, moved, held_there;
    bool is_there, quiet, solo_due;
    enum store_reap reap;
    struct fake_claim *claims;
    size_t nclaims;
    char (*ids)[JOB_ID_LEN + 1]; /* cancelled or lost jobs */
    size_t nids;
    const char **found; /* by a look; names of rooms */
    size_t nfound;
};

enum fake_state { WAITS, HELD, DONE, DEAD };

struct fake_job {
    char id[JOB_ID_LEN + 1], queue[JOB_QUEUE_MAX + 1];
    enum fake_state state;
    int64_t due_ms, start, attempt, crashes, epoch;
    bool is_big, is_cancelled, is_corrupt, no_payload, is_guarded;
    bool is_granted; /* claimed whatever its due time: its gates let it in */
    bool is_small;   /* its claim has its payload */
};

struct fake_run {
    char id[JOB_ID_LEN + 1];
    int64_t late_us;                  /* when it was claimed */
    int64_t start, began_us, ends_us; /* ends_us INT64_MAX: until the test ends it */
    unsigned terms, kills;
    bool is_ill; /* it could not be started */
};

struct fake {
    struct sched *s;
    int64_t now_us;
    struct mono armed;
    unsigned places;
    bool is_fair;     /* the queues of the next fake_queues */
    int64_t slept_us; /* total sleep of the machine; now_us does not count it */

    /* how the store behaves */
    int64_t latency_us;
    unsigned most_syncs;                     /* syncs under way at the same time */
    bool is_up, is_held_back, takes_nothing; /* link; answers; every call returns -1 */
    unsigned failing_kinds;                  /* these calls are answered by: */
    enum error_class class;
    bool fails_results;    /* each result is answered FAILED */
    bool refuses_children; /* each DONE is answered REFUSED */
    unsigned takes_a_sync; /* != 0: of the results of a sync, the others are answered LEFT */
    unsigned taken;        /* of the sync that is answered */
    bool quiet, rewound;
    bool is_emptying; /* as it was told; and how often that began */
    unsigned emptyings;
    enum store_reap reap;
    int64_t reap_moved;
    int64_t head;     /* != 0: told as the head of every queue */
    int64_t timer_ms; /* != 0: when a gate needs a sync */

    int64_t worker, worker_link; /* 0: no worker */
    bool is_written_off;
    int64_t last_epoch;
    struct store_peer peers[FAKE_PEERS];
    size_t npeers;
    int64_t gone_peer; /* is_gone is true for this epoch */
    int64_t clearing;  /* what this worker left is being ended, */
    bool clears_late;  /* the test reports that; else at once */
    struct fake_job jobs[FAKE_JOBS];
    size_t njobs;

    /* the pool */
    struct fake_run *runs;
    size_t nruns;
    int64_t run_ms;      /* how long a job runs; -1: until the test ends it */
    bool dies_when_told; /* TERM ends a run at once; KILL always does after 5 ms */
    bool refuses_start, is_unguarded;
    int64_t acked_us; /* when the newest acknowledged beat was sent, sleep counted; 0: none */
    bool host_ill;
    size_t host_bears; /* so many run at once, and a further one cannot be started; 0: any number */

    /* what was seen */
    struct fake_call *asked, *last;
    unsigned count[KINDS], relinks, starts, gone, registered;
    unsigned ops;
    int64_t ops_ms;
};

/* Offline at first. queues: "a b c", each with weight 1 and `places` at once. */
struct fake *fake_new(unsigned places, const char *queues);
/* A worker that claims jobs ahead_us before they are due. */
struct fake *fake_new_ahead(unsigned places, const char *queues, int64_t ahead_us);
/* A worker that claims jobs beyond its places. */
struct fake *fake_new_prefetching(unsigned places, const char *queues);
/* A worker that is registered and has sent its first look. */
struct fake *fake_ready(unsigned places, const char *queues);
void fake_free(struct fake *f);
void fake_queues(struct fake *f, const char *queues);
/* Serve `first`, then n queues c0000 c0001 ..., then `last`. */
void fake_many_queues(struct fake *f, const char *first, unsigned n, const char *last);

struct mono fake_now(const struct fake *f);
/* Another worker, of an unknown host. counter is not copied. */
struct store_peer fake_peer(int64_t epoch, const char *counter);
void fake_run(struct fake *f, int64_t ms); /* let so much time pass */
void fake_up(struct fake *f);
/* The link breaks. Calls without an answer are carried out before, or never are. */
void fake_cut(struct fake *f, bool is_done);

/* Add job number n, due in_ms from now. Owned by f. */
struct fake_job *fake_add(struct fake *f, unsigned n, const char *queue, int64_t in_ms);
struct fake_job *fake_find(struct fake *f, const char *id);
enum fake_state fake_state_of(struct fake *f, const char *id);
const struct fake_run *fake_running(const struct fake *f, const char *id);
void fake_end(struct fake *f, const char *id, enum store_verb verb);
void fake_end_all(struct fake *f, enum store_verb verb); /* all at the same moment */
/* The store forgets the worker, and with_jobs all jobs too. */
void fake_lose_data(struct fake *f, bool with_jobs);

unsigned fake_calls(const struct fake *f); /* all calls so far */
/* How many queues syncs have named since then; each naming counts. */
unsigned fake_named_since(const struct fake *f, int64_t since_us);
/* The newest call of this kind; NULL: none. */
const struct fake_call *fake_last(const struct fake *f, enum fake_kind kind);
/* The result or named job of this id in the call; NULL: none, or c is NULL. */
const struct fake_result *fake_result_in(const struct fake_call *c, const char *id);

#endif
