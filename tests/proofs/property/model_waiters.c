/*
 * The waiters of the model: who waits, whose turn it is, what happens to a free permit.
 */
#include "model_gates.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define OPEN_MAX 64
#define TIMERS_A_CALL 64
#define GRANT_MS 1000
#define RESERVE_MS 5000
#define NEVER_MS INT64_C(100000000000000) /* LATEST */

/* ---- timers */

static struct model_timer *timer_of(struct model *m, const char *what)
{
    for (size_t i = 0; i < TIMERS_MAX; i++)
        if (m->gates->timer[i].is_there && strcmp(m->gates->timer[i].what, what) == 0)
            return &m->gates->timer[i];
    return NULL;
}

void waiters_arm(struct model *m, const char *kind, const char *name, int64_t at)
{
    char what[MODEL_TIMER_ID];
    struct model_timer *t;

    at = at < MODEL_MS(m) ? MODEL_MS(m) : at;
    (void)snprintf(what, sizeof(what), "%s:%s", kind, name);
    t = timer_of(m, what);
    if (t != NULL) {
        t->at = at < t->at ? at : t->at;
        return;
    }
    for (size_t i = 0; i < TIMERS_MAX; i++)
        if (!m->gates->timer[i].is_there) {
            t = &m->gates->timer[i];
            t->is_there = true;
            t->at = at;
            memcpy(t->what, what, sizeof(what));
            return;
        }
    abort();
}

void waiters_disarm(struct model *m, const char *kind, const char *name)
{
    char what[MODEL_TIMER_ID];
    struct model_timer *t;

    (void)snprintf(what, sizeof(what), "%s:%s", kind, name);
    t = timer_of(m, what);
    if (t != NULL)
        t->is_there = false;
}

static struct model_timer *first_timer(const struct model *m, int64_t until)
{
    struct model_timer *first = NULL;

    for (size_t i = 0; i < TIMERS_MAX; i++) {
        struct model_timer *t = &m->gates->timer[i];

        if (t->is_there && t->at <= until &&
            (first == NULL || t->at < first->at ||
             (t->at == first->at && strcmp(t->what, first->what) < 0)))
            first = t;
    }
    return first;
}

int64_t waiters_next_timer(const struct model *m)
{
    const struct model_timer *t = first_timer(m, INT64_MAX);

    return t == NULL || t->at >= NEVER_MS ? -1 : t->at;
}

/* ---- the order of the waiters */

static bool waits_at(const struct model_job *j, const struct model_gate *g)
{
    return j->state == JOB_PARKED && j->spot.at > 0 && j->spot.gate[j->spot.at - 1] == g;
}

/* -> the first job of the queue at this gate; NULL: none */
static struct model_job *first_at(struct model *m, int q, const struct model_gate *g)
{
    struct model_job *first = NULL;

    for (size_t i = 0; i < m->jobs; i++)
        if (m->job[i].queue == q && waits_at(&m->job[i], g) &&
            (first == NULL || m->job[i].spot.ticket < first->spot.ticket))
            first = &m->job[i];
    return first;
}

bool waiters_first(struct model *m, const struct model_gate *g, struct model_job **j,
                   struct model_outsider **o)
{
    int64_t first = INT64_MAX;

    *j = NULL;
    *o = NULL;
    for (size_t i = 0; i < m->jobs; i++)
        if (waits_at(&m->job[i], g) && !g->is_aside[m->job[i].queue] &&
            m->job[i].spot.ticket < first) {
            *j = &m->job[i];
            first = (*j)->spot.ticket;
        }
    for (size_t i = 0; i < OUTSIDERS_MAX; i++) {
        struct model_outsider *who = &m->gates->outsider[i];

        if (who->is_there && who->gate == g && who->ticket < first) {
            *o = who;
            *j = NULL;
            first = who->ticket;
        }
    }
    return *j != NULL || *o != NULL;
}

/* A queue is one waiter, with the ticket of its first job. */
int64_t waiters_before(struct model *m, const struct model_gate *g, int64_t ticket)
{
    bool is_before[MODEL_QUEUES] = {false};
    int64_t n = 0;

    for (size_t i = 0; i < m->jobs; i++)
        if (waits_at(&m->job[i], g) && !g->is_aside[m->job[i].queue] &&
            m->job[i].spot.ticket < ticket)
            is_before[m->job[i].queue] = true;
    for (int q = 0; q < MODEL_QUEUES; q++)
        n += is_before[q];
    for (size_t i = 0; i < OUTSIDERS_MAX; i++)
        n += m->gates->outsider[i].is_there && m->gates->outsider[i].gate == g &&
             m->gates->outsider[i].ticket < ticket;
    return n;
}

