#include "moves.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chain.h"
#include "child.h"
#include "finding.h"
#include "rates.h"

#define RESULTS 64
#define CHILDREN 12

struct result {
    struct job *job;
    const char *verb;
    int64_t amount;
    int serial;          /* of a checkpoint; LEDGER_NONE: it takes the last one back */
    bool is_due;         /* this worker holds the job: the result has to be accepted */
    bool is_plain;       /* told in a group */
    struct child *child; /* the first of its children */
    int children;
};

struct sync {
    struct worker *worker;
    struct result result[RESULTS];
    int n, plains;
    struct call words; /* behind the first word: what the call says of children */
    int parents, children;
};

/* ---- results */

/* After these the job runs on. */
static bool runs_on(const struct result *r)
{
    return strcmp(r->verb, "progress") == 0 || strcmp(r->verb, "checkpoint") == 0;
}

static void choose_results(struct world *w, struct sync *s, bool all)
{
    static const char *const verbs[] = {"done", "done",    "done",     "result",    "retry",
                                        "dead", "release", "progress", "checkpoint"};
    const struct ledger *l = w->l;

    for (int i = !all && l->jobs > 400 ? l->jobs - 400 : 0; i < l->jobs && s->n < RESULTS; i++) {
        struct job *j = &w->l->job[i];
        struct result *r = &s->result[s->n];
        bool is_held = j->may == RUNS && j->epoch == s->worker->epoch && !j->is_unheard;

        if (j->start == 0 || !(all ? is_held : dice_percent(&w->dice, is_held ? 40 : 1)))
            continue;
        *r = (struct result){.job = j, .verb = all ? "done" : PICK(&w->dice, verbs)};
        r->is_due = j->may == RUNS && j->epoch == s->worker->epoch;
        r->serial = dice_percent(&w->dice, 15) ? LEDGER_NONE : w->serial++;
        if (strcmp(r->verb, "dead") == 0)
            r->amount = dice_percent(&w->dice, 80) ? 10000 : 2;
        else if (!all && dice_percent(&w->dice, 30))
            r->amount = dice_below(&w->dice, 3000);
        s->n++;
    }
}

/* Tell some results that are done without anything to keep in groups. */
static void choose_plain(struct world *w, struct sync *s)
{
    for (int i = 0; i < s->n; i++) {
        struct result *r = &s->result[i];

        r->is_plain = strcmp(r->verb, "done") == 0 && r->amount == 0 && !r->job->is_big &&
                      dice_percent(&w->dice, 70);
        s->plains += r->is_plain;
    }
}

/* ---- children */

/* Append a child of this result to what the call says. */
static void put_child(struct world *w, struct sync *s, struct result *r)
{
    struct job o = LEDGER_PLAIN;
    struct child *c;

    o.queue = dice_below(&w->dice, QUEUES);
    call_begin(&w->call, names_queue[o.queue]);
    if (dice_percent(&w->dice, 60)) {
        option_plain(w, &o);
        option_chain(w, &o);
    }
    if (dice_percent(&w->dice, 20))
        option_gates(w, &o);
    option_batch(w, r->job->batch >= 0 ? 60 : 20, &o);
    call_printf(&w->call, "n%d", w->serial);
    c = child_new(w->l, w->serial++, r->job, &o);
    r->child = r->children++ == 0 ? c : r->child;
    call_number(&s->words, w->call.n);
    for (int i = 0; i < w->call.n; i++)
        call_text(&s->words, call_word(&w->call, i));
}

/* The call names the number of a result among those that are not plain, and how many children it
 * has. */
static void put_children(struct world *w, struct sync *s, struct result *r, int number)
{
    int n = 1 + dice_below(&w->dice, 3);

    if (w->l->children + n > LEDGER_CHILDREN || s->children + n > CHILDREN)
        return;
    call_number(&s->words, number);
    call_number(&s->words, n);
    while (n-- > 0)
        put_child(w, s, r);
    s->children += r->children;
    s->parents++;
}

