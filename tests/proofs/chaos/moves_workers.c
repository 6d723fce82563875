#include "moves.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "finding.h"

#define WORKERS_AT_ONCE 4
#define CRASHES 10

/* Mostly the role whose rights are in users.acl. */
static enum role worker_role(struct world *w)
{
    return dice_percent(&w->dice, 60) ? ROLE_WORKER : ROLE_ALL;
}

static bool is_pickable(const struct worker *v, bool is_program)
{
    return v->is_there && !v->is_dead && v->is_program == is_program;
}

struct worker *move_pick_worker(struct world *w, bool is_program)
{
    struct ledger *l = w->l;
    int n = 0, at;

    for (int i = 0; i < l->workers; i++)
        n += is_pickable(&l->worker[i], is_program);
    at = n > 0 ? dice_below(&w->dice, n) : 0;
    for (int i = 0; i < l->workers; i++)
        if (is_pickable(&l->worker[i], is_program) && at-- == 0)
            return &l->worker[i];
    return NULL;
}

/* The jobs of this epoch that have not ended may wait again, or end if they were cancelled. */
static void may_be_released(struct ledger *l, int64_t epoch)
{
    for (int i = 0; i < l->jobs; i++) {
        struct job *j = &l->job[i];

        if ((j->may & RUNS) != 0 && j->epoch == epoch)
            j->may |= WAITS | ledger_back(l, j);
    }
}

/* ---- entering */

/* Add the starts that the worker reports as held: those it runs, and some that it ran once. Returns
 * how many. */
static int put_held(struct world *w, const struct worker *old, struct job **held, int most)
{
    int n = 0;

    for (int i = 0; old != NULL && i < w->l->jobs && n < most; i++) {
        struct job *j = &w->l->job[i];

        if (j->epoch == old->epoch && j->start > 0 && !j->is_unheard &&
            (j->may == RUNS ? dice_percent(&w->dice, 90) : dice_percent(&w->dice, 5)))
            held[n++] = j;
    }
    call_number(&w->call, n);
    for (int i = 0; i < n; i++) {
        call_text(&w->call, held[i]->id);
        call_number(&w->call, held[i]->start);
    }
    return n;
}

static void put_fields(struct world *w, bool is_program)
{
    call_number(&w->call, 3);
    call_text(&w->call, "host");
    call_text(&w->call, "h");
    call_text(&w->call, "queues");
    call_text(&w->call, is_program ? "" : "mail,sms,web,img");
    call_text(&w->call, "places");
    call_text(&w->call, is_program ? "0" : "8");
    call_number(&w->call, 0);
}

static struct worker *new_worker(struct world *w, struct worker *old)
{
    if (w->l->workers == LEDGER_WORKERS)
        return NULL;
    w->l->worker[w->l->workers] =
        (struct worker){.instance = old != NULL ? old->instance : w->serial++,
                        .seq = old != NULL ? old->seq + 1 : 1,
                        .gate = LEDGER_NONE,
                        .is_program = old != NULL && old->is_program};
    return &w->l->worker[w->l->workers];
}

static void take_registered(struct world *w, const struct reply *r, struct worker *v,
                            struct worker *old, struct job **held, int n)
{
    v->epoch = reply_int(reply_at(r, 1));
    v->link = v->counter = 1;
    v->is_there = true;
    w->l->workers++;
    ledger_fence(w->l, v->epoch, "a worker");
    if (old != NULL && old->is_there && !old->is_dead) {
        may_be_released(w->l, old->epoch);
        old->is_there = old->holds = false;
    } else if (old != NULL && !old->is_dead) {
        may_be_released(w->l, old->epoch);
    }
    for (int i = 0; i < n; i++) {
        if (!reply_is(reply_at(reply_at(r, 4), (size_t)i), "adopted"))
            continue;
        if ((held[i]->may & (RUNS | WAITS)) == 0)
            finding_break("adopt", "%s %s is adopted, and it is %s", w->l->root, held[i]->id,
                          ledger_states(held[i]->may));
        held[i]->may = RUNS;
        held[i]->epoch = v->epoch;
    }
}

