#include "moves.h"

#include <stdio.h>
#include <string.h>

#include "batch.h"
#include "chain.h"
#include "finding.h"

struct job *move_pick(struct world *w, int may)
{
    for (int i = 0; i < 12 && w->l->jobs > 0; i++) {
        int recent = w->l->jobs < 80 ? w->l->jobs : 80;
        int from = dice_percent(&w->dice, 80) ? w->l->jobs - recent : 0;
        struct job *j = &w->l->job[from + dice_below(&w->dice, w->l->jobs - from)];

        if ((j->may & may) != 0)
            return j;
    }
    return NULL;
}

static enum role any_role(struct world *w, enum role role)
{
    return dice_percent(&w->dice, 50) ? role : ROLE_ALL;
}

/* ---- adds */

static int maybe(struct world *w, int percent, int n)
{
    return dice_percent(&w->dice, percent) ? dice_below(&w->dice, n) : LEDGER_NONE;
}

/* Add random gate options and a key to the call; the gates are stored in o. */
void option_gates(struct world *w, struct job *o)
{
    int key = maybe(w, 50, KEYS), lock = maybe(w, 35, LOCKS);

    if (key >= 0) {
        call_text(&w->call, "key");
        call_text(&w->call, names_key[key]);
    }
    o->lock = lock;
    if (lock >= 0) {
        call_text(&w->call, "lock");
        if (lock >= 2 && key >= 0 && dice_percent(&w->dice, 50)) {
            o->lock = 2 + key;
            call_text(&w->call, "user:{key}");
        } else {
            call_text(&w->call, names_lock[lock]);
        }
    }
    o->limit_sem = maybe(w, 30, LIMITED);
    if (o->limit_sem >= 0) {
        call_text(&w->call, "sem");
        call_text(&w->call, names_limited[o->limit_sem]);
    }
    o->limit_rate = maybe(w, 30, LIMITED);
    if (o->limit_rate >= 0) {
        call_text(&w->call, "rate");
        call_text(&w->call, names_limited[o->limit_rate]);
    }
}

static void unique_options(struct world *w, struct job *o)
{
    static const char *const modes[] = {"drop", "replace", "move"};

    o->unique = maybe(w, 25, UNIQUES);
    if (o->unique < 0)
        return;
    call_text(&w->call, "unique");
    call_text(&w->call, names_unique[o->unique]);
    call_text(&w->call, "unique_mode");
    call_text(&w->call, PICK(&w->dice, modes));
    if (dice_percent(&w->dice, 15)) {
        call_text(&w->call, "unique_for");
        call_printf(&w->call, "%dms", 1 + dice_below(&w->dice, 5000));
    }
}

void option_plain(struct world *w, struct job *o)
{
    if (dice_percent(&w->dice, 30)) {
        call_text(&w->call, "in");
        call_printf(&w->call, "%dms", dice_below(&w->dice, dice_percent(&w->dice, 70) ? 20 : 5000));
    }
    if (dice_percent(&w->dice, 25)) {
        call_text(&w->call, "priority");
        call_number(&w->call, PICK(&w->dice, names_priority));
    }
    if (dice_percent(&w->dice, 20)) {
        call_text(&w->call, "keep");
        call_printf(&w->call, "%dms", dice_below(&w->dice, 3000));
    }
    if (dice_percent(&w->dice, 5)) {
        call_text(&w->call, "expire");
        call_printf(&w->call, "%dms", 1 + dice_below(&w->dice, 2000));
        o->may_expire = true;
    }
}

void option_chain(struct world *w, struct job *o)
{
    int n = dice_percent(&w->dice, 20) ? 1 + dice_below(&w->dice, CHAIN_MAX) : 0;

    while (o->chain.n < n) {
        o->chain.then[o->chain.n] = dice_below(&w->dice, QUEUES);
        call_text(&w->call, "then");
        call_text(&w->call, names_queue[o->chain.then[o->chain.n++]]);
    }
    o->chain.on_dead = maybe(w, 20, QUEUES);
    if (o->chain.on_dead >= 0) {
        call_text(&w->call, "on_dead");
        call_text(&w->call, names_queue[o->chain.on_dead]);
    }
}

static void put_payload(struct world *w)
{
    static char large[20000];

    if (dice_percent(&w->dice, 93)) {
        call_printf(&w->call, "p%d", w->serial++);
        return;
    }
    memset(large, 'x', sizeof(large));
    call_bytes(&w->call, large, 16000 + (size_t)dice_below(&w->dice, 4000));
}

/* An existing job got the options of this add. */
static void rewrite(struct job *j, const struct job *o)
{
    j->lock = o->lock;
    j->limit_sem = o->limit_sem;
    j->limit_rate = o->limit_rate;
    j->may_expire |= o->may_expire;
    j->chain = o->chain;
}

