#include "store.h"

#include <string.h>

#define SOLO_CRASHES 2
#define REAP_MAX 1 /* 128 in the product; here 1, so that a reap may need several calls */

static const uint8_t limits[GATES] = {1, 2};

/* ---- the hybrid clock: clock.tick */

static uint8_t tick(const struct conf *c, struct state *s, unsigned n, uint8_t seen)
{
    unsigned first = s->redis.clock + 1U;

    if (seen >= first)
        first = seen + 1U;
    /* Redis TIME in µs is later than all numbers given out, unless somebody has set it back. */
    if (!(c->variant & CLOCK_BACK) && s->history.issued >= first)
        first = s->history.issued + 1U;
    if (first <= s->history.issued)
        s->history.wrong |= TICKED_TWICE;
    s->redis.clock = (uint8_t)(first + n - 1);
    if (s->redis.clock > s->history.issued)
        s->history.issued = s->redis.clock;
    return (uint8_t)first;
}

/* ---- R:workers */

static int find(const struct redis *r, uint8_t epoch)
{
    for (int i = 0; i < r->nentries; i++) {
        if (r->entries[i].epoch == epoch)
            return i;
    }
    return -1;
}

const struct entry *store_entry(const struct redis *r, uint8_t epoch)
{
    int i = find(r, epoch);

    return i < 0 ? NULL : &r->entries[i];
}

static void remove_entry(const struct conf *c, struct state *s, int at)
{
    struct redis *r = &s->redis;

    for (int i = at; i + 1 < ENTRIES_MAX; i++)
        r->entries[i] = r->entries[i + 1];
    memset(&r->entries[ENTRIES_MAX - 1], 0, sizeof(r->entries[0]));
    r->nentries--;
    for (unsigned w = 0; w < c->workers; w++) {
        uint8_t *watch = s->workers[w].watch;

        memmove(&watch[at], &watch[at + 1], (size_t)(ENTRIES_MAX - 1 - at));
        watch[ENTRIES_MAX - 1] = 0;
    }
}

static void add_entry(struct state *s, const struct entry *e)
{
    if (s->redis.nentries == ENTRIES_MAX)
        s->history.wrong |= OVERFLOW;
    else
        s->redis.entries[s->redis.nentries++] = *e;
}

static bool holds_jobs(const struct redis *r, uint8_t epoch)
{
    for (unsigned j = 0; j < JOBS_MAX; j++) {
        if ((r->jobs[j].sets & RUNNING) && r->jobs[j].owner == epoch)
            return true;
    }
    return false;
}

/* Epochs that hold jobs without being a worker: `strangers` of v1_beat. */
static void list_strangers(const struct conf *c, struct state *s)
{
    struct redis *r = &s->redis;

    for (int i = r->nentries - 1; i >= 0; i--) {
        if (r->entries[i].standing == STRANGER && !holds_jobs(r, r->entries[i].epoch))
            remove_entry(c, s, i);
    }
    for (unsigned j = 0; j < c->jobs; j++) {
        if ((r->jobs[j].sets & RUNNING) && find(r, r->jobs[j].owner) < 0)
            add_entry(s, &(struct entry){.epoch = r->jobs[j].owner, .standing = STRANGER});
    }
}

static uint8_t highest_epoch(const struct redis *r)
{
    uint8_t highest = 0;

    for (unsigned i = 0; i < r->nentries; i++) {
        if (r->entries[i].epoch > highest)
            highest = r->entries[i].epoch;
    }
    return highest;
}

/* beats.worker */
static enum status status_of(const struct redis *r, uint8_t epoch)
{
    const struct entry *e = store_entry(r, epoch);

    if (e == NULL || e->standing == STRANGER)
        return SAID_UNKNOWN;
    return e->standing == WRITTEN_OFF ? SAID_DEAD : OK;
}

static enum status linked(const struct conf *c, const struct redis *r, const struct call *call)
{
    enum status status = status_of(r, call->epoch);

    if (status == OK && store_entry(r, call->epoch)->link != call->link && !(c->variant & NO_LINK))
        return SAID_LINK;
    return status;
}

/* ---- jobs and gates */

static void move(struct state *s, unsigned j, enum job_set to)
{
    struct job *job = &s->redis.jobs[j];

    job->sets = (uint8_t)to;
    job->owner = 0;
    job->cancel = 0;
    job->reaped_from = 0; /* an end writes R:errors anew, or removes the entry */
    if (to & TERMINAL)
        s->history.ended[j] = (uint8_t)to;
}