static bool has_waiters(struct model *m, const struct model_gate *g)
{
    struct model_outsider *o;
    struct model_job *j;

    return waiters_first(m, g, &j, &o);
}

/* Without waiters it does not matter when the gate opens. */
static void disarm_empty(struct model *m, const struct model_gate *g)
{
    if (!has_waiters(m, g))
        waiters_disarm(m, "gate", g->id);
}

/* The job leaves its gate. If none of its queue is left there, the queue is not aside any more. */
static void step_out(struct model *m, struct model_job *j)
{
    struct model_gate *g = j->spot.gate[j->spot.at - 1];

    j->spot.at = 0;
    if (first_at(m, j->queue, g) != NULL)
        return;
    g->is_aside[j->queue] = false;
    disarm_empty(m, g);
}

/* A job whose queue stands aside is offered nothing, so it may not keep what it reserved. */
static void keep_nothing(struct model *m, struct model_job *j)
{
    if (j->spot.passed_over <= MODEL_PASSED_OVER_MAX)
        return;
    gates_let_go(m, j, false);
    j->spot.passed_over = MODEL_PASSED_OVER_MAX;
}

/* Only the first job of a queue may keep gates while it waits for another. */
static void park(struct model *m, struct model_job *j, int at)
{
    struct model_gate *g = j->spot.gate[at - 1];
    struct model_job *first = first_at(m, j->queue, g);
    bool is_behind = first != NULL && first->spot.ticket < j->spot.ticket;

    if (g->is_aside[j->queue] || is_behind)
        keep_nothing(m, j);
    if (first != NULL && !is_behind)
        keep_nothing(m, first);
    j->state = JOB_PARKED;
    j->score = j->spot.ticket;
    j->spot.at = at;
    j->spot.granted_ms = MODEL_NONE;
}

void waiters_arm_gate(struct model *m, struct model_gate *g)
{
    int64_t opens;

    if (gate_permits(m, g, &opens) <= 0 && (opens != MODEL_NONE || g->kind != KIND_LOCK))
        waiters_arm(m, "gate", g->id, opens != MODEL_NONE ? opens : NEVER_MS);
}

/* ---- the gates of a job */

static int by_id(const void *a, const void *b)
{
    return strcmp((*(struct model_gate *const *)a)->id, (*(struct model_gate *const *)b)->id);
}

bool spot_fill(struct model *m, const struct model_job *j, struct model_spot *spot, char *why)
{
    static const char *const kinds[] = {"lock", "sem", "rate"};
    bool is_fine = true;

    memset(spot, 0, sizeof(*spot));
    spot->granted_ms = MODEL_NONE;
    for (int k = 0; k < MODEL_KINDS; k++) {
        const char *common = m->queue[j->queue].gates[k];
        char filled[MODEL_NAME * 2] = "";
        int from = spot->n;

        if (common[0] != '\0' && !fill_key(filled, common, j->key)) {
            if (is_fine) /* tell the first missing key */
                (void)snprintf(why, 160, "its queue wants the %s %s, and it has no key", kinds[k],
                               common);
            is_fine = false;
        }
        if (filled[0] != '\0')
            spot->gate[spot->n++] = gate_named(m, (enum gate_kind)k, filled);
        if (j->own[k][0] != '\0' && strcmp(filled, j->own[k]) != 0)
            spot->gate[spot->n++] = gate_named(m, (enum gate_kind)k, j->own[k]);
        if (k == KIND_LOCK && j->is_successor) {
            unique_lock(filled, m, j);
            spot->gate[spot->n++] = gate_named(m, KIND_LOCK, filled);
        }
        if (spot->n - from > 1)
            qsort((void *)&spot->gate[from], (size_t)(spot->n - from), sizeof(spot->gate[0]),
                  by_id);
    }
    return is_fine;
}

