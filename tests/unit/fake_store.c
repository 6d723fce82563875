#include "fake_store.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

struct store_peer fake_peer(int64_t epoch, const char *counter)
{
    return (struct store_peer){epoch, counter, "", "", "", "", ""};
}

struct mono fake_now(const struct fake *f)
{
    return (struct mono){f->now_us};
}

static int64_t store_us(const struct fake *f)
{
    return FAKE_BEGIN_MS * 1000 + f->now_us;
}

static int64_t store_ms(const struct fake *f)
{
    return store_us(f) / 1000;
}

static void count_op(struct fake *f)
{
    if (f->now_us / 1000 != f->ops_ms) {
        f->ops_ms = f->now_us / 1000;
        f->ops = 0;
    }
    if (++f->ops > FAKE_OPS_PER_MS)
        fail_msg("a busy loop at %lld ms", (long long)f->ops_ms);
}

/* ---- calls */

/* NULL: the call was not sent. */
static struct fake_call *ask(struct fake *f, enum fake_kind kind, int64_t epoch)
{
    struct fake_call *c;

    count_op(f);
    if (f->takes_nothing)
        return NULL;
    assert_true(f->is_up);
    c = mem_new(sizeof(*c));
    c->kind = kind;
    c->at_us = f->now_us;
    c->boot_us = f->now_us + f->slept_us;
    c->epoch = epoch;
    if (f->last != NULL)
        f->last->next = c;
    else
        f->asked = c;
    f->last = c;
    f->count[kind]++;
    return c;
}

static int keep_held(struct fake_call *c, const struct store_held *held, size_t n)
{
    if (c == NULL)
        return -1;
    c->results = mem_new((n + 1) * sizeof(*c->results));
    c->nresults = n;
    for (size_t i = 0; i < n; i++) {
        (void)snprintf(c->results[i].id, sizeof(c->results[i].id), "%s", held[i].id);
        c->results[i].start = held[i].start;
    }
    return 0;
}

static void keep_text(struct fake_call *c, const char *text)
{
    c->has_text = text != NULL;
    (void)snprintf(c->text, sizeof(c->text), "%s", text != NULL ? text : "");
}

static int op_reg(void *ctx, const struct store_register *req)
{
    struct fake_call *c = ask(ctx, REG, req->old_epoch);

    return keep_held(c, req->held, req->nheld);
}

static int op_beat(void *ctx, int64_t epoch, const char *queues)
{
    struct fake_call *c = ask(ctx, BEAT, epoch);

    if (c != NULL)
        keep_text(c, queues);
    return c != NULL ? 0 : -1;
}

static int op_reconcile(void *ctx, int64_t epoch, int64_t link, int64_t seen,
                        const struct store_held *held, size_t n)
{
    struct fake_call *c = ask(ctx, RECONCILE, epoch);

    (void)seen;
    if (c != NULL)
        c->link = link;
    return keep_held(c, held, n);
}

static int op_sync(void *ctx, const struct store_sync *sync)
{
    struct fake_call *c = ask(ctx, SYNC, sync->epoch);
    unsigned under_way = 0;

    if (c == NULL)
        return -1;
    for (const struct fake_call *o = ((struct fake *)ctx)->asked; o != c; o = o->next)
        under_way += o->kind == SYNC && !o->is_answered;
    assert_true(under_way < STORE_SYNCS_MAX);
    if (((struct fake *)ctx)->most_syncs <= under_way)
        ((struct fake *)ctx)->most_syncs = under_way + 1;
    c->link = sync->link;
    c->held = sync->unended;
    c->max = sync->max;
    c->ahead_ms = sync->ahead_ms;
    c->nresults = sync->nresults;
    c->nrooms = sync->nrooms;
    assert_true(c->max <= SCHED_SYNC_JOBS && c->nresults <= SCHED_SYNC_JOBS);
    c->results = mem_new((c->nresults + 1) * sizeof(*c->results));
    c->rooms = mem_new((c->nrooms + 1) * sizeof(*c->rooms));
    for (size_t i = 0; i < c->nresults; i++) {
        const struct store_result *r = &sync->results[i];

        c->results[i] =
            (struct fake_result){.start = r->start, .amount = r->amount, .verb = r->verb};
        (void)snprintf(c->results[i].id, sizeof(c->results[i].id), "%s", r->id);
        (void)snprintf(c->results[i].text, sizeof(c->results[i].text), "%.60s", r->text);
    }
    for (size_t i = 0; i < c->nrooms; i++) {
        (void)snprintf(c->rooms[i].queue, sizeof(c->rooms[i].queue), "%s", sync->rooms[i].queue);
        c->rooms[i].room = sync->rooms[i].room;
    }
    return 0;
}