static void free_gates(struct state *s, unsigned j)
{
    for (unsigned g = 0; g < GATES; g++)
        s->redis.holders[g] &= (uint8_t)~BIT(j);
}

static bool needs(const struct conf *c, unsigned j, unsigned gate)
{
    return ((gate == LOCK ? c->lock : c->sem) & BIT(j)) != 0;
}

static unsigned count(uint8_t bits)
{
    return (unsigned)__builtin_popcount(bits);
}

/* Are all gates of this job open? A job takes all or none. */
static bool are_open(const struct conf *c, const struct redis *r, unsigned j)
{
    for (unsigned g = 0; g < GATES; g++) {
        if (needs(c, j, g) && count(r->holders[g]) >= limits[g])
            return false;
    }
    return true;
}

static void take_gates(const struct conf *c, struct state *s, unsigned j, uint8_t fence)
{
    for (unsigned g = 0; g < GATES; g++) {
        if (!needs(c, j, g))
            continue;
        if (fence <= s->history.token[g])
            s->history.wrong |= TOKEN_FELL;
        s->history.token[g] = fence;
        s->redis.holders[g] |= BIT(j);
    }
}

/* workers.release */
static void release(struct state *s, unsigned j)
{
    struct job *job = &s->redis.jobs[j];
    uint8_t reaped_from = job->reaped_from;

    free_gates(s, j);
    if (job->cancel) {
        move(s, j, CANCELLED);
        return;
    }
    move(s, j, WAITING);
    job->reaped_from = reaped_from;
    if (job->attempts > 0)
        job->attempts--;
}

/* workers.release_unheard. keep: jobs, as bits */
static void release_unheard(const struct conf *c, struct state *s, uint8_t epoch, uint8_t keep)
{
    for (unsigned j = 0; j < c->jobs; j++) {
        if ((s->redis.jobs[j].sets & RUNNING) && s->redis.jobs[j].owner == epoch &&
            !(keep & BIT(j)))
            release(s, j);
    }
}

/* ---- v1_sync: settle */

static bool fits(const struct conf *c, const struct job *job, const struct call *call, unsigned j)
{
    if (!(job->sets & RUNNING))
        return false;
    if (c->variant & NO_FENCE)
        return true;
    if (job->owner != call->epoch)
        return false;
    return c->variant & ATTEMPT_FENCE ? job->attempts == call->attempt[j]
                                      : job->starts == call->start[j];
}

static void note_settled(struct state *s, const struct call *call, unsigned j)
{
    const struct job *job = &s->redis.jobs[j];
    uint16_t bit = (uint16_t)(1U << call->start[j]);

    if (job->owner != call->epoch || job->starts != call->start[j])
        s->history.wrong |= TAKEN_LATE;
    if (s->history.settled[j] & bit)
        s->history.wrong |= SETTLED_TWICE;
    s->history.settled[j] |= bit;
    if (s->history.open[j] == call->start[j])
        s->history.open[j] = 0;
}

static void settle(const struct conf *c, struct state *s, const struct call *call)
{
    for (unsigned j = 0; j < c->jobs; j++) {
        struct job *job = &s->redis.jobs[j];

        if (call->verb[j] == NO_VERB || !fits(c, job, call, j))
            continue;
        note_settled(s, call, j);
        if (call->verb[j] == SAY_RELEASE) {
            release(s, j);
            continue;
        }
        free_gates(s, j);
        if (call->verb[j] == SAY_DONE)
            move(s, j, DONE);
        else if (job->cancel)
            move(s, j, CANCELLED);
        else
            move(s, j, call->verb[j] == SAY_DEAD ? DEAD : WAITING);
    }
}

/* ---- v1_sync: claim */

bool store_can_claim(const struct conf *c, const struct state *s, unsigned j)
{
    return (s->redis.jobs[j].sets & WAITING) && s->redis.jobs[j].starts < STARTS_MAX &&
           are_open(c, &s->redis, j);
}

static void claim(const struct conf *c, struct state *s, const struct call *call, unsigned first,
                  struct answer *a)
{
    unsigned n = 0;
    bool is_alone = false;

