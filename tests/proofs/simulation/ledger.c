/* Reason for its length: it mirrors each function of the library that moves jobs, and the mirrors
 * can only be checked side by side. */
#include "ledger.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "batch.h"
#include "broadcast.h"
#include "chain.h"
#include "plan.h"
#include "audit.h"
#include "foreign.h"
#include "schedule.h"
#include "run/guard/guard.h"

/* The shortest silence that may be taken for death: what a guard needs (sched/silence.h). */
#define FALSE_REAP_US ((GUARD_UNACKED_MS + 4600) * MS)

/* A worker as Redis knows it. */
struct known {
    int64_t epoch, link;
    int64_t heard_us; /* its last accepted beat */
    char instance[40];
    bool is_written_off;
};

/* One claim; never forgotten. */
struct claim {
    int64_t fence, start;
    char id[JOB_ID_LEN + 1];
    unsigned losses; /* losses of data before the claim */
    bool was_started, is_live;
    int64_t checkpoint;    /* that its worker was told with it; 0: none */
    int64_t told;          /* the last one of its handler */
    int64_t not_before_us; /* in world.now_us; 0 or less: it was due when it was claimed */
};

/* What goes back when Redis loses data. */
struct model {
    struct entry *jobs;
    size_t njobs;
    struct raw *raws;
    size_t nraws;
    struct known *workers;
    size_t nworkers;
};

static struct model now, saved;
static struct claim *claims;
static size_t nclaims;
static int64_t latest_us; /* the highest time of Redis' clock so far */
static int64_t tokens[PLAN_LOCKS + 1 + PLAN_SCHEDULES]; /* the highest fence of each lock */
static int64_t
    *rated_us; /* claims under the rate, by Redis' clock, since it went back or lost data */
static size_t nrated;
static char (*lost_ids)[JOB_ID_LEN + 1];
static size_t nlost;
static unsigned nlosses;
static int64_t lost_at_us;
static bool is_older_than_loss; /* the call was sent before the loss: its link may fit again */

/* ---- look-up */

const char *where_name(enum where where)
{
    static const char *const names[] = {"waiting", "running", "done", "dead", "cancelled"};

    return names[where];
}

struct entry *ledger_find(const char *id)
{
    for (size_t i = 0; i < now.njobs; i++) {
        if (strcmp(now.jobs[i].id, id) == 0)
            return &now.jobs[i];
    }
    return NULL;
}

static struct known *find_worker(int64_t epoch)
{
    for (size_t i = 0; i < now.nworkers; i++) {
        if (now.workers[i].epoch == epoch)
            return &now.workers[i];
    }
    return NULL;
}

static const struct worker *process_of(const struct known *k)
{
    return worker_at((size_t)atoi(k->instance + strlen("instance-")) - 1);
}

static struct claim *find_claim(int64_t fence)
{
    for (size_t i = 0; i < nclaims; i++) {
        if (claims[i].fence == fence)
            return &claims[i];
    }
    return NULL;
}

static const struct reply *item(const struct reply *r, size_t i)
{
    return reply_at(r, i);
}

static size_t count_held(int64_t epoch)
{
    size_t n = 0;

    for (size_t i = 0; i < now.njobs; i++)
        n += now.jobs[i].where == RUNNING && now.jobs[i].epoch == epoch;
    return n;
}

static bool is_current(const struct entry *e, int64_t epoch, int64_t start)
{
    return e != NULL && e->where == RUNNING && e->epoch == epoch && e->start == start;
}

static int64_t wall_ms(void)
{
    return world_wall_us() / 1000;
}

/* ---- moving a job */

struct entry *ledger_add(const char *id, const char *queue)
{
    struct entry *e;
    bool is_lost = false;

    for (size_t i = 0; i < nlost; i++)
        is_lost = is_lost || strcmp(lost_ids[i], id) == 0;
    if (is_lost || ledger_find(id) != NULL)
        world_break("I2-id-twice", "the id %s was given out before", id);
    now.jobs = mem_grow(now.jobs, now.njobs + 1, sizeof(*now.jobs));
    e = &now.jobs[now.njobs++];
    memset(e, 0, sizeof(*e));
    (void)snprintf(e->id, sizeof(e->id), "%s", id);
    (void)snprintf(e->queue, sizeof(e->queue), "%s", queue);
    e->attempts_max = LEDGER_ATTEMPTS;
    return e;
}

static void finish(struct entry *e, enum where where)
{
    e->where = where;
    e->is_cancelling = false;
}

void ledger_die(struct entry *e)
{
    finish(e, DEAD);
    e->has_died = true;
    e->chain.deaths += e->chain.on_dead[0] != '\0';
}

void ledger_cancel(struct entry *e)
{
    if (e->where == WAITING)
        finish(e, CANCELLED);
    else if (e->where == RUNNING)
        e->is_cancelling = true;
}

/* Back to waiting, without counting the attempt. */
static void release(struct entry *e)
{
    if (e->is_cancelling) {
        finish(e, CANCELLED);
        return;
    }
    e->where = WAITING;
    e->attempts = e->attempts > 0 ? e->attempts - 1 : 0;
}

