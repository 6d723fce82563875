/*
 * Declarations that the files of the scheduler share; for no other file. Functions are declared
 * under the name of their file, and each file calls only those above it.
 */
#ifndef LATER_SCHED_SCHED_PRIV_H
#define LATER_SCHED_SCHED_PRIV_H

#include "sched/peers.h"
#include "sched/prefetch.h"
#include "sched/sched.h"
#include "sched/server_clock.h"
#include "sched/session.h"

#define AGAIN_MAX_MS 5000 /* longest wait after a refused call, and for a refused result */
#define SYNC_NAMES 32     /* queues in one sync: with few of them each gives several jobs */

/* sched_move is the only function that sets it; sched_state.c has the moves as a table. */
enum sched_state {
    OFFLINE,     /* no link */
    BACKING_OFF, /* a call was refused: enter again at again_at */
    REGISTERING,
    BEATING, /* the beat after trouble */
    RECONCILING,
    READY,
    LEAVING,
    GONE,
    SCHED_STATES
};

/* In the order of a stop; sched_stop.c. */
enum stop_stage {
    STOP_NOT,
    STOP_LETS_FINISH, /* running jobs may finish */
    STOP_SENT_TERM,   /* they were told to end */
    STOP_CONFIRMS,    /* KILL was sent, or nothing runs: Redis has to be told of the ends */
};

/* A sync under way. */
struct sent_sync {
    struct mono asked;                   /* when it was sent */
    struct store_room rooms[SYNC_NAMES]; /* the queues that it names */
    char room_names[SYNC_NAMES][JOB_QUEUE_MAX + 1];
    size_t nrooms;
    char sent[SCHED_SYNC_JOBS][JOB_ID_LEN + 1]; /* of the results that it carries */
    enum store_verb verbs[SCHED_SYNC_JOBS];
    size_t nsent;
    unsigned max; /* most claims that its answer may bring */
};

struct sched {
    struct sched_conf conf;
    const struct sched_ops *ops;
    void *ctx;
    enum sched_state state;
    struct held_jobs held;
    struct queues *queues;
    struct prefetch prefetch;
    struct server_clock clock;
    struct peers *peers;

    struct session me;
    int64_t link;

    struct sent_sync syncs[STORE_SYNCS_MAX]; /* a ring of the syncs under way, oldest first */
    unsigned sync_first, syncs_out;
    bool is_more;     /* the last sync brought as many claims as it may: more jobs are due */
    bool is_hurried;  /* an unsent end may let other jobs start: do not wait for more ends */
    bool sync_wanted; /* send a sync even without claims and results: it fetches cancels */

    struct {
        struct mono at;
        bool is_out;
        bool is_wanted; /* send another when the one under way is answered */
        bool is_first;  /* send one before the next sync: a claim waits for its answer */
        bool is_early;  /* the last one was sent before `at`: send one at `at` as well */
        bool is_exact;  /* no sync was under way with it: its count of held jobs is exact */
    } beat;
    struct {
        struct mono at;
        bool is_out;
        size_t from; /* the queue whose turn it is */
        size_t left; /* queues that are looked at one look after the other, without a wait */
    } look;
    struct {
        struct mono at;
        bool is_out;
    } tidy;
    struct {
        bool is_changed, is_out; /* the served queues changed; Redis is being told of it */
    } names;
    struct {
        enum stop_stage stage;
        struct mono at; /* when the stage is over */
    } stop;
    bool reap_out;

    struct mono start_at;      /* when the first job that was claimed ahead is due */
    struct mono gate_at;       /* when a gate wants a sync; any worker may send it */
    struct mono checkpoint_at; /* when the first checkpoint of a running job is to be sent */
    struct mono again_at, host_at, solo_since;
    int64_t again_ms, host_ms;
    unsigned borne;         /* jobs at once that this host bears, at most conf.places */
    struct mono grow_at;    /* from then on it may bear one more */
    bool is_emptying;       /* it claims nothing, to become idle for a suspect; that was told */
    bool quiet, quiet_told; /* claim no more: by a signal, by the answer to a beat */
};

static inline bool sched_is_stopping(const struct sched *s)
{
    return s->stop.stage != STOP_NOT;
}

static inline bool sched_is_due(struct mono at, struct mono now)
{
    return !mono_before(now, at);
}

/* Is this host short of processes or memory? Then nothing is claimed or started for a while. */
static inline bool sched_is_host_ill(const struct sched *s, struct mono now)
{
    return s->host_at.us != INT64_MAX && mono_before(now, s->host_at);
}

/* How many jobs may run at once now. */
static inline unsigned sched_places(const struct sched *s)
{
    return s->borne;
}