static void take_added(struct world *w, const struct reply *r, int queue, const struct job *o)
{
    const char *id = reply_str(reply_at(r, 0)), *status = reply_str(reply_at(r, 1));
    struct job *j = ledger_find(w->l, id);

    if (strcmp(status, "added") == 0) {
        j = ledger_add(w->l, id, queue);
        if (j != NULL) {
            rewrite(j, o);
            j->unique = o->unique;
            j->batch = o->batch;
            batch_join(w->l, j->batch, NULL);
        }
    } else if (j == NULL) {
        finding_break("add", "%s an add is answered %s %s, which nobody added", w->l->root, id,
                      status);
    } else if (strcmp(status, "replaced") == 0 || strcmp(status, "moved") == 0) {
        if ((j->may & WAITS) == 0)
            finding_break("add", "%s %s is answered for %s, which is %s", w->l->root, status, id,
                          ledger_states(j->may));
        rewrite(j, o);
        /* A start number is used up, so the worker that ran the old job cannot adopt it. */
        j->start += j->start > 0;
    }
}

void move_add(struct world *w)
{
    int queue = dice_below(&w->dice, QUEUES);
    struct job o = LEDGER_PLAIN;
    struct reply *r;

    world_begin(w, "later_add");
    call_text(&w->call, names_queue[queue]);
    if (dice_percent(&w->dice, 75)) {
        option_plain(w, &o);
        option_gates(w, &o);
        unique_options(w, &o);
        option_chain(w, &o);
        option_batch(w, o.unique >= 0 ? 0 : 25, &o);
    }
    put_payload(w);
    r = world_ask(w, any_role(w, ROLE_PRODUCER));
    if (r != NULL)
        take_added(w, r, queue, &o);
    reply_free(r);
}

void move_add_many(struct world *w)
{
    int queue = dice_below(&w->dice, QUEUES), n = 1 + dice_below(&w->dice, 8);
    struct job o = LEDGER_PLAIN;
    struct reply *r;

    world_begin(w, "later_add_many");
    call_text(&w->call, names_queue[queue]);
    if (dice_percent(&w->dice, 60)) {
        option_plain(w, &o);
        option_gates(w, &o);
        option_chain(w, &o);
        option_batch(w, 40, &o);
    }
    call_text(&w->call, "--");
    for (int i = 0; i < n; i++)
        call_printf(&w->call, "m%d", w->serial++);
    r = world_ask(w, any_role(w, ROLE_PRODUCER));
    for (size_t i = 0; i < reply_count(r); i++)
        take_added(w, reply_at(r, i), queue, &o);
    reply_free(r);
}

void move_add_raw(struct world *w)
{
    struct raw *raw = &w->l->raw[w->l->raws];

    if (w->l->raws == LEDGER_RAWS || w->is_disturbed)
        return;
    *raw = (struct raw){.queue = dice_below(&w->dice, QUEUES), .waits = true};
    (void)snprintf(raw->payload, sizeof(raw->payload), "raw %d", w->serial++);
    call_begin(&w->call, "ZADD");
    call_printf(&w->call, "%s:due:%s", w->l->root, names_queue[raw->queue]);
    call_number(&w->call, NOW_MS(w) + dice_below(&w->dice, 100));
    call_text(&w->call, raw->payload);
    w->l->raws++;
    world_tell(w, ROLE_ALL);
}

/* ---- changes */

/* Add a job to the call, by its id or its unique key. Returns that job; NULL: the call names an
 * unknown job. */
static struct job *put_job(struct world *w, int may)
{
    struct job *j = move_pick(w, may);

    if (j == NULL) {
        call_text(&w->call, "j00000000000");
    } else if (j->unique >= 0 && dice_percent(&w->dice, 30)) {
        call_printf(&w->call, "%s@%s", names_queue[j->queue], names_unique[j->unique]);
    } else {
        call_text(&w->call, j->id);
    }
    return j;
}

/* A unique key may stand for any job that has it, and only Redis knows for which: add `states` to
 * all of them that may be in one of `from`. */
static void may_also(struct world *w, const struct job *j, int from, int states)
{
    for (int i = 0; i < w->l->jobs; i++) {
        struct job *k = &w->l->job[i];

        if ((k == j || (j->unique >= 0 && k->queue == j->queue && k->unique == j->unique)) &&
            (k->may & from) != 0)
            k->may |= states;
    }
}