/* Redis holds the job for a worker that does not name it: the claim never arrived. */
static void release_unheard(struct entry *e)
{
    if (e->ran && !e->is_rolled_back && !is_older_than_loss)
        world_break("I6-no-cause", "%s start %lld is released as never heard of, but it ran", e->id,
                    (long long)e->start);
    release(e);
}

/* ---- syncs */

static struct claim *claim_of(const char *id, int64_t start)
{
    for (size_t i = nclaims; i > 0; i--) {
        if (strcmp(claims[i - 1].id, id) == 0 && claims[i - 1].start == start)
            return &claims[i - 1];
    }
    return NULL;
}

/* An attempt never puts an older checkpoint over a newer one. */
static void take_checkpoint(struct entry *e, int64_t checkpoint)
{
    if (checkpoint < e->checkpoint)
        world_break("I15-older", "%s start %lld has the checkpoint %lld, and now gets %lld", e->id,
                    (long long)e->start, (long long)e->checkpoint, (long long)checkpoint);
    e->checkpoint = checkpoint;
}

/* Another attempt may follow: it has to find what this one told, unless Redis has lost data since.
 */
static void check_kept(const struct entry *e)
{
    const struct claim *c = claim_of(e->id, e->start);

    if (c != NULL && c->losses == nlosses && c->told > e->checkpoint)
        world_break("I15-lost",
                    "%s start %lld told the checkpoint %lld, and its end comes with %lld", e->id,
                    (long long)e->start, (long long)c->told, (long long)e->checkpoint);
}

static void take_result(int64_t epoch, const char *const *r, const char *answer)
{
    struct entry *e = ledger_find(r[0]);
    int64_t start = atoll(r[1]), amount = atoll(r[4]);
    bool current = is_current(e, epoch, start);

    if (strncmp(answer, "refused ", 8) == 0) {
        if (e == NULL || e->batch == 0 || !batch_is_cancelled(e->batch))
            world_break("I8-error", "the children of %s are refused: %s", r[0], answer);
        return;
    }
    if (strcmp(answer, "ok") != 0) {
        if (strcmp(answer, "settled") != 0)
            world_break("I8-error", "the result of %s is answered: %s", r[0], answer);
        else if (current)
            world_break("I3-refused", "%s start %lld: its holder's result is refused", r[0],
                        (long long)start);
        return;
    }
    if (!current) {
        world_break("I3-fence",
                    "%s: the result of start %lld of worker %lld counts, but it is %s, "
                    "start %lld of worker %lld",
                    r[0], (long long)start, (long long)epoch,
                    e != NULL ? where_name(e->where) : "lost", e != NULL ? (long long)e->start : 0,
                    e != NULL ? (long long)e->epoch : 0);
        return;
    }
    if (strcmp(r[2], "progress") == 0)
        return;
    if (strcmp(r[2], "checkpoint") == 0) {
        take_checkpoint(e, atoll(r[7]));
        return;
    }
    if (strcmp(r[2], "retry") == 0 || strcmp(r[2], "release") == 0 || strcmp(r[2], "dead") == 0)
        check_kept(e);
    if (strcmp(r[2], "done") == 0 || strcmp(r[2], "result") == 0) {
        finish(e, DONE);
        e->chain.ends +=
            e->chain.then[0] != '\0' && (e->batch == 0 || !batch_is_cancelled(e->batch));
    } else if (e->is_cancelling) {
        finish(e, CANCELLED);
    } else if (strcmp(r[2], "dead") == 0) {
        ledger_die(e);
    } else if (strcmp(r[2], "retry") == 0) {
        e->where = WAITING;
        e->not_before_ms = wall_ms() + amount;
    } else {
        release(e);
        if (amount > 0)
            e->not_before_ms = wall_ms() + amount;
    }
}

/* A claim in an answer. Claims come in groups: queue, fence of the first, start, attempt, crashes,
 * gated, then id, due time and record of each. */
#define GROUP_COMMON 6

struct told {
    const char *id, *record;
    int64_t start, attempt, crashes, fence;
};

static size_t group_size(const struct reply *g)
{
    return (reply_count(g) - GROUP_COMMON) / 3;
}

static struct told told_of(const struct reply *g, size_t i)
{
    return (struct told){.id = reply_str(item(g, GROUP_COMMON + 3 * i)),
                         .record = reply_str(item(g, GROUP_COMMON + 3 * i + 2)),
                         .start = reply_int(item(g, 2)),
                         .attempt = reply_int(item(g, 3)),
                         .crashes = reply_int(item(g, 4)),
                         .fence = reply_int(item(g, 1)) + 2 * (int64_t)i};
}

struct entry *ledger_meet_raw(const char *id, const char *record)
{
    const char *payload = strchr(record, '\n');

    for (size_t i = 0; payload != NULL && i < now.nraws; i++) {
        struct raw raw = now.raws[i];

        if (strcmp(raw.payload, payload + 1) == 0) {
            struct entry *e = ledger_add(id, raw.queue);

            e->not_before_ms = raw.due_ms;
            now.raws[i] = now.raws[--now.nraws];
            return e;
        }
    }
    return NULL;
}

