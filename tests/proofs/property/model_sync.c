/*
 * The sync in the model: results in, claims out.
 */
#include "model.h"

#include "model_fair.h"
#include "model_gates.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/mem.h"

#define RAWS_A_SYNC 16
#define BYTES_A_SYNC 1048576
#define PEEK_BYTES 262144 /* of raw members that a sync reads for their due times */
#define LOOK_ROUNDS 4
#define LOOK_WINDOW 64
#define PARKED_MAX 128
#define FEW 16
#define LATEST INT64_C(100000000000000)
#define NEVER INT64_MAX /* a head: no job */

/* ---- candidates */

struct candidate {
    struct model_job *job; /* NULL: raw */
    struct model_raw *raw;
    int64_t turn, due, bytes;
    const char *why; /* why it cannot be a job; NULL: it can */
    bool is_dead, is_granted, is_pinned, is_left;
    struct model_spot spot; /* the gates that it has to pass */
    char text[160];
};

struct claims {
    struct model *m;
    const struct model_sync *sync;
    int64_t max, n, bytes, parked;
    bool has_solo, is_solo_due, is_more;
    bool shares[MODEL_QUEUES];   /* tenants take turns, since before the sync */
    int64_t began[MODEL_QUEUES]; /* the virtual time before the first claim; -1: there was none */
    bool has_caused; /* the death of one of the last candidates has added a job to their queue */
    const struct model_raw *next_raw; /* whose due time was asked for last */
    int64_t next_raw_ms;
    int64_t peek;             /* bytes that may still be read for due times */
    struct buf claimed, told; /* told: checkpoints of what was claimed */
};

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static const char *bad_score(double score)
{
    if (isinf(score))
        return "its score is not finite";
    if (score > 1e14)
        return "its score is after the year 5000";
    if (score >= 1e8 && score <= 1e11)
        return "its score looks like seconds, milliseconds are needed";
    return NULL;
}

/* The first jobs of one priority that are due at until_ms, at most room. */
static size_t take_ids(struct claims *c, int q, int priority, int64_t room, int64_t until_ms,
                       struct candidate *out, int64_t *head)
{
    struct model_job *row[MODEL_JOBS];
    size_t n = model_jobs(c->m, q, JOB_WAITING, priority, row), taken = 0;

    while (taken < n && (int64_t)taken < room && row[taken]->score <= until_ms) {
        out[taken] = (struct candidate){
            .job = row[taken], .turn = row[taken]->score, .due = row[taken]->score};
        taken++;
    }
    if (taken < n)
        *head = least(*head, row[taken]->score);
    return taken;
}

/* A time before which a raw member is not due, found by counting: the sync looks 1, 8, 64, ...
 * seconds ahead until it meets a member. */
static int64_t counted_raw(int64_t now, double score)
{
    int64_t low = now, high;

    for (int64_t step = 1000; low < LATEST; step *= 8) {
        high = least(now + step, LATEST);
        if (score <= (double)high)
            break;
        low = high;
    }
    return low + 1;
}

/* The due time of the first raw member that was not taken. If the queue has a head later than now,
 * and no member is earlier, the head stays. When much was read of such members, the sync counts. */
static int64_t next_raw(struct claims *c, int q, const struct model_raw *next)
{
    const struct model_queue *queue = &c->m->queue[q];

    if (c->next_raw == next)
        return c->next_raw_ms;
    c->next_raw = next;
    if (queue->has_head && queue->head > MODEL_MS(c->m) && next->score >= (double)queue->head) {
        c->next_raw_ms = queue->head;
    } else if (c->peek > 0) {
        c->peek -= (int64_t)next->member.n;
        c->next_raw_ms = model_due(next->score);
    } else {
        c->next_raw_ms = counted_raw(MODEL_MS(c->m), next->score);
    }
    return c->next_raw_ms;
}