static int op_look(void *ctx, int64_t soon_ms, const char *const *queues, size_t n)
{
    struct fake_call *c = ask(ctx, LOOK, ((struct fake *)ctx)->worker);

    if (c == NULL)
        return -1;
    for (const struct fake_call *o = ((struct fake *)ctx)->asked; o != c; o = o->next)
        assert_true(o->kind != LOOK || o->is_answered);
    assert_in_range(n, 1, FAKE_LOOK);
    c->soon_ms = soon_ms;
    c->rooms = mem_new(n * sizeof(*c->rooms));
    c->nrooms = n;
    for (size_t i = 0; i < n; i++)
        (void)snprintf(c->rooms[i].queue, sizeof(c->rooms[i].queue), "%s", queues[i]);
    return 0;
}

static int op_fetch(void *ctx, const char *id)
{
    struct fake_call *c = ask(ctx, FETCH, 0);

    if (c != NULL)
        keep_text(c, id);
    return c != NULL ? 0 : -1;
}

static int op_reap(void *ctx, int64_t epoch, int64_t victim, const char *counter)
{
    struct fake_call *c = ask(ctx, REAP, epoch);

    if (c == NULL)
        return -1;
    c->victim = victim;
    keep_text(c, counter);
    return 0;
}

static int op_tidy(void *ctx, int64_t epoch)
{
    return ask(ctx, TIDY, epoch) != NULL ? 0 : -1;
}

static int op_leave(void *ctx, int64_t epoch)
{
    return ask(ctx, LEAVE, epoch) != NULL ? 0 : -1;
}

/* ---- the other effects */

static void op_relink(void *ctx, enum error_class class, const char *text)
{
    struct fake *f = ctx;

    (void)class;
    (void)text;
    count_op(f);
    f->relinks++;
    fake_cut(f, false);
}

static void op_refuse(void *ctx, const struct job *job, const char *why, struct verdict *verdict)
{
    (void)ctx;
    (void)job;
    *verdict = (struct verdict){.verb = STORE_RETRY, .amount = 1000, .code = 65};
    (void)snprintf(verdict->reason, sizeof(verdict->reason), "%s", why);
}

static bool op_admit(void *ctx, const struct job *job, struct verdict *refusal)
{
    struct fake *f = ctx;

    (void)job;
    count_op(f);
    *refusal = (struct verdict){.verb = STORE_BURY, .reason = "not admitted"};
    return !f->refuses_start;
}

static bool op_has_guard(void *ctx)
{
    return !((struct fake *)ctx)->is_unguarded;
}

static bool is_fresh_for(const struct fake *f, int64_t spare_us)
{
    return f->acked_us > 0 && f->now_us + f->slept_us - f->acked_us < FAKE_FRESH_US - spare_us;
}

static bool op_is_fresh(void *ctx)
{
    return is_fresh_for(ctx, FAKE_SPARE_US);
}

static void op_start(void *ctx, struct held_job *h)
{
    struct fake *f = ctx;
    struct fake_run *r;

    count_op(f);
    assert_true(f->nruns < f->places);
    assert_null(fake_running(f, h->job.id));
    assert_true(!h->job.is_guarded || (op_has_guard(f) && is_fresh_for(f, 0)));
    f->starts++;
    r = &f->runs[f->nruns++];
    *r = (struct fake_run){.late_us = h->late_us,
                           .start = h->job.start,
                           .began_us = f->now_us,
                           .ends_us = f->run_ms < 0 ? INT64_MAX : f->now_us + f->run_ms * 1000};
    r->is_ill = f->host_bears > 0 && f->nruns > f->host_bears;
    if (r->is_ill)
        r->ends_us = f->now_us;
    (void)snprintf(r->id, sizeof(r->id), "%s", h->job.id);
}