/* How much earlier than its due time a job may be claimed; its worker starts it when it is due. */
#define AHEAD_MS (SCHED_AHEAD_US / 1000 + 1)

/* A job with gates may have become due before the clock was set back; then it is not early. */
static bool was_due(const struct entry *e)
{
    return (e->lock != 0 || e->has_sem || e->has_rate) && e->not_before_ms * 1000 <= latest_us;
}

static void check_claim(const struct entry *e, const struct told *c)
{
    if (e->where == RUNNING)
        world_break("I2-claimed-twice",
                    "%s start %lld is claimed while worker %lld holds start "
                    "%lld",
                    e->id, (long long)c->start, (long long)e->epoch, (long long)e->start);
    else if (e->where != WAITING)
        world_break("I5-terminal", "%s is %s and is claimed", e->id, where_name(e->where));
    else if (c->start != e->start + 1)
        world_break("I2-start", "%s had start %lld and is claimed with %lld", e->id,
                    (long long)e->start, (long long)c->start);
    else if (c->attempt != e->attempts + 1 || c->crashes != e->crashes)
        world_break("I4-count", "%s had attempts %lld crashes %lld, the claim says %lld %lld",
                    e->id, (long long)e->attempts, (long long)e->crashes, (long long)c->attempt,
                    (long long)c->crashes);
    else if (wall_ms() + AHEAD_MS < e->not_before_ms && !was_due(e))
        world_break("early", "%s is claimed %lld ms before its time", e->id,
                    (long long)(e->not_before_ms - wall_ms()));
}

/* The job runs, as Redis holds it: its gates must have permits for it beside all that run. */
static void check_gates(const struct entry *e)
{
    int permits = 0;

    for (size_t i = 0; i < now.njobs; i++) {
        const struct entry *o = &now.jobs[i];

        if (o->where != RUNNING)
            continue;
        permits += o->has_sem;
        if (o != e && e->lock != 0 && o->lock == e->lock)
            world_break("I7-lock", "%s runs under lock %d beside %s", e->id, e->lock, o->id);
    }
    if (e->has_sem && permits > PLAN_SEM_PERMITS)
        world_break("I7-semaphore", "%d run under the semaphore with %s", permits, e->id);
}

static void check_token(const struct entry *e, int64_t fence)
{
    if (e->lock == 0)
        return;
    if (fence <= tokens[e->lock])
        world_break("LockToken", "%s has lock %d with the fence %lld, after %lld", e->id, e->lock,
                    (long long)fence, (long long)tokens[e->lock]);
    tokens[e->lock] = fence;
}

/* A start counts when it is claimed, however early it was let in. */
static void check_rate(const struct entry *e)
{
    int64_t now_us = world_wall_us();

    if (!e->has_rate)
        return;
    if (nrated > 0 && now_us < rated_us[nrated - 1])
        nrated = 0;
    rated_us = mem_grow(rated_us, nrated + 1, sizeof(*rated_us));
    rated_us[nrated++] = now_us;
    for (size_t i = nrated; i > 0; i--) {
        int64_t n = (int64_t)(nrated - i + 1), window_us = now_us - rated_us[i - 1];

        if ((n - PLAN_RATE_BURST) * SECOND > window_us * PLAN_RATE_PER_S) {
            world_break("GcraWindow", "%lld starts within %lld us, %s is the last", (long long)n,
                        (long long)window_us, e->id);
            return;
        }
    }
}

static void take_claim(int64_t epoch, const struct told *c)
{
    struct entry *e = ledger_find(c->id);
    int64_t fence = c->fence;

    if (e == NULL)
        e = chain_meet(c->id, c->record);
    if (e == NULL)
        e = ledger_meet_raw(c->id, c->record);
    if (e == NULL) {
        world_break("I1-unknown", "%s is claimed, nobody added it", c->id);
        return;
    }
    check_claim(e, c);
    broadcast_check_claim(e, epoch);
    if (find_claim(fence) != NULL)
        world_break("I2-fence-twice", "the fence %lld was given out before", (long long)fence);
    e->where = RUNNING;
    e->epoch = epoch;
    e->start++;
    e->attempts++;
    e->ran = e->is_rolled_back = false;
    check_gates(e);
    check_token(e, fence);
    check_rate(e);
    claims = mem_grow(claims, nclaims + 1, sizeof(*claims));
    claims[nclaims] = (struct claim){.fence = fence, .start = e->start, .losses = nlosses};
    /* By the clock that is never set. */
    if (!was_due(e))
        claims[nclaims].not_before_us = world.now_us + e->not_before_ms * 1000 - world_wall_us();
    (void)snprintf(claims[nclaims++].id, sizeof(claims[0].id), "%s", e->id);
    world_say("claimed %s start=%lld fence=%lld by=%lld", e->id, (long long)e->start,
              (long long)fence, (long long)epoch);
}

/* Those of broadcasts do not run alone (doc/topics.md). */
static bool is_of_broadcast(const char *id)
{
    const struct entry *e = ledger_find(id);

    return e != NULL && e->target[0] != '\0';
}