static void enter(struct world *w, struct worker *old, bool is_program)
{
    struct job *held[64];
    struct worker *v = new_worker(w, old);
    struct reply *r;
    int n;

    if (v == NULL)
        return;
    v->is_program |= is_program;
    world_begin(w, "later_v1_register");
    call_number(&w->call, w->l->fence);
    call_printf(&w->call, "inst%d", v->instance);
    call_number(&w->call, v->seq);
    call_number(&w->call, old != NULL ? old->epoch : 0);
    put_fields(w, v->is_program);
    n = put_held(w, old, held, (int)COUNT(held));
    r = world_ask(w, worker_role(w));
    if (r != NULL)
        take_registered(w, r, v, old, held, n);
    reply_free(r);
}

void worker_enter(struct world *w)
{
    enter(w, NULL, false);
}

void move_register(struct world *w)
{
    struct worker *old = NULL;
    int there = 0;

    for (int i = 0; i < w->l->workers; i++)
        there += w->l->worker[i].is_there;
    if (w->l->workers > 0 && (there >= WORKERS_AT_ONCE || dice_percent(&w->dice, 60))) {
        int recent = w->l->workers < 5 ? w->l->workers : 5;

        old = &w->l->worker[w->l->workers - 1 - dice_below(&w->dice, recent)];
    }
    /* A worker that has registered again since has another epoch: do not use the old one. */
    for (int i = 0; old != NULL && i < w->l->workers; i++)
        if (w->l->worker[i].instance == old->instance && w->l->worker[i].seq > old->seq)
            old = NULL;
    if (old != NULL || there < WORKERS_AT_ONCE + 2)
        enter(w, old, dice_percent(&w->dice, 30));
}

/* ---- beats */

void worker_beat(struct world *w, struct worker *v)
{
    struct reply *r;

    world_begin(w, "later_v1_beat");
    call_number(&w->call, v->epoch);
    if (dice_percent(&w->dice, 50))
        call_text(&w->call, v->is_program ? "" : "mail,sms,web,img");
    r = world_ask(w, worker_role(w));
    if (r != NULL && !reply_is(reply_at(r, 1), "ok"))
        finding_break("worker", "%s worker %lld beats and is %s", w->l->root, (long long)v->epoch,
                      reply_str(reply_at(r, 1)));
    if (r != NULL)
        v->counter++;
    reply_free(r);
}

void move_beat(struct world *w)
{
    struct worker *v = move_pick_worker(w, dice_percent(&w->dice, 20));

    if (v != NULL)
        worker_beat(w, v);
}

void move_reconcile(struct world *w)
{
    struct worker *v = move_pick_worker(w, false);
    struct job *held[64];
    struct reply *r;

    if (v == NULL)
        return;
    world_begin(w, "later_v1_reconcile");
    call_number(&w->call, v->epoch);
    call_number(&w->call, v->link);
    (void)put_held(w, v, held, (int)COUNT(held));
    r = world_ask(w, worker_role(w));
    if (r != NULL && reply_is(reply_at(r, 1), "ok")) {
        may_be_released(w->l, v->epoch);
        v->link = reply_int(reply_at(r, 2));
    } else if (r != NULL) {
        finding_break("worker", "%s worker %lld reconciles and is %s", w->l->root,
                      (long long)v->epoch, reply_str(reply_at(r, 1)));
    }
    reply_free(r);
}

/* ---- ends */

static void take_reaped(struct world *w, const struct reply *r, struct worker *victim, int crashes)
{
    const char *status = reply_str(reply_at(r, 0));

    if (strcmp(status, "alive") == 0)
        return;
    for (int i = 0; i < w->l->jobs; i++) {
        struct job *j = &w->l->job[i];

        if ((j->may & RUNS) == 0 || j->epoch != victim->epoch)
            continue;
        j->crashes++;
        /* A job that cannot be moved because of a foreign key stays where it is. */
        j->may = (w->is_disturbed ? RUNS : 0) | ledger_back(w->l, j) |
                 (j->crashes >= crashes ? DEAD : 0);
    }
    victim->is_dead = true;
    if (strcmp(status, "clear") == 0)
        victim->is_there = victim->holds = victim->is_dead = false;
    else if (strcmp(status, "more") != 0 || !w->is_disturbed)
        finding_break("reap", "%s reap says %s", w->l->root, status);
}