static size_t take_raws(struct claims *c, int q, int64_t room, struct candidate *out, int64_t *head)
{
    struct model_raw *row[MODEL_RAWS];
    size_t n = model_raws(c->m, q, row), taken = 0;
    int64_t now = MODEL_MS(c->m), bytes = least(c->bytes, BYTES_A_SYNC);
    const struct model_queue *queue = &c->m->queue[q];

    room = least(room, RAWS_A_SYNC);
    if (n > 0 && room <= 0 && queue->has_head && queue->head <= now) {
        *head = least(*head, now);
        return 0;
    }
    while (taken < n && (int64_t)taken < room && bytes > 0 && model_due(row[taken]->score) <= now) {
        int64_t due = model_due(row[taken]->score);

        out[taken] = (struct candidate){.raw = row[taken],
                                        .turn = due,
                                        .due = row[taken]->score > 1e11 ? due : now,
                                        .why = bad_score(row[taken]->score)};
        bytes -= (int64_t)row[taken]->member.n;
        taken++;
    }
    if (taken == n)
        return taken;
    if ((room > 0 && ((int64_t)taken == room || bytes <= 0)) || model_due(row[taken]->score) <= now)
        *head = least(*head, now);
    else
        *head = least(*head, next_raw(c, q, row[taken]));
    return taken;
}

/* Merge jobs of priority 5 and raw members by due time, jobs first. */
static size_t take_fives(struct claims *c, int q, int64_t room, int64_t until_ms,
                         struct candidate *out, int64_t *head)
{
    struct model_raw *row[MODEL_RAWS];
    struct candidate *ids = mem_new((c->m->jobs + 1) * sizeof(*ids));
    struct candidate raws[RAWS_A_SYNC + 1];
    size_t n = 0, i = 0, k = 0;
    int64_t ids_ms = model_raws(c->m, q, row) > 0 ? MODEL_MS(c->m) : until_ms;
    size_t nids = take_ids(c, q, 5, room, ids_ms, ids, head);
    size_t nraws = take_raws(c, q, room, raws, head);

    while ((int64_t)n < room && (i < nids || k < nraws))
        out[n++] = k == nraws || (i < nids && ids[i].turn <= raws[k].turn) ? ids[i++] : raws[k++];
    if (i < nids)
        *head = least(*head, ids[i].due);
    if (k < nraws)
        *head = least(*head, MODEL_MS(c->m));
    free(ids);
    return n;
}

/* Jobs without gates may be claimed before they are due, if no other job can come before them. */
static bool may_be_early(const struct claims *c, int q)
{
    if (fair_words(c->m, q)[0] != '\0')
        return false;
    for (int k = 0; k < MODEL_KINDS; k++)
        if (c->m->queue[q].gates[k][0] != '\0')
            return false;
    return strpbrk(c->m->queue[q].marks, "0123456789") == NULL;
}

static size_t gather(struct claims *c, int q, int64_t room, struct candidate *out, int64_t *head,
                     char *kept)
{
    struct model_job *row[MODEL_JOBS];
    int64_t now = MODEL_MS(c->m);
    size_t n = 0, marks = 0;

    for (int p = 0; p <= 9; p++) {
        char digit = (char)('0' + p);

        if (p == 5) {
            n += take_fives(c, q, room - (int64_t)n,
                            may_be_early(c, q) ? now + c->sync->ahead : now, out + n, head);
        } else if (strchr(c->m->queue[q].marks, digit) != NULL) {
            n += take_ids(c, q, p, room - (int64_t)n, now, out + n, head);
            if (model_jobs(c->m, q, JOB_WAITING, p, row) > 0)
                kept[marks++] = digit;
        }
    }
    kept[marks] = '\0';
    return n;
}

/* The first suspect, if this worker may start one now. */
static bool take_solo(struct claims *c, int q, int64_t room, struct candidate *out, int64_t *head,
                      bool *has_mark)
{
    struct model_job *row[MODEL_JOBS];
    size_t n = model_jobs(c->m, q, JOB_WAITING, 10, row), next = 0;
    int64_t now = MODEL_MS(c->m);

    *has_mark = n > 0;
    if (n > 0 && row[0]->score <= now && room > 0 && c->sync->held == 0 && c->n == 0) {
        *out = (struct candidate){.job = row[0], .turn = row[0]->score, .due = row[0]->score};
        next = 1;
    }
    if (next < n && row[next]->score <= now)
        c->is_solo_due = true;
    else if (next < n)
        *head = least(*head, row[next]->score);
    return next > 0;
}

/* ---- claims */