static void op_kill(void *ctx, const struct held_job *h, bool at_once)
{
    struct fake *f = ctx;
    struct fake_run *r = NULL;

    count_op(f);
    for (size_t i = 0; i < f->nruns; i++) {
        if (strcmp(f->runs[i].id, h->job.id) == 0 && f->runs[i].start == h->job.start)
            r = &f->runs[i];
    }
    assert_non_null(r);
    r->kills += at_once;
    r->terms += !at_once;
    if (at_once || f->dies_when_told)
        r->ends_us = f->now_us + 5000;
}

static bool op_is_gone(void *ctx, const struct store_peer *peer)
{
    return peer->epoch == ((struct fake *)ctx)->gone_peer;
}

static int op_clear(void *ctx, int64_t victim)
{
    struct fake *f = ctx;

    assert_int_equal(f->clearing, 0);
    f->clearing = victim;
    return 0;
}

static void op_arm(void *ctx, struct mono at)
{
    count_op(ctx);
    ((struct fake *)ctx)->armed = at;
}

static void op_registered(void *ctx, int64_t epoch)
{
    assert_true(epoch > 0);
    ((struct fake *)ctx)->registered++;
}

static void op_gone(void *ctx)
{
    ((struct fake *)ctx)->gone++;
}

static uint32_t op_random(void *ctx)
{
    return (uint32_t)((uint64_t)((struct fake *)ctx)->now_us * 2654435761U >> 7);
}

static void op_emptying(void *ctx, bool is_begun)
{
    struct fake *f = ctx;

    assert_true(is_begun != f->is_emptying);
    f->is_emptying = is_begun;
    f->emptyings += is_begun;
}

static const struct sched_ops ops = {op_reg,       op_beat,     op_reconcile,  op_sync,  op_look,
                                     op_fetch,     op_clear,    op_reap,       op_tidy,  op_leave,
                                     op_relink,    op_admit,    op_refuse,     op_start, op_kill,
                                     op_is_gone,   op_arm,      op_registered, op_gone,  op_random,
                                     op_has_guard, op_is_fresh, op_emptying};

/* ---- the store carries a call out */

static bool is_ours(const struct fake *f, const struct fake_job *j)
{
    return j->state == HELD && j->epoch == f->worker;
}

static void put_back(struct fake_job *j, int64_t due_ms, bool is_spent)
{
    j->state = WAITS;
    j->due_ms = due_ms;
    j->attempt -= is_spent ? 0 : 1;
}

static enum store_status status_of(const struct fake *f, const struct fake_call *c)
{
    if (f->worker == 0 || c->epoch != f->worker)
        return STORE_UNKNOWN;
    if (f->is_written_off)
        return STORE_GIVEN_UP;
    return (c->kind == SYNC || c->kind == RECONCILE) && c->link != f->worker_link ? STORE_OLD_LINK
                                                                                  : STORE_OK;
}

static const struct fake_result *names_job(const struct fake_call *c, const struct fake_job *j)
{
    const struct fake_result *r = fake_result_in(c, j->id);

    return r != NULL && r->start == j->start ? r : NULL;
}

static void do_register(struct fake *f, struct fake_call *c)
{
    for (size_t i = 0; i < c->nresults; i++) {
        struct fake_job *j = fake_find(f, c->results[i].id);
        int64_t start = c->results[i].start;

        c->results[i].answer = STORE_NOT_HELD; /* gone */
        if (j == NULL || j->state == DONE || j->state == DEAD)
            continue;
        c->results[i].answer = STORE_UNWRITTEN; /* taken */
        if (j->state == WAITS ? j->start == start || j->start + 1 == start : j->start == start) {
            j->state = HELD;
            j->start = start;
            j->epoch = -1;
            c->results[i].answer = STORE_APPLIED; /* adopted */
        }
    }
    f->worker = f->last_epoch = f->last_epoch + 1000;
    f->worker_link = 1;
    f->is_written_off = false;
    for (size_t i = 0; i < f->njobs; i++) {
        struct fake_job *j = &f->jobs[i];

        if (j->state == HELD && j->epoch == -1)
            j->epoch = f->worker;
        else if (j->state == HELD && c->epoch != 0 && j->epoch == c->epoch)
            put_back(j, j->due_ms, false);
    }
    c->epoch = f->worker;
}

