#include "worker.h"

#include <string.h>

#include "store.h"

/* ---- questions */

bool worker_holds(const struct worker *w, unsigned j)
{
    return w->slots[j].state != NONE;
}

static unsigned count_running(const struct conf *c, const struct worker *w)
{
    unsigned n = 0;

    for (unsigned j = 0; j < c->jobs; j++)
        n += (w->slots[j].state == RUNS) + (w->lost[j] != 0);
    return n;
}

/* sched_free_places */
static unsigned free_places(const struct conf *c, const struct worker *w)
{
    unsigned running = count_running(c, w);

    for (unsigned j = 0; j < c->jobs; j++) {
        if (w->slots[j].state == RUNS && w->slots[j].is_solo)
            return 0;
    }
    return w->is_stopping || running >= c->places ? 0 : c->places - running;
}

static bool has_results(const struct conf *c, const struct worker *w)
{
    for (unsigned j = 0; j < c->jobs; j++) {
        if (w->slots[j].state == ENDED)
            return true;
    }
    return false;
}

/* ---- letting go */

static void forget(struct worker *w, unsigned j)
{
    w->slots[j] = (struct slot){0};
}

/* sched_lose and what follows: the process is killed, and ends later. */
static void lose(struct worker *w, unsigned j)
{
    if (w->slots[j].state == RUNS)
        w->lost[j] = 1;
    forget(w, j);
}

static void drop_reap(struct worker *w)
{
    w->victim = w->counter = w->is_certain = 0;
}

static void suspect_nobody(const struct conf *c, struct worker *w)
{
    if (c->variant & SECONDS)
        return;
    memset(w->watch, 0, sizeof(w->watch));
    if (!w->is_certain)
        drop_reap(w);
}

/* sched_no_calls_out */
static void no_calls_out(const struct conf *c, struct worker *w)
{
    memset(&w->call, 0, sizeof(w->call));
    memset(&w->answer, 0, sizeof(w->answer));
    for (unsigned j = 0; j < c->jobs; j++) {
        if (w->slots[j].state == SENT)
            w->slots[j].state = ENDED;
    }
}

void worker_trouble(const struct conf *c, struct worker *w)
{
    no_calls_out(c, w);
    suspect_nobody(c, w);
    w->state = OFFLINE;
}

void worker_die(struct worker *w)
{
    *w = (struct worker){.process = DOWN, .life = w->life, .is_ailing = 1, .stray = w->stray};
}

/* ---- calls */

/* held_names */
static void name_held(const struct conf *c, const struct worker *w, struct call *call)
{
    for (unsigned j = 0; j < c->jobs; j++) {
        if (w->slots[j].state != NONE && !w->slots[j].has_no_record) {
            call->start[j] = w->slots[j].start;
            call->attempt[j] = w->slots[j].attempt;
        }
    }
}

static void send_register(const struct conf *c, struct worker *w)
{
    w->state = REGISTERING;
    w->call = (struct call){
        .kind = REGISTER, .life = w->life, .seq = ++w->seq, .seen = w->seen, .old = w->epoch};
    if (w->epoch != 0)
        name_held(c, w, &w->call);
}

static void send_beat(struct worker *w)
{
    w->call = (struct call){.kind = BEAT, .epoch = w->epoch};
}

static void send_reconcile(const struct conf *c, struct worker *w)
{
    w->state = RECONCILING;
    w->call = (struct call){.kind = RECONCILE, .epoch = w->epoch, .link = w->link, .seen = w->seen};
    name_held(c, w, &w->call);
}

void worker_enter(const struct conf *c, struct worker *w)
{
    if (w->epoch == 0) {
        send_register(c, w);
    } else {
        w->state = BEATING;
        send_beat(w);
    }
}

static bool is_free(const struct worker *w)
{
    return w->process == UP && w->state == READY && w->call.kind == NO_CALL;
}

/* A sync without results that would find nothing to do is left out: it changes nothing. */
static bool has_cause(const struct conf *c, const struct state *s, const struct worker *w)
{
    if (has_results(c, w))
        return true;
    for (unsigned j = 0; j < c->jobs; j++) {
        if (store_can_claim(c, s, j) && free_places(c, w) > 0)
            return true;
        if (s->redis.jobs[j].cancel && s->redis.jobs[j].owner == w->epoch &&
            w->slots[j].state == RUNS && !w->slots[j].is_killed)
            return true;
    }
    return false;
}

bool worker_send_sync(const struct conf *c, struct state *s, unsigned i)
{
    struct worker *w = &s->workers[i];

    if (!is_free(w) || !has_cause(c, s, w))
        return false;
    w->call = (struct call){.kind = SYNC,
                            .epoch = w->epoch,
                            .link = w->link,
                            .running = (uint8_t)count_running(c, w),
                            .room = (uint8_t)free_places(c, w)};
    for (unsigned j = 0; j < c->jobs; j++) {
        if (w->slots[j].state != ENDED)
            continue;
        w->slots[j].state = SENT;
        w->call.start[j] = w->slots[j].start;
        w->call.attempt[j] = w->slots[j].attempt;
        w->call.verb[j] = w->slots[j].verb;
    }
    return true;
}