static void choose_children(struct world *w, struct sync *s)
{
    int number = 0;

    call_begin(&s->words, "");
    for (int i = 0; i < s->n; i++) {
        struct result *r = &s->result[i];
        bool is_good = strcmp(r->verb, "done") == 0 || strcmp(r->verb, "result") == 0;

        number += !r->is_plain;
        if (!r->is_plain && is_good && w->l->alive < CROWD && dice_percent(&w->dice, 40))
            put_children(w, s, r, number);
    }
}

static void put_words(struct world *w, const struct sync *s)
{
    call_number(&w->call, s->parents);
    for (int i = 1; i < s->words.n; i++)
        call_text(&w->call, call_word(&s->words, i));
}

/* One group for each plain result. */
static void put_groups(struct world *w, const struct sync *s)
{
    call_number(&w->call, s->plains);
    for (int i = 0; i < s->n; i++) {
        const struct result *r = &s->result[i];

        if (!r->is_plain)
            continue;
        call_text(&w->call, names_queue[r->job->queue]);
        call_number(&w->call, r->job->start);
        call_text(&w->call, "1");
        call_text(&w->call, r->job->id);
    }
}

static void put_results(struct world *w, const struct sync *s)
{
    call_number(&w->call, s->n - s->plains);
    for (int i = 0; i < s->n; i++) {
        const struct result *r = &s->result[i];

        if (r->is_plain)
            continue;
        call_text(&w->call, r->job->id);
        call_number(&w->call, r->job->start);
        call_text(&w->call, r->verb);
        call_text(&w->call, names_queue[r->job->queue]);
        call_number(&w->call, r->amount);
        call_text(&w->call, "0");
        call_text(&w->call, "ok");
        if (strcmp(r->verb, "checkpoint") == 0 && r->serial >= 0)
            call_printf(&w->call, "c%d", r->serial);
        else
            call_text(&w->call, strcmp(r->verb, "result") == 0 ? "result" : "");
    }
}

/* A result was accepted: note where the job may be now. */
static void end_job(const struct world *w, const struct result *r)
{
    struct job *j = r->job;

    if (strcmp(r->verb, "checkpoint") == 0)
        j->checkpoint = r->serial;
    if (runs_on(r))
        return;
    if (strcmp(r->verb, "done") == 0 || strcmp(r->verb, "result") == 0) {
        j->may = r->amount > 0 ? DONE : GONE;
        j->ended = 1 << END_DONE;
        child_added(w->l, r->child, r->children);
        chain_goes_on(w->l, j);
    } else if (strcmp(r->verb, "dead") == 0 && !j->cancelling) {
        j->may = DEAD;
        j->ended = 1 << END_DEAD;
        chain_dies(j);
    } else {
        j->may = ledger_back(w->l, j);
    }
}

/* A child may be refused for its own options only: one in the batch of its parent joins that, also
 * when it is sealed. The answer: refused child N: TEXT */
static void check_refused(const struct world *w, const struct result *r, const char *answer)
{
    int n = r->children > 0 ? atoi(answer + strlen("refused child ")) : 0;
    const struct child *c = n >= 1 && n <= r->children ? &r->child[n - 1] : NULL;

    if (c == NULL || (strstr(answer, "is sealed") != NULL && c->job.batch == r->job->batch))
        finding_break("result", "%s the result of %s, with %d children: %s", w->l->root, r->job->id,
                      r->children, answer);
}

