#include "audit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "batch.h"
#include "broadcast.h"
#include "chain.h"
#include "fair.h"
#include "ledger.h"
#include "plan.h"
#include "foreign.h"
#include "schedule.h"
#include "server.h"

#define R SERVER_ROOT
#define SETS_A_QUEUE 15 /* ten priorities, solo, dead, done, parked, due */

enum set { SOLO = 10, DEAD_SET, DONE_SET, PARKED, DUE, PINNED };

/* Everything that Redis holds, as it came. */
struct view {
    struct reply *jobs, *running, *tries, *errors, *failures, *results, *cancel, *progress, *await;
    struct reply *resume;
    struct reply *heads, *prio, *names, *workers, *keys;
    struct reply *sets[PLAN_QUEUES][SETS_A_QUEUE];
};

static void view_get(struct view *v)
{
    struct reply **const each[] = {&v->jobs,    &v->running, &v->tries,    &v->errors, &v->failures,
                                   &v->results, &v->cancel,  &v->progress, &v->await,  &v->heads,
                                   &v->prio,    &v->names,   &v->workers,  &v->keys,   &v->resume};

    server_queue("HGETALL " R ":jobs");
    server_queue("ZRANGE " R ":running 0 -1 WITHSCORES");
    server_queue("HGETALL " R ":tries");
    server_queue("HKEYS " R ":errors");
    server_queue("HKEYS " R ":failures");
    server_queue("HKEYS " R ":results");
    server_queue("HKEYS " R ":cancel");
    server_queue("HKEYS " R ":progress");
    server_queue("HKEYS " R ":await");
    server_queue("ZRANGE " R ":heads 0 -1 WITHSCORES");
    server_queue("HGETALL " R ":prio");
    server_queue("SMEMBERS " R ":names");
    server_queue("HKEYS " R ":workers");
    server_queue("KEYS later:*");
    server_queue("HKEYS " R ":resume");
    for (unsigned q = 0; q < PLAN_QUEUES; q++) {
        for (unsigned s = 0; s < SETS_A_QUEUE; s++) {
            static const char *const names[] = {"solo:", "dead:", "done:", "parked:", "due:"};
            char words[128];

            if (s < SOLO)
                (void)snprintf(words, sizeof(words), "ZRANGE " R ":q:%s:%u 0 -1 WITHSCORES",
                               plan_queue(q), s);
            else
                (void)snprintf(words, sizeof(words), "ZRANGE " R ":%s%s 0 -1 WITHSCORES",
                               names[s - SOLO], plan_queue(q));
            server_queue(words);
        }
    }
    for (size_t i = 0; i < sizeof(each) / sizeof(each[0]); i++)
        *each[i] = server_answer();
    for (unsigned q = 0; q < PLAN_QUEUES; q++) {
        for (unsigned s = 0; s < SETS_A_QUEUE; s++)
            v->sets[q][s] = server_answer();
    }
}

static void view_free(struct view *v)
{
    struct reply *const each[] = {v->jobs,    v->running, v->tries,    v->errors, v->failures,
                                  v->results, v->cancel,  v->progress, v->await,  v->heads,
                                  v->prio,    v->names,   v->workers,  v->keys,   v->resume};

    for (size_t i = 0; i < sizeof(each) / sizeof(each[0]); i++)
        reply_free(each[i]);
    for (unsigned q = 0; q < PLAN_QUEUES; q++) {
        for (unsigned s = 0; s < SETS_A_QUEUE; s++)
            reply_free(v->sets[q][s]);
    }
}

/* ---- questions */

/* The score of a member in a range with scores (pairs in RESP 3), or -1. */
static double score_of(const struct reply *set, const char *member)
{
    for (size_t i = 0; i < reply_count(set); i++) {
        const struct reply *row = reply_at(set, i);

        if (reply_is(reply_at(row, 0), member))
            return atof(reply_str(reply_at(row, 1)));
    }
    return -1;
}