bool worker_send_beat(struct worker *w)
{
    if (!is_free(w) || w->has_beaten)
        return false;
    send_beat(w);
    return true;
}

bool worker_send_reap(struct worker *w)
{
    if (!is_free(w) || w->victim == 0)
        return false;
    w->call =
        (struct call){.kind = REAP, .epoch = w->epoch, .victim = w->victim, .counter = w->counter};
    return true;
}

bool worker_send_leave(const struct conf *c, struct worker *w)
{
    if (!is_free(w) || !w->is_stopping || count_running(c, w) > 0)
        return false;
    for (unsigned j = 0; j < c->jobs; j++) {
        if (w->slots[j].state != NONE)
            return false;
    }
    w->state = LEAVING;
    w->call = (struct call){.kind = LEAVE, .epoch = w->epoch};
    return true;
}

/* ---- watching */

static void want_reap(struct worker *w, const struct entry *e, bool is_certain)
{
    if (w->victim != 0)
        return;
    w->victim = e->epoch;
    w->counter = e->standing == WRITTEN_OFF ? WAS_DEAD
                 : e->standing == STRANGER  ? WAS_STRANGER
                                            : FRESH;
    w->is_certain = is_certain;
}

void worker_watch(const struct conf *c, struct state *s, unsigned i, uint8_t own_epoch)
{
    struct worker *w = &s->workers[i];

    for (unsigned k = 0; k < s->redis.nentries; k++) {
        const struct entry *e = &s->redis.entries[k];

        if (e->epoch == own_epoch)
            continue;
        if (w->watch[k] == 0)
            w->watch[k] = 1;
        else if (w->watch[k] < c->silence && !(c->variant & SECONDS))
            w->watch[k]++;
        if (w->watch[k] >= c->silence || e->standing == WRITTEN_OFF)
            want_reap(w, e, false);
    }
}

void worker_wait(const struct conf *c, struct worker *w)
{
    for (unsigned k = 0; (c->variant & SECONDS) && k < ENTRIES_MAX; k++) {
        if (w->watch[k] > 0 && w->watch[k] < c->silence)
            w->watch[k]++;
    }
}

static bool is_predecessor(const struct state *s, unsigned i, const struct entry *e)
{
    return e->standing != STRANGER && e->worker == i && e->life < s->workers[i].life;
}

bool worker_has_predecessor(const struct state *s, unsigned i)
{
    for (unsigned k = 0; k < s->redis.nentries; k++) {
        if (is_predecessor(s, i, &s->redis.entries[k]))
            return true;
    }
    return false;
}

/* ---- answers */

static void become_ready(struct state *s, struct worker *w)
{
    w->state = READY;
    /* Numbers that this worker knows are not given out again from now on. */
    if (w->seen > s->history.issued)
        s->history.issued = w->seen;
}

/* on_dead, on_unknown, and an old link number. True: status was not OK. */
static bool is_not_ok(const struct conf *c, struct worker *w, enum status status)
{
    if (status == OK)
        return false;
    no_calls_out(c, w);
    if (status == SAID_LINK) {
        w->state = BEATING;
        send_beat(w);
        return true;
    }
    suspect_nobody(c, w);
    if (status == SAID_DEAD) {
        for (unsigned j = 0; j < c->jobs; j++)
            lose(w, j);
        w->epoch = 0;
    }
    send_register(c, w);
    return true;
}

static void take_registration(const struct conf *c, struct state *s, unsigned i,
                              const struct answer *a, bool knows_dead)
{
    struct worker *w = &s->workers[i];

    if (a->status == REFUSED) {
        worker_trouble(c, w);
        return;
    }
    for (unsigned j = 0; w->epoch != 0 && j < c->jobs; j++) {
        struct slot *slot = &w->slots[j];

        if (slot->state == NONE || slot->has_no_record)
            continue;
        if (a->word[j] == GONE && a->is_rewound)
            slot->has_no_record = 1;
        else if (a->word[j] != KEPT)
            lose(w, j);
    }
    w->epoch = a->number;
    w->link = a->link;
    for (unsigned k = 0; knows_dead && k < s->redis.nentries; k++) {
        if (is_predecessor(s, i, &s->redis.entries[k]) && w->victim == 0)
            want_reap(w, &s->redis.entries[k], true);
    }
    become_ready(s, w);
}

static void take_beat(const struct conf *c, struct worker *w, const struct answer *a)
{
    unsigned mine = 0;

    if (is_not_ok(c, w, a->status))
        return;
    w->link = a->link;
    for (unsigned j = 0; j < c->jobs; j++)
        mine += w->slots[j].state != NONE && !w->slots[j].has_no_record;
    if (w->state == BEATING || mine != a->count)
        send_reconcile(c, w);
}

static void take_reconcile(const struct conf *c, struct state *s, struct worker *w,
                           const struct answer *a)
{
    if (is_not_ok(c, w, a->status))
        return;
    w->link = a->link;
    for (unsigned j = 0; j < c->jobs; j++) {
        if (a->word[j] == GONE)
            lose(w, j);
    }
    become_ready(s, w);
}