    for (unsigned k = 0; k < c->jobs && n < call->room && !is_alone; k++) {
        unsigned j = (first + k) % c->jobs;
        struct job *job = &s->redis.jobs[j];

        if (!store_can_claim(c, s, j))
            continue;
        if (job->crashes >= SOLO_CRASHES) {
            if (call->running > 0 || n > 0)
                continue;
            is_alone = true;
        }
        job->sets = RUNNING;
        job->owner = call->epoch;
        job->starts++;
        job->attempts++;
        job->reaped_from = 0;
        a->number = tick(c, s, 1, 0);
        take_gates(c, s, j, a->number);
        a->start[j] = job->starts;
        a->attempt[j] = job->attempts;
        a->crashes[j] = job->crashes;
        n++;
    }
}

static uint8_t cancels(const struct conf *c, const struct redis *r, uint8_t epoch)
{
    uint8_t mine = 0;

    for (unsigned j = 0; j < c->jobs; j++) {
        if ((r->jobs[j].sets & RUNNING) && r->jobs[j].cancel && r->jobs[j].owner == epoch)
            mine |= BIT(j);
    }
    return mine;
}

static void do_sync(const struct conf *c, struct state *s, const struct call *call, unsigned first,
                    struct answer *a)
{
    a->status = (uint8_t)linked(c, &s->redis, call);
    if (a->status == OK || (c->variant & NO_FENCE))
        settle(c, s, call);
    if (a->status != OK)
        return;
    claim(c, s, call, first, a);
    a->cancels = cancels(c, &s->redis, call->epoch);
}

/* ---- v1_register */

static bool is_right_start(const struct conf *c, const struct job *job, const struct call *call,
                           unsigned j, unsigned more)
{
    return c->variant & ATTEMPT_FENCE ? job->attempts + more == call->attempt[j]
                                      : job->starts + more == call->start[j];
}

/* was_reaped: the job waits because its worker was reaped, not because its start has ended. */
static bool waits_for(const struct conf *c, const struct job *job, const struct call *call,
                      unsigned j)
{
    if (is_right_start(c, job, call, j, 1))
        return true;
    return is_right_start(c, job, call, j, 0) &&
           ((c->variant & ADOPT_SETTLED) || (call->old != 0 && job->reaped_from == call->old));
}

static enum word adopt(const struct conf *c, struct state *s, const struct call *call, unsigned j,
                       uint8_t epoch)
{
    struct job *job = &s->redis.jobs[j];

    if (job->sets & RUNNING) {
        if (!is_right_start(c, job, call, j, 0) ||
            (job->owner != call->old && status_of(&s->redis, job->owner) != SAID_UNKNOWN))
            return TAKEN;
        job->owner = epoch;
        return KEPT;
    }
    if (!(job->sets & WAITING))
        return GONE;
    /* Its gates were given back with the job: it needs them all again. */
    if (!waits_for(c, job, call, j) || !are_open(c, &s->redis, j))
        return TAKEN;
    if (job->starts > call->start[j])
        s->history.wrong |= TAKEN_LATE;
    job->attempts = (uint8_t)(job->attempts + call->start[j] - job->starts);
    if (job->attempts == 0 || job->attempts > STARTS_MAX)
        job->attempts = 1;
    if (job->starts != call->start[j])
        job->reaped_from = 0;
    job->starts = call->start[j];
    job->sets = RUNNING;
    job->owner = epoch;
    take_gates(c, s, j, tick(c, s, 1, 0));
    s->history.open[j] = call->start[j];
    return KEPT;
}

static bool has_newer(const struct redis *r, const struct call *call, unsigned worker)
{
    for (unsigned i = 0; i < r->nentries; i++) {
        const struct entry *e = &r->entries[i];

        if (e->standing == ALIVE && e->worker == worker && e->life == call->life &&
            e->seq >= call->seq)
            return true;
    }
    return false;
}

static void drop_ghosts(const struct conf *c, struct state *s, const struct call *call,
                        unsigned worker)
{
    struct redis *r = &s->redis;

    for (int i = r->nentries - 1; i >= 0; i--) {
        const struct entry *e = &r->entries[i];

        if (e->standing == ALIVE && e->worker == worker && e->life == call->life)
            remove_entry(c, s, i);
    }
}

static void enter(const struct conf *c, struct state *s, unsigned worker, const struct call *call,
                  struct answer *a)
{
    struct redis *r = &s->redis;
    uint8_t keep = 0, epoch, seen = c->variant & NO_SEEN ? 0 : call->seen;