void waiters_hold(struct model *m, struct model_job *j, const struct model_spot *spot, int taken,
                  bool is_started)
{
    struct buf text = BUF_INIT;

    if (is_started && (model_is_followed(j) || j->chain.batch != NULL))
        buf_puts(&text, model_is_followed(j) ? "then" : "batch");
    if (is_started && j->chain.batch != NULL)
        buf_printf(&text, " %s", j->chain.batch);
    for (int i = 0; i < taken; i++)
        if (spot->gate[i]->kind != KIND_RATE || !is_started)
            buf_printf(&text, "%s%s", text.len > 0 ? "\n" : "", spot->gate[i]->id);
    if (is_started && j->unique != NULL)
        buf_printf(&text, "%suniq:%lld:%s:%s", text.len > 0 ? "\n" : "",
                   j->unique_until == MODEL_NONE ? 0LL : (long long)j->unique_until,
                   m->queue[j->queue].name, j->unique);
    if (text.len > 0 || is_started)
        model_set(&j->holds, text.len > 0 ? buf_take(&text) : NULL);
    buf_done(&text);
}

bool waiters_must_end(struct model *m, const struct model_spot *spot)
{
    for (int i = 0; i < spot->n; i++) {
        const struct model_gate *g = spot->gate[i];
        const struct model_limit *l = limit_of(m, g->kind, g->name);

        if (g->kind == KIND_LOCK || (g->kind == KIND_SEM && l != NULL && l->kills))
            return true;
    }
    return false;
}

/* ---- taking */

bool waiters_pass(struct model *m, struct model_job *j, struct model_spot *spot, int64_t due,
                  int64_t fence)
{
    int64_t opens;
    int shut = 0;

    /* Jobs of its queue that stand aside go first. */
    for (int i = 0; i < spot->n && shut == 0; i++)
        if (spot->gate[i]->is_aside[j->queue] || has_waiters(m, spot->gate[i]) ||
            gate_permits(m, spot->gate[i], &opens) <= 0)
            shut = i + 1;
    if (shut == 0) {
        for (int i = 0; i < spot->n; i++)
            gate_take(m, spot->gate[i], j->id, fence, NO_END, false);
        return true;
    }
    j->spot = *spot;
    j->spot.ticket = fence;
    j->spot.due = due;
    j->spot.passed_over = 0;
    park(m, j, shut);
    waiters_arm_gate(m, spot->gate[shut - 1]);
    return false;
}

/* Take the gates that are free. Returns the number of the gate that is shut, from 1; 0: it has
 * all. */
static int advance(struct model *m, struct model_job *j)
{
    struct model_spot *s = &j->spot;
    int64_t opens;

    for (int i = 0; s->passed_over < MODEL_PASSED_OVER_MAX && i < s->n; i++)
        if (gate_permits(m, s->gate[i], &opens) <= 0)
            return i + 1;
    for (int i = s->passed_over > MODEL_PASSED_OVER_MAX ? s->at - 1 : 0; i < s->n; i++) {
        if (gate_permits(m, s->gate[i], &opens) <= 0)
            return i + 1;
        gate_promise(m, s->gate[i], j->id);
        waiters_hold(m, j, s, i + 1, false);
    }
    return 0;
}

void waiters_unpark(struct model *m, struct model_job *j, bool keeps)
{
    j->state = JOB_GONE;
    if (j->spot.at > 0)
        step_out(m, j);
    if (!keeps)
        gates_let_go(m, j, false);
}

/* May a job that a worker runs, but that waits in Redis, go on? Others may have its gates. */
bool waiters_regain(struct model *m, struct model_job *j)
{
    struct model_spot spot;
    int64_t opens;
    char why[160];

    (void)spot_fill(m, j, &spot, why);
    for (int i = 0; i < spot.n; i++) {
        struct model_gate *g = spot.gate[i];
        bool is_own = g->kind == KIND_LOCK && !lock_is_over(m, g) && strcmp(g->holder, j->id) == 0;

        for (size_t k = 0; g->kind == KIND_SEM && k < g->permits; k++)
            is_own |= strcmp(g->permit[k].who, j->id) == 0;
        if (!is_own && g->kind != KIND_RATE && gate_permits(m, g, &opens) <= 0)
            return false;
    }
    if (j->state == JOB_PARKED)
        waiters_unpark(m, j, false);
    for (int i = 0; i < spot.n; i++)
        if (spot.gate[i]->kind != KIND_RATE)
            gate_take(m, spot.gate[i], j->id, model_tick(m, 1, 0), NO_END, false);
    waiters_hold(m, j, &spot, spot.n, true);
    return true;
}

/* ---- outsiders */