static bool has(const struct reply *list, const char *member)
{
    for (size_t i = 0; i < reply_count(list); i++) {
        if (reply_is(reply_at(list, i), member))
            return true;
    }
    return false;
}

static unsigned number_of_queue(const char *queue)
{
    unsigned q = 0;

    while (q + 1 < PLAN_QUEUES && strcmp(plan_queue(q), queue) != 0)
        q++;
    return q;
}

/* ---- the jobs */

static int priority_of(const char *record)
{
    const char *end = record + strcspn(record, " \n");

    return end[0] == ' ' && end[1] >= '0' && end[1] <= '9' ? end[1] - '0' : 5;
}

static void check_state(const struct view *v, struct entry *e)
{
    const struct reply *record = reply_named(v->jobs, e->id);
    unsigned q = number_of_queue(e->queue), sets = 0;
    double epoch = score_of(v->running, e->id);
    int found = -1, want;

    for (unsigned s = 0; s < DUE; s++) {
        if (score_of(v->sets[q][s], e->id) >= 0) {
            sets++;
            found = (int)s;
        }
    }
    sets += epoch >= 0;
    if (broadcast_is_waiting(e)) {
        sets++;
        found = PINNED;
    }
    if (e->where == WAITING && e->target[0] != '\0' && (record == NULL || found == DONE_SET)) {
        broadcast_check_cancelled(e);
        ledger_cancel(e);
    }
    /* It expired, before its batch was cancelled or without that. */
    if ((e->where == WAITING || e->where == CANCELLED) && e->may_expire && e->start == 0 &&
        found == DEAD_SET)
        ledger_die(e);
    if (sets != (record != NULL ? 1 : 0)) {
        world_break("I1-set", "%s is %s, in %u sets, %s record", e->id, where_name(e->where), sets,
                    record != NULL ? "with a" : "without a");
        return;
    }
    want = e->where == RUNNING    ? -1
           : e->where == DEAD     ? DEAD_SET
           : e->where != WAITING  ? DONE_SET
           : e->target[0] != '\0' ? PINNED
           : e->crashes >= 2      ? SOLO
           : record != NULL       ? priority_of(reply_str(record))
                                  : -2;
    if (e->where == WAITING && found == PARKED && (e->lock != 0 || e->has_sem || e->has_rate))
        return;
    if ((record == NULL && (e->where == DONE || e->where == CANCELLED)) ||
        (record != NULL && found == want && (e->where != RUNNING || (int64_t)epoch == e->epoch)))
        return;
    world_break("I1-lost",
                "%s is %s start %lld of worker %lld, Redis has it in set %d of worker "
                "%.0f, %s record",
                e->id, where_name(e->where), (long long)e->start, (long long)e->epoch, found, epoch,
                record != NULL ? "with a" : "without a");
}

static void check_tries(const struct view *v, const struct entry *e)
{
    const char *text = reply_str(reply_named(v->tries, e->id));
    long long starts = 0, attempts = 0, crashes = 0;

    if (text[0] != '\0' && sscanf(text, "%lld %lld %lld", &starts, &attempts, &crashes) != 3)
        world_break("I8-tries", "%s has the tries '%s'", e->id, text);
    if (e->where != WAITING && e->where != RUNNING)
        return;
    if (starts != e->start || attempts != e->attempts || crashes != e->crashes)
        world_break("I4-count", "%s has tries '%s', should have %lld %lld %lld", e->id, text,
                    (long long)e->start, (long long)e->attempts, (long long)e->crashes);
}

/* Every entry belongs to a job. */
static void check_belongs(const struct view *v, const struct reply *ids, size_t step,
                          const char *what)
{
    for (size_t i = 0; i < reply_count(ids); i += step) {
        const char *id = reply_str(reply_at(ids, i));

        if (reply_named(v->jobs, id) == NULL)
            world_break("I8-orphan", "%s has an entry in %s and no record", id, what);
    }
}