    if (has_newer(r, call, worker)) {
        a->status = REFUSED;
        return;
    }
    a->is_rewound = r->clock < call->seen;
    drop_ghosts(c, s, call, worker);
    epoch = tick(c, s, 1, seen);
    for (unsigned j = 0; j < c->jobs; j++) {
        if (call->start[j] != 0) {
            a->word[j] = (uint8_t)adopt(c, s, call, j, epoch);
            keep |= BIT(j);
        }
    }
    if (call->old != 0 && status_of(r, call->old) != SAID_DEAD)
        release_unheard(c, s, call->old, keep);
    add_entry(s, &(struct entry){.epoch = epoch,
                                 .standing = ALIVE,
                                 .link = 1,
                                 .worker = (uint8_t)worker,
                                 .life = call->life,
                                 .seq = call->seq});
    a->number = epoch;
    a->link = 1;
    a->seen = highest_epoch(r);
}

/* ---- v1_beat, v1_reconcile, v1_leave */

static void beat(const struct conf *c, struct state *s, const struct call *call, struct answer *a)
{
    struct redis *r = &s->redis;
    int at = find(r, call->epoch);

    a->status = (uint8_t)status_of(r, call->epoch);
    if (a->status != OK)
        return;
    a->link = r->entries[at].link;
    a->seen = highest_epoch(r);
    for (unsigned j = 0; j < c->jobs; j++) {
        if ((r->jobs[j].sets & RUNNING) && r->jobs[j].owner == call->epoch)
            a->count++;
    }
    /* The counter moves: other workers see that, and a reap with the old counter has no effect. */
    for (unsigned w = 0; w < c->workers; w++) {
        struct worker *other = &s->workers[w];

        other->watch[at] = 0;
        if (other->victim == call->epoch && other->counter == FRESH)
            other->counter = STALE;
        if (other->call.victim == call->epoch && other->call.counter == FRESH)
            other->call.counter = STALE;
        if (other->stray.victim == call->epoch && other->stray.counter == FRESH)
            other->stray.counter = STALE;
    }
}

static void reconcile(const struct conf *c, struct state *s, const struct call *call,
                      struct answer *a)
{
    struct redis *r = &s->redis;
    uint8_t keep = 0;

    a->status = (uint8_t)linked(c, r, call);
    if (a->status != OK)
        return;
    for (unsigned j = 0; j < c->jobs; j++) {
        if (call->start[j] == 0)
            continue;
        if ((r->jobs[j].sets & RUNNING) && r->jobs[j].owner == call->epoch &&
            is_right_start(c, &r->jobs[j], call, j, 0)) {
            a->word[j] = KEPT;
            keep |= BIT(j);
        } else {
            a->word[j] = GONE;
        }
    }
    release_unheard(c, s, call->epoch, keep);
    a->link = ++r->entries[find(r, call->epoch)].link;
    if (call->seen > r->clock && !(c->variant & NO_SEEN_RECONCILE))
        r->clock = call->seen;
}

static void leave(const struct conf *c, struct state *s, const struct call *call, struct answer *a)
{
    a->status = (uint8_t)status_of(&s->redis, call->epoch);
    if (a->status != OK)
        return;
    if (holds_jobs(&s->redis, call->epoch))
        a->status = REFUSED;
    else
        remove_entry(c, s, find(&s->redis, call->epoch));
}

/* ---- v1_reap */

/* A noted cause must be true: a buried worker was cut off, frozen or dead. */
static void note_burial(const struct conf *c, struct state *s, uint8_t victim)
{
    for (unsigned w = 0; w < c->workers; w++) {
        const struct worker *other = &s->workers[w];

        if (other->epoch == victim && other->process == UP && !other->is_ailing)
            s->history.wrong |= NOT_DEAD;
    }
}

static void recover(const struct conf *c, struct state *s, unsigned j)
{
    struct job *job = &s->redis.jobs[j];
    uint8_t victim = job->owner;

    s->history.open[j] = 0;
    if (!(c->variant & GATE_LEAK))
        free_gates(s, j);
    if (job->cancel) {
        move(s, j, CANCELLED);
        return;
    }
    job->crashes++;
    move(s, j, job->crashes >= c->crashes ? DEAD : WAITING);
    if (job->sets & WAITING)
        job->reaped_from = victim;
}