/* A suspect is claimed only by a worker that runs nothing else. */
static void check_solo(const struct reply *groups, const char *held)
{
    bool is_alone =
        reply_count(groups) == 1 && group_size(item(groups, 0)) == 1 && atoll(held) == 0;

    for (size_t i = 0; i < reply_count(groups); i++) {
        const char *id = reply_str(item(item(groups, i), GROUP_COMMON));

        if (reply_int(item(item(groups, i), 4)) >= 2 && !is_alone && !is_of_broadcast(id))
            world_break("solo", "the suspect %s is not claimed alone", id);
    }
}

/* Plain results are told only if they are not ok, by their number. Returns what follows them. */
static const char *const *take_plain_results(int64_t epoch, const char *const *a,
                                             const struct reply *refused)
{
    int64_t number = 0;
    size_t next = 0;

    for (int64_t groups = atoll(*a++); groups > 0; groups--) {
        const char *queue = *a++, *start = *a++;

        for (int64_t n = atoll(*a++); n > 0; n--, a++) {
            const char *answer = "ok";
            const char *r[] = {*a, start, "done", queue, "0", "0", "", ""};

            if (reply_int(item(refused, next)) == ++number) {
                answer = reply_str(item(refused, next + 1));
                next += 2;
            }
            world_say("result %s start=%s done: %s", *a, start, answer);
            take_result(epoch, r, answer);
        }
    }
    return a;
}

/* Behind AHEAD: NC {number n {words word*words}*n}*NC. The children of results that were accepted
 * are there now. results: the first one */
static void take_children(const char *const *a, const char *const *results,
                          const struct reply *answers)
{
    for (int64_t parents = atoll(*a++); parents > 0; parents--) {
        size_t at = (size_t)atoll(*a++) - 1;
        struct entry *e = ledger_find(results[8 * at]);
        bool is_added = reply_is(item(answers, at), "ok") && e != NULL;

        for (int64_t n = atoll(*a++); n > 0; n--) {
            if (is_added)
                e->chain.children++;
            a += 1 + atoll(*a);
        }
    }
}

static void take_claims(int64_t epoch, const struct reply *groups)
{
    for (size_t i = 0; i < reply_count(groups); i++) {
        const struct reply *group = item(groups, i);

        for (size_t k = 0; k < group_size(group); k++) {
            struct told c = told_of(group, k);

            take_claim(epoch, &c);
        }
    }
}

/* Each claimed job that has a checkpoint comes with it. */
static void take_checkpoints(const struct reply *groups, const struct reply *told)
{
    for (size_t i = 0; i < reply_count(told); i += 2) {
        const struct entry *e = ledger_find(reply_str(item(told, i)));
        struct claim *c = e != NULL ? claim_of(e->id, e->start) : NULL;

        if (c == NULL || e->where != RUNNING)
            world_break("I15-nobody", "a checkpoint of %s comes without a claim",
                        reply_str(item(told, i)));
        else
            c->checkpoint = atoll(reply_str(item(told, i + 1)));
    }
    for (size_t i = 0; i < reply_count(groups); i++) {
        const struct reply *group = item(groups, i);

        for (size_t k = 0; k < group_size(group); k++) {
            struct told t = told_of(group, k);
            const struct entry *e = ledger_find(t.id);
            const struct claim *c = find_claim(t.fence);

            if (e != NULL && c != NULL && c->checkpoint != e->checkpoint)
                world_break("I15-claim",
                            "%s start %lld has the checkpoint %lld, its worker gets %lld", t.id,
                            (long long)t.start, (long long)e->checkpoint, (long long)c->checkpoint);
        }
    }
}

static void on_sync(int argc, const char *const *a, const struct reply *r)
{
    const char *const *rest, *const *end = a + argc;
    int64_t epoch = atoll(a[0]);
    const struct known *k = find_worker(epoch);
    size_t n = (size_t)atoll(a[4]);

    if (latest_us < world_wall_us())
        latest_us = world_wall_us();
    if (reply_int(item(r, 0)) != world_wall_us())
        world_break("clock", "it is %lld, Redis says %lld", (long long)world_wall_us(),
                    (long long)reply_int(item(r, 0)));
    if (!reply_is(item(r, 1), "ok"))
        return;
    if (k == NULL || k->is_written_off || k->link != atoll(a[1])) {
        world_break("I3-old-link", "a sync of worker %lld with link %s is taken, it is %s %lld",
                    (long long)epoch, a[1], k == NULL ? "unknown" : "at link",
                    k != NULL ? (long long)k->link : 0);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        world_say("result %s start=%s %s: %s", a[5 + 8 * i], a[6 + 8 * i], a[7 + 8 * i],
                  reply_str(item(item(r, 2), i)));
        take_result(epoch, &a[5 + 8 * i], reply_str(item(item(r, 2), i)));
    }
    rest = take_plain_results(epoch, &a[6 + 8 * n + 3 * (size_t)atoll(a[5 + 8 * n])], item(r, 9));
    if (end - rest > 1)
        take_children(rest + 1, &a[5], item(r, 2));
    check_solo(item(r, 3), a[2]);
    take_claims(epoch, item(r, 3));
    take_checkpoints(item(r, 3), item(r, 10));
    if (reply_count(item(r, 6)) > 0)
        world_break("I8-error", "queue %s: %s", reply_str(item(item(r, 6), 0)),
                    reply_str(item(item(r, 6), 1)));
}