/* How many bytes the call copies: a large payload, where a death is told. */
static int64_t copied(const struct candidate *k)
{
    return k->is_dead && k->job != NULL && k->job->chain.on_dead >= 0 &&
                   k->job->payload.n > MODEL_BIG
               ? (int64_t)k->job->payload.n
               : 0;
}

/* Check the candidates, and find those that have to be buried. Returns how many were checked. */
static size_t examine(struct claims *c, const struct model_want *w, struct candidate *cand,
                      size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct candidate *k = &cand[i];

        memset(&k->spot, 0, sizeof(k->spot));
        if (k->raw != NULL) {
            struct model_job raw = {.queue = w->queue};

            k->is_dead = k->why != NULL;
            if (k->why == NULL && (int64_t)k->raw->member.n > w->max_payload) {
                k->is_dead = true;
                (void)snprintf(k->text, sizeof(k->text),
                               "the payload has %zu bytes, queue %s takes %lld", k->raw->member.n,
                               c->m->queue[w->queue].name, (long long)w->max_payload);
            } else if (k->is_dead) {
                (void)snprintf(k->text, sizeof(k->text), "%s", k->why);
            }
            if (!k->is_dead)
                k->is_dead = !spot_fill(c->m, &raw, &k->spot, k->text);
            k->bytes = (int64_t)k->raw->member.n;
        } else {
            struct buf record = BUF_INIT;
            int64_t size = (int64_t)k->job->payload.n, told = model_max_payload(c->m, w->queue);
            int64_t max = told > w->max_payload ? told : w->max_payload;

            if (k->job->x != MODEL_NONE && k->job->starts == 0 &&
                k->due + k->job->x < MODEL_MS(c->m)) {
                k->is_dead = true;
                (void)snprintf(k->text, sizeof(k->text),
                               "expired: not started within %lld ms of its due time",
                               (long long)k->job->x);
            } else if (size > MODEL_BIG && size > max) {
                k->is_dead = true;
                (void)snprintf(k->text, sizeof(k->text),
                               "the payload has %lld bytes, queue %s takes %lld", (long long)size,
                               c->m->queue[w->queue].name, (long long)max);
            }
            if (!k->is_dead && !k->is_granted && !k->is_pinned)
                k->is_dead = !spot_fill(c->m, k->job, &k->spot, k->text);
            model_record(k->job, &record);
            k->bytes = (int64_t)record.len + resume_bytes(k->job);
            buf_done(&record);
        }
        if (k->raw == NULL && k->due > MODEL_MS(c->m) && !k->is_granted &&
            (k->is_dead || k->spot.n > 0 || k->job->payload.n > MODEL_BIG))
            return i; /* it waits until it is due */
        c->bytes -= k->bytes + copied(k);
        if (c->bytes <= 0)
            return i + 1;
    }
    return n;
}

/* Does the job hold all its gates now? A granted one does; its locks get the fence of its start. */
static bool passes(struct claims *c, struct candidate *k, int64_t fence)
{
    struct model_job *j = k->job;

    if (k->is_granted) {
        k->spot = j->spot;
        waiters_unpark(c->m, j, true);
        for (int i = 0; i < k->spot.n; i++)
            gate_spend(c->m, k->spot.gate[i], j->id, fence);
    } else if (!waiters_pass(c->m, j, &k->spot, k->due, fence)) {
        return false;
    }
    waiters_hold(c->m, j, &k->spot, k->spot.n, true);
    if (c->shares[j->queue] && !k->is_pinned) {
        int64_t *began = &c->began[j->queue];

        *began = *began < 0 ? c->m->fair[j->queue].time : *began;
        fair_start(c->m, j, *began, !k->is_granted && !model_is_solo(j));
    }
    return true;
}

