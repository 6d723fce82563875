/*
 * The reference for random calls on a real Redis: in plain structs, what a namespace is and what
 * every function of the library does to it. A job is one struct with one state. So if Redis reads
 * as the model says, every job is in exactly one state.
 *
 * There is one function for each function of the library. It takes well-formed arguments, changes
 * the model, and writes the expected reply:
 *
 *   i<number>   s<length>:<bytes>   [ … ]   !<code>        each followed by a space
 *
 * Not for malformed arguments (test_refusals), more than 1000 names or 10000 jobs.
 */
#ifndef LATER_TESTS_PROPERTY_MODEL_H
#define LATER_TESTS_PROPERTY_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define MODEL_ROOT "later:{p}"
#define MODEL_QUEUES 4
#define MODEL_JOBS 8192
#define MODEL_RAWS 256
#define MODEL_WORKERS 64
#define MODEL_TOKENS 64
#define MODEL_NOTES 64
#define MODEL_KINDS 3 /* lock, sem, rate */
#define MODEL_NAME 48
#define MODEL_GATE_ID (MODEL_NAME + 8)
#define MODEL_JOB_GATES 6
#define MODEL_THENS 8
#define MODEL_BULKS 150 /* a sequence has no more calls */
#define MODEL_BATCHES 8
#define MODEL_CALLBACKS 3 /* then, finally, on_dead */
#define MODEL_SCHEDULES 4
#define MODEL_CALENDARS 32
#define MODEL_TOPICS 8
#define MODEL_FILE_TOPICS 3
#define MODEL_FOREIGNS 2
#define MODEL_TENANTS 24
#define MODEL_USED 1024
#define MODEL_QUEUE_TEXT 256
#define MODEL_PINS 64
#define MODEL_TARGET 40
#define MODEL_PINNED 11           /* in the place of a priority, as 10 is for suspects */
#define MODEL_MEMBERS 8           /* of a foreign set */
#define MODEL_TOKEN 48            /* bytes of a token, with that of a queue behind it */
#define MODEL_STEPS 4             /* that a job may keep: calls_resume.c has so many names */
#define MODEL_OUTPUT_MAX 16384    /* bytes of a step */
#define MODEL_CHECKPOINT_MAX 4096 /* bytes */
#define MODEL_REASON 256          /* bytes that are kept of the reason of a death */
#define MODEL_NONE INT64_MIN      /* not given, or no number */
#define MODEL_BIG 16384           /* a larger payload has a key of its own */
#define MODEL_TRACES                                                                               \
    "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",                                     \
        "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00-k=v"
#define MODEL_MS(m) ((m)->now_us / 1000)

/* Bytes that somebody else owns. */
struct bytes {
    const char *p;
    size_t n;
};

enum model_state { JOB_GONE, JOB_WAITING, JOB_PARKED, JOB_RUNNING, JOB_DEAD, JOB_DONE };

/* How a job waits for its gates, and in which order it takes them. */
struct model_spot {
    int64_t ticket, passed_over, due;
    int at;             /* the gate that it waits for, from 1; 0: granted */
    int64_t granted_ms; /* when it was granted */
    int n;
    struct model_gate *gate[MODEL_JOB_GATES];
};

/* What the end of a job causes, and what caused the job (model_chains.c, model_batches.c,
 * model_schedules.c). */
struct model_chain {
    int then[MODEL_THENS], thens;  /* the queues that follow when it is done */
    int on_dead;                   /* the queue that is told of its death; -1: none */
    char parent[16];               /* the job that caused it; "": none */
    char reason[MODEL_REASON + 1]; /* why that one died; "": none */
    const char *batch;             /* that it belongs to; NULL: none */
    char callback[64];             /* the batch that it tells of, and its counts; "": none */
    const char *schedule;          /* that added it; NULL: none */
    int64_t occurrence_ms, day;    /* for which time, and its day in a calendar; 0: none */
    const char *topic;             /* under which it was published; NULL: none */
};

#define MODEL_HEADER 2048 /* bytes of a record before its payload */
#define MODEL_NO_CHAIN ((struct model_chain){.on_dead = -1})

/* Where a waiting job stands among those of its tenant (model_fair.c). */
struct model_turn {
    bool is_there;
    int queue, priority;
    int64_t due;
    const char *tenant;
};

/* A step that a job has kept. */
struct model_kept {
    const char *name;
    struct bytes output;
};

/* Where a job waited when the present call began. */
struct model_place {
    bool is_there;
    int queue, priority; /* 10 for suspects, MODEL_PINNED */
    int64_t score;
};

