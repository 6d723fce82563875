#include "drain.h"

#include <string.h>

#include "audit.h"
#include "batch.h"
#include "judge.h"
#include "moves.h"
#include "finding.h"

#define ROUNDS 64 /* rounds without an ended job after which the drain gives up */
#define ROUND_US 1200000
#define PATIENCE_MS 60000 /* what is over has to be removed within this time */

/* Which kinds of limits let this job pass: bit i is set if definition i must be a rate. */
static int kinds_for(const struct ledger *l, const struct job *j)
{
    int kinds = 0;

    for (int i = 0; i < LIMITED; i++)
        if (ledger_needs_rate(l, j, i))
            kinds |= 1 << (ledger_limit(l, i) - l->limit);
    return kinds;
}

/* The nth waiting job; n wraps around. */
static const struct job *waiting(const struct ledger *l, int n)
{
    int all = 0;

    for (int i = 0; i < l->jobs; i++)
        all += l->job[i].may == WAITS;
    n = all > 0 ? n % all : -1;
    for (int i = 0; i < l->jobs && n >= 0; i++)
        if (l->job[i].may == WAITS && n-- == 0)
            return &l->job[i];
    return NULL;
}

/* Open the limits for the nth waiting job. One job may need a definition as a semaphore that
 * another needs as a rate, so they are opened for one job after the other. */
static void open_limits(struct world *w, int n)
{
    static const struct limit sem = {.kind = LIMIT_SEM, .n = 50},
                              rate = {.kind = LIMIT_RATE, .n = 1000, .per_ms = 1000, .burst = 1000};
    const struct job *j = waiting(w->l, n);
    int kinds = j != NULL ? kinds_for(w->l, j) : n;

    for (int i = 0; i < DEFINED; i++)
        limit_set(w, i, (kinds >> i) % 2 == 0 ? &sem : &rate);
}

static void resume_all(struct world *w)
{
    for (int q = 0; q < QUEUES; q++) {
        world_begin(w, "later_resume");
        call_text(&w->call, names_queue[q]);
        world_tell(w, ROLE_ALL);
    }
}

/* Seal all batches, which also adds the callbacks that a foreign key kept away. */
static void seal_all(struct world *w)
{
    for (int name = 0; name < BATCHES; name++)
        if (batch_of(w->l, name) != NULL)
            batch_seal(w, name);
}

static bool runs_any(const struct ledger *l, int64_t epoch)
{
    for (int i = 0; i < l->jobs; i++)
        if (l->job[i].may == RUNS && l->job[i].epoch == epoch)
            return true;
    return false;
}

/* Register a worker that stays. It reaps all others, and what still runs under unregistered
 * epochs. */
static struct worker *keep_one(struct world *w)
{
    struct worker *v;

    worker_enter(w);
    v = &w->l->worker[w->l->workers - 1];
    for (int i = 0; i + 1 < w->l->workers; i++) {
        struct worker *other = &w->l->worker[i];

        if (other->is_there || runs_any(w->l, other->epoch))
            worker_reap(w, v, other, 1000);
    }
    return v;
}

/* How many jobs have not ended? */
static int count_left(const struct ledger *l)
{
    int left = 0;

    for (int i = 0; i < l->jobs; i++)
        left += ledger_is_live(&l->job[i]);
    for (int i = 0; i < l->raws; i++)
        left += l->raw[i].waits;
    return left;
}

/* Does the job need one definition to be a semaphore and a rate at once? */
static bool is_impossible(const struct ledger *l, const struct job *j)
{
    for (int s = 0; s < LIMITED; s++)
        for (int r = 0; r < LIMITED; r++)
            if (ledger_needs_sem(l, j, s) && ledger_needs_rate(l, j, r) &&
                ledger_limit(l, s) == ledger_limit(l, r))
                return true;
    return false;
}

static void cancel_impossible(struct world *w)
{
    for (int i = 0; i < w->l->jobs; i++) {
        struct job *j = &w->l->job[i];

        if (j->may != WAITS || !is_impossible(w->l, j))
            continue;
        world_begin(w, "later_cancel");
        call_text(&w->call, j->id);
        world_tell(w, ROLE_ALL);
        j->may = DONE | GONE;
    }
}

static void round_of(struct world *w, struct worker *v, int n)
{
    world_move_clock(w, ROUND_US);
    if (n % 2 == 0)
        open_limits(w, n / 2);
    cancel_impossible(w);
    worker_finish(w, v);
    judge_all(w->l);
    worker_beat(w, v);
    if (n % 3 == 0)
        worker_tidy(w, v);
}

/* Let time pass with the gates as they are: what is over has to be removed by itself. */
static void let_pass(struct world *w, struct worker *v)
{
    for (int n = 0; n < 8 && !finding_is_broken(); n++) {
        world_move_clock(w, PATIENCE_MS / 4 * INT64_C(1000));
        worker_finish(w, v);
        worker_tidy(w, v);
        judge_all(w->l);
    }
    judge_leftovers(w->l, NOW_MS(w), PATIENCE_MS);
}

/* Run rounds until all jobs have ended, or none ended in ROUNDS rounds. */
static void run_all(struct world *w, struct worker *v)
{
    int left = count_left(w->l), n = 0;

    for (int since = n; !finding_is_broken() && (left > 0 || n < 4) && n < since + ROUNDS; n++) {
        round_of(w, v, n);
        if (count_left(w->l) < left)
            since = n;
        left = count_left(w->l);
    }
}

static void drain_space(struct world *w)
{
    struct worker *v = keep_one(w);

    resume_all(w);
    seal_all(w);
    judge_all(w->l);
    let_pass(w, v);
    run_all(w, v);
    audit(w->l);
    judge_end(w->l);
    batch_check_ended(w->l);
}

void drain(struct world *w)
{
    foreign_remove_all(w);
    world_move_clock(w, w->latest_us - w->now_us);
    for (int s = 0; s < SPACES && !finding_is_broken(); s++) {
        w->l = w->space[s];
        judge_all(w->l);
        if (!finding_is_broken())
            drain_space(w);
    }
}