static void do_beat(struct fake *f, struct fake_call *c)
{
    for (size_t i = 0; i < f->njobs; i++)
        c->held_there += is_ours(f, &f->jobs[i]);
    c->link = f->worker_link;
    c->quiet = f->quiet;
}

static void do_reconcile(struct fake *f, struct fake_call *c)
{
    c->ids = mem_new((c->nresults + 1) * sizeof(*c->ids));
    for (size_t i = 0; i < c->nresults; i++) {
        struct fake_job *j = fake_find(f, c->results[i].id);

        if (j == NULL || !is_ours(f, j) || j->start != c->results[i].start)
            memcpy(c->ids[c->nids++], c->results[i].id, sizeof(*c->ids));
    }
    for (size_t i = 0; i < f->njobs; i++) {
        struct fake_job *j = &f->jobs[i];

        if (is_ours(f, j) && names_job(c, j) == NULL) {
            put_back(j, j->due_ms, false);
            c->released++;
        }
    }
    c->link = ++f->worker_link;
}

static void settle(struct fake *f, struct fake_result *r)
{
    struct fake_job *j = fake_find(f, r->id);

    r->answer = STORE_NOT_HELD;
    if (j == NULL || !is_ours(f, j) || j->start != r->start)
        return;
    r->answer = f->fails_results                                       ? STORE_UNWRITTEN
                : f->takes_a_sync > 0 && f->taken++ >= f->takes_a_sync ? STORE_LEFT
                : f->refuses_children && r->verb == STORE_DONE         ? STORE_REFUSED
                                                                       : STORE_APPLIED;
    if (r->answer != STORE_APPLIED || r->verb == STORE_PROGRESS)
        return;
    j->is_cancelled = false;
    if (r->verb == STORE_DONE)
        j->state = DONE;
    else if (r->verb == STORE_BURY)
        j->state = DEAD;
    else
        put_back(j, r->amount > 0 ? store_ms(f) + r->amount : j->due_ms, r->verb == STORE_RETRY);
}

static void claim(struct fake *f, struct fake_call *c, struct fake_job *j)
{
    struct fake_claim *out = &c->claims[c->nclaims++];

    j->state = HELD;
    j->epoch = f->worker;
    *out = (struct fake_claim){.start = ++j->start,
                               .attempt = ++j->attempt,
                               .crashes = j->crashes,
                               .due_ms = j->due_ms,
                               .is_guarded = j->is_guarded,
                               .is_small = j->is_small};
    (void)snprintf(out->id, sizeof(out->id), "%s", j->id);
    (void)snprintf(out->queue, sizeof(out->queue), "%s", j->queue);
    (void)snprintf(out->record, sizeof(out->record), "%s%s 5\npayload",
                   j->is_corrupt ? "?"
                   : j->is_big   ? "+"
                                 : "-",
                   j->queue);
}

/* A worker that runs nothing gets a suspect before all other jobs, and nothing beside it. */
static bool claim_suspect(struct fake *f, struct fake_call *c)
{
    for (size_t q = 0; c->held == 0 && c->max > 0 && q < c->nrooms; q++) {
        for (size_t i = 0; i < f->njobs; i++) {
            struct fake_job *j = &f->jobs[i];

            if (j->crashes >= 2 && j->state == WAITS && j->due_ms <= store_ms(f) &&
                c->rooms[q].room > 0 && strcmp(j->queue, c->rooms[q].queue) == 0) {
                claim(f, c, j);
                return true;
            }
        }
    }
    return false;
}

static bool is_told(const struct fake *f, const struct fake_call *c, const char *queue)
{
    for (size_t i = 0; i < f->njobs; i++) {
        const struct fake_job *j = &f->jobs[i];

        if (j->state == WAITS && strcmp(j->queue, queue) == 0 &&
            (j->due_ms <= store_ms(f) + c->soon_ms || j->crashes >= 2))
            return true;
    }
    return f->head != 0;
}