struct model_job {
    char id[16];
    int queue, priority;
    int64_t a, t, x, k;     /* MODEL_NONE: not given */
    char pin[MODEL_TARGET]; /* the target that it is pinned to; "": none */
    const char *key, *trace;
    char own[MODEL_KINDS][MODEL_NAME]; /* names of its gates; "": none */
    const char *unique;                /* NULL: none */
    int64_t unique_until;              /* MODEL_NONE: until its end */
    bool is_successor; /* waits for the end of the earlier job with its unique key */
    struct model_chain chain;
    struct bytes payload;
    enum model_state state;
    int64_t score; /* due time, epoch, time of death, or time to be removed */
    bool has_tries;
    int64_t added_ms;
    int64_t starts, attempts, crashes, tries_due;
    int64_t cancel_ms; /* MODEL_NONE: not to be cancelled */
    int cancel_turn;   /* its number in the order of R:cancel */
    int64_t await_ms;
    char *progress, *error, *failures, *result; /* NULL: none */
    char *checkpoint;                           /* NULL: none */
    struct model_kept step[MODEL_STEPS];
    size_t steps;
    char *caused;        /* ids of jobs, with commas; NULL: none */
    char *holds;         /* "then", gates, unique key: one per line */
    const char *corrupt; /* what its record is now; NULL: it is right */
    struct model_place was;
    struct model_turn turn; /* in a fair queue */
    struct model_spot spot; /* of a parked job */
};

enum member_state { MEMBER_LIVE, MEMBER_DONE, MEMBER_DEAD, MEMBER_CANCELLED };
enum callback { CALLBACK_THEN, CALLBACK_FINALLY, CALLBACK_ON_DEAD };

struct model_member {
    const struct model_job *job; /* perhaps gone */
    enum member_state state;
};

struct model_batch {
    bool is_there;
    const char *name;
    int queue[MODEL_CALLBACKS]; /* of each callback; -1: none */
    int64_t keep_ms;
    struct bytes payload;
    int64_t created_ms, sealed_ms, cancelled_ms, ended_ms; /* MODEL_NONE: not yet */
    int64_t open_ms;                                       /* its score in R:batch:open */
    char fired[32];                                        /* callbacks that were added */
    const struct model_job *dead;                          /* the first; NULL: none */
    bool is_large;                                         /* its members had no order in Redis */
    struct model_member member[MODEL_JOBS];
    size_t members;
};

/* Of an add. */
struct model_options {
    int64_t due; /* from `in` or `at`; without them: now */
    int priority;
    int64_t a, t, x, k;
    const char *key, *trace, *token;
    const char *gate[MODEL_KINDS]; /* as given, with {key}; NULL: none */
    const char *unique, *mode;     /* NULL: not given */
    int64_t unique_for;            /* MODEL_NONE: not given */
    struct model_chain chain;
    const char *inside;  /* the batch of the job that adds this one; NULL: none */
    const char *refusal; /* of an option that is refused when it is read; NULL: none */
    bool is_dead;        /* it is imported dead: its queue refuses nothing */
};

/* A schedule, and how far it is; that stays when the schedule goes. */
#define MODEL_AHEAD 16

struct model_schedule {
    bool is_there;
    const char *name;
    int64_t revision;
    char when[64];
    const char *tz, *overlap, *catch_up;
    int queue;
    int64_t window_ms, splay_ms, from_ms, until_ms; /* MODEL_NONE: not given */
    char options[192];                              /* of its jobs, as text; "": none */
    struct model_options o;                         /* the same */
    struct bytes payload;
    int64_t file_ms; /* when the file that defines it was read; MODEL_NONE: no file does */
    int64_t gone_ms; /* when the cursor of a schedule that is gone is forgotten */
    char paused[96]; /* as in R:schedule:paused; "": it is not */
    int64_t paused_until_ms;
    bool has_cursor;
    int64_t planned, last, next; /* of the cursor: its revision, occurrences; MODEL_NONE: none */
    char zones[16], job_id[16];
    char ahead[MODEL_AHEAD][16]; /* jobs that are to come, the newest first; "": no more */
    int64_t runs, skipped, missed;
};

/* The days of a year in the calendar of a schedule. */
struct model_calendar {
    bool is_there;
    int schedule, year;
    unsigned char bits[256];
    size_t n;
    int64_t until_ms;
};

/* A subscription, and the queues that have it. */
struct model_topic {
    const char *name; /* NULL: this place is free */
    bool has[MODEL_QUEUES];
    int64_t published; /* messages that it fitted, since it has a queue */
};

/* What the file of a queue subscribes it to. */
struct model_file {
    bool is_there;
    int64_t read_ms;
    const char *name[MODEL_FILE_TOPICS];
    size_t n;
};

/* A member of a foreign set, and its body in the hash. */
struct model_member_of {
    const char *name; /* NULL: this place is free */
    bool is_there;
    double score;
    struct bytes body;             /* p NULL: none */
    int64_t seen_ms[MODEL_QUEUES]; /* in R:bodyless; 0: it is not there */
};

struct model_foreign {
    struct model_member_of member[MODEL_MEMBERS];
    int64_t expires_ms[MODEL_QUEUES]; /* of R:bodyless */
};

/* A target that has pinned jobs of a queue, or had some. */
struct model_pin {
    bool is_there;
    int queue;
    char target[MODEL_TARGET]; /* w<epoch> or h<host> */
};

struct model_raw {
    bool is_there;
    int queue;
    double score;
    struct bytes member;
};

struct model_queue {
    const char *name;
    bool is_known, has_head;
    bool is_head_read; /* by the present call, before it claimed */
    int64_t head;
    char marks[16];
    bool is_paused;
    int64_t until, since; /* of the pause */
    char who[64], reason[64];
    int64_t done, dead, cancelled, adopted;
    int64_t unserved; /* since when; MODEL_NONE: it is served */
    int64_t max_payload;
    char gates[MODEL_KINDS][MODEL_NAME]; /* gates that its jobs pass; "": none */
};

