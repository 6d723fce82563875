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
#define STEP_NAMES 32     /* queues that a step names: of few each gives several jobs */

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
    struct mono asked; /* when it was sent */
    struct store_room rooms[STEP_NAMES]; /* named in it */
    char room_names[STEP_NAMES][JOB_QUEUE_MAX + 1];
    size_t nrooms;
    char sent[SCHED_STEP_JOBS][JOB_ID_LEN + 1]; /* results in it, "" for progress */
    size_t nsent;
    unsigned max; /* claims that it may bring */
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

    struct sent_step steps[STORE_STEPS_MAX]; /* under way, answered in the order of a ring */
    unsigned step_first, steps_out;
    bool is_more;    /* the last answer brought all that it was asked for: ask ahead of the next */
    bool is_hurried; /* an end frees a gate */
    bool beat_out, reap_out, tidy_out;
    bool beat_wanted; /* one more when the one under way is answered */
    bool beat_first;  /* before the next step: a claim waits for its answer */
    bool beat_early;  /* the one under way, or answered last, was sent before beat_at: one more */
    bool beat_counts; /* no step was out while the beat was: its count of held jobs is exact */
    bool step_wanted; /* whatever there is to say: with cancels, progress, and what is suspected */
    bool look_out;
    size_t look_from; /* the queue whose turn it is */
    size_t look_left; /* so many queues are to be looked at without a wait */
    struct mono beat_at, look_at, tidy_at, retry_at, host_at, stop_at, solo_since;
    struct mono start_at; /* the first of those that were claimed ahead is due */
    struct mono gate_at;  /* a gate wants a step then, whoever makes it */
    int64_t retry_ms, host_ms;
    bool quiet, quiet_told, stopping;
    int stop_stage;                /* 0: running jobs may finish, 1: TERM was sent, 2: KILL was */
    bool names_changed, names_out; /* Redis is to be told; is being told */
};

static inline bool sched_is_due(struct mono at, struct mono now)
{
    return !mono_before(now, at);
}

/* A shortage of this host (processes, memory) is waited out: nothing is claimed or started. */
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

/* How many more jobs may be here, those beyond the places counted; 0 as sched_free_places. */
unsigned sched_room(const struct sched *s, struct mono now);

/* After every event: do what is to do now, arm the timer for the rest. */
void sched_go_on(struct sched *s, struct mono now);

/* ---- sched_enter.c */

/* Answers to what is under way do not count any more. */
void sched_no_calls_out(struct sched *s);
/* The link took no question: as bad as an error reply. */
void sched_not_sent(struct sched *s, struct mono now);
/* The first call on a fresh link, or after an error. */
void sched_enter(struct sched *s, struct mono now);
void sched_send_beat(struct sched *s, struct mono now);
/* What the dead left is ended, then they are reaped. */
void sched_send_reap(struct sched *s);
/* True when status was not OK; the way back is entered then. */
bool sched_is_not_ok(struct sched *s, struct mono now, enum store_status status);
/* Redis says that this job is not (any more) ours with the start that we know. */
void sched_lose(struct sched *s, const char *id);

/* ---- sched_solo.c */

/* The answer to a step says whether a suspect of one of its queues is due. */
void sched_solo_told(struct sched *s, struct mono now, const struct sent_step *step, bool is_due);
/* Is nothing to be claimed now, so that one may find this worker idle? */
bool sched_solo_dries(const struct sched *s, struct mono now);
/* Jobs have ended: if it is idle now, look for the one that is due. */
void sched_solo_seek(struct sched *s);

/* ---- sched_look.c */

/* What is known of any queue may be old. */
void sched_look_at_all(struct sched *s);
/* Send a look if it is time for one. */
void sched_plan_look(struct sched *s, struct mono now);

/* ---- sched_start.c */

/* Start it, if it may be started as things stand; there is a place for it. */
void sched_start(struct sched *s, struct mono now, struct held *h);
/* So long before they are due Redis gives out plain jobs. */
unsigned sched_ahead_ms(const struct sched *s);
/* Those that were claimed ahead and are due now, all of them when the worker stops. */
void sched_start_due(struct sched *s, struct mono now);
/* A beat was accepted: start what waited for that, in the order of the claims. */
void sched_start_waiting(struct sched *s, struct mono now);
/* Those that wait for a place: start as many as there are free ones, give back who waited too long,
 * and all when the worker stops. */
void sched_start_line(struct sched *s, struct mono now);
/* Those of this queue, all with NULL, go back: it may have no room for them any more. */
void sched_leave_line(struct sched *s, const char *queue);

/* ---- sched_step.c */

/* Send a step if there is something to say or to ask. */
void sched_plan_step(struct sched *s, struct mono now);
/* When a gate wants a step: at once where one had to stop looking past shut gates. */
struct mono sched_gate_at(struct mono now, int64_t now_us, int64_t timer_ms);
/* It has this verdict now. */
void sched_end_with(struct sched *s, struct held *h, const struct verdict *v);
/* It goes back as it came, to be given out again in so long. */
void sched_release(struct sched *s, struct held *h, int64_t delay_ms, const char *why);
/* Let go of a job without a verdict: it is not ours any more, or its end is confirmed. */
void sched_forget(struct sched *s, struct held *h);
/* Kill a job that is not ours; its process ends in its own time, whatever it reports. */
void sched_kill_lost(struct sched *s, struct held *h);

#endif