static void do_look(const struct fake *f, struct fake_call *c)
{
    c->found = mem_new(c->nrooms * sizeof(*c->found));
    for (size_t i = 0; i < c->nrooms; i++) {
        if (is_told(f, c, c->rooms[i].queue))
            c->found[c->nfound++] = c->rooms[i].queue;
    }
}

static void do_sync(struct fake *f, struct fake_call *c)
{
    bool is_solo = false;

    f->taken = 0;
    for (size_t i = 0; i < c->nresults; i++)
        settle(f, &c->results[i]);
    c->claims = mem_new((c->max + 1) * sizeof(*c->claims));
    is_solo = claim_suspect(f, c);
    for (size_t q = 0; q < c->nrooms; q++) {
        unsigned room = c->rooms[q].room;
        int64_t head = INT64_MAX;

        for (size_t i = 0; i < f->njobs; i++) {
            struct fake_job *j = &f->jobs[i];
            /* Only a first start may be claimed ahead. */
            bool due =
                j->state == WAITS && strcmp(j->queue, c->rooms[q].queue) == 0 &&
                (j->is_granted || j->due_ms <= store_ms(f) + (j->start == 0 ? c->ahead_ms : 0));

            if (due && j->crashes >= 2) {
                c->solo_due = true;
                continue;
            }
            if (due && room > 0 && c->nclaims < c->max && !is_solo) {
                claim(f, c, j);
                room--;
            } else if (j->state == WAITS && strcmp(j->queue, c->rooms[q].queue) == 0 &&
                       j->due_ms < head) {
                head = j->due_ms;
            }
        }
        c->rooms[q].head = f->head != 0 ? f->head : head == INT64_MAX ? STORE_HEAD_NONE : head;
    }
    c->ids = mem_new((f->njobs + 1) * sizeof(*c->ids));
    for (size_t i = 0; i < f->njobs; i++) {
        if (is_ours(f, &f->jobs[i]) && f->jobs[i].is_cancelled)
            memcpy(c->ids[c->nids++], f->jobs[i].id, sizeof(*c->ids));
    }
}

static void carry_out(struct fake *f, struct fake_call *c)
{
    if (c->is_done)
        return;
    c->is_done = true;
    c->now_us = store_us(f);
    if (c->kind == SYNC && f->timer_ms <= store_ms(f))
        f->timer_ms = 0;
    c->timer_ms = f->timer_ms != 0 ? f->timer_ms : STORE_TIMER_NONE;
    c->class = (f->failing_kinds >> c->kind & 1) ? f->class : ERROR_CLASS_NONE;
    if (c->class != ERROR_CLASS_NONE)
        return;
    if (c->kind == REG) {
        do_register(f, c);
        return;
    }
    c->status = status_of(f, c);
    if (c->kind == FETCH) {
        const struct fake_job *j = fake_find(f, c->text);

        c->is_there = j != NULL && !j->no_payload;
    } else if (c->kind == REAP) {
        c->reap = f->reap;
        c->moved = f->reap_moved;
    }
    if (c->status != STORE_OK)
        return;
    if (c->kind == BEAT)
        do_beat(f, c);
    else if (c->kind == RECONCILE)
        do_reconcile(f, c);
    else if (c->kind == SYNC)
        do_sync(f, c);
    else if (c->kind == LOOK)
        do_look(f, c);
    else if (c->kind == LEAVE)
        f->worker = 0;
}

/* ---- and answers it */

static void tell_registered(struct fake *f, const struct fake_call *c)
{
    enum store_adopt *adopted = mem_new((c->nresults + 1) * sizeof(*adopted));
    struct store_register_reply r = {.now_us = c->now_us,
                                     .epoch = c->epoch,
                                     .link = 1,
                                     .rewound = f->rewound,
                                     .adopted = adopted,
                                     .peers = f->peers,
                                     .npeers = f->npeers};

    for (size_t i = 0; i < c->nresults; i++)
        adopted[i] = c->results[i].answer == STORE_APPLIED     ? STORE_ADOPTED
                     : c->results[i].answer == STORE_UNWRITTEN ? STORE_TAKEN
                                                               : STORE_GONE;
    sched_on_registered(f->s, fake_now(f), &r);
    free(adopted);
}