/* A tenant of a fair queue: it has due jobs (is_active), or its first one is due later (sleeps). */
struct model_tenant {
    char name[MODEL_NAME];
    bool is_active, sleeps, has_debt;
    bool has_paid; /* one of its jobs has ended in this call */
    int64_t time, next, debt;
};

enum fair_todo { FAIR_NOTHING, FAIR_INDEX, FAIR_DROP };

struct model_fair {
    char text[64]; /* "fair=1" and weights; "": it is not to be fair */
    bool is_there; /* it is, or has rows of the time when it was */
    int64_t time, since;
    int64_t
        part; /* of what the jobs that end in this call have run, for each tenant with due jobs */
    enum fair_todo todo;
    int priority; /* FAIR_INDEX: the last job that got its tenant; id "": none of this priority */
    int64_t score;
    char id[16];
    struct model_tenant tenant[MODEL_TENANTS];
    size_t tenants;
};

/* The run time of a tenant in a minute; tenant " ": of all. */
struct model_used {
    bool is_there;
    int queue;
    int64_t minute, ms;
    char tenant[MODEL_NAME];
};

struct model_worker {
    bool is_there, is_dead;
    int64_t epoch, counter, link, seq, started, beat_ms;
    char inst[16], host[32], queues[64];
    char places[8], limits[24], room[8]; /* as the worker told them; "": it did not */
    int quiet;                           /* -1: never told */
    char gate[MODEL_GATE_ID];            /* the gate that it holds or waits for; "": none */
    char declared[MODEL_QUEUES][MODEL_QUEUE_TEXT]; /* of the queues; "": nothing */
};

struct model_token {
    char name[MODEL_TOKEN];
    const char *topic; /* of a copy; NULL: of an add */
    char id[16];
    int64_t due, expire_ms;
    int queue;
    struct bytes payload;
};

struct model_note {
    bool is_there;
    char name[200];
    int64_t seen;
};

struct model_gates;
struct rows;

/* What is counted of queues: in the memory of the library, minute by minute, and in Redis. */
enum model_counter { COUNT_ADDED, COUNT_DONE, COUNT_FAILED, COUNT_DEAD, COUNT_CANCELLED, COUNTERS };
#define MODEL_MINUTES 60

struct model_minute {
    int64_t minute, n[MODEL_QUEUES][COUNTERS];
};

struct model_series {
    struct model_minute minute[MODEL_MINUTES]; /* not written yet, the newest last */
    size_t minutes;
    int64_t total[MODEL_QUEUES][COUNTERS], until_ms[MODEL_QUEUES]; /* until 0: nothing written */
};

enum bulk_verb { BULK_RETRY, BULK_CANCEL, BULK_RESCHEDULE, BULK_PURGE };

struct model_bulk {
    char id[16];
    bool is_there, is_active;
    enum bulk_verb verb;
    enum model_state state;
    int queue, to;            /* to: -1: its own */
    const char *reason, *key; /* NULL: any */
    int64_t at, spread;       /* MODEL_NONE: not given */
    int64_t number;           /* of the clock */
    int64_t created, again, total, seen, changed, failed;
    char error[256]; /* "": none */
    char set[MODEL_TARGET + 4], member[16];
    int64_t score; /* with member, unless that is "": of the last one that was met */
};

struct model {
    int64_t now_us, clock; /* clock 0: none yet */
    int64_t latest_us;     /* the latest time so far */
    int64_t max_payload;
    int turns;
    bool is_gated;            /* most calls are about gates */
    bool is_crowded;          /* and many jobs want the same few gates */
    bool is_plain;            /* most jobs have no options, and there are many */
    bool is_chained;          /* most jobs cause others */
    bool is_batched;          /* most jobs belong to batches */
    bool is_scheduled;        /* most jobs come from schedules */
    bool is_fair;             /* queues are fair, and most jobs have keys */
    bool ends_later;          /* ends of members wait for batches_end_later */
    int64_t moved;            /* bytes that the call has moved (txn.spend) */
    int caused[MODEL_QUEUES]; /* jobs that other jobs or batches have added to a queue */
    struct model_queue queue[MODEL_QUEUES];
    struct model_fair fair[MODEL_QUEUES];
    struct model_used used[MODEL_USED];
    struct model_schedule schedule[MODEL_SCHEDULES];
    struct model_calendar calendar[MODEL_CALENDARS];
    int64_t schedules_changed; /* a clock number; 0: never */
    struct model_topic topic[MODEL_TOPICS];
    int64_t unheard; /* messages that fitted no subscription */
    struct model_file file[MODEL_QUEUES];
    struct model_foreign foreign[MODEL_FOREIGNS];
    struct model_pin pin[MODEL_PINS];
    bool is_pinned[MODEL_QUEUES]; /* is the queue in R:pinned? */
    struct model_series series;
    struct model_job job[MODEL_JOBS];
    size_t jobs;
    struct model_raw raw[MODEL_RAWS];
    size_t raws;
    struct model_worker worker[MODEL_WORKERS];
    size_t workers;
    struct model_token token[MODEL_TOKENS];
    size_t tokens;
    struct model_note note[MODEL_NOTES];
    size_t notes;
    struct model_batch batch[MODEL_BATCHES];
    struct model_bulk bulk[MODEL_BULKS];
    size_t bulks;
    struct model_gates *gates; /* model_gates.h; NULL until gates_reset */
    size_t heard_before;       /* length of `heard` before the present call */
    struct buf heard;          /* "channel message\n" for everything published */
};