static void reap(const struct conf *c, struct state *s, const struct call *call, struct answer *a)
{
    struct redis *r = &s->redis;
    int at = find(r, call->victim);
    bool is_worker = at >= 0 && r->entries[at].standing != STRANGER;
    bool is_alive = is_worker && r->entries[at].standing == ALIVE;

    a->status = (uint8_t)status_of(r, call->epoch);
    if (a->status != OK || (call->counter == WAS_STRANGER ? is_alive : !is_worker))
        return;
    if (is_alive) {
        if (call->counter != FRESH && !(c->variant & NO_COUNTER))
            return;
        note_burial(c, s, call->victim);
        if (!(c->variant & NO_DEAD))
            r->entries[at].standing = WRITTEN_OFF;
    } else if (!is_worker) {
        note_burial(c, s, call->victim);
    }
    for (unsigned j = 0; j < c->jobs && a->number < REAP_MAX; j++) {
        if ((r->jobs[j].sets & RUNNING) && r->jobs[j].owner == call->victim) {
            recover(c, s, j);
            a->number++;
        }
    }
    a->count = a->number == REAP_MAX;
    at = find(r, call->victim);
    if (!a->count && at >= 0)
        remove_entry(c, s, at);
}

/* ---- all calls */

void store_execute(const struct conf *c, struct state *s, unsigned worker, const struct call *call,
                   unsigned first, struct answer *answer)
{
    *answer = (struct answer){0};
    switch (call->kind) {
    case REGISTER:
        enter(c, s, worker, call, answer);
        break;
    case BEAT:
        beat(c, s, call, answer);
        break;
    case RECONCILE:
        reconcile(c, s, call, answer);
        break;
    case SYNC:
        do_sync(c, s, call, first, answer);
        break;
    case REAP:
        reap(c, s, call, answer);
        break;
    case LEAVE:
        leave(c, s, call, answer);
        break;
    default:
        break;
    }
    list_strangers(c, s);
}

/* ---- producers and operators */

bool store_add(struct state *s, unsigned j)
{
    if (s->redis.jobs[j].sets != 0 || (s->history.added & BIT(j)))
        return false;
    s->redis.jobs[j].sets = WAITING;
    s->history.added |= BIT(j);
    return true;
}

bool store_cancel(struct state *s, unsigned j)
{
    struct job *job = &s->redis.jobs[j];

    if (job->sets & WAITING)
        move(s, j, CANCELLED);
    else if ((job->sets & RUNNING) && !job->cancel)
        job->cancel = 1;
    else
        return false;
    return true;
}

bool store_retry(struct state *s, unsigned j)
{
    struct job *job = &s->redis.jobs[j];

    if (!(job->sets & DEAD))
        return false;
    job->attempts = job->crashes = 0;
    s->history.ended[j] = 0;
    move(s, j, WAITING);
    return true;
}

/* Which numbers does any worker know? Only these stay issued. With BACK_ONLY a number counts only
 * when the worker that knows it is back (become_ready in worker.c). */
static void forget_untold(const struct conf *c, struct state *s)
{
    uint8_t told = s->snapshot.clock;

    for (unsigned w = 0; !(c->variant & BACK_ONLY) && w < c->workers; w++) {
        if (s->workers[w].seen > told)
            told = s->workers[w].seen;
    }
    s->history.issued = told;
    for (unsigned g = 0; g < GATES; g++) {
        if (s->history.token[g] > told)
            s->history.token[g] = told;
    }
}

/* Forget what was written since the snapshot, and let the properties forget it, too: a job that was
 * added since may be lost, a start that was claimed since may happen again. Fences may not repeat.
 * But with CLOCK_BACK a fence that no worker was told may: nobody can know it. */
void store_rewind(const struct conf *c, struct state *s)
{
    s->redis = s->snapshot;
    if (c->variant & CLOCK_BACK)
        forget_untold(c, s);
    for (unsigned j = 0; j < c->jobs; j++) {
        const struct job *job = &s->redis.jobs[j];
        uint16_t kept = (uint16_t)((2U << job->starts) - 1);

        s->history.started[j] &= kept;
        s->history.settled[j] &= kept;
        if (!(job->sets & TERMINAL))
            s->history.settled[j] &= (uint16_t) ~(1U << job->starts);
        s->history.open[j] = 0;
        s->history.ended[j] = job->sets & TERMINAL;
        if (job->sets == 0)
            s->history.added &= (uint8_t)~BIT(j);
    }
}