static void tell_sync(struct fake *f, const struct fake_call *c)
{
    enum store_answer *answers = mem_new((c->nresults + 1) * sizeof(*answers));
    const char **texts = mem_new((c->nresults + 1) * sizeof(*texts));
    struct store_claim *claims = mem_new((c->nclaims + 1) * sizeof(*claims));
    int64_t *heads = mem_new((c->nrooms + 1) * sizeof(*heads));
    const char **ids = mem_new((c->nids + 1) * sizeof(*ids));
    struct store_sync_reply r = {.now_us = c->now_us,
                                 .status = c->status,
                                 .answers = answers,
                                 .answer_texts = texts,
                                 .claims = claims,
                                 .nclaims = c->nclaims,
                                 .cancels = ids,
                                 .ncancels = c->nids,
                                 .heads = heads,
                                 .solo_due = c->solo_due,
                                 .timer_ms = c->timer_ms};

    for (size_t i = 0; i < c->nresults; i++) {
        answers[i] = c->results[i].answer;
        texts[i] = "it cannot be written";
    }
    for (size_t i = 0; i < c->nclaims; i++) {
        const struct fake_claim *k = &c->claims[i];

        claims[i] = (struct store_claim){k->id,       k->queue,      k->start,
                                         k->attempt,  k->crashes,    c->now_us + (int64_t)i,
                                         {k->due_ms}, k->record,     strlen(k->record),
                                         false,       k->is_guarded, k->is_small};
    }
    for (size_t i = 0; i < c->nrooms; i++)
        heads[i] = c->rooms[i].head;
    for (size_t i = 0; i < c->nids; i++)
        ids[i] = c->ids[i];
    sched_on_sync(f->s, fake_now(f), &r);
    free(answers);
    free(texts);
    free(claims);
    free(heads);
    free(ids);
}

static void tell_reconciled(struct fake *f, const struct fake_call *c)
{
    const char **lost = mem_new((c->nids + 1) * sizeof(*lost));
    struct store_reconcile_reply r = {c->status, c->link, c->released, lost, c->nids, false};

    for (size_t i = 0; i < c->nids; i++)
        lost[i] = c->ids[i];
    sched_on_reconciled(f->s, fake_now(f), &r);
    free(lost);
}

static void take_ack(struct fake *f, const struct fake_call *c)
{
    if (c->kind == REG || (c->kind == BEAT && c->status == STORE_OK))
        f->acked_us = c->boot_us;
}

static void answer(struct fake *f, struct fake_call *c)
{
    struct store_look_reply looked = {c->now_us, c->timer_ms, c->found, c->nfound};
    struct store_beat_reply beat = {c->now_us,     c->status,    c->link,
                                    c->held_there, c->quiet,     f->peers,
                                    f->npeers,     {c->boot_us}, ""};

    count_op(f);
    c->is_answered = true;
    if (c->class != ERROR_CLASS_NONE) {
        sched_on_error(f->s, fake_now(f), c->class, "refused by the test");
        return;
    }
    take_ack(f, c);
    switch (c->kind) {
    case REG:
        tell_registered(f, c);
        break;
    case BEAT:
        sched_on_beat(f->s, fake_now(f), &beat);
        break;
    case RECONCILE:
        tell_reconciled(f, c);
        break;
    case SYNC:
        tell_sync(f, c);
        break;
    case LOOK:
        sched_on_looked(f->s, fake_now(f), &looked);
        break;
    case FETCH:
        sched_on_fetched(f->s, fake_now(f), c->text, c->is_there ? "big payload" : NULL,
                         c->is_there ? 11 : 0);
        break;
    case REAP:
        sched_on_reaped(f->s, fake_now(f), c->reap, c->moved);
        break;
    case TIDY:
        sched_on_tidied(f->s, fake_now(f));
        break;
    case LEAVE:
        sched_on_left(f->s, fake_now(f));
        break;
    case KINDS:
        break;
    }
}

/* ---- the world turns */

static void end_run(struct fake *f, size_t i, enum store_verb verb)
{
    char id[JOB_ID_LEN + 1];
    struct verdict v = {.verb = verb, .is_host_ill = f->host_ill || f->runs[i].is_ill};

    memcpy(id, f->runs[i].id, sizeof(id));
    f->runs[i] = f->runs[--f->nruns];
    count_op(f);
    sched_job_ended(f->s, fake_now(f), id, &v, &(struct verdict_data){"last", 4, NULL});
}