static void claim_one(struct claims *c, const struct candidate *k, int64_t fence)
{
    struct model_job *j = k->job;
    struct buf record = BUF_INIT;

    j->state = JOB_RUNNING;
    j->score = c->sync->epoch;
    j->starts++;
    j->attempts++;
    j->has_tries = true;
    j->tries_due = k->due;
    buf_puts(&c->claimed, "[ ");
    out_text(&c->claimed, j->id);
    out_text(&c->claimed, c->m->queue[j->queue].name);
    out_int(&c->claimed, j->starts);
    out_int(&c->claimed, j->attempts);
    out_int(&c->claimed, j->crashes);
    out_int(&c->claimed, fence);
    out_int(&c->claimed, k->due);
    model_record(j, &record);
    out_bytes(&c->claimed, record.data, record.len);
    buf_done(&record);
    resume_claimed(j, &c->told);
    out_int(&c->claimed, waiters_must_end(c->m, &k->spot) ? 2 : k->spot.n > 0);
    buf_puts(&c->claimed, "] ");
    c->n++;
}

static void bury_one(struct claims *c, int q, const struct candidate *k)
{
    struct model_job *j = k->job;
    char *outcome = model_outcome("dead", 0, MODEL_MS(c->m), j->starts, k->text, "");

    int before = c->m->caused[q];

    if (k->is_granted)
        waiters_unpark(c->m, j, false);
    model_bury(c->m, j, outcome, 10000);
    c->has_caused |= c->m->caused[q] > before;
}

/* Returns how many jobs were parked. */
static int commit(struct claims *c, int q, struct candidate *cand, size_t n, int64_t most)
{
    int64_t number = n > 0 ? model_tick(c->m, 2 * (int64_t)n, 0) : 0;
    int parked = 0;

    for (size_t i = 0; i < n; i++) {
        struct candidate *k = &cand[i];

        k->is_left = c->n >= most;
        if (k->is_left) {
            c->bytes += k->bytes;
            continue;
        }
        if (k->job != NULL && c->shares[q])
            k->job->turn.is_there = false;
        else if (k->job != NULL)
            fair_leave(c->m, k->job); /* the queue has become fair in this sync */
        if (k->raw != NULL) {
            k->raw->is_there = false;
            c->m->queue[q].is_known = true;
            k->job = model_new_job(c->m, number + 2 * (int64_t)i, q, k->raw->member);
        }
        if (k->is_dead)
            bury_one(c, q, k);
        else if (passes(c, k, number + 2 * (int64_t)i + 1))
            claim_one(c, k, number + 2 * (int64_t)i + 1);
        else
            parked++;
    }
    return parked;
}

/* Claim or bury the candidates, up to `most` claims in the call. Returns how many were parked. */
static int take(struct claims *c, const struct model_want *w, struct candidate *cand, size_t n,
                int64_t most, int64_t *head)
{
    size_t picked = examine(c, w, cand, n);
    int parked;

    c->has_caused = false;
    parked = commit(c, w->queue, cand, picked, most);
    for (size_t i = 0; i < n; i++)
        if (i >= picked || cand[i].is_left)
            *head = least(*head, cand[i].raw != NULL ? MODEL_MS(c->m) : cand[i].due);
    return parked;
}

static void remember(struct claims *c, int q, const char *marks, int64_t head)
{
    struct model_queue *queue = &c->m->queue[q];
    bool had = queue->has_head;
    int64_t was = queue->head;

    (void)snprintf(queue->marks, sizeof(queue->marks), "%s", marks);
    if (head == NEVER) {
        if (had)
            queue->has_head = false;
        return;
    }
    if (had && was == head)
        return;
    queue->has_head = true;
    queue->head = head;
    queue->is_known |= !had;
    if (!had || head < was)
        model_wake(c->m, queue->name);
}

/* Claim the first suspect, alone. */
static void claim_solo(struct claims *c, const struct model_want *w, int64_t room, int64_t *head,
                       char *marks)
{
    struct candidate solo;
    bool has_mark = false;

    if (strchr(c->m->queue[w->queue].marks, 's') == NULL)
        return;
    if (take_solo(c, w->queue, room, &solo, head, &has_mark)) {
        int parked = take(c, w, &solo, 1, c->n + 1, head);

        c->has_solo = !solo.is_dead && parked == 0;
    }
    if (has_mark)
        (void)strcat(marks, "s");
}