void worker_reap(struct world *w, const struct worker *v, struct worker *victim, int crashes)
{
    struct reply *r;

    world_begin(w, "later_v1_reap");
    call_number(&w->call, v->epoch);
    call_number(&w->call, victim->epoch);
    if (victim->is_there)
        call_number(&w->call, victim->counter);
    else
        call_text(&w->call, "?");
    call_number(&w->call, crashes);
    call_number(&w->call, 10000);
    r = world_ask(w, worker_role(w));
    if (r != NULL)
        take_reaped(w, r, victim, crashes);
    reply_free(r);
}

void move_reap(struct world *w)
{
    static const int crashes[] = {1, 2, 3, 5, CRASHES, CRASHES};
    struct worker *v = move_pick_worker(w, dice_percent(&w->dice, 20)), *victim;

    if (v == NULL)
        return;
    victim = &w->l->worker[dice_below(&w->dice, w->l->workers)];
    if (victim != v && (victim->is_there || dice_percent(&w->dice, 30)))
        worker_reap(w, v, victim, PICK(&w->dice, crashes));
}

void move_leave(struct world *w)
{
    struct worker *v = move_pick_worker(w, dice_percent(&w->dice, 40));
    struct reply *r;

    if (v == NULL)
        return;
    world_begin(w, "later_v1_leave");
    call_number(&w->call, v->epoch);
    r = world_ask(w, worker_role(w));
    if (reply_is(r, "left"))
        v->is_there = v->holds = false;
    reply_free(r);
}

/* ---- housekeeping */

void worker_tidy(struct world *w, const struct worker *v)
{
    world_begin(w, "later_v1_tidy");
    call_number(&w->call, v->epoch);
    call_number(&w->call, QUEUES);
    for (int q = 0; q < QUEUES; q++) {
        call_text(&w->call, names_queue[q]);
        call_number(&w->call, 600000);
    }
    call_number(&w->call, 1);
    call_text(&w->call, "room");
    call_number(&w->call, dice_below(&w->dice, 3));
    world_tell(w, worker_role(w));
}

void move_tidy(struct world *w)
{
    struct worker *v = move_pick_worker(w, false);

    if (v != NULL)
        worker_tidy(w, v);
}

/* ---- programs: later lock, later sem */

static void put_gate(struct world *w, int gate)
{
    if (gate < LOCKS)
        call_printf(&w->call, "lock:%s", names_lock[gate]);
    else
        call_printf(&w->call, "sem:%s", names_limited[gate - LOCKS]);
}

static void program_enters(struct world *w, struct worker *v)
{
    bool waits = dice_percent(&w->dice, 60);
    int gate = v->gate >= 0 ? v->gate : dice_below(&w->dice, LOCKS + LIMITED);
    struct reply *r;

    world_begin(w, "later_v1_enter");
    call_number(&w->call, v->epoch);
    put_gate(w, gate);
    if (waits)
        call_text(&w->call, "wait");
    r = world_ask(w, worker_role(w));
    if (r != NULL && (reply_int(reply_at(r, 0)) == 1 || waits))
        v->gate = gate;
    if (r != NULL)
        v->holds = reply_int(reply_at(r, 0)) == 1;
    reply_free(r);
}

static void program_exits(struct world *w, struct worker *v)
{
    struct reply *r;

    world_begin(w, "later_v1_exit");
    call_number(&w->call, v->epoch);
    r = world_ask(w, worker_role(w));
    if (r != NULL && v->holds && !reply_is(r, "released"))
        finding_break("gate", "%s @%lld gives back what it was given: %s", w->l->root,
                      (long long)v->epoch, reply_str(r));
    if (r != NULL) {
        v->holds = false;
        v->gate = LEDGER_NONE;
    }
    reply_free(r);
}

void move_program(struct world *w)
{
    struct worker *v = move_pick_worker(w, true);

    if (v == NULL)
        return;
    if (v->gate < 0 || dice_percent(&w->dice, 60))
        program_enters(w, v);
    else
        program_exits(w, v);
}