struct model_outsider *outsider_of(struct model *m, const struct model_gate *g, const char *who)
{
    for (size_t i = 0; i < OUTSIDERS_MAX; i++) {
        struct model_outsider *o = &m->gates->outsider[i];

        if (o->is_there && o->gate == g && strcmp(o->who, who) == 0)
            return o;
    }
    return NULL;
}

/* Its name in R:parked. */
const char *outsider_name(const struct model_outsider *o)
{
    static char name[MODEL_TIMER_ID];

    (void)snprintf(name, sizeof(name), "%s\n%s", o->who, o->gate->id);
    return name;
}

/* An outsider's wait may be over. */
static void end_wait(struct model *m, const char *name)
{
    for (size_t i = 0; i < OUTSIDERS_MAX; i++) {
        struct model_outsider *o = &m->gates->outsider[i];

        if (!o->is_there || o->until == 0 || strcmp(outsider_name(o), name) != 0)
            continue;
        if (o->until < MODEL_MS(m))
            outsider_leave(m, o->gate, o->who);
        else
            waiters_arm(m, "wait", name, o->until + 1);
        return;
    }
}

void outsider_leave(struct model *m, struct model_gate *g, const char *who)
{
    struct model_outsider *o = outsider_of(m, g, who);

    gate_touch(m, g);
    if (o == NULL)
        return;
    waiters_disarm(m, "wait", outsider_name(o));
    o->is_there = false;
    disarm_empty(m, g);
}

static void offer_to_outsider(struct model *m, struct model_outsider *o)
{
    struct model_gate *g = o->gate;

    outsider_leave(m, g, o->who);
    if (o->until != 0 && o->until < MODEL_MS(m))
        return;
    gate_take(m, g, o->who, model_tick(m, 1, 0), MODEL_MS(m) + RESERVE_MS, true);
    model_wake(m, o->who);
}

bool worker_leave_gate(struct model *m, const struct model_worker *w)
{
    struct model_gate *g;
    char who[32];

    if (w == NULL || w->gate[0] == '\0')
        return false;
    (void)snprintf(who, sizeof(who), "@%lld", (long long)w->epoch);
    g = gate_of(m, w->gate);
    outsider_leave(m, g, who);
    return gate_drop(m, g, who);
}

/* ---- opening */

static void put_aside(struct model *m, int q, struct model_gate *g)
{
    struct model_job *first = first_at(m, q, g);

    if (first != NULL)
        keep_nothing(m, first);
    g->is_aside[q] = true;
    model_mark(m, q, 'a');
}

enum grant { GRANT_YES, GRANT_ENOUGH, GRANT_NO };

/* Grant as many as the caller has room for. If it has none or did not say, grant one if some worker
 * has room. */
static enum grant may_grant(struct model *m, const struct model_job *j)
{
    int64_t room = m->gates->room[j->queue];
    struct model_job *row[MODEL_JOBS];
    int64_t granted = (int64_t)waiters_granted(m, j->queue, row);

    if (room > 0 || granted > 0)
        return granted < room ? GRANT_YES : GRANT_ENOUGH;
    return j->spot.passed_over >= MODEL_PASSED_OVER_MAX || workers_have_room(m, j->queue)
               ? GRANT_YES
               : GRANT_NO;
}

static void offer_to_job(struct model *m, struct model_gate *g, struct model_job *j)
{
    enum grant word;
    int shut;

    if (model_paused(m, j->queue) >= 0) {
        put_aside(m, j->queue, g);
        return;
    }
    word = may_grant(m, j);
    if (word != GRANT_YES) {
        j->spot.passed_over += word == GRANT_NO;
        put_aside(m, j->queue, g);
        model_wake(m, m->queue[j->queue].name);
        return;
    }
    shut = advance(m, j);
    step_out(m, j);
    if (shut > 0) {
        j->spot.passed_over++;
        park(m, j, shut);
        waiters_arm_gate(m, j->spot.gate[shut - 1]);
        return;
    }
    j->spot.granted_ms = MODEL_MS(m);
    model_mark(m, j->queue, 'g');
    waiters_arm(m, "granted", m->queue[j->queue].name, MODEL_MS(m) + GRANT_MS);
    m->gates->is_granted[j->queue] = true;
}