/* Claim what is pinned to this worker, or to its host. */
static void claim_pinned(struct claims *c, const struct model_want *w, int64_t room, int64_t *head,
                         char *marks)
{
    struct candidate *cand = mem_new((c->m->jobs + 1) * sizeof(*cand));
    struct model_job *row[MODEL_JOBS];
    char target[2][MODEL_TARGET];
    size_t targets = pins_of_worker(c->m, c->sync->epoch, target), taken = 0;

    for (size_t t = 0; t < targets; t++) {
        size_t n = pins_jobs(c->m, w->queue, target[t], row), at = 0;

        for (; at < n && (int64_t)taken < room && row[at]->score <= MODEL_MS(c->m); at++)
            cand[taken++] = (struct candidate){
                .job = row[at], .turn = row[at]->score, .due = row[at]->score, .is_pinned = true};
        if (at < n)
            *head = least(*head, row[at]->score);
    }
    if (taken > 0)
        (void)take(c, w, cand, taken, c->n + room, head);
    for (size_t i = 0; i < taken; i++)
        if (cand[i].job->state == JOB_RUNNING)
            broadcast_claimed();
    for (size_t t = 0; t < targets; t++)
        pins_drop_empty(c->m, w->queue, target[t]);
    (void)strcpy(marks, pins_any(c->m, w->queue) ? "p" : "");
    free(cand);
}

/* Claim granted jobs; they come before the others. */
static void claim_granted(struct claims *c, const struct model_want *w, int64_t room, int64_t *head,
                          char *marks)
{
    struct model_job *row[MODEL_JOBS];
    struct candidate *cand;
    size_t n = waiters_granted(c->m, w->queue, row), taken = 0, open = 0;
    bool is_left = false, is_solo = false;

    if (strchr(c->m->queue[w->queue].marks, 'g') == NULL)
        return;
    for (size_t i = 0; i < n && (int64_t)i <= room; i++) {
        int closed = waiters_closed(c->m, &row[i]->spot);

        if (closed > 0)
            waiters_take_back(c->m, row[i], closed);
        else
            row[open++] = row[i];
    }
    n = open;
    cand = mem_new((n + 1) * sizeof(*cand));
    for (size_t i = 0; i < n && (int64_t)i <= room; i++) {
        if ((int64_t)taken >= room) {
            is_left = true;
            c->is_solo_due |= model_is_solo(row[i]);
        } else if (!model_is_solo(row[i])) {
            cand[taken++] =
                (struct candidate){.job = row[i], .due = row[i]->spot.due, .is_granted = true};
        } else if (c->sync->held == 0 && c->n == 0 && taken == 0) {
            cand[taken++] =
                (struct candidate){.job = row[i], .due = row[i]->spot.due, .is_granted = true};
            is_solo = true;
            is_left = n > 1;
            break;
        } else {
            c->is_solo_due = true;
        }
    }
    if (is_left)
        *head = least(*head, MODEL_MS(c->m));
    if (taken > 0) {
        (void)take(c, w, cand, taken, c->n + room, head);
        c->has_solo |= is_solo && !cand[0].is_dead;
    }
    free(cand);
    if (waiters_granted(c->m, w->queue, row) > 0)
        (void)strcat(marks, "g");
    else
        waiters_disarm(c->m, "granted", c->m->queue[w->queue].name);
}

/* One look at the due jobs of a queue, at most `left` of them. Returns whether another look may
 * find more: some were parked, or one that died told its own queue of it. */
static bool look(struct claims *c, const struct model_want *w, int64_t left, int64_t most,
                 int64_t *head, char *marks)
{
    struct candidate *cand = mem_new((c->m->jobs + RAWS_A_SYNC + 1) * sizeof(*cand));
    size_t n;
    int parked = 0;

    *head = NEVER;
    c->has_caused = false;
    n = gather(c, w->queue, left, cand, head, marks);
    if (n > 0)
        parked = take(c, w, cand, n, most, head);
    c->parked += parked;
    free(cand);
    return parked > 0 || c->has_caused;
}