static void take_answer(struct world *w, const struct sync *s, const struct result *r,
                        const char *answer)
{
    bool may_hold = (r->job->may & RUNS) != 0 && r->job->epoch == s->worker->epoch;
    bool is_held = may_hold && r->job->may == RUNS;

    if (strcmp(answer, "ok") == 0 && !may_hold)
        finding_break("result", "%s a result of %s is taken, and it is %s (epoch %lld)", w->l->root,
                      r->job->id, ledger_states(r->job->may), (long long)r->job->epoch);
    else if (strcmp(answer, "settled") == 0 && is_held)
        finding_break("result", "%s the result of %s is settled, and %lld holds it with start %lld",
                      w->l->root, r->job->id, (long long)r->job->epoch, (long long)r->job->start);
    else if (strncmp(answer, "refused", 7) == 0)
        check_refused(w, r, answer);
    else if (strncmp(answer, "error", 5) == 0 && !w->is_disturbed)
        finding_break("result", "%s the result of %s: %s", w->l->root, r->job->id, answer);
    else if (strcmp(answer, "ok") == 0)
        end_job(w, r);
}

static void take_answers(struct world *w, const struct sync *s, const struct reply *answers)
{
    size_t n = 0;

    for (int i = 0; i < s->n; i++)
        if (!s->result[i].is_plain)
            take_answer(w, s, &s->result[i], reply_str(reply_at(answers, n++)));
}

/* Plain results: the answer names only those that were not ok. */
static void take_refused(struct world *w, const struct sync *s, const struct reply *refused)
{
    size_t next = 0;
    int64_t number = 0;

    for (int i = 0; i < s->n; i++) {
        bool is_told = reply_int(reply_at(refused, next)) == number + 1;

        if (!s->result[i].is_plain)
            continue;
        number++;
        take_answer(w, s, &s->result[i], is_told ? reply_str(reply_at(refused, next + 1)) : "ok");
        next += is_told ? 2 : 0;
    }
}

/* ---- claims */

static void take_claim(struct world *w, const struct worker *v, const char *id, const char *queue,
                       int64_t start, int64_t fence, const struct reply *record)
{
    struct job *j = ledger_find(w->l, id);

    if (j == NULL)
        j = chain_meet(w->l, id, reply_str(record));
    if (j == NULL) {
        const char *body = strchr(reply_str(record), '\n');

        for (int i = w->l->raws - 1; i >= 0 && body != NULL && j == NULL; i--)
            if (w->l->raw[i].waits && strcmp(w->l->raw[i].payload, body + 1) == 0) {
                w->l->raw[i].waits = false;
                j = ledger_add(w->l, id, w->l->raw[i].queue);
            }
    }
    if (j == NULL) {
        finding_break("unknown", "%s %s is handed out, nobody added it", w->l->root, id);
        return;
    }
    if (strcmp(names_queue[j->queue], queue) != 0)
        finding_break("claim", "%s %s is handed out for queue %s", w->l->root, id, queue);
    j->is_big = reply_str(record)[0] == '+';
    ledger_start(w->l, j, v->epoch, start, fence);
    for (int i = 0; i < LIMITED; i++)
        if (ledger_needs_rate(w->l, j, i))
            rates_pass(w->l, i, 1, w->now_us);
}

/* All fences of one call are above those of all earlier calls. */
static void take_fence(struct world *w, const char *id, int64_t fence, int64_t before)
{
    if (fence <= before)
        finding_break("fence", "%s %s is handed out with %lld, there was %lld", w->l->root, id,
                      (long long)fence, (long long)before);
    if (fence > w->l->fence)
        w->l->fence = fence;
}

/* The claims of later_v1_sync: queue, fence, start, attempt, crashes, gated, then id, due and
 * record of each job. */
static void take_groups(struct world *w, const struct worker *v, const struct reply *groups)
{
    int64_t before = w->l->fence;

    for (size_t q = 0; q < reply_count(groups); q++) {
        const struct reply *group = reply_at(groups, q);
        int64_t fence = reply_int(reply_at(group, 1));

        for (size_t i = 6; i + 2 < reply_count(group); i += 3, fence += 2) {
            const char *id = reply_str(reply_at(group, i));

            take_fence(w, id, fence, before);
            take_claim(w, v, id, reply_str(reply_at(group, 0)), reply_int(reply_at(group, 2)),
                       fence, reply_at(group, i + 2));
        }
    }
}