/* ---- workers */

static void drop_worker(int64_t epoch)
{
    struct known *k = find_worker(epoch);

    if (k != NULL)
        *k = now.workers[--now.nworkers];
}

static bool is_named(const char *id, const char *const *held, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(held[2 * i], id) == 0)
            return true;
    }
    return false;
}

static void adopt(const char *id, int64_t start, int64_t epoch, int64_t old)
{
    struct entry *e = ledger_find(id);
    bool may = e != NULL && ((e->where == RUNNING && e->start == start &&
                              (e->epoch == old || find_worker(e->epoch) == NULL)) ||
                             (e->where == WAITING && (e->start == start || e->start + 1 == start)));

    world_say("adopted %s start=%lld by=%lld", id, (long long)start, (long long)epoch);
    if (!may) {
        world_break("I2-adopted", "%s start %lld is adopted, but it is %s start %lld", id,
                    (long long)start, e != NULL ? where_name(e->where) : "lost",
                    e != NULL ? (long long)e->start : 0);
        return;
    }
    if (e->where == WAITING) {
        e->attempts += start - e->start;
        e->attempts = e->attempts > 0 ? e->attempts : 1;
        e->start = start;
        e->where = RUNNING;
    }
    e->epoch = epoch;
    e->ran = true;
    check_gates(e);
}

/* a: SEEN INSTANCE SEQ OLD, fields, config, held */
static void on_register(const char *const *a, const struct reply *r)
{
    int64_t epoch = reply_int(item(r, 1)), old = atoll(a[3]);
    const char *const *held = a + 4;
    const struct known *k = find_worker(old);
    bool old_is_dead = k != NULL && k->is_written_off;
    size_t n;

    held += 1 + 2 * atoll(held[0]);
    held += 1 + 2 * atoll(held[0]);
    n = (size_t)atoll(held[0]);
    held++;
    for (size_t i = now.nworkers; i-- > 0;) {
        if (strcmp(now.workers[i].instance, a[1]) == 0 && !now.workers[i].is_written_off)
            drop_worker(now.workers[i].epoch);
    }
    for (size_t i = 0; i < n; i++) {
        if (reply_is(item(item(r, 4), i), "adopted"))
            adopt(held[2 * i], atoll(held[2 * i + 1]), epoch, old);
    }
    for (size_t i = 0; old != 0 && !old_is_dead && i < now.njobs; i++) {
        struct entry *e = &now.jobs[i];

        if (e->where == RUNNING && e->epoch == old && !is_named(e->id, held, n))
            release_unheard(e);
    }
    if (find_worker(epoch) != NULL)
        world_break("I2-epoch-twice", "the epoch %lld was given out before", (long long)epoch);
    now.workers = mem_grow(now.workers, now.nworkers + 1, sizeof(*now.workers));
    now.workers[now.nworkers] = (struct known){.epoch = epoch, .link = 1, .heard_us = world.now_us};
    (void)snprintf(now.workers[now.nworkers++].instance, sizeof(now.workers[0].instance), "%s",
                   a[1]);
    world_say("registered %s as %lld, was %lld", a[1], (long long)epoch, (long long)old);
}

static void on_beat(const char *const *a, const struct reply *r)
{
    struct known *k = find_worker(atoll(a[0]));

    if (!reply_is(item(r, 1), "ok"))
        return;
    if (k == NULL || k->is_written_off || k->link != reply_int(item(r, 2))) {
        world_break("I8-worker", "the beat of %s is taken, link %lld", a[0],
                    (long long)reply_int(item(r, 2)));
        return;
    }
    k->heard_us = world.now_us;
    if ((int64_t)count_held(k->epoch) != reply_int(item(r, 3)))
        world_break("I8-held", "worker %lld holds %zu jobs, Redis says %lld", (long long)k->epoch,
                    count_held(k->epoch), (long long)reply_int(item(r, 3)));
}

static void on_reconcile(const char *const *a, const struct reply *r)
{
    int64_t epoch = atoll(a[0]), released = 0;
    struct known *k = find_worker(epoch);
    size_t n = (size_t)atoll(a[2]), lost = 0;

    if (!reply_is(item(r, 1), "ok"))
        return;
    if (k == NULL || k->is_written_off || k->link != atoll(a[1])) {
        world_break("I3-old-link", "a reconcile of worker %lld with link %s is taken",
                    (long long)epoch, a[1]);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        const char *const *h = a + 3 + 2 * i;

        lost += !is_current(ledger_find(h[0]), epoch, atoll(h[1]));
    }
    for (size_t i = 0; i < now.njobs; i++) {
        struct entry *e = &now.jobs[i];
        bool is_kept = false;

        for (size_t j = 0; j < n; j++)
            is_kept = is_kept || (strcmp(a[3 + 2 * j], e->id) == 0 &&
                                  is_current(e, epoch, atoll(a[4 + 2 * j])));
        if (e->where == RUNNING && e->epoch == epoch && !is_kept) {
            release_unheard(e);
            released++;
        }
    }
    k->link = reply_int(item(r, 2));
    if (released != reply_int(item(r, 3)) || lost != reply_count(item(r, 4)))
        world_break("I8-reconcile", "worker %lld: %lld released and %zu lost, Redis says %lld %zu",
                    (long long)epoch, (long long)released, lost, (long long)reply_int(item(r, 3)),
                    reply_count(item(r, 4)));
}