/* Claim due jobs. If some are parked, those behind them are tried, too, within bounds. */
static void claim_due(struct claims *c, const struct model_want *w, int64_t room, int64_t *head,
                      char *marks)
{
    struct candidate none[1];
    int64_t most = c->n + room, window = 0;
    bool is_bounded = true;

    for (int i = 0; i < LOOK_ROUNDS && is_bounded; i++) {
        int64_t left = c->bytes > 0 ? most - c->n : 0;

        if (c->parked >= PARKED_MAX && i > 0)
            break;
        if (c->parked >= PARKED_MAX)
            left = least(left, FEW);
        is_bounded = look(c, w, left > 0 && left < window ? window : left, most, head, marks);
        window = LOOK_WINDOW;
    }
    if (is_bounded && c->has_caused) {
        *head = NEVER;
        (void)gather(c, w->queue, 0, none, head, marks);
        return;
    }
    c->is_more |= is_bounded && *head <= MODEL_MS(c->m);
}

/* ---- fair queues */

/* Due raw members become jobs without a key, before anybody's turn. */
static void adopt_raws(struct claims *c, int q)
{
    struct candidate raw[RAWS_A_SYNC + 1];
    int64_t ignored = NEVER;
    size_t n = take_raws(c, q, RAWS_A_SYNC, raw, &ignored);

    for (size_t i = 0; i < n; i++) {
        struct model_job *j = model_new_job(c->m, model_tick(c->m, 1, 0), q, raw[i].raw->member);

        raw[i].raw->is_there = false;
        if (raw[i].why != NULL)
            model_bury(c->m, j, model_outcome("dead", 0, MODEL_MS(c->m), 0, raw[i].why, ""), 10000);
        else
            model_enqueue(c->m, j, raw[i].due);
    }
    c->is_more |= n == RAWS_A_SYNC;
}

/* When the first job is due; the priorities that have any. */
static void fair_head(struct claims *c, int q, int64_t *head, char *marks)
{
    struct model_job *row[MODEL_JOBS];

    for (int p = 0; p <= 9; p++) {
        char digit = (char)('0' + p), mark[2] = {digit, '\0'};

        if ((p != 5 && strchr(c->m->queue[q].marks, digit) == NULL) ||
            model_jobs(c->m, q, JOB_WAITING, p, row) == 0)
            continue;
        *head = least(*head, row[0]->score);
        if (p != 5)
            (void)strcat(marks, mark);
    }
}

/* Tenants take turns, `room` jobs in all. Returns whether another look may find more. */
static bool look_fair(struct claims *c, const struct model_want *w, int64_t room, int64_t most)
{
    struct candidate *cand = mem_new((c->m->jobs + 1) * sizeof(*cand));
    struct fair_turns turns = {.job = mem_new((c->m->jobs + 1) * sizeof(*turns.job))};
    int64_t ignored = NEVER;
    int parked;

    fair_turns(c->m, w->queue, room, &turns);
    for (size_t i = 0; i < turns.n; i++)
        cand[i] = (struct candidate){
            .job = turns.job[i], .turn = turns.job[i]->score, .due = turns.job[i]->score};
    parked = take(c, w, cand, turns.n, most, &ignored);
    fair_turns_end(c->m, w->queue, &turns);
    c->parked += parked;
    free(turns.job);
    free(cand);
    return parked > 0 || c->has_caused || (turns.n == 0 && turns.may_be_more);
}

static void claim_turns(struct claims *c, const struct model_want *w, int64_t room, int64_t *head,
                        char *marks)
{
    int64_t most = c->n + room, left = 0, window = 0;
    bool may_be_more = true;

    adopt_raws(c, w->queue);
    for (int i = 0; i < LOOK_ROUNDS && may_be_more; i++) {
        left = c->bytes > 0 ? most - c->n : 0;
        left = c->parked >= PARKED_MAX ? least(left, FEW) : left;
        if (left <= 0 || (window > 0 && c->parked >= PARKED_MAX))
            break;
        may_be_more = look_fair(c, w, left < window ? window : left, most);
        window = LOOK_WINDOW;
    }
    fair_head(c, w->queue, head, marks);
    if (left <= 0 || *head > MODEL_MS(c->m))
        return;
    if (may_be_more) {
        c->is_more = true;
    } else if (fair_is_idle(c->m, w->queue)) {
        fair_again(c->m, w->queue); /* not all jobs have their tenants yet */
        c->is_more = true;
    }
}