void model_reset(struct model *m, int64_t now_us);
void model_set_time(struct model *m, int64_t now_us);

/* ---- public functions */

void model_add(struct model *m, int q, const struct model_options *o, struct bytes payload,
               struct buf *out);
void model_add_many(struct model *m, int q, const struct model_options *o, size_t n,
                    const struct bytes *payloads, struct buf *out);
/* What an add has done. */
struct model_added {
    char id[16];
    const char *word;
    int64_t due;
};
/* Returns NULL, or the code of the refusal. */
const char *model_add_one(struct model *m, int q, const struct model_options *o,
                          struct bytes payload, struct model_added *added);
/* The same, for an add of which the id is made of this time. */
const char *model_add_at(struct model *m, int64_t at_us, int q, const struct model_options *o,
                         struct bytes payload, struct model_added *added);
/* Is this the token of another add? Returns the code of the refusal, or NULL. */
const char *model_token_refusal(struct model *m, const char *token, int q, struct bytes payload);
/* Its first use, if it has not expired, or NULL. */
struct model_token *model_token(struct model *m, const char *token);
/* The job has the token of these options. */
void model_put_token(struct model *m, const struct model_options *o, const char *id, int64_t due,
                     int q, struct bytes payload);
/* Was it used, and has not expired? */
bool model_has_token(struct model *m, const char *token);
/* Would the second of two adds be refused since it has the token of the first one? */
bool model_is_other(int q, struct bytes payload, int other_q, struct bytes other);
/* Returns the code of the refusal of an add with these options, or NULL. */
/* The queues that follow a job get their names with it. */
void model_reserve(struct model *m, const struct model_chain *chain);
const char *model_refusal(struct model *m, int q, const struct model_options *o, size_t bytes);
/* What the library says of a refusal by the queue or its gates, behind the code. */
#define MODEL_REFUSAL 160
void model_refusal_text(struct model *m, int q, const struct model_options *o, const char *code,
                        size_t bytes, char text[MODEL_REFUSAL]);
/* A new job with the options of an add; the caller gives it a state. */
struct model_job *model_insert(struct model *m, int64_t number, int q,
                               const struct model_options *o, struct bytes payload);
void model_cancel(struct model *m, const char *id, bool only_waiting, struct buf *out);
/* Cancel a job that has not ended. why: the text of its outcome if it does not run. The caller lets
 * in the waiters at its gates. Returns the word of the reply. */
const char *model_cancel_live(struct model *m, struct model_job *j, const char *why);
void model_run_now(struct model *m, const char *id, struct buf *out);
/* at: as instant.time reads it; a past time is not yet replaced by now. */
void model_reschedule(struct model *m, const char *id, int64_t at, struct buf *out);
/* at: as of model_reschedule; MODEL_NONE: not given. is_anew: from_start was given. */
void model_retry(struct model *m, const char *id, int64_t at, bool is_anew, struct buf *out);
/* A dead job that has its unique key, or gets it, is due then. Its queue may be a new one. */
void model_retry_at(struct model *m, struct model_job *j, int64_t due);
void model_show(struct model *m, const char *id, struct buf *out);
void model_result(struct model *m, const char *id, struct buf *out);
/* for_ms: MODEL_NONE without a limit. */
void model_pause(struct model *m, int q, const char *who, const char *reason, int64_t for_ms,
                 struct buf *out);
/* at: MODEL_NONE for at once. */
void model_resume(struct model *m, int q, int64_t at, struct buf *out);
/* q: -1 for all. */
/* A queue is forgotten if it has no jobs and no live worker serves it. */
/* Free the unique key that QUEUE@KEY names. Whether it was taken. */
bool model_free_key(struct model *m, const char *id);
/* Note a failed attempt of the job; of the last five. */
void model_fail(struct model *m, struct model_job *j, int64_t epoch, int64_t code,
                const char *text);
/* The value of R:tries of a job that has one. */
#define MODEL_TRIES 120
void model_tries(const struct model_job *j, char text[MODEL_TRIES]);
void model_forget_queue(struct model *m, int q, struct buf *out);
void model_known_queue(struct model *m, int q, struct buf *out);
void model_stats(struct model *m, int q, struct buf *out);
void model_stats_of(struct model *m, int q, struct buf *out); /* the values of one queue */

/* ---- what an overview asks (model_overview.c) */

void model_queue_page(struct model *m, const char *after, int count, struct buf *out);
/* The first page. */
void model_reasons(struct model *m, int q, int count, int64_t from, int64_t step, struct buf *out);
/* Does a raw member of the queue make the library count roughly? */
bool model_has_large_raw(struct model *m, int q);
void model_ahead(struct model *m, int q, int64_t from, int64_t step, int steps, struct buf *out);

/* ---- private functions (protocol number 1) */

struct model_held {
    const char *id;
    int64_t start;
};