static void check_running_only(const struct view *v, const struct reply *ids, const char *what)
{
    for (size_t i = 0; i < reply_count(ids); i++) {
        if (score_of(v->running, reply_str(reply_at(ids, i))) < 0)
            world_break("I8-stale", "%s has an entry in %s and does not run",
                        reply_str(reply_at(ids, i)), what);
    }
}

/* The first unknown job by its id; NULL: all are known. */
static const struct reply *unknown_record(const struct reply *jobs, const char **ret_id)
{
    const struct reply *record = NULL;

    for (size_t i = 0; i + 1 < reply_count(jobs); i += 2) {
        const char *id = reply_str(reply_at(jobs, i));

        if (ledger_find(id) != NULL || (record != NULL && strcmp(id, *ret_id) > 0))
            continue;
        *ret_id = id;
        record = reply_at(jobs, i + 1);
    }
    return record;
}

/* Jobs that no answer told of: the ends of others have caused them. They are met in the order of
 * their ids: that of a large hash is another one in each run of Redis. */
static void meet_caused(const struct reply *jobs)
{
    const struct reply *record;
    const char *id;

    while ((record = unknown_record(jobs, &id)) != NULL)
        if (chain_meet(id, reply_str(record)) == NULL &&
            ledger_meet_raw(id, reply_str(record)) == NULL)
            return; /* nobody added it; check_jobs says so */
}

void audit_meet(void)
{
    struct reply *jobs;

    server_queue("HGETALL " R ":jobs");
    jobs = server_answer();
    meet_caused(jobs);
    reply_free(jobs);
}

static void check_jobs(const struct view *v)
{
    meet_caused(v->jobs);
    for (size_t i = 0; i < ledger_count(); i++) {
        check_state(v, ledger_at(i));
        check_tries(v, ledger_at(i));
        chain_check(ledger_at(i));
    }
    for (size_t i = 0; i < reply_count(v->jobs); i += 2) {
        if (ledger_find(reply_str(reply_at(v->jobs, i))) == NULL)
            world_break("I1-unknown", "nobody added %s", reply_str(reply_at(v->jobs, i)));
    }
    check_belongs(v, v->tries, 2, "tries");
    check_belongs(v, v->errors, 1, "errors");
    check_belongs(v, v->failures, 1, "failures");
    check_belongs(v, v->results, 1, "results");
    check_belongs(v, v->resume, 1, "resume");
    check_belongs(v, v->await, 1, "await");
    check_running_only(v, v->cancel, "cancel");
    check_running_only(v, v->progress, "progress");
}

/* ---- the queues */

static void check_raws(const struct view *v)
{
    size_t n, there = 0;
    const struct raw *raws = ledger_raws(&n);

    for (size_t i = 0; i < n; i++) {
        if (score_of(v->sets[number_of_queue(raws[i].queue)][DUE], raws[i].payload) < 0)
            world_break("I1-raw", "the raw member %s is gone", raws[i].payload);
    }
    for (unsigned q = 0; q < PLAN_QUEUES; q++)
        there += reply_count(v->sets[q][DUE]);
    if (there != n)
        world_break("I1-raw", "%zu raw members wait, Redis has %zu", n, there);
}

static void check_queue(const struct view *v, unsigned q)
{
    const char *name = plan_queue(q);
    const char *marks = reply_str(reply_named(v->prio, name));
    double head = score_of(v->heads, name);

    for (unsigned s = 0; s <= SOLO; s++) {
        const struct reply *first = reply_at(v->sets[q][s], 0);
        double due = atof(reply_str(reply_at(first, 1)));

        if (first == NULL)
            continue;
        if (s != 5 && strchr(marks, s == SOLO ? 's' : '0' + (int)s) == NULL)
            world_break("I8-mark", "queue %s has no mark for its set %u, only '%s'", name, s,
                        marks);
        /* Due suspects are not in any head: only an idle worker can start them. */
        if (s != SOLO && (head < 0 || head > due))
            world_break("I8-head", "queue %s has the head %.0f and a job due %.0f", name, head,
                        due);
        if (!has(v->names, name))
            world_break("I8-name", "queue %s has no name", name);
    }
}