static void claim_waiting(struct claims *c, const struct model_want *w, int64_t room, int64_t *head,
                          char *marks)
{
    bool is_flagged = strchr(c->m->queue[w->queue].marks, 'f') != NULL;

    if ((fair_words(c->m, w->queue)[0] != '\0' || is_flagged) && fair_advance(c->m, w->queue))
        c->is_more = true;
    (c->shares[w->queue] ? claim_turns : claim_due)(c, w, room, head, marks);
}

/* Returns the head for the reply. */
static int64_t claim_queue(struct claims *c, const struct model_want *w)
{
    static void (*const ways[])(struct claims *, const struct model_want *, int64_t, int64_t *,
                                char *) = {claim_solo, claim_granted, claim_waiting};
    int64_t head = NEVER, pinned = NEVER, paused = model_paused(c->m, w->queue);
    int64_t most = c->n + least(w->room, c->max - c->n);
    char marks[48] = "";

    if (paused >= 0)
        return paused == 0 ? -1 : paused;
    c->m->queue[w->queue].is_paused = false;
    if (strchr(c->m->queue[w->queue].marks, 'a') != NULL)
        (void)strcpy(marks, "a");
    if (strchr(c->m->queue[w->queue].marks, 'p') != NULL) {
        char own[8] = "";

        claim_pinned(c, w, c->bytes > 0 && !c->has_solo ? most - c->n : 0, &pinned, own);
        memmove(marks + strlen(own), marks, strlen(marks) + 1);
        memcpy(marks, own, strlen(own));
    }
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        int64_t room = c->bytes > 0 && !c->has_solo ? most - c->n : 0, first = NEVER;
        char own[32] = "";

        ways[i](c, w, room, &first, own);
        head = least(head, first);
        memmove(marks + strlen(own), marks, strlen(marks) + 1);
        memcpy(marks, own, strlen(own));
    }
    if (c->m->fair[w->queue].is_there)
        (void)strcat(marks, "f");
    remember(c, w->queue, marks, head);
    head = least(head, pinned);
    return head == NEVER ? -1 : head;
}

static bool has_due_suspect(struct claims *c, const struct model_want *w)
{
    const char *marks = c->m->queue[w->queue].marks;
    struct model_job *row[MODEL_JOBS];

    if (c->sync->held > 0 || w->room <= 0)
        return false;
    if (strchr(marks, 's') != NULL && model_jobs(c->m, w->queue, JOB_WAITING, 10, row) > 0 &&
        row[0]->score <= MODEL_MS(c->m))
        return true;
    return strchr(marks, 'g') != NULL && waiters_granted(c->m, w->queue, row) > 0 &&
           model_is_solo(row[0]);
}

/* Claim from one queue; returns its head. */
static int64_t claim_want(struct claims *c, const struct model_want *w)
{
    int64_t before = c->n, head = claim_queue(c, w);

    c->m->gates->room[w->queue] = w->room - (c->n - before);
    return head;
}

/* Queues that stood aside and have room in this sync wait there again. */
static void rejoin_all(struct claims *c)
{
    bool any = false;

    for (size_t i = 0; i < c->sync->wants; i++) {
        const struct model_want *w = &c->sync->want[i];
        char *mark = strchr(c->m->queue[w->queue].marks, 'a');

        if (w->room <= 0 || mark == NULL || model_paused(c->m, w->queue) >= 0)
            continue;
        any = true;
        waiters_rejoin(c->m, w->queue);
        memmove(mark, mark + 1, strlen(mark));
    }
    if (any)
        waiters_hand_on_again(c->m);
}

/* Does nothing seem to be in this queue that could be claimed now? Then the sync does not look into
 * it, also if the death of a job in another queue adds a job to it meanwhile. */
static bool is_idle(struct claims *c, size_t at)
{
    const struct model_want *w = &c->sync->want[at];
    const struct model_queue *queue = &c->m->queue[w->queue];
    struct model_job *row[MODEL_JOBS];
    struct model_raw *raw[MODEL_RAWS];
    int64_t until = MODEL_MS(c->m) + c->sync->ahead;
    size_t n;

    for (size_t i = 0; i < at; i++)
        if (c->sync->want[i].queue == w->queue)
            return false;
    if (queue->marks[0] != '\0' || queue->is_paused || queue->is_head_read ||
        (queue->has_head && queue->head <= until && w->room > 0) ||
        model_raws(c->m, w->queue, raw) > 0)
        return false;
    n = model_jobs(c->m, w->queue, JOB_WAITING, 5, row);
    return queue->has_head ? n > 0 && row[0]->score == queue->head : n == 0;
}