struct model_entry {
    int64_t seen, seq, old;
    const char *inst, *host, *queues;   /* NULL: not told */
    const char *places, *limits, *room; /* NULL: not told */
    int64_t max_payload;                /* MODEL_NONE: not told */
    int limited_queue;                  /* -1: no queue has a limit of its own */
    int64_t queue_max_payload;
    size_t held;
    const struct model_held *job;
};

void model_register(struct model *m, const struct model_entry *e, struct buf *out);
void model_beat(struct model *m, int64_t epoch, const char *queues, struct buf *out);
/* seen: 0: not told. */
void model_reconcile(struct model *m, int64_t epoch, int64_t link, size_t n,
                     const struct model_held *held, int64_t seen, struct buf *out);
/* counter: MODEL_NONE: '?'. */
void model_reap(struct model *m, int64_t epoch, int64_t victim, int64_t counter, int64_t crashes,
                int64_t dead_max, struct buf *out);
void model_leave(struct model *m, int64_t epoch, struct buf *out);
/* epoch: 0 for all. */
void model_quiet(struct model *m, int64_t epoch, bool on, struct buf *out);
void model_workers(struct model *m, struct buf *out);
void model_suspects(struct model *m, struct buf *out);
void model_note(struct model *m, const char *kind, const char *name, struct buf *out);
/* q: the queue named by the kind raw-queue. */
void model_note_raw(struct model *m, int q, struct buf *out);
/* keep[q]: MODEL_NONE: the queue is not named. */
void model_tidy(struct model *m, int64_t epoch, const int64_t *keep, struct buf *out);
void model_await(struct model *m, const char *id, struct buf *out);
/* segment, offset: the cursor; 1 and 0 for the first page. */
void model_list(struct model *m, int q, const char *state, int segment, int64_t offset, int count,
                struct buf *out);

enum model_verb {
    VERB_DONE,
    VERB_RETRY,
    VERB_DEAD,
    VERB_RELEASE,
    VERB_PROGRESS,
    VERB_CHECKPOINT,
    VERB_RESULT,
    VERB_BAD
};

/* A job that is added with the end of another one. */
struct model_child {
    int queue;
    struct model_options o;
    struct bytes payload;
};

struct model_end {
    const char *id, *verb_name;
    enum model_verb verb;
    int64_t start, a, code; /* a: MODEL_NONE: not a number */
    const char *text, *output;
    int queue;
    bool is_short; /* sent in a group of plain results, after all others */
    size_t children;
    const struct model_child *child;
};

struct model_want {
    int queue;
    int64_t room, max_payload;
};

struct model_sync {
    int64_t epoch, link, held, max;
    int64_t ahead; /* plain jobs may be so many ms early; only in the short form */
    size_t ends, wants;
    const struct model_end *end;
    const struct model_want *want;
};

void model_sync(struct model *m, const struct model_sync *s, struct buf *out);
/* The results of a sync, and what they free. */
void model_settle(struct model *m, const struct model_sync *s, struct buf *out);

/* ---- chains (model_chains.c) */

/* A job of an import. */
struct model_import {
    struct model_options o;
    struct bytes payload;
    const char *dead; /* what is behind the time in its outcome; NULL: it is not dead */
    int64_t died_ms;
    int64_t starts, attempts, crashes;
};

/* What the calls of this process have added, so that a test sees that chains were met. */
struct chain_counts {
    uint64_t followed, told; /* jobs that follow one; that are told of a death */
    uint64_t large;          /* of both: with a payload that was passed on in a key of its own */
    uint64_t at_once;        /* deaths told of jobs that were caused in the same ms */
    uint64_t children;       /* that were added, replaced another job, or were dropped */
    uint64_t dropped, rewrote, large_children; /* of these */
    uint64_t refused;                          /* results with a child that is refused */
};

const struct chain_counts *chain_counts(void);
void model_import(struct model *m, int q, size_t n, const struct model_import *row,
                  struct buf *out);
/* The job is done: add the next one of its chain. result: its payload; NULL: that of the job. */
void model_follow(struct model *m, const struct model_job *j, const struct bytes *result);
/* The job is done: add its children. Returns 0, or the number of the child that is refused, and
 * then nothing is changed. */
size_t model_add_children(struct model *m, struct model_job *j, const struct model_end *e,
                          const char **refusal);
/* Keep the first bytes of a text as one line. */
/* The job has ended: note in its record what that caused. */
void model_keep_caused(struct model_job *j);
void model_reason(struct model_chain *chain, const char *text);
/* The job has died: tell the queue of its on_dead. */
void model_tell_death(struct model *m, const struct model_job *j, const char *why);
/* A new job that another job or a batch has caused is due now. */
void model_enqueue_caused(struct model *m, struct model_job *j);
/* The fields of a record. */
void model_record_chain(const struct model_job *j, struct buf *out);
/* The values of later_show. */
void model_show_chain(const struct model *m, const struct model_job *j, struct buf *out);

/* ---- batches (model_batches.c) */

