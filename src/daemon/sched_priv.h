/*
 * What the files of the scheduler share; for nobody else. Each field of struct sched is
 * written by the file that is named beside it (all may read all).
 */
#ifndef LATER_DAEMON_SCHED_PRIV_H
#define LATER_DAEMON_SCHED_PRIV_H

#include "daemon/prefetch.h"
#include "daemon/sched.h"
#include "daemon/server_clock.h"
#include "worker/peers.h"

#define RETRY_MAX_MS 5000 /* longest wait after a refused call, and for a refused result */
#define STEP_NAMES 32     /* queues in one step: with few of them each gives several jobs */

enum state {
    OFFLINE, /* no link */
    WAITING, /* a call was refused: beat again at retry_at */
    REGISTERING,
    BEATING, /* the beat after trouble */
    RECONCILING,
    READY,
    LEAVING,
    GONE,
};

/* A step under way. */
struct sent_step {
    struct mono asked;                   /* when it was sent */
    struct store_room rooms[STEP_NAMES]; /* the queues that it names */
    char room_names[STEP_NAMES][JOB_QUEUE_MAX + 1];
    size_t nrooms;
    char sent[SCHED_STEP_JOBS][JOB_ID_LEN + 1]; /* jobs whose results it carries, "" for progress */
    size_t nsent;
    unsigned max; /* most claims that its answer may bring */
};

struct sched {
    struct sched_conf conf;
    const struct sched_ops *ops;
    void *ctx;
    enum state state;
    struct held_list held;
    struct queues *queues;
    struct prefetch prefetch;
    struct server_clock clock;
    struct peers *peers;

    int64_t epoch; /* 0: not registered */
    int64_t link;
    int64_t seen; /* highest clock number */
    int64_t seq;

    struct sent_step steps[STORE_STEPS_MAX]; /* a ring of the steps under way, oldest first */
    unsigned step_first, steps_out;
    bool is_more;    /* the last step brought as many claims as it may: more jobs are due */
    bool is_hurried; /* an end that is not sent yet lets in others: do not wait for more ends */
    bool beat_out, reap_out, tidy_out;
    bool beat_wanted; /* send another beat when the one under way is answered */
    bool beat_first;  /* send a beat before the next step: a claim waits for its answer */
    bool beat_early;  /* the last beat was sent before beat_at: send one at beat_at as well */
    bool beat_counts; /* no step was under way with the beat: its count of held jobs is exact */
    bool step_wanted; /* send a step even without claims and results: it fetches cancels */
    bool look_out;
    size_t look_from; /* the queue whose turn it is */
    size_t look_left; /* queues that are looked at one look after the other, without a wait */
    struct mono beat_at, look_at, tidy_at, retry_at, host_at, stop_at, solo_since;
    struct mono start_at; /* when the first job that was claimed ahead is due */
    struct mono gate_at;  /* when a gate wants a step; any worker may send it */
    int64_t retry_ms, host_ms;
    bool quiet, quiet_told, stopping;
    int stop_stage;                /* 0: running jobs may finish, 1: TERM was sent, 2: KILL was */
    bool names_changed, names_out; /* the served queues changed; Redis is being told of it */
};

static inline bool sched_is_due(struct mono at, struct mono now)
{
    return !mono_before(now, at);
}

/* Is this host short of processes or memory? Then nothing is claimed or started for a while. */
static inline bool sched_is_host_ill(const struct sched *s, struct mono now)
{
    return s->host_at.us != INT64_MAX && mono_before(now, s->host_at);
}

static inline void sched_saw(struct sched *s, int64_t number)
{
    /* A corrupt one must not stop the clock, which takes none above (L.CLOCK_MAX). */
    if (number > s->seen && number <= (INT64_C(1) << 52))
        s->seen = number;
}

/* ---- sched.c */

/* How many more jobs may be claimed: free places, and jobs that wait here for one. 0 where
 * sched_free_places is. */
unsigned sched_room(const struct sched *s, struct mono now);

/* After every event: do what is due now, and set the timer for the rest. */
void sched_go_on(struct sched *s, struct mono now);

/* ---- sched_enter.c */

/* Ignore the answers to all calls under way. */
void sched_no_calls_out(struct sched *s);
/* A call could not be sent: treat it like an error reply. */
void sched_not_sent(struct sched *s, struct mono now);
/* The first call on a fresh link, or after an error. */
void sched_enter(struct sched *s, struct mono now);
void sched_send_beat(struct sched *s, struct mono now);
/* End what dead workers of this host left running, then reap these workers. */
void sched_send_reap(struct sched *s);
/* Where the status is not OK, start over from a beat or a registration. -> whether it is not */
bool sched_is_not_ok(struct sched *s, struct mono now, enum store_status status);
/* Redis says that this worker does not hold the job with the start number that it has. */
void sched_lose(struct sched *s, const char *id);

/* ---- sched_solo.c */

/* A step was answered; is_due: a suspect of one of its queues is due. */
void sched_solo_told(struct sched *s, struct mono now, const struct sent_step *step, bool is_due);
/* Should this worker claim nothing now, so that it becomes idle for a suspect? */
bool sched_solo_dries(const struct sched *s, struct mono now);
/* Jobs have ended: if the worker is idle now, send a step for the suspect. */
void sched_solo_seek(struct sched *s);

/* ---- sched_look.c */

/* Look at all queues again: what is known of them may be old. */
void sched_look_at_all(struct sched *s);
/* Send a look if it is time for one. */
void sched_plan_look(struct sched *s, struct mono now);

/* ---- sched_start.c */

/* There is a place for this job: start it, or end it where it must not start. */
void sched_start(struct sched *s, struct mono now, struct held *h);
/* How long before its due time Redis may hand out a plain job. */
unsigned sched_ahead_ms(const struct sched *s);
/* Start the jobs that were claimed ahead and are due now. When the worker stops, release all jobs
 * that were claimed ahead. */
void sched_start_due(struct sched *s, struct mono now);
/* A beat was accepted: start the jobs that waited for it, in the order of their claims. */
void sched_start_waiting(struct sched *s, struct mono now);
/* Start as many of the jobs that wait for a place as there are free ones. Release those that have
 * waited too long, and all of them when the worker stops. */
void sched_start_line(struct sched *s, struct mono now);
/* Release the jobs of this queue that wait for a place, of all queues with NULL: its limit may be
 * lower now. */
void sched_leave_line(struct sched *s, const char *queue);

/* ---- sched_step.c */

/* Send a step if there is something to say or to ask. */
void sched_plan_step(struct sched *s, struct mono now);
/* timer_ms, as a step or a look told it -> when a gate wants a step; MONO_NEVER: no gate does */
struct mono sched_gate_at(struct mono now, int64_t now_us, int64_t timer_ms);
/* The job ends with this verdict. */
void sched_end_with(struct sched *s, struct held *h, const struct verdict *v);
/* Give the job back without spending an attempt; it is due again after delay_ms. */
void sched_release(struct sched *s, struct held *h, int64_t delay_ms, const char *why);
/* Forget a job: this worker does not hold it any more, or its end is confirmed. */
void sched_forget(struct sched *s, struct held *h);
/* Kill a job that this worker lost. It is forgotten when its process has ended; its result does not
 * count. */
void sched_kill_lost(struct sched *s, struct held *h);

#endif