static void check_reap(const struct known *k)
{
    const struct worker *w = process_of(k);

    if (!w->owner.is_dead && world.now_us - k->heard_us < FALSE_REAP_US &&
        world.now_us - lost_at_us > 60 * SECOND)
        world_break("I6-false-reap", "%s lives, was heard %lld ms ago and is taken for dead",
                    w->owner.name, (long long)((world.now_us - k->heard_us) / MS));
}

static void crash(struct entry *e)
{
    if (e->is_cancelling) {
        finish(e, CANCELLED);
        return;
    }
    if (++e->crashes >= LEDGER_CRASHES)
        ledger_die(e);
    else
        e->where = WAITING;
}

/* The job that is taken next: a batch is taken in the order of the ids. */
static struct entry *first_held(int64_t epoch)
{
    struct entry *first = NULL;

    for (size_t i = 0; i < now.njobs; i++) {
        struct entry *e = &now.jobs[i];

        if (e->where == RUNNING && e->epoch == epoch &&
            (first == NULL || strcmp(e->id, first->id) < 0))
            first = e;
    }
    return first;
}

static void on_reap(const char *const *a, const struct reply *r)
{
    int64_t victim = atoll(a[1]), moved = reply_int(item(r, 1));
    struct known *k = find_worker(victim);
    bool is_clear = reply_is(item(r, 0), "clear");

    if (!is_clear && !reply_is(item(r, 0), "more"))
        return;
    world_say("reaped %lld jobs=%lld", (long long)victim, (long long)moved);
    if (k != NULL && !k->is_written_off)
        check_reap(k);
    if (k != NULL)
        k->is_written_off = true;
    if (k == NULL && moved == 0)
        return;
    for (int64_t i = 0; i < moved; i++) {
        struct entry *e = first_held(victim);

        if (e == NULL) {
            world_break("I8-reap", "%lld jobs of worker %lld were taken back, it held fewer",
                        (long long)moved, (long long)victim);
            return;
        }
        crash(e);
    }
    if (is_clear && first_held(victim) != NULL)
        world_break("I8-reap", "worker %lld is said to hold nothing, but holds %s",
                    (long long)victim, first_held(victim)->id);
    if (is_clear)
        drop_worker(victim);
}

static void on_leave(const char *const *a, const struct reply *r)
{
    if (!reply_is(r, "left"))
        return;
    if (count_held(atoll(a[0])) > 0)
        world_break("I1-left", "worker %s left and holds jobs", a[0]);
    drop_worker(atoll(a[0]));
}

/* ---- producers and operators */

static void on_add(int argc, const char *const *a, const struct reply *r)
{
    const char *id = reply_str(item(r, 0));
    struct entry *e;

    if (reply_is(item(r, 1), "repeated")) {
        if (ledger_find(id) == NULL)
            world_break("I1-token", "a token is known for %s, which nobody added", id);
        return;
    }
    e = ledger_add(id, a[0]);
    e->not_before_ms = reply_int(item(r, 2));
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(a[i], "attempts") == 0)
            e->attempts_max = atoll(a[i + 1]);
        if (strcmp(a[i], "lock") == 0)
            e->lock = atoi(a[i + 1]);
        e->has_sem = e->has_sem || strcmp(a[i], "sem") == 0;
        e->has_rate = e->has_rate || strcmp(a[i], "rate") == 0;
        e->may_expire = e->may_expire || strcmp(a[i], "expire") == 0;
        chain_option(&e->chain, a[i], a[i + 1]);
        if (strcmp(a[i], "batch") == 0)
            batch_join(e, batch_number(a[i + 1]), NULL);
    }
}

static void on_batch(const char *function, const char *const *a, const struct reply *r)
{
    int number = batch_number(a[0]);

    if (strcmp(function, "later_batch") == 0 && reply_is(item(r, 1), "opened"))
        batch_opened(number);
    else if (strcmp(function, "later_batch_seal") == 0)
        batch_sealed(number);
    else if (strcmp(function, "later_batch_cancel") == 0)
        batch_cancelled(number);
}

static void on_cancel(const char *const *a, const struct reply *r)
{
    struct entry *e = ledger_find(a[0]);

    if (e == NULL || e->where != (reply_is(r, "cancelled") ? WAITING : RUNNING))
        world_break("I8-cancel", "%s is %s, Redis says %s", a[0],
                    e != NULL ? where_name(e->where) : "lost", reply_str(r));
    else if (e->where == WAITING)
        finish(e, CANCELLED);
    else
        e->is_cancelling = true;
}