struct model_batch *batch_of(struct model *m, const char *name);
/* Returns the state of this job in its batch, or NULL: it belongs to none that is there. */
struct model_member *batch_member(struct model *m, const struct model_job *j);
/* Returns the batch of which this job is a member, or NULL. */
const char *batch_inside(struct model *m, const struct model_job *j);
bool batch_is_cancelled(struct model *m, const struct model_job *j);
/* Returns the code of the refusal of a job with these options that would join, or NULL. */
const char *batch_refusal(struct model *m, const struct model_options *o);
/* A new job joins its batch, if that is still there. */
/* Has the call moved as many bytes as it may? */
bool model_is_spent(const struct model *m);
int64_t model_record_bytes(const struct model_job *j);
void batch_join(struct model *m, const struct model_job *j);
void batch_end(struct model *m, const struct model_job *j, enum member_state state);
/* The jobs that were done while ends_later end as members now, batch by batch. */
void batches_end_later(struct model *m);
/* A dead member is tried again. */
void batch_revive(struct model *m, const struct model_job *j);
/* Forget batches whose time is over, and open ones that nobody has touched for a week. */
void batches_tidy(struct model *m);
void batches_render(struct model *m, struct rows *rows);
const char *batches_broken(struct model *m);

struct model_batch_options {
    const char *name; /* NULL: it is not well-formed */
    int queue[MODEL_CALLBACKS];
    int64_t keep_ms;
    struct bytes payload;
    const char *refusal; /* of an option; NULL: none */
};

void model_batch(struct model *m, const struct model_batch_options *o, struct buf *out);
void model_batch_seal(struct model *m, const char *name, struct buf *out);
void model_batch_show(struct model *m, const char *name, struct buf *out);
/* state: -1: any; cursor: of Redis. */
void model_batch_jobs(struct model *m, const char *name, int state, struct buf *out);
/* before_id: an id, or "". */
void model_batch_cancel(struct model *m, const char *name, const char *before_id, struct buf *out);
void model_batches(struct model *m, struct buf *out);
/* An audit of the batches, or of the members of one that is there, finds nothing. name: NULL for
 * the batches. */
void model_batch_audit(struct model *m, const char *name, struct buf *out);
/* The record of this running job became this text. */
void model_corrupt(struct model_job *j, const char *text);
/* It ends: bury what is left of it. by: the queue that its worker told; -1: none. */
void model_bury_corrupt(struct model *m, struct model_job *j, int by);
/* A job whose record was corrupted and that runs, or NULL. */
struct model_job *model_corrupted(struct model *m);

/* ---- series (model_series.c) */

void series_count(struct model *m, int q, enum model_counter which, int64_t n);
/* A tidy writes what was counted. */
void series_tidy(struct model *m);
void series_render(struct model *m, struct rows *rows);

/* What the calls of this process have done with batches. */
struct batch_counts {
    uint64_t opened, joined, ended, revived, forgotten, cancelled;
    uint64_t callbacks[MODEL_CALLBACKS];
    uint64_t inside;  /* jobs that joined a sealed batch */
    uint64_t passed;  /* jobs that did not, since the batch that their parent was in is forgotten */
    uint64_t corrupt; /* members whose record was corrupt at their end */
};

const struct batch_counts *batch_counts(void);

/* ---- schedules (model_schedules.c) */

#define MODEL_SUPERSEDED "superseded by the next occurrence"

void schedules_reset(struct model *m);
/* Calendars whose time is over are gone. */
void schedules_set_time(struct model *m);
/* Returns NULL for a name that is not well-formed. */
struct model_schedule *schedule_of(struct model *m, const char *name);
/* Mark the day of this job that ends. is_ok: it is done, not dead. */
void schedule_mark_end(struct model *m, const struct model_job *j, bool is_ok);
void schedules_tidy(struct model *m);
void schedules_render(const struct model *m, struct rows *rows);

/* What is set. It has the form of a schedule; o: of its jobs. */
struct model_schedule_options {
    struct model_schedule s; /* name NULL: not well-formed; queue -1: not given */
    const char *refusal;     /* of an option; NULL: none */
    bool is_file;            /* a file declares it */
};

void model_schedule_set(struct model *m, const struct model_schedule_options *o, struct buf *out);
void model_schedule_del(struct model *m, const char *name, struct buf *out);
/* for_ms: MODEL_NONE without a limit. */
void model_schedule_pause(struct model *m, const char *name, const char *who, const char *reason,
                          int64_t for_ms, struct buf *out);
void model_schedule_resume(struct model *m, const char *name, struct buf *out);
/* at, perhaps past; occurrence: MODEL_NONE: not given. */
void model_schedule_run(struct model *m, const char *name, int64_t at, int64_t occurrence,
                        bool is_forced, struct buf *out);
void model_schedule_show(struct model *m, const char *name, struct buf *out);
void model_schedule_calendar(struct model *m, const char *name, int year, struct buf *out);
/* All, of which there is at most one: Redis tells several in no order. is_page: the reply of
 * later_v1_schedules. */
void model_schedules(struct model *m, bool is_page, struct buf *out);
/* An audit of the schedules, or of the cursors, finds nothing. */
void model_schedule_audit(struct model *m, bool of_cursors, struct buf *out);
void model_declare(struct model *m, int64_t epoch, int64_t read_ms, bool is_last, size_t n,
                   const struct model_schedule_options *all, struct buf *out);

#define MODEL_OCCURRENCES 6