/* The oldest call without an answer, and when something is to happen to it. */
static struct fake_call *pending(const struct fake *f, int64_t *at)
{
    struct fake_call *c = f->asked;

    *at = INT64_MAX;
    while (c != NULL && c->is_answered)
        c = c->next;
    if (c != NULL && !f->is_held_back)
        *at = c->at_us + (c->is_done ? f->latency_us : f->latency_us / 2);
    return c;
}

static size_t next_run(const struct fake *f, int64_t *at)
{
    size_t best = 0;

    *at = INT64_MAX;
    for (size_t i = 0; i < f->nruns; i++) {
        if (f->runs[i].ends_us < *at) {
            best = i;
            *at = f->runs[i].ends_us;
        }
    }
    return best;
}

/* Report that op_clear's work is done, unless the test reports it. False: there was none. */
static bool has_cleared(struct fake *f)
{
    int64_t victim = f->clearing;

    if (victim == 0 || f->clears_late)
        return false;
    f->clearing = 0;
    sched_on_orphans_ended(f->s, fake_now(f), victim, true);
    return true;
}

/* The next event until `until`; false when there is none. */
static bool turn(struct fake *f, int64_t until)
{
    int64_t call_at, run_at;
    struct fake_call *c = pending(f, &call_at);
    size_t run = next_run(f, &run_at);
    int64_t at = f->armed.us < call_at ? f->armed.us : call_at;

    at = run_at < at ? run_at : at;
    if (at > until || at == INT64_MAX)
        return false;
    f->now_us = at > f->now_us ? at : f->now_us;
    if (call_at == at && !c->is_done) {
        count_op(f);
        carry_out(f, c);
    } else if (call_at == at) {
        answer(f, c);
    } else if (run_at == at) {
        end_run(f, run,
                f->host_ill || f->runs[run].is_ill || f->runs[run].kills + f->runs[run].terms > 0
                    ? STORE_RELEASE
                    : STORE_DONE);
        sched_jobs_ended(f->s, fake_now(f));
    } else {
        f->armed = MONO_NEVER;
        count_op(f);
        sched_on_timer(f->s, fake_now(f));
    }
    return true;
}

void fake_run(struct fake *f, int64_t ms)
{
    int64_t until = f->now_us + ms * 1000;

    while (has_cleared(f) || turn(f, until))
        continue;
    f->now_us = until;
}

void fake_up(struct fake *f)
{
    f->is_up = true;
    sched_link_up(f->s, fake_now(f));
}

void fake_cut(struct fake *f, bool is_done)
{
    for (struct fake_call *c = f->asked; c != NULL; c = c->next) {
        if (!c->is_answered && is_done)
            carry_out(f, c);
        c->is_answered = true;
    }
    f->is_up = false;
    sched_link_down(f->s, fake_now(f));
}

/* ---- jobs */

struct fake_job *fake_find(struct fake *f, const char *id)
{
    for (size_t i = 0; i < f->njobs; i++) {
        if (strcmp(f->jobs[i].id, id) == 0)
            return &f->jobs[i];
    }
    return NULL;
}

struct fake_job *fake_add(struct fake *f, unsigned n, const char *queue, int64_t in_ms)
{
    struct fake_job *j = &f->jobs[f->njobs++];

    assert_true(f->njobs <= FAKE_JOBS);
    *j = (struct fake_job){.due_ms = store_ms(f) + in_ms};
    (void)snprintf(j->id, sizeof(j->id), "j%011u", n);
    (void)snprintf(j->queue, sizeof(j->queue), "%s", queue);
    return j;
}

const struct fake_run *fake_running(const struct fake *f, const char *id)
{
    for (size_t i = 0; i < f->nruns; i++) {
        if (strcmp(f->runs[i].id, id) == 0)
            return &f->runs[i];
    }
    return NULL;
}

void fake_end(struct fake *f, const char *id, enum store_verb verb)
{
    const struct fake_run *r = fake_running(f, id);

    assert_non_null(r);
    end_run(f, (size_t)(r - f->runs), verb);
    sched_jobs_ended(f->s, fake_now(f));
}