static void on_retry(const char *const *a, const struct reply *r)
{
    struct entry *e = ledger_find(a[0]);

    if (e == NULL || (e->where != DEAD && !(e->where == WAITING && e->may_expire))) {
        world_break("I5-retry", "%s is %s and is retried", a[0],
                    e != NULL ? where_name(e->where) : "lost");
        return;
    }
    if (e->where == WAITING)
        ledger_die(e); /* it expired, and no audit has seen that */
    e->where = WAITING;
    e->attempts = e->crashes = 0;
    e->not_before_ms = reply_int(item(r, 2));
}

static void on_move(const char *const *a, const struct reply *r)
{
    struct entry *e = ledger_find(a[0]);

    if (e == NULL || e->where != WAITING)
        world_break("I8-move", "%s is %s and is moved", a[0],
                    e != NULL ? where_name(e->where) : "lost");
    else
        e->not_before_ms = reply_int(item(r, 2));
}

/* ZADD R:due:<queue> score payload */
static void on_zadd(const char *const *argv)
{
    struct raw *raw;

    now.raws = mem_grow(now.raws, now.nraws + 1, sizeof(*now.raws));
    raw = &now.raws[now.nraws++];
    (void)snprintf(raw->queue, sizeof(raw->queue), "%s", strstr(argv[1], ":due:") + 5);
    (void)snprintf(raw->payload, sizeof(raw->payload), "%s", argv[3]);
    raw->due_ms = atoll(argv[2]);
}

void ledger_executed(const struct owner *by, int64_t sent_us, int argc, const char *const *argv,
                     const struct reply *r)
{
    const char *f = argv[0];
    const char *const *a = argv + 4; /* after FCALL name 1 root */

    is_older_than_loss = sent_us < lost_at_us;
    if (strcmp(f, "FCALL") == 0)
        f = argv[1];
    world_say("executed %s for %s%s%s", f, by->name, reply_kind(r) == REPLY_ERROR ? ": " : "",
              reply_kind(r) == REPLY_ERROR ? reply_str(r) : "");
    if (reply_kind(r) == REPLY_ERROR) {
        if (strncmp(reply_str(r), "ELATER_BUG", 10) == 0 ||
            strncmp(reply_str(r), "ELATER_", 7) != 0)
            world_break("bug", "%s: %s", f, reply_str(r));
    } else if (strcmp(f, "later_v1_sync") == 0) {
        on_sync(argc - 4, a, r);
    } else if (strcmp(f, "later_v1_beat") == 0) {
        on_beat(a, r);
    } else if (strcmp(f, "later_v1_register") == 0) {
        on_register(a, r);
    } else if (strcmp(f, "later_v1_reconcile") == 0) {
        on_reconcile(a, r);
    } else if (strcmp(f, "later_v1_reap") == 0) {
        on_reap(a, r);
    } else if (strcmp(f, "later_v1_fire") == 0) {
        schedule_fired(a, r);
    } else if (strcmp(f, "later_v1_collect") == 0) {
        audit_meet();
    } else if (strcmp(f, "later_v1_leave") == 0) {
        on_leave(a, r);
    } else if (strcmp(f, "later_add") == 0) {
        on_add(argc - 4, a, r);
    } else if (strcmp(f, "later_cancel") == 0) {
        on_cancel(a, r);
    } else if (strcmp(f, "later_retry") == 0) {
        on_retry(a, r);
    } else if (strcmp(f, "later_run_now") == 0 || strcmp(f, "later_reschedule") == 0) {
        on_move(a, r);
    } else if (strncmp(f, "later_batch", strlen("later_batch")) == 0) {
        on_batch(f, a, r);
    } else if (strcmp(f, "later_publish") == 0) {
        broadcast_published(argc - 4, a, r);
    } else if (strcmp(f, "later_broadcast") == 0) {
        broadcast_added(argc - 4, a, r);
    } else if (strcmp(f, "ZADD") == 0) {
        on_zadd(argv);
    }
}

/* ---- handlers */

/* No two handlers under one lock, on whichever workers. Only a loss of data excuses it. */
static void check_alone(const struct claim *c, const struct entry *e)
{
    for (size_t i = 0; e != NULL && e->lock != 0 && nlosses == 0 && i < nclaims; i++) {
        const struct entry *o = ledger_find(claims[i].id);

        if (&claims[i] != c && claims[i].is_live && o != NULL && o->lock == e->lock)
            world_break("I7-handlers", "%s starts under lock %d while a handler of %s lives", e->id,
                        e->lock, o->id);
    }
}