/* ---- sched_state.c */

/* Asserts that the worker may go from its state to this one. */
void sched_move(struct sched *s, enum sched_state to);
/* The job ends with this verdict. */
void sched_end_with(struct sched *s, struct held_job *h, const struct verdict *v);
/* Give the job back without counting an attempt; it is due again after delay_ms. */
void sched_release(struct sched *s, struct held_job *h, int64_t delay_ms, const char *why);
/* Forget a job: this worker does not hold it any more, or its end is confirmed. */
void sched_forget(struct sched *s, struct held_job *h);
/* Kill a job that this worker lost. It is forgotten when its process has ended; its result does not
 * count. */
void sched_kill_lost(struct sched *s, struct held_job *h);
/* Redis says that this worker does not hold the job with the start number that is known here. */
void sched_lose(struct sched *s, const char *id);
/* Forget the jobs that were not started: what they wait for may not come. The reconcile, or a new
 * registration, releases them. */
void sched_drop_unstarted(struct sched *s);
/* Ignore the answers to all calls under way. */
void sched_no_calls_out(struct sched *s);
/* A call was answered by an error. The other calls under way are still answered, but no answer
 * counts before the next beat. */
void sched_back_off(struct sched *s, struct mono now);
/* A call could not be sent: treat it like an error reply. */
void sched_not_sent(struct sched *s, struct mono now);

/* ---- sched_stop.c */

/* End the running jobs, harder with each stage whose time is over. */
void sched_press_stop(struct sched *s, struct mono now);
/* A worker that stops and has nothing left to do leaves, or gives up waiting. -> whether it is gone
 */
bool sched_try_to_leave(struct sched *s, struct mono now);

/* ---- sched_solo.c */

/* A sync was answered; is_due: a suspect of one of its queues is due. */
void sched_solo_told(struct sched *s, struct mono now, const struct sent_sync *sync, bool is_due);
/* Should this worker claim nothing now, so that it becomes idle for a suspect? */
bool sched_solo_dries(const struct sched *s, struct mono now);
/* Jobs have ended: if the worker is idle now, send a sync for the suspect. */
void sched_solo_seek(struct sched *s);

/* ---- sched_look.c */

/* Look at all queues again: what is known of them may be old. */
void sched_look_at_all(struct sched *s);
/* Send a look if it is time for one. */
void sched_plan_look(struct sched *s, struct mono now);

/* ---- sched_start.c */

/* There is a place for this job: start it, or end it where it must not start. */
void sched_start(struct sched *s, struct mono now, struct held_job *h);
/* How long before its due time Redis may hand out a small job without gates. */
unsigned sched_ahead_ms(const struct sched *s);
/* Start the jobs that were claimed ahead and are due now. When the worker stops, release all jobs
 * that were claimed ahead. */
void sched_start_due(struct sched *s, struct mono now);
/* A beat was accepted: start the jobs that waited for it, in the order of their claims. */
void sched_start_waiting(struct sched *s, struct mono now);
/* Start as many of the jobs that wait for a place as there are free ones. Release those that have
 * waited too long, and all of them when the worker stops. */
void sched_fill_places(struct sched *s, struct mono now);
/* Release the jobs of this queue that wait for a place, of all queues with NULL: fewer may
 * be allowed at once now. */
void sched_release_awaiting(struct sched *s, const char *queue);

/* ---- sched_enter.c */

/* The first call on a fresh link, or after an error. */
void sched_enter(struct sched *s, struct mono now);
/* If the worker had an epoch before, the new epoch adopts the jobs that still run here. */
void sched_send_register(struct sched *s, struct mono now);
void sched_send_beat(struct sched *s, struct mono now);
void sched_send_reconcile(struct sched *s, struct mono now);
void sched_become_ready(struct sched *s, struct mono now);
/* End what workers of this host that died left running, then reap these workers. */
void sched_send_reap(struct sched *s);

/* ---- sched_sync.c */

/* Send a sync if there is something to say or to ask. */
void sched_plan_sync(struct sched *s, struct mono now);
/* timer_ms, as a sync or a look told it -> when a gate wants a sync; MONO_NEVER: no gate does */
struct mono sched_gate_at(struct mono now, int64_t now_us, int64_t timer_ms);

/* ---- sched_go.c */

/* After every event: do what is due now, and set the timer for the rest. */
void sched_go_on(struct sched *s, struct mono now);

/* ---- sched_answers.c */

/* If the status is not OK, start over from a beat or a registration. -> true if it is not OK */
bool sched_is_not_ok(struct sched *s, struct mono now, enum store_status status);

#endif