/* What a worker believes of a schedule, and what is to be added. */
struct model_fire {
    const char *name;
    int64_t revision, next, new_next; /* next: MODEL_NONE: '-' */
    const char *zones;
    int64_t missed;
    size_t missed_days, times;
    int64_t missed_day[MODEL_OCCURRENCES], at[MODEL_OCCURRENCES], day[MODEL_OCCURRENCES];
};

void model_fire(struct model *m, int64_t epoch, size_t n, const struct model_fire *item,
                struct buf *out);

/* What the calls of this process have done with schedules. */
struct schedule_counts {
    uint64_t added, ahead, skipped, superseded, failed, missed, moved, ended, forgotten;
};

const struct schedule_counts *schedule_counts(void);

/* ---- topics (model_topics.c) */

/* name: NULL: not well-formed; is_end: unsubscribe. */
void model_subscribe(struct model *m, const char *name, int q, bool is_end, struct buf *out);
/* All; at most one subscription is there: Redis tells several in no order. */
void model_topics(struct model *m, struct buf *out);
size_t model_count_topics(const struct model *m);
/* An audit of the topics finds nothing. */
void model_topic_audit(struct model *m, struct buf *out);
/* topic: NULL: not well-formed. */
void model_publish_topic(struct model *m, const char *topic, const struct model_options *o,
                         struct bytes payload, struct buf *out);

/* What a file says of a queue. is_bad: one of the names is not well-formed. */
struct model_declared {
    int queue;
    bool is_bad;
    const char *name[MODEL_FILE_TOPICS];
    size_t n;
};

void model_declare_topics(struct model *m, int64_t epoch, int64_t read_ms, size_t n,
                          const struct model_declared *all, struct buf *out);
/* The queue is gone: what a file subscribed it to is no more. */
void topics_forget_file(struct model *m, int q);
void topics_render(const struct model *m, struct rows *rows);

/* ---- broadcasts (model_broadcast.c) */

void model_broadcast(struct model *m, int q, bool per_host, const struct model_options *given,
                     struct bytes payload, struct buf *out);
/* A queue has pinned jobs for this target. */
void pins_put(struct model *m, int q, const char *target);
/* The targets of a queue, sorted. Returns how many. */
size_t pins_sorted(struct model *m, int q, struct model_pin *row[MODEL_PINS]);
/* The jobs that wait for a target, by due time. Returns how many. */
size_t pins_jobs(struct model *m, int q, const char *target, struct model_job **row);
void pins_drop_empty(struct model *m, int q, const char *target);
/* The targets that a worker is. Returns how many. */
size_t pins_of_worker(const struct model *m, int64_t epoch, char target[2][MODEL_TARGET]);
bool pins_any(struct model *m, int q);
void pins_tidy(struct model *m);
void pins_render(const struct model *m, struct rows *rows);
/* As model_broken, of a pinned job that waits. */
const char *pins_broken_job(struct model *m, const struct model_job *j);
/* How often things happened. */
struct broadcast_counts {
    uint64_t added, claimed, gone, expired;
};
const struct broadcast_counts *broadcast_counts(void);
void broadcast_claimed(void);

/* ---- what a job keeps for its next attempt (model_resume.c) */

/* output: NULL: it is asked whether the step has to run. */
void model_keep(struct model *m, int64_t epoch, const char *id, int64_t start, const char *name,
                const struct bytes *output, struct buf *out);
/* A running job tells a checkpoint; "": it has none any more. Returns NULL, or the code of the
 * refusal. */
const char *resume_checkpoint(struct model_job *j, const char *text);
/* The job begins anew, or is no more. */
void resume_drop(struct model_job *j);
/* Bytes that a claim of the job reads of it. */
int64_t resume_bytes(const struct model_job *j);
/* The job was claimed: what the worker is told. */
void resume_claimed(const struct model_job *j, struct buf *told);
void resume_show(const struct model_job *j, struct buf *out);
void resume_render(const struct model_job *j, struct rows *rows);
/* How often things happened. */
struct resume_counts {
    uint64_t checkpoints, kept, known, resumed, dropped;
};
const struct resume_counts *resume_counts(void);

/* ---- foreign queues (model_foreign.c) */

bool model_foreign_is_ms(int set);
/* What Redis answers. */
int model_foreign_add(struct model *m, int set, double score, const char *member);
int model_foreign_remove(struct model *m, int set, const char *member);
int model_foreign_body(struct model *m, const char *member, struct bytes body);
/* A queue that a worker asks about. */
struct model_collect {
    int set, queue;
    int64_t next_ms; /* MODEL_NONE: not known */
    int64_t passed;
};
void model_collect(struct model *m, int64_t epoch, size_t n, const struct model_collect *item,
                   struct buf *out);
void foreign_render(const struct model *m, struct rows *rows);
/* How often things happened. */
struct foreign_counts {
    uint64_t added, buried, waited, stayed;
};
const struct foreign_counts *foreign_counts(void);

/* What the calls of this process have published. */
struct topic_counts {
    uint64_t copies, buried, repeated;
};

const struct topic_counts *topic_counts(void);

/* ---- purge (model_purge.c) */