static void open_gate(struct model *m, struct model_gate *g)
{
    struct model_outsider *o;
    struct model_job *j;
    int64_t opens;

    while (waiters_first(m, g, &j, &o)) {
        if (gate_permits(m, g, &opens) <= 0) {
            waiters_arm_gate(m, g);
            return;
        }
        if (m->gates->called >= OPEN_MAX) {
            waiters_arm(m, "gate", g->id, MODEL_MS(m));
            return;
        }
        m->gates->called++;
        if (o != NULL)
            offer_to_outsider(m, o);
        else
            offer_to_job(m, g, j);
    }
}

static int by_grant(const void *a, const void *b)
{
    const struct model_job *x = *(struct model_job *const *)a, *y = *(struct model_job *const *)b;

    if (x->spot.granted_ms != y->spot.granted_ms)
        return x->spot.granted_ms < y->spot.granted_ms ? -1 : 1;
    return strcmp(x->id, y->id);
}

size_t waiters_granted(struct model *m, int q, struct model_job **row)
{
    size_t n = 0;

    for (size_t i = 0; i < m->jobs; i++)
        if (m->job[i].state == JOB_PARKED && m->job[i].queue == q && m->job[i].spot.at == 0)
            row[n++] = &m->job[i];
    if (n > 1)
        qsort((void *)row, n, sizeof(row[0]), by_grant);
    return n;
}

/* Put the queue aside at the gates of a job that nobody claimed, where it has parked jobs. */
static void stand_back(struct model *m, int q, const struct model_spot *spot)
{
    for (int i = 0; i < spot->n; i++)
        if (!spot->gate[i]->is_aside[q] && (i == 0 || first_at(m, q, spot->gate[i]) != NULL))
            put_aside(m, q, spot->gate[i]);
}

int waiters_closed(struct model *m, const struct model_spot *spot)
{
    for (int i = 0; i < spot->n; i++) {
        const struct model_limit *l = limit_of(m, KIND_RATE, spot->gate[i]->name);

        if (spot->gate[i]->kind == KIND_RATE && (l == NULL || l->n == 0))
            return i + 1;
    }
    return 0;
}

void waiters_take_back(struct model *m, struct model_job *j, int at)
{
    gates_let_go(m, j, false);
    j->spot.passed_over = 0;
    if (at == 0)
        stand_back(m, j->queue, &j->spot);
    park(m, j, at == 0 ? 1 : at);
    waiters_arm_gate(m, j->spot.gate[j->spot.at - 1]);
}

static void take_back(struct model *m, int q)
{
    struct model_job *row[MODEL_JOBS];
    size_t n = waiters_granted(m, q, row), i;

    /* A grant from before the clock was set back counts as granted now. */
    for (i = 0; i < n; i++)
        if (row[i]->spot.granted_ms > MODEL_MS(m))
            row[i]->spot.granted_ms = MODEL_MS(m);
    n = waiters_granted(m, q, row);
    for (i = 0; i < n && i < OPEN_MAX && row[i]->spot.granted_ms <= MODEL_MS(m) - GRANT_MS; i++)
        waiters_take_back(m, row[i], 0);
    if (i < n)
        waiters_arm(m, "granted", m->queue[q].name, row[i]->spot.granted_ms + GRANT_MS);
}

void waiters_rejoin(struct model *m, int q)
{
    struct model_gate *row[GATES_MAX];
    size_t n = 0;

    for (size_t i = 0; i < m->gates->n; i++)
        if (m->gates->gate[i].is_aside[q])
            row[n++] = &m->gates->gate[i];
    if (n > 1)
        qsort((void *)row, n, sizeof(row[0]), by_id);
    for (size_t i = 0; i < n; i++) {
        row[i]->is_aside[q] = false;
        gate_touch(m, row[i]);
    }
}

/* Wake the queues, by name, that got a grant which is not claimed yet. */
static void tell_granted(struct model *m)
{
    static const int sorted[MODEL_QUEUES] = {3, 2, 0, 1}; /* 0 Q-7_x mail sms */
    struct model_job *row[MODEL_JOBS];

    for (int i = 0; i < MODEL_QUEUES; i++) {
        int q = sorted[i];

        if (m->gates->is_granted[q] && waiters_granted(m, q, row) > 0)
            model_lower_head(m, q, MODEL_MS(m));
        m->gates->is_granted[q] = false;
    }
}