static void claim_all(struct claims *c, struct buf *heads)
{
    int64_t head[16];
    bool told[16] = {false};

    rejoin_all(c);
    for (size_t i = 0; i < c->sync->wants; i++) {
        const struct model_queue *queue = &c->m->queue[c->sync->want[i].queue];

        told[i] = is_idle(c, i);
        head[i] = queue->has_head ? queue->head : -1;
    }
    for (size_t i = 0; i < c->sync->wants; i++)
        if (!told[i] && has_due_suspect(c, &c->sync->want[i])) {
            head[i] = claim_want(c, &c->sync->want[i]);
            told[i] = true;
        }
    for (size_t i = 0; i < c->sync->wants; i++)
        if (!told[i])
            head[i] = claim_want(c, &c->sync->want[i]);
    for (size_t i = 0; i < c->sync->wants; i++) {
        int64_t *room = &c->m->gates->room[c->sync->want[i].queue];

        *room = c->has_solo ? 0 : least(*room, c->max - c->n);
        out_int(heads, head[i]);
    }
}

/* ---- cancels */

static int by_turn(const void *a, const void *b)
{
    const struct model_job *x = *(struct model_job *const *)a, *y = *(struct model_job *const *)b;

    return x->cancel_turn - y->cancel_turn;
}

static void reply_cancels(struct model *m, int64_t epoch, struct buf *out)
{
    struct model_job *row[MODEL_JOBS];
    size_t n = 0;

    for (size_t i = 0; i < m->jobs; i++)
        if (m->job[i].cancel_ms != MODEL_NONE && m->job[i].score == epoch)
            row[n++] = &m->job[i];
    if (n > 1)
        qsort(row, n, sizeof(row[0]), by_turn);
    for (size_t i = 0; i < n; i++)
        out_text(out, row[i]->id);
}

void model_sync(struct model *m, const struct model_sync *s, struct buf *out)
{
    const struct model_worker *w = model_worker(m, s->epoch);
    const char *status = model_status(m, s->epoch);
    struct claims c = {.m = m,
                       .sync = s,
                       .max = least(s->max, 512),
                       .bytes = BYTES_A_SYNC,
                       .peek = PEEK_BYTES,
                       .claimed = BUF_INIT,
                       .told = BUF_INIT};
    struct buf heads = BUF_INIT;

    if (strcmp(status, "ok") == 0 && w->link != s->link)
        status = "link";
    buf_puts(out, "[ ");
    out_int(out, m->now_us);
    out_text(out, status);
    if (strcmp(status, "ok") == 0) {
        buf_puts(out, "[ ");
        m->gates->syncer = s->epoch;
        for (int q = 0; q < MODEL_QUEUES; q++) {
            m->gates->room[q] = -1;
            c.shares[q] = fair_shares(m, q);
            c.began[q] = -1;
            fair_sync(m, q);
        }
        for (size_t i = 0; i < s->wants; i++)
            m->gates->room[s->want[i].queue] = least(s->want[i].room, c.max);
        model_settle(m, s, out);
        claim_all(&c, &heads);
        waiters_hand_on_last(m);
        m->gates->syncer = 0;
        memset(m->gates->room, 0, sizeof(m->gates->room));
        buf_puts(out, "] [ ");
        if (c.claimed.len > 0)
            buf_add(out, c.claimed.data, c.claimed.len);
        buf_puts(out, "] [ ");
        reply_cancels(m, s->epoch, out);
        buf_printf(out, "] [ %s] [ ] ", buf_str(&heads));
        out_int(out, c.is_solo_due);
        out_int(out, c.is_more ? MODEL_MS(m) : waiters_next_timer(m));
        buf_puts(out, "[ ");
        if (c.told.len > 0)
            buf_add(out, c.told.data, c.told.len);
        buf_puts(out, "] ");
    }
    buf_puts(out, "] ");
    buf_done(&heads);
    buf_done(&c.claimed);
    buf_done(&c.told);
}