void ledger_run_started(const struct worker *w, const char *id, int64_t fence, int64_t attempt,
                        int64_t attempts_max, int64_t checkpoint)
{
    struct claim *c = find_claim(fence);
    struct entry *e = ledger_find(id);

    if (c == NULL || strcmp(c->id, id) != 0) {
        world_break("I2-fence", "%s starts %s with the fence %lld, which it never got",
                    w->owner.name, id, (long long)fence);
        return;
    }
    world_say("start of %s start=%lld attempt=%lld of %lld", id, (long long)c->start,
              (long long)attempt, (long long)attempts_max);
    if (world.now_us < c->not_before_us)
        world_break("early", "%s is started %lld us before its time", id,
                    (long long)(c->not_before_us - world.now_us));
    for (size_t i = 0; i < nclaims; i++) {
        const struct claim *o = &claims[i];

        if (strcmp(o->id, id) == 0 && o->start == c->start && o->was_started &&
            o->losses == c->losses)
            world_break("I2-two-starts", "%s start %lld is started a second time", id,
                        (long long)c->start);
    }
    if (attempt > attempts_max || (e != NULL && attempts_max != e->attempts_max))
        world_break("I4-attempts", "%s is started for the attempt %lld of %lld", id,
                    (long long)attempt, (long long)attempts_max);
    if (checkpoint != (c->checkpoint > 0 ? c->checkpoint : -1))
        world_break("I15-start", "%s is started with the checkpoint %lld, its claim has %lld", id,
                    (long long)checkpoint, (long long)c->checkpoint);
    c->was_started = c->is_live = true;
    check_alone(c, e);
    if (e != NULL && e->start == c->start && c->losses == nlosses)
        e->ran = true;
}

void ledger_checkpoint_told(int64_t fence, int64_t checkpoint)
{
    struct claim *c = find_claim(fence);

    if (c != NULL)
        c->told = checkpoint;
}

void ledger_run_ended(int64_t fence)
{
    struct claim *c = find_claim(fence);

    if (c != NULL)
        c->is_live = false;
}

/* ---- data loss */

static void copy(void **to, const void *from, size_t n, size_t size)
{
    free(*to);
    *to = n > 0 ? mem_dup(from, n * size) : NULL;
}

static void copy_model(struct model *to, const struct model *from)
{
    copy((void **)&to->jobs, from->jobs, from->njobs, sizeof(*from->jobs));
    copy((void **)&to->raws, from->raws, from->nraws, sizeof(*from->raws));
    copy((void **)&to->workers, from->workers, from->nworkers, sizeof(*from->workers));
    to->njobs = from->njobs;
    to->nraws = from->nraws;
    to->nworkers = from->nworkers;
}

void ledger_save(void)
{
    copy_model(&saved, &now);
    batch_save();
    schedule_save();
    foreign_save();
}

void ledger_lose(void)
{
    struct model was = now;

    nrated = 0;
    memset(&now, 0, sizeof(now));
    copy_model(&now, &saved);
    for (size_t i = 0; i < was.njobs; i++) {
        if (ledger_find(was.jobs[i].id) != NULL)
            continue;
        lost_ids = mem_grow(lost_ids, nlost + 1, sizeof(*lost_ids));
        memcpy(lost_ids[nlost++], was.jobs[i].id, sizeof(*lost_ids));
    }
    for (size_t i = 0; i < now.njobs; i++)
        now.jobs[i].is_rolled_back = true;
    batch_lose();
    schedule_lose();
    foreign_lose();
    nlosses++;
    lost_at_us = world.now_us;
    free(was.jobs);
    free(was.raws);
    free(was.workers);
}

/* ---- the rest */

size_t ledger_count(void)
{
    return now.njobs;
}

struct entry *ledger_at(size_t i)
{
    return &now.jobs[i];
}

size_t ledger_index(const struct entry *e)
{
    return (size_t)(e - now.jobs);
}

const struct raw *ledger_raws(size_t *n)
{
    *n = now.nraws;
    return now.raws;
}

bool ledger_knows_worker(int64_t epoch)
{
    return find_worker(epoch) != NULL;
}

const struct worker *ledger_process(int64_t epoch)
{
    const struct known *k = find_worker(epoch);

    return k != NULL && !k->is_written_off ? process_of(k) : NULL;
}

int64_t ledger_epoch(const struct worker *w)
{
    for (size_t i = 0; i < now.nworkers; i++)
        if (!now.workers[i].is_written_off && process_of(&now.workers[i]) == w)
            return now.workers[i].epoch;
    return 0;
}

size_t ledger_workers(void)
{
    return now.nworkers;
}

size_t ledger_dead_workers(void)
{
    size_t n = 0;

    for (size_t i = 0; i < now.nworkers; i++)
        n += now.workers[i].is_written_off || process_of(&now.workers[i])->owner.is_dead;
    return n;
}

static void model_done(struct model *m)
{
    free(m->jobs);
    free(m->raws);
    free(m->workers);
    memset(m, 0, sizeof(*m));
}

void ledger_begin(void)
{
    nlosses = 0;
    latest_us = 0;
    nrated = 0;
    memset(tokens, 0, sizeof(tokens));
    lost_at_us = INT64_MIN / 2;
}

void ledger_end(void)
{
    model_done(&now);
    model_done(&saved);
    free(claims);
    free(lost_ids);
    free(rated_us);
    rated_us = NULL;
    nrated = 0;
    claims = NULL;
    lost_ids = NULL;
    nclaims = nlost = 0;
}