void move_cancel(struct world *w)
{
    struct job *j;
    struct reply *r;

    world_begin(w, "later_cancel");
    j = put_job(w, WAITS | RUNS);
    if (dice_percent(&w->dice, 20))
        call_text(&w->call, "waiting");
    r = world_ask(w, any_role(w, ROLE_ADMIN));
    if (r != NULL && j != NULL && reply_is(r, "cancelled")) {
        may_also(w, j, WAITS, DONE | GONE);
        if (call_word(&w->call, 4)[0] == 'j')
            j->may &= ~WAITS;
    } else if (r != NULL && j != NULL) {
        for (int i = 0; i < w->l->jobs; i++) {
            struct job *k = &w->l->job[i];

            if (k == j || (j->unique >= 0 && k->unique == j->unique && k->queue == j->queue))
                k->cancelling = true;
        }
    }
    reply_free(r);
}

static void retry(struct world *w)
{
    bool is_anew = dice_percent(&w->dice, 30);
    struct job *j;
    struct reply *r;

    world_begin(w, "later_retry");
    j = move_pick(w, DEAD);
    call_text(&w->call, j != NULL ? j->id : "j00000000000");
    if (is_anew)
        call_text(&w->call, "from_start");
    r = world_ask(w, any_role(w, ROLE_ADMIN));
    if (r != NULL && j != NULL) {
        if (is_anew)
            ledger_anew(j);
        chain_dies(j);
        j->is_told = false;
        j->may = WAITS;
        j->ended = 1 << END_NONE;
        j->crashes = 0;
    }
    reply_free(r);
}

void move_job(struct world *w)
{
    if (dice_percent(&w->dice, 35)) {
        retry(w);
        return;
    }
    if (dice_percent(&w->dice, 50)) {
        world_begin(w, "later_run_now");
        (void)put_job(w, WAITS);
    } else {
        world_begin(w, "later_reschedule");
        (void)put_job(w, WAITS);
        call_printf(&w->call, "+%dms", dice_below(&w->dice, 3000));
    }
    world_tell(w, any_role(w, ROLE_ADMIN));
}

void move_pause(struct world *w)
{
    if (dice_percent(&w->dice, 40)) {
        world_begin(w, "later_pause");
        call_text(&w->call, PICK(&w->dice, names_queue));
        call_text(&w->call, "for");
        call_printf(&w->call, "%dms", 1 + dice_below(&w->dice, 2000));
    } else {
        world_begin(w, "later_resume");
        call_text(&w->call, PICK(&w->dice, names_queue));
    }
    world_tell(w, any_role(w, ROLE_ADMIN));
}

void move_purge(struct world *w)
{
    static const char *const states[] = {"due", "parked", "dead", "done"};
    static const int may[] = {WAITS, WAITS, DEAD, DONE};
    int queue = dice_below(&w->dice, QUEUES), state = dice_below(&w->dice, 4);
    struct reply *r;

    world_begin(w, "later_v1_purge");
    call_text(&w->call, names_queue[queue]);
    call_text(&w->call, states[state]);
    call_number(&w->call, 1 + dice_below(&w->dice, 3));
    r = world_ask(w, ROLE_ALL);
    for (int i = 0; r != NULL && i < w->l->jobs; i++) {
        struct job *j = &w->l->job[i];

        if (j->queue == queue && (j->may & may[state]) != 0)
            j->may |= GONE;
    }
    for (int i = 0; r != NULL && state == 0 && i < w->l->raws; i++)
        if (w->l->raw[i].queue == queue)
            w->l->raw[i].may_go = true;
    reply_free(r);
}

void move_read(struct world *w)
{
    static const char *const about_job[] = {"later_show", "later_explain", "later_result"};

    if (dice_percent(&w->dice, 60)) {
        world_begin(w, PICK(&w->dice, about_job));
        (void)put_job(w, WAITS | RUNS);
    } else if (dice_percent(&w->dice, 50)) {
        world_begin(w, "later_stats");
    } else if (dice_percent(&w->dice, 30)) {
        world_begin(w, "later_v1_series");
    } else if (dice_percent(&w->dice, 30)) {
        world_begin(w, "later_top");
        call_text(&w->call, "failed");
        call_text(&w->call, "queues");
    } else if (dice_percent(&w->dice, 30)) {
        world_begin(w, "later_v1_tenants");
        call_text(&w->call, PICK(&w->dice, names_queue));
        call_text(&w->call, "20");
    } else {
        world_begin(w, "later_v1_gates");
        call_printf(&w->call, "lock:%s", PICK(&w->dice, names_lock));
        call_printf(&w->call, "sem:%s", PICK(&w->dice, names_limited));
        call_printf(&w->call, "rate:%s", PICK(&w->dice, names_limited));
    }
    world_tell(w, ROLE_ALL);
}