/* Handle the timers that are due, once in a call. */
static void serve_timers(struct model *m)
{
    char due[TIMERS_A_CALL][MODEL_TIMER_ID];
    int n = 0;

    for (; n < TIMERS_A_CALL; n++) {
        struct model_timer *t = first_timer(m, MODEL_MS(m));

        if (t == NULL)
            break;
        memcpy(due[n], t->what, sizeof(due[n]));
        t->is_there = false;
    }
    for (int i = 0; i < n; i++) {
        const char *name = strchr(due[i], ':') + 1;

        for (int q = 0; strncmp(due[i], "granted:", 8) == 0 && q < MODEL_QUEUES; q++)
            if (strcmp(m->queue[q].name, name) == 0)
                take_back(m, q);
        if (strncmp(due[i], "gate:", 5) == 0)
            gate_touch(m, gate_of(m, name));
        if (strncmp(due[i], "wait:", 5) == 0)
            end_wait(m, name);
    }
}

/* Hand on what was given back, and what the timers touched. */
void waiters_hand_on_again(struct model *m)
{
    struct model_gates *s = m->gates;

    for (int rounds = 0; s->touched > 0;) {
        struct model_gate *g = s->touch[--s->touched];

        if (has_waiters(m, g) && rounds >= OPEN_MAX) {
            waiters_arm(m, "gate", g->id, MODEL_MS(m));
        } else if (has_waiters(m, g)) {
            rounds++;
            open_gate(m, g);
        }
    }
}

void waiters_hand_on_first(struct model *m)
{
    serve_timers(m);
    waiters_hand_on_again(m);
}

void waiters_hand_on_last(struct model *m)
{
    waiters_hand_on_again(m);
    tell_granted(m);
}

void waiters_hand_on(struct model *m)
{
    serve_timers(m);
    waiters_hand_on_last(m);
}

/* ---- limits */

static int by_time(const void *a, const void *b)
{
    const struct model_timer *x = *(struct model_timer *const *)a;
    const struct model_timer *y = *(struct model_timer *const *)b;

    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    return strcmp(x->what, y->what);
}

/* The gates with waiters that fit the template, in the order of R:timers. */
static size_t gates_under(struct model *m, const char *kind, const char *name,
                          struct model_gate **row)
{
    struct model_timer *timer[TIMERS_MAX];
    size_t n = 0, found = 0;

    for (size_t i = 0; i < TIMERS_MAX; i++)
        if (m->gates->timer[i].is_there)
            timer[n++] = &m->gates->timer[i];
    if (n > 1)
        qsort((void *)timer, n, sizeof(timer[0]), by_time);
    for (size_t i = 0; i < n; i++)
        if (strncmp(timer[i]->what, kind, strlen(kind)) == 0 &&
            limit_fits(name, timer[i]->what + strlen(kind)))
            row[found++] = gate_of(m, timer[i]->what + strlen("gate:"));
    return found;
}

/* Wake the queues that wait, in the order of their tickets. */
static void tell_waiters(struct model *m, const struct model_gate *g, bool told[MODEL_QUEUES])
{
    int64_t first[MODEL_QUEUES];

    for (int q = 0; q < MODEL_QUEUES; q++)
        first[q] = INT64_MAX;
    for (size_t i = 0; i < m->jobs; i++) {
        const struct model_job *j = &m->job[i];

        if (waits_at(j, g) && !g->is_aside[j->queue] && j->spot.ticket < first[j->queue])
            first[j->queue] = j->spot.ticket;
    }
    for (;;) {
        int next = 0;

        for (int q = 1; q < MODEL_QUEUES; q++)
            next = first[q] < first[next] ? q : next;
        if (first[next] == INT64_MAX)
            return;
        first[next] = INT64_MAX;
        if (!told[next])
            model_wake(m, m->queue[next].name);
        told[next] = true;
    }
}

void waiters_limit_changed(struct model *m, bool is_sem, const char *name)
{
    struct model_gate *row[TIMERS_MAX];
    bool told[MODEL_QUEUES] = {false};
    size_t n = 1;

    if (strstr(name, "{key}") != NULL)
        n = gates_under(m, is_sem ? "gate:sem:" : "gate:rate:", name, row);
    else
        row[0] = gate_named(m, is_sem ? KIND_SEM : KIND_RATE, name);
    for (size_t i = 0; i < n; i++) {
        gate_keep_claims(m, row[i]);
        gate_touch(m, row[i]);
    }
    waiters_hand_on(m);
    for (size_t i = 0; i < n; i++)
        tell_waiters(m, row[i], told);
}