/* What was told of the checkpoint of this job; NULL: nothing. */
static const char *told_of(const struct reply *told, const char *id)
{
    for (size_t i = 0; i + 1 < reply_count(told); i += 2)
        if (reply_is(reply_at(told, i), id))
            return reply_str(reply_at(told, i + 1));
    return NULL;
}

/* A claim tells the last checkpoint that was accepted. */
static void take_checkpoints(struct world *w, const struct reply *groups, const struct reply *told)
{
    for (size_t q = 0; q < reply_count(groups); q++)
        for (size_t i = 6; i + 2 < reply_count(reply_at(groups, q)); i += 3) {
            const char *id = reply_str(reply_at(reply_at(groups, q), i)), *is = told_of(told, id);
            const struct job *j = ledger_find(w->l, id);
            char last[24] = "";

            if (j == NULL || !ledger_knows_kept(j))
                continue;
            if (j->checkpoint >= 0)
                (void)snprintf(last, sizeof(last), "c%d", j->checkpoint);
            if (strcmp(is != NULL ? is : "", last) != 0)
                finding_break("kept", "%s %s goes on from '%s', and its last checkpoint is '%s'",
                              w->l->root, id, is != NULL ? is : "", last);
        }
}

/* The reply was lost: the worker knows nothing of these claims. */
static void forget_claims(struct world *w, const struct worker *v, int64_t before)
{
    for (int i = 0; i < w->l->jobs; i++) {
        struct job *j = &w->l->job[i];

        if (j->may == RUNS && j->epoch == v->epoch && j->fence > before)
            j->is_unheard = true;
    }
}

/* ---- the call */

static void put_queues(struct world *w, bool all)
{
    static const int rooms[] = {0, 1, 1, 2, 3, 8};
    bool in[QUEUES];
    int n = 0;

    for (int q = 0; q < QUEUES; q++) {
        in[q] = all || dice_percent(&w->dice, 85);
        n += in[q];
    }
    call_number(&w->call, n);
    for (int q = 0; q < QUEUES; q++)
        if (in[q]) {
            call_text(&w->call, names_queue[q]);
            call_number(&w->call, all ? 8 : PICK(&w->dice, rooms));
            call_number(&w->call, 1048576);
        }
}

static int held_by(const struct ledger *l, const struct worker *v)
{
    int n = 0;

    for (int i = 0; i < l->jobs; i++)
        n += l->job[i].may == RUNS && l->job[i].epoch == v->epoch && !l->job[i].is_unheard;
    return n;
}

static void check_errors(struct world *w, const struct reply *errors)
{
    if (reply_count(errors) > 0 && !w->is_disturbed)
        finding_break("sync", "%s queue %s: %s", w->l->root, reply_str(reply_at(errors, 0)),
                      reply_str(reply_at(errors, 1)));
    for (size_t i = 1; i < reply_count(errors); i += 2)
        if (strstr(reply_str(reply_at(errors, i)), "TYPE") == NULL)
            finding_break("sync", "%s queue %s: %s", w->l->root, reply_str(reply_at(errors, i - 1)),
                          reply_str(reply_at(errors, i)));
}

static void take_sync(struct world *w, const struct sync *s, const struct reply *r, bool is_lost)
{
    int64_t before = w->l->fence;

    if (!reply_is(reply_at(r, 1), "ok")) {
        finding_break("worker", "%s worker %lld syncs and is %s", w->l->root,
                      (long long)s->worker->epoch, reply_str(reply_at(r, 1)));
        return;
    }
    take_answers(w, s, reply_at(r, 2));
    take_refused(w, s, reply_at(r, 9));
    take_groups(w, s->worker, reply_at(r, 3));
    take_checkpoints(w, reply_at(r, 3), reply_at(r, 10));
    check_errors(w, reply_at(r, 6));
    if (is_lost)
        forget_claims(w, s->worker, before);
}