/* ---- the workers */

static void check_workers(const struct view *v)
{
    static const char prefix[] = R ":worker:";

    if (reply_count(v->workers) != ledger_workers())
        world_break("I8-workers", "%zu workers, Redis knows %zu", ledger_workers(),
                    reply_count(v->workers));
    for (size_t i = 0; i < reply_count(v->workers); i++) {
        char key[96];

        if (!ledger_knows_worker(reply_int(reply_at(v->workers, i))))
            world_break("I8-workers", "Redis knows a worker %s",
                        reply_str(reply_at(v->workers, i)));
        (void)snprintf(key, sizeof(key), "%s%s", prefix, reply_str(reply_at(v->workers, i)));
        if (!has(v->keys, key))
            world_break("I8-workers", "there is no %s", key);
    }
    for (size_t i = 0; i < reply_count(v->keys); i++) {
        const char *key = reply_str(reply_at(v->keys, i));

        if (strncmp(key, prefix, strlen(prefix)) == 0 && !has(v->workers, key + strlen(prefix)))
            world_break("I8-workers", "%s is of no worker", key);
    }
}

/* ---- large payloads: one key for each record that says so, and no other key */

static void check_big(const struct view *v)
{
    static const char prefix[] = R ":big:";
    size_t there = 0, wanted = 0;

    for (size_t i = 0; i < reply_count(v->keys); i++)
        there += strncmp(reply_str(reply_at(v->keys, i)), prefix, strlen(prefix)) == 0;
    for (size_t i = 0; i + 1 < reply_count(v->jobs); i += 2) {
        char key[96];

        if (reply_str(reply_at(v->jobs, i + 1))[0] != '+')
            continue;
        wanted++;
        (void)snprintf(key, sizeof(key), "%s%s", prefix, reply_str(reply_at(v->jobs, i)));
        if (!has(v->keys, key))
            world_break("I1-payload", "the payload of %s is gone", reply_str(reply_at(v->jobs, i)));
    }
    if (there != wanted)
        world_break("I8-big", "%zu large payloads, %zu jobs that have one", there, wanted);
}

void audit(void)
{
    struct view v;

    view_get(&v);
    check_jobs(&v);
    batch_check();
    schedule_check();
    foreign_check();
    fair_check();
    check_raws(&v);
    for (unsigned q = 0; q < PLAN_QUEUES; q++)
        check_queue(&v, q);
    check_workers(&v);
    check_big(&v);
    view_free(&v);
}

/* All jobs have ended: no gate has a holder or a waiter. */
static void check_no_gates(const struct view *v)
{
    static const char *const names[] = {
        "lock:", "sem:", "wait:", "line:", "parked", "holds", "granted:", "aside:"};

    for (size_t i = 0; i < reply_count(v->keys); i++) {
        const char *key = reply_str(reply_at(v->keys, i));

        for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++) {
            if (strncmp(key, R ":", strlen(R ":")) == 0 &&
                strncmp(key + strlen(R ":"), names[k], strlen(names[k])) == 0)
                world_break("I10-gates", "%s is left", key);
        }
    }
}

void audit_end(void)
{
    struct view v;

    audit();
    view_get(&v);
    if (reply_count(v.running) + reply_count(v.cancel) + reply_count(v.progress) +
            reply_count(v.await) >
        0)
        world_break("I10-left", "running %zu, cancel %zu, progress %zu, await %zu are left",
                    reply_count(v.running), reply_count(v.cancel), reply_count(v.progress),
                    reply_count(v.await));
    if (reply_count(v.workers) > 0)
        world_break("I10-left", "%zu workers are left", reply_count(v.workers));
    check_no_gates(&v);
    fair_check_end();
    view_free(&v);
}
