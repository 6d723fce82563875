/*
 * What makes one random call: its number, the model, the command and the expected reply. Also the
 * arguments that many calls have.
 */
#ifndef LATER_TESTS_PROPERTY_MAKER_H
#define LATER_TESTS_PROPERTY_MAKER_H

#include "calls.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define HELD_MAX 600
#define PICK(k, a) (a)[below(k, (int)COUNT(a))]

struct maker {
    uint64_t rnd;
    struct model *m;
    struct args *args;
    struct buf *want;
};

int below(struct maker *k, int n); /* 0 ... n - 1 */
bool percent(struct maker *k, int p);
/* Any number below most; small ones are as likely as large ones. */
int64_t any(struct maker *k, int64_t most);
void begin(struct maker *k, const char *function);
void arg(struct maker *k, const char *s);
void number(struct maker *k, int64_t n);
/* Add the name of an option, in upper or lower case. */
void name(struct maker *k, const char *s);
int queue_arg(struct maker *k);
struct model_options no_options(const struct model *m);
struct bytes large(int i, size_t n);
struct bytes payload(struct maker *k);
/* Add a duration in any unit; returns it in ms. */
int64_t duration_arg(struct maker *k, int64_t most);
/* Add a time in any of its forms, mostly near now. Returns what it says, in the past or not. */
int64_t time_arg(struct maker *k);
/* Mostly an existing job, sometimes QUEUE@UNIQUE. Ids live as long as the model. */
const char *pick_id(struct maker *k);
int64_t pick_epoch(struct maker *k, bool alive);

/* Options of an add (calls.c). with_token: also those that only an add of one job has. */
void add_options(struct maker *k, struct model_options *o, bool with_token);

/* ---- workers (calls_workers.c) */

int64_t link_of(struct maker *k, int64_t epoch); /* mostly the right one */
void make_register(struct maker *k);
void make_beat(struct maker *k);
void make_reconcile(struct maker *k);
void make_reap(struct maker *k);
void make_leave(struct maker *k);
void make_quiet(struct maker *k);
void make_workers(struct maker *k);
void make_suspects(struct maker *k);
void make_note(struct maker *k);
void make_tidy(struct maker *k);

/* ---- what a job keeps for its next attempt (calls_resume.c) */

void make_keep(struct maker *k);
const char *checkpoint_text(struct maker *k);

/* ---- what an overview asks (calls_overview.c) */

void make_overview(struct maker *k);

/* ---- chains (calls_chains.c) */

/* Add chain options for an add, in share of 100 cases. */
void chain_options(struct maker *k, struct model_options *o, int share);
/* A job with chain options has a large payload more often. */
struct bytes chain_payload(struct maker *k, const struct model_options *o, struct bytes other);
void make_import(struct maker *k);
/* Give some of these results children: the last arguments of a sync. */
void children_args(struct maker *k, struct model_end *end, size_t n);

/* ---- batches (calls_batches.c) */

/* Perhaps add the batch that a new job joins, in share of 100 cases. parent: the job that adds this
 * one, NULL: none does. */
void batch_option(struct maker *k, struct model_options *o, int share,
                  const struct model_job *parent);
/* The name of a batch, mostly of one that jobs can join. o: gets the refusal if it is none. */
const char *pick_batch(struct maker *k, struct model_options *o);
void make_batch(struct maker *k);
void make_batch_seal(struct maker *k);
void make_batch_show(struct maker *k);
void make_batch_jobs(struct maker *k);
void make_batch_cancel(struct maker *k);
void make_batches(struct maker *k);
void make_batch_audit(struct maker *k);
void make_purge(struct maker *k);
void make_bulk(struct maker *k); /* calls_bulks.c */
/* Corrupt the record of a running member. The next calls end it. */
void make_corrupt(struct maker *k);
void make_corrupt_end(struct maker *k);

/* ---- schedules (calls_schedules.c) */

void make_schedule_set(struct maker *k);
void make_declare(struct maker *k);
void make_schedule_del(struct maker *k);
void make_schedule_pause(struct maker *k);
void make_schedule_resume(struct maker *k);
void make_schedule_run(struct maker *k);
void make_schedule_show(struct maker *k); /* one, or its calendar */
void make_schedules(struct maker *k);     /* all, or an audit of them */
void make_fire(struct maker *k);

/* ---- topics (calls_topics.c) */

void make_subscribe(struct maker *k);
void make_topics(struct maker *k); /* or an audit of them */
void make_declare_topics(struct maker *k);
void make_publish(struct maker *k);
/* Options of a job that is added more than once. */
void copy_options(struct maker *k, struct model_options *o);
void make_broadcast(struct maker *k); /* calls_broadcast.c */

/* ---- foreign queues (calls_foreign.c) */

void make_foreign(struct maker *k); /* what their producers write */
void make_collect(struct maker *k);

/* ---- gates (calls_gates.c) */

/* Add gates, a unique key and the options that belong to it, for an add. */
void gate_options(struct maker *k, struct model_options *o, bool with_unique);
void make_lock(struct maker *k);
void make_unlock(struct maker *k);
void make_renew(struct maker *k);
void make_throttle(struct maker *k);
void make_fence_check(struct maker *k);
void make_limit_set(struct maker *k);
void make_limit_del(struct maker *k);
void make_limits(struct maker *k);
void make_enter(struct maker *k);
void make_exit(struct maker *k);
void make_queue_gates(struct maker *k);
void make_fair(struct maker *k);

#endif