static void do_sync(struct world *w, struct worker *v, bool all)
{
    static struct sync s;
    struct reply *r;
    int held;

    s = (struct sync){.worker = v, .words = s.words};

    choose_results(w, &s, all);
    held = held_by(w->l, v);
    for (int i = 0; i < s.n; i++)
        held -= s.result[i].is_due && !s.result[i].job->is_unheard && !runs_on(&s.result[i]);
    choose_plain(w, &s);
    choose_children(w, &s);
    world_begin(w, "later_v1_sync");
    call_number(&w->call, v->epoch);
    call_number(&w->call, v->link);
    call_number(&w->call, held < 0 ? 0 : held);
    call_number(&w->call, all ? 20 : 1 + dice_below(&w->dice, 8));
    put_results(w, &s);
    put_queues(w, all);
    put_groups(w, &s);
    if (s.parents > 0 || dice_percent(&w->dice, 50))
        call_number(&w->call, dice_below(&w->dice, 20));
    if (s.parents > 0)
        put_words(w, &s);
    r = world_ask(w, dice_percent(&w->dice, 60) ? ROLE_WORKER : ROLE_ALL);
    if (r != NULL)
        take_sync(w, &s, r, !all && dice_percent(&w->dice, 3));
    reply_free(r);
}

void move_sync(struct world *w)
{
    struct worker *v = move_pick_worker(w, false);

    if (v != NULL)
        do_sync(w, v, false);
}

void worker_finish(struct world *w, struct worker *v)
{
    do_sync(w, v, true);
}

/* ---- kept steps */

/* Mostly a running job of this worker, perhaps one of another. */
static struct job *pick_held(struct world *w, const struct worker *v)
{
    for (int i = w->l->jobs - 1; i >= 0; i--) {
        struct job *j = &w->l->job[i];

        if (j->start > 0 && j->may == RUNS &&
            dice_percent(&w->dice, j->epoch == v->epoch && !j->is_unheard ? 40 : 2))
            return j;
    }
    return NULL;
}

static void take_kept(struct world *w, const struct worker *v, struct job *j, int step, int serial,
                      const struct reply *r)
{
    const char *word = reply_str(reply_at(r, 0)), *output = reply_str(reply_at(r, 1));
    bool is_held = j->may == RUNS && j->epoch == v->epoch;
    char known[24] = "";

    if (strcmp(word, "settled") == 0 ? is_held : !is_held)
        finding_break("kept", "%s step %d of %s, %s, is %s for %lld", w->l->root, step, j->id,
                      ledger_states(j->may), word, (long long)v->epoch);
    if (strcmp(word, "settled") == 0 || !ledger_knows_kept(j))
        return;
    if (j->step[step] < 0 && strcmp(word, "kept") == 0)
        j->step[step] = serial;
    if (j->step[step] >= 0)
        (void)snprintf(known, sizeof(known), "o%d", j->step[step]);
    if (strcmp(strcmp(word, "kept") == 0 ? output : "", known) != 0)
        finding_break("kept", "%s step %d of %s is %s '%s', and has kept '%s'", w->l->root, step,
                      j->id, word, output, known);
}

void move_keep(struct world *w)
{
    const struct worker *v = move_pick_worker(w, false);
    struct job *j = v != NULL ? pick_held(w, v) : NULL;
    int step = dice_below(&w->dice, STEPS);
    int serial = dice_percent(&w->dice, 30) ? LEDGER_NONE : w->serial++;
    struct reply *r;

    if (j == NULL)
        return;
    world_begin(w, "later_v1_keep");
    call_number(&w->call, v->epoch);
    call_text(&w->call, j->id);
    call_number(&w->call, j->start);
    call_printf(&w->call, "s%d", step);
    if (serial >= 0)
        call_printf(&w->call, "o%d", serial);
    r = world_ask(w, dice_percent(&w->dice, 60) ? ROLE_WORKER : ROLE_ALL);
    if (r != NULL)
        take_kept(w, v, j, step, serial, r);
    reply_free(r);
}