void fake_end_all(struct fake *f, enum store_verb verb)
{
    while (f->nruns > 0)
        end_run(f, 0, verb);
    sched_jobs_ended(f->s, fake_now(f));
}

void fake_lose_data(struct fake *f, bool with_jobs)
{
    f->worker = 0;
    f->rewound = true;
    if (with_jobs)
        f->njobs = 0;
}

/* ---- what was seen */

unsigned fake_calls(const struct fake *f)
{
    unsigned n = 0;

    for (size_t i = 0; i < KINDS; i++)
        n += f->count[i];
    return n;
}

unsigned fake_named_since(const struct fake *f, int64_t since_us)
{
    size_t n = 0;

    for (const struct fake_call *c = f->asked; c != NULL; c = c->next)
        n += c->kind == SYNC && c->at_us >= since_us ? c->nrooms : 0;
    return (unsigned)n;
}

const struct fake_call *fake_last(const struct fake *f, enum fake_kind kind)
{
    const struct fake_call *last = NULL;

    for (const struct fake_call *c = f->asked; c != NULL; c = c->next) {
        if (c->kind == kind)
            last = c;
    }
    return last;
}

const struct fake_result *fake_result_in(const struct fake_call *c, const char *id)
{
    for (size_t i = 0; c != NULL && i < c->nresults; i++) {
        if (strcmp(c->results[i].id, id) == 0)
            return &c->results[i];
    }
    return NULL;
}

/* ---- making and unmaking */

void fake_queues(struct fake *f, const char *queues)
{
    char *copy = mem_strdup(queues), *save = NULL;
    struct queue_spec *specs = mem_new((strlen(queues) / 2 + 1) * sizeof(*specs));
    size_t n = 0;

    for (char *q = strtok_r(copy, " ", &save); q != NULL; q = strtok_r(NULL, " ", &save))
        specs[n++] = (struct queue_spec){q, f->places, 1, 1048576, f->is_fair};
    sched_set_queues(f->s, fake_now(f), specs, n);
    free(specs);
    free(copy);
}

static struct fake *new_with(unsigned places, const char *queues, int64_t ahead_us, bool prefetches)
{
    struct fake *f = mem_new(sizeof(*f));
    struct sched_conf conf = {places, ahead_us, 20000, prefetches};

    f->now_us = 1000000;
    f->armed = MONO_NEVER;
    f->places = places;
    f->latency_us = 400;
    f->run_ms = -1;
    f->reap = STORE_REAP_DONE;
    f->runs = mem_new(places * sizeof(*f->runs));
    f->last_epoch = 5000;
    f->s = sched_new(&conf, &ops, f);
    fake_queues(f, queues);
    return f;
}

struct fake *fake_new(unsigned places, const char *queues)
{
    return new_with(places, queues, 0, false);
}

struct fake *fake_new_ahead(unsigned places, const char *queues, int64_t ahead_us)
{
    return new_with(places, queues, ahead_us, false);
}

struct fake *fake_new_prefetching(unsigned places, const char *queues)
{
    return new_with(places, queues, 0, true);
}

void fake_free(struct fake *f)
{
    sched_free(f->s);
    while (f->asked != NULL) {
        struct fake_call *c = f->asked;

        f->asked = c->next;
        free(c->results);
        free(c->rooms);
        free(c->claims);
        free((void *)c->found);
        free(c->ids);
        free(c);
    }
    free(f->runs);
    free(f);
}

struct fake *fake_ready(unsigned places, const char *queues)
{
    struct fake *f = fake_new(places, queues);

    fake_up(f);
    fake_run(f, 20);
    return f;
}

enum fake_state fake_state_of(struct fake *f, const char *id)
{
    return fake_find(f, id)->state;
}

void fake_many_queues(struct fake *f, const char *first, unsigned n, const char *last)
{
    CLEANUP_BUF struct buf names = BUF_INIT;

    buf_puts(&names, first);
    for (unsigned i = 0; i < n; i++)
        buf_printf(&names, " c%04u", i);
    buf_printf(&names, " %s", last);
    fake_queues(f, buf_str(&names));
}