/* ---- syncs */

static void end_with(struct slot *slot, enum verb verb)
{
    slot->state = ENDED;
    slot->verb = (uint8_t)verb;
}

/* Create the process. The first property: never twice for one start number. */
static void start(struct state *s, const struct worker *w, struct slot *slot, unsigned j)
{
    const struct job *job = &s->redis.jobs[j];
    struct history *h = &s->history;
    uint16_t bit = (uint16_t)(1U << slot->start);

    slot->state = RUNS;
    if (h->started[j] & bit)
        h->wrong |= STARTED_TWICE;
    h->started[j] |= bit;
    /* A start that comes too late opens nothing: a noted cause may have let another worker go
     * on. */
    if (!(job->sets & RUNNING) || job->owner != w->epoch || job->starts != slot->start)
        return;
    if (h->open[j] != 0)
        h->wrong |= UNCAUSED;
    h->open[j] = slot->start;
}

/* take_claim, place_claim, admit */
static void take_claim(const struct conf *c, struct state *s, struct worker *w,
                       const struct answer *a, unsigned j)
{
    struct slot *slot = &w->slots[j];

    bool still_ends;

    lose(w, j);
    still_ends = w->lost[j] != 0;
    *slot = (struct slot){.start = a->start[j], .attempt = a->attempt[j]};
    slot->is_solo = a->crashes[j] >= 2;
    if (still_ends || count_running(c, w) >= c->places || w->is_stopping)
        end_with(slot, SAY_RELEASE);
    else if (a->crashes[j] >= c->crashes || slot->attempt > c->attempts)
        end_with(slot, SAY_DEAD);
    else
        start(s, w, slot, j);
}

static void take_sync(const struct conf *c, struct state *s, struct worker *w,
                      const struct answer *a)
{
    if (is_not_ok(c, w, a->status))
        return;
    for (unsigned j = 0; j < c->jobs; j++) {
        if (w->slots[j].state == SENT)
            forget(w, j);
    }
    for (unsigned j = 0; j < c->jobs; j++) {
        if (a->start[j] != 0)
            take_claim(c, s, w, a, j);
    }
    for (unsigned j = 0; j < c->jobs; j++) {
        if ((a->cancels & BIT(j)) && w->slots[j].state == RUNS)
            w->slots[j].is_killed = 1;
    }
}

static void take_reap(struct worker *w, const struct call *call, const struct answer *a)
{
    if (w->victim != call->victim)
        return;
    if (a->status == OK && a->count) {
        if (w->counter != WAS_STRANGER)
            w->counter = WAS_DEAD;
    } else {
        drop_reap(w);
    }
}

/* sched_saw */
static void saw(const struct conf *c, struct worker *w, uint8_t number)
{
    /* Without a rewind the number has no effect. */
    if (c->budget.rewind > 0 && number > w->seen)
        w->seen = number;
}

void worker_deliver(const struct conf *c, struct state *s, unsigned i, bool knows_dead)
{
    struct worker *w = &s->workers[i];
    struct call call = w->call;
    struct answer a = w->answer;

    memset(&w->call, 0, sizeof(w->call));
    memset(&w->answer, 0, sizeof(w->answer));
    if (call.kind == REGISTER || call.kind == SYNC) {
        /* Even after a rewind, no worker is given a number that is not above all that it knows. */
        if (a.number != 0 && a.number <= w->seen)
            s->history.wrong |= TICKED_TWICE;
        saw(c, w, a.number);
    }
    saw(c, w, a.seen);
    switch (call.kind) {
    case REGISTER:
        take_registration(c, s, i, &a, knows_dead);
        break;
    case BEAT:
        take_beat(c, w, &a);
        break;
    case RECONCILE:
        take_reconcile(c, s, w, &a);
        break;
    case SYNC:
        take_sync(c, s, w, &a);
        break;
    case REAP:
        take_reap(w, &call, &a);
        break;
    case LEAVE:
        worker_die(w);
        break;
    default:
        break;
    }
}

/* ---- handlers */

/* policy_verdict */
bool worker_end(const struct conf *c, struct state *s, unsigned i, unsigned j, enum ending how)
{
    struct slot *slot = &s->workers[i].slots[j];

    if (s->workers[i].process != UP || slot->state != RUNS)
        return false;
    if (how == SUCCEEDS) {
        end_with(slot, SAY_DONE);
    } else if (how == IS_KILLED) {
        if (!slot->is_killed && !s->workers[i].is_stopping)
            return false;
        end_with(slot, SAY_RELEASE);
    } else {
        if (s->left.fail == 0)
            return false;
        s->left.fail--;
        end_with(slot, slot->attempt >= c->attempts ? SAY_DEAD : SAY_RETRY);
    }
    return true;
}

bool worker_end_lost(struct worker *w, unsigned j)
{
    if (w->process != UP || w->lost[j] == 0)
        return false;
    w->lost[j] = 0;
    return true;
}