/* state: due, parked, dead or done */
void model_purge(struct model *m, int q, const char *state, int64_t most, struct buf *out);
/* How many of the first jobs does a call read the records of? It stops when these are too many
 * bytes; *left: what is left of them. */
size_t model_within_bytes(struct model_job **row, size_t n, int64_t most, int64_t *left);
/* Remove one job that does not run, as a purge does; a parked one leaves its gate. */
void model_purge_one(struct model *m, struct model_job *j);
/* So many jobs in this state were removed: put flags and head right. Returns how many are left. */
int64_t model_purge_after(struct model *m, int q, enum model_state state, int64_t removed);

/* ---- bulks (model_bulks.c) */

/* given: what the call says. */
void model_bulk(struct model *m, const struct model_bulk *given, struct buf *out);
size_t bulks_active(const struct model *m);
void bulks_tidy(struct model *m);
void bulks_render(const struct model *m, struct rows *rows);

/* ---- changes from outside */

void model_zadd_raw(struct model *m, int q, double score, struct bytes member);
/* A server that lost its last writes forgets a worker. */
void model_lose_worker(struct model *m, int64_t epoch);

/* ---- output */

/* Every key of the namespace with its content, in the form of server_read. */
void model_render(struct model *m, struct buf *out);
/* Returns which promise is broken, or NULL. The promises hold in every state. */
const char *model_broken(struct model *m);

/* ---- shared by its parts */

void out_int(struct buf *out, int64_t n);
void out_bytes(struct buf *out, const char *p, size_t n);
void out_text(struct buf *out, const char *s); /* NULL: empty */
void out_number(struct buf *out, int64_t n);   /* an integer as a string */
void out_score(struct buf *out, double score); /* as Redis prints it */
/* How the server writes a fraction: Redis 7.0 with 17 digits, later ones with the fewest, Valkey
 * mostly so. */
#define OUT_SCORE_BYTES 40
extern void (*out_score_text)(double score, char text[OUT_SCORE_BYTES]);
void out_refusal(struct buf *out, const char *code);
/* A name and its value, if there is one: not MODEL_NONE, not NULL, not empty. */
void out_named_number(struct buf *out, const char *name, int64_t n);
void out_named_text(struct buf *out, const char *name, const char *s);

const char *model_queue_name(int q);
int64_t model_tick(struct model *m, int64_t n, int64_t seen);
/* The next number that is not before this time. */
int64_t model_tick_at(struct model *m, int64_t us);
void model_id(int64_t number, char id[16]);
struct model_job *model_new_job(struct model *m, int64_t number, int q, struct bytes payload);
/* Returns the job, wherever it is, or NULL. */
struct model_job *model_find(struct model *m, const char *id);
bool model_is_solo(const struct model_job *j);
/* Does its end cause another job, or a mark in a calendar? */
bool model_is_followed(const struct model_job *j);
struct model_worker *model_worker(struct model *m, int64_t epoch);
/* "ok", "dead" or "unknown" */
const char *model_status(struct model *m, int64_t epoch);
int64_t model_count_running(const struct model *m, int64_t epoch);
void model_publish(struct model *m, const char *channel, const char *message, size_t n);
void model_wake(struct model *m, const char *message);
void model_set(char **where, char *text);
/* Copy at most 512 bytes of one line without control bytes; the caller frees it. */
char *model_line(const char *text);
char *model_outcome(const char *state, int64_t code, int64_t now_ms, int64_t start,
                    const char *text, const char *output);
void model_lower_head(struct model *m, int q, int64_t due);
void model_mark(struct model *m, int q, char mark);
void model_enqueue(struct model *m, struct model_job *j, int64_t due);
void model_forget(struct model_job *j);
/* Tell the outcome to those who wait for the job. */
void model_announce(struct model *m, struct model_job *j, const char *outcome);
/* The model takes ownership of the outcome. */
void model_bury(struct model *m, struct model_job *j, char *outcome, int64_t max);
void model_finish(struct model *m, struct model_job *j, char *outcome, int64_t keep);
/* The largest payload that an add to this queue accepts. */
int64_t model_max_payload(const struct model *m, int q);
/* Call this before each call. */
void model_begin(struct model *m);
/* Forget up to `rows` dead or done jobs of a queue whose time is over. */
void model_trim(struct model *m, int q, enum model_state state, int64_t before, size_t rows);
void model_end_cancelled(struct model *m, struct model_job *j, char *outcome);
/* The job would wait again. Returns whether it ended instead, since its successor has its key. */
bool model_end_replaced(struct model *m, struct model_job *j, int64_t code, const char *output);
void model_release(struct model *m, struct model_job *j, int64_t delay);
int64_t model_paused(const struct model *m, int q); /* -1: not; 0: for ever; until */
int64_t model_due(double score);
/* The raw members of a queue by score, then bytes. Returns how many. */
size_t model_raws(struct model *m, int q, struct model_raw **row);
/* The jobs of a queue in a state by score, then id. priority: -1: any, 10: suspects. Returns how
 * many. */
size_t model_jobs(struct model *m, int q, enum model_state state, int priority,
                  struct model_job **row);
void model_record(const struct model_job *j, struct buf *out);
const char *model_state_name(enum model_state state);
void model_put_note(struct model *m, const char *name);
void model_drop_note(struct model *m, const char *name);

#endif
