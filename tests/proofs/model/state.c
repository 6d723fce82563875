#include "state.h"

#include <string.h>

void state_init(const struct conf *c, struct state *s)
{
    memset(s, 0, sizeof(*s));
    s->left = c->budget;
    for (unsigned j = 0; j < c->jobs; j++) {
        if (c->has_add && j + 1 == c->jobs)
            continue;
        s->redis.jobs[j].sets = WAITING;
        s->history.added |= BIT(j);
    }
    if (c->is_early) {
        s->snapshot = s->redis;
        s->has_snapshot = 1;
    }
}

/* ---- the hybrid clock: only the order of its numbers matters */

typedef void number_f(uint8_t *number, void *arg);

static void numbers_of_redis(struct redis *r, number_f *f, void *arg)
{
    f(&r->clock, arg);
    for (unsigned j = 0; j < JOBS_MAX; j++) {
        f(&r->jobs[j].owner, arg);
        f(&r->jobs[j].reaped_from, arg);
    }
    for (unsigned i = 0; i < r->nentries; i++)
        f(&r->entries[i].epoch, arg);
}

static void numbers_of_call(struct call *call, number_f *f, void *arg)
{
    if (call->kind == NO_CALL)
        return;
    f(&call->epoch, arg);
    f(&call->old, arg);
    f(&call->seen, arg);
    f(&call->victim, arg);
}

static void each_number(const struct conf *c, struct state *s, number_f *f, void *arg)
{
    numbers_of_redis(&s->redis, f, arg);
    if (s->has_snapshot)
        numbers_of_redis(&s->snapshot, f, arg);
    for (unsigned i = 0; i < c->workers; i++) {
        struct worker *w = &s->workers[i];

        f(&w->epoch, arg);
        f(&w->seen, arg);
        f(&w->victim, arg);
        numbers_of_call(&w->call, f, arg);
        numbers_of_call(&w->stray, f, arg);
        if (w->call.is_answered) {
            f(&w->answer.seen, arg);
            if (w->call.kind == REGISTER || w->call.kind == SYNC)
                f(&w->answer.number, arg);
        }
    }
    f(&s->history.issued, arg);
    for (unsigned g = 0; g < GATES; g++)
        f(&s->history.token[g], arg);
}

static void note_number(uint8_t *number, void *arg)
{
    uint8_t *rank = arg;

    rank[*number] = 1;
}

static void rank_number(uint8_t *number, void *arg)
{
    const uint8_t *rank = arg;

    *number = rank[*number];
}

static void rank_numbers(const struct conf *c, struct state *s)
{
    uint8_t rank[256] = {0}, n = 0;

    each_number(c, s, note_number, rank);
    for (unsigned i = 1; i < 256; i++)
        rank[i] = rank[i] ? ++n : 0;
    rank[0] = 0;
    each_number(c, s, rank_number, rank);
}

/* ---- links and registrations: subtract what all numbers of a kind have in common */

static void lower(uint8_t *const *at, unsigned n)
{
    uint8_t least = UINT8_MAX;

    for (unsigned i = 0; i < n; i++)
        least = *at[i] < least ? *at[i] : least;
    for (unsigned i = 0; i < n; i++)
        *at[i] = (uint8_t)(*at[i] - least + 1);
}

static unsigned links_in(struct redis *r, uint8_t epoch, uint8_t **at)
{
    unsigned n = 0;

    for (unsigned i = 0; i < r->nentries; i++) {
        if (r->entries[i].epoch == epoch && r->entries[i].standing == ALIVE)
            at[n++] = &r->entries[i].link;
    }
    return n;
}

/* Lower all link numbers of one epoch. */
static void lower_links(const struct conf *c, struct state *s, uint8_t epoch)
{
    uint8_t *at[2 * ENTRIES_MAX + 3 * WORKERS_MAX];
    unsigned n = links_in(&s->redis, epoch, at);

    n += links_in(&s->snapshot, epoch, at + n);
    for (unsigned i = 0; i < c->workers; i++) {
        struct worker *w = &s->workers[i];

        if (w->epoch == epoch && w->link != 0)
            at[n++] = &w->link;
        if (w->call.epoch == epoch && w->call.link != 0)
            at[n++] = &w->call.link;
        if (w->epoch == epoch && w->answer.link != 0 && w->call.kind != REGISTER)
            at[n++] = &w->answer.link;
        if (w->stray.epoch == epoch && w->stray.link != 0)
            at[n++] = &w->stray.link;
    }
    lower(at, n);
}

/* The tokens of one worker's processes: the life, and the registration in that life. */
struct tokens {
    uint8_t *seqs[2 * ENTRIES_MAX + 3], *lives[2 * ENTRIES_MAX + 3];
    unsigned nseqs, nlives;
};

static void tokens_in(struct redis *r, unsigned worker, struct tokens *t)
{
    for (unsigned i = 0; i < r->nentries; i++) {
        struct entry *e = &r->entries[i];

        if (e->standing == STRANGER || e->worker != worker)
            continue;
        t->lives[t->nlives++] = &e->life;
        if (e->seq != 0)
            t->seqs[t->nseqs++] = &e->seq;
    }
}

static void token_of(struct call *call, struct tokens *t)
{
    if (call->seq == 0)
        return;
    t->seqs[t->nseqs++] = &call->seq;
    t->lives[t->nlives++] = &call->life;
}

static void lower_tokens(struct state *s, unsigned worker)
{
    struct worker *w = &s->workers[worker];
    struct tokens t = {.nseqs = 0};

    tokens_in(&s->redis, worker, &t);
    tokens_in(&s->snapshot, worker, &t);
    token_of(&w->call, &t);
    token_of(&w->stray, &t);
    t.lives[t.nlives++] = &w->life;
    lower(t.lives, t.nlives);
    if (w->seq != 0)
        t.seqs[t.nseqs++] = &w->seq;
    lower(t.seqs, t.nseqs);
}

/* ---- history that no property can ask for any more */

static bool names(const struct call *call, unsigned j, unsigned start)
{
    return call->kind != NO_CALL && call->start[j] == start;
}

void state_tidy_history(const struct conf *c, struct state *s)
{
    for (unsigned j = 0; j < c->jobs; j++) {
        uint16_t unheard = 0, known = 0;

        for (unsigned i = 0; i < c->workers; i++) {
            const struct worker *w = &s->workers[i];

            if (w->call.kind == SYNC && w->call.is_answered)
                unheard |= (uint16_t)(1U << w->answer.start[j]);
            for (unsigned start = 1; start <= STARTS_MAX; start++) {
                if (w->slots[j].start == start || names(&w->call, j, start) ||
                    names(&w->stray, j, start))
                    known |= (uint16_t)(1U << start);
            }
        }
        /* A start number that was given out counts as used up when no worker can begin it any
         * more. */
        s->history.started[j] |= (uint16_t)(((2U << s->redis.jobs[j].starts) - 2) & ~unheard);
        s->history.settled[j] &= known;
    }
}

/* ---- values that nothing reads any more */

static void tidy_call(const struct conf *c, struct call *call)
{
    if (call->is_answered)
        *call = (struct call){.kind = call->kind, .is_answered = 1, .victim = call->victim};
    if (!(c->variant & ATTEMPT_FENCE))
        memset(call->attempt, 0, sizeof(call->attempt));
    if (c->crashes <= 2) /* no suspect has to run solo */
        call->running = 0;
}

static void tidy_worker(const struct conf *c, struct worker *w)
{
    tidy_call(c, &w->call);
    tidy_call(c, &w->stray);
    for (unsigned j = 0; j < c->jobs; j++) {
        struct slot *slot = &w->slots[j];

        if (slot->state == ENDED || slot->state == SENT) {
            slot->is_killed = slot->is_solo = 0;
            if (!(c->variant & ATTEMPT_FENCE))
                slot->attempt = 0;
        }
    }
}

/* May a worker still name this start when it registers? It may if it runs the start, has claimed
 * it, or has such a call under way. */
static bool is_named(const struct conf *c, const struct state *s, unsigned j, const struct job *job)
{
    for (unsigned i = 0; i < c->workers; i++) {
        const struct worker *w = &s->workers[i];
        bool is_its = w->epoch == job->reaped_from ||
                      (w->call.is_answered && w->answer.number == job->reaped_from);

        if (is_its && (w->slots[j].start == job->starts || w->answer.start[j] == job->starts))
            return true;
        if ((w->call.old == job->reaped_from && w->call.start[j] == job->starts) ||
            (w->stray.old == job->reaped_from && w->stray.start[j] == job->starts))
            return true;
    }
    return false;
}

/* Keep from which epoch a start was reaped only while a worker of that epoch may come back with it.
 * With CLOCK_BACK keep it always: the epoch may be given out twice. */
static void tidy_reaped(const struct conf *c, const struct state *s, struct redis *r)
{
    for (unsigned j = 0; j < c->jobs; j++) {
        struct job *job = &r->jobs[j];

        if (job->reaped_from != 0 && !(c->variant & CLOCK_BACK) && !is_named(c, s, j, job))
            job->reaped_from = 0;
    }
}

static void tidy_redis(const struct conf *c, struct redis *r)
{
    for (unsigned j = 0; j < c->jobs; j++) {
        if (r->jobs[j].sets & TERMINAL)
            r->jobs[j].attempts = r->jobs[j].crashes = 0;
    }
    for (unsigned i = 0; i < r->nentries; i++) {
        if (r->entries[i].standing != ALIVE)
            r->entries[i].link = r->entries[i].seq = 0;
    }
}

/* Lower the start numbers of one job so that the lowest known one is 1. */
static void lower_starts(const struct conf *c, struct state *s, unsigned j)
{
    uint8_t *at[2 + 4 * WORKERS_MAX], least = UINT8_MAX;
    unsigned n = 0;

    at[n++] = &s->redis.jobs[j].starts;
    for (unsigned i = 0; i < c->workers; i++) {
        struct worker *w = &s->workers[i];

        at[n++] = &w->slots[j].start;
        at[n++] = &w->call.start[j];
        at[n++] = &w->stray.start[j];
        at[n++] = &w->answer.start[j];
    }
    at[n++] = &s->history.open[j];
    if (!(s->redis.jobs[j].sets & RUNNING))
        least = s->redis.jobs[j].starts + 1;
    for (unsigned i = 0; i < n; i++) {
        if (*at[i] != 0 && *at[i] < least && !(i == 0 && least != UINT8_MAX))
            least = *at[i];
    }
    if (least <= 1 || least == UINT8_MAX)
        return;
    for (unsigned i = 0; i < n; i++)
        *at[i] = *at[i] == 0 ? 0 : (uint8_t)(*at[i] - least + 1);
    s->history.started[j] = (uint16_t)(s->history.started[j] >> (least - 1)) & (uint16_t)~1U;
    s->history.settled[j] = (uint16_t)(s->history.settled[j] >> (least - 1)) & (uint16_t)~1U;
}

static void tidy(const struct conf *c, struct state *s)
{
    tidy_redis(c, &s->redis);
    tidy_redis(c, &s->snapshot);
    tidy_reaped(c, s, &s->redis);
    tidy_reaped(c, s, &s->snapshot);
    for (unsigned w = 0; w < c->workers; w++)
        tidy_worker(c, &s->workers[w]);
    state_tidy_history(c, s);
    /* Not where they can fall: a rewind restores them, and ATTEMPT_FENCE resets attempts. */
    for (unsigned j = 0; c->budget.rewind == 0 && !(c->variant & ATTEMPT_FENCE) && j < c->jobs; j++)
        lower_starts(c, s, j);
    if (c->variant & CLOCK_BACK)
        return;
    /* The next fence is above all issued numbers, so it is above this one, whatever that is. */
    for (unsigned g = 0; g < GATES; g++)
        s->history.token[g] = s->history.token[g] != 0 ? s->history.issued : 0;
}

/* ---- workers are interchangeable: sort them by their bytes */

static void rename_workers(struct redis *r, const uint8_t *to)
{
    for (unsigned i = 0; i < r->nentries; i++) {
        if (r->entries[i].standing != STRANGER)
            r->entries[i].worker = to[r->entries[i].worker];
    }
}

static unsigned first_entry(const struct redis *r, unsigned worker)
{
    unsigned i = 0;

    while (i < r->nentries &&
           (r->entries[i].standing == STRANGER || r->entries[i].worker != worker))
        i++;
    return i;
}

/* Is worker a to come before b? Workers with equal bytes may differ by their entries. */
static bool is_before(const struct state *s, unsigned a, unsigned b)
{
    int by_bytes = memcmp(&s->workers[a], &s->workers[b], sizeof(struct worker));
    unsigned of_a = first_entry(&s->redis, a), of_b = first_entry(&s->redis, b);

    if (by_bytes != 0)
        return by_bytes < 0;
    if (of_a != of_b)
        return of_a < of_b;
    return first_entry(&s->snapshot, a) < first_entry(&s->snapshot, b);
}

static void sort_workers(const struct conf *c, struct state *s)
{
    uint8_t from[WORKERS_MAX] = {0, 1, 2}, to[WORKERS_MAX];
    struct worker was[WORKERS_MAX];

    for (unsigned i = 1; i < c->workers; i++) {
        for (unsigned k = i; k > 0 && is_before(s, from[k], from[k - 1]); k--) {
            uint8_t swap = from[k];

            from[k] = from[k - 1];
            from[k - 1] = swap;
        }
    }
    memcpy(was, s->workers, sizeof(was));
    for (unsigned i = 0; i < WORKERS_MAX; i++) {
        s->workers[i] = was[from[i]];
        to[from[i]] = (uint8_t)i;
    }
    rename_workers(&s->redis, to);
    rename_workers(&s->snapshot, to);
}

void state_canon(const struct conf *c, struct state *s)
{
    tidy(c, s);
    /* With CLOCK_BACK the distance between two numbers matters, too. */
    if (!(c->variant & CLOCK_BACK))
        rank_numbers(c, s);
    for (unsigned i = 0; i < s->redis.nentries; i++)
        lower_links(c, s, s->redis.entries[i].epoch);
    for (unsigned w = 0; w < c->workers; w++) {
        /* A worker whose entry is gone may still know a link number. */
        if (s->workers[w].epoch != 0)
            lower_links(c, s, s->workers[w].epoch);
        lower_tokens(s, w);
    }
    sort_workers(c, s);
}

/* ---- hash */

static uint64_t mix(uint64_t h)
{
    h ^= h >> 32;
    h *= UINT64_C(0xd6e8feb86659fd93);
    h ^= h >> 32;
    h *= UINT64_C(0xd6e8feb86659fd93);
    return h ^ (h >> 32);
}

uint64_t state_hash(const struct state *s)
{
    const unsigned char *at = (const unsigned char *)s;
    uint64_t h = UINT64_C(0x9e3779b97f4a7c15);

    for (size_t i = 0; i < sizeof(*s); i += 8) {
        uint64_t word = 0;

        memcpy(&word, at + i, sizeof(*s) - i < 8 ? sizeof(*s) - i : 8);
        h = mix(h ^ word) + i;
    }
    return h == 0 ? 1 : h;
}

/* ---- print a state in words */

static void print_job(const struct state *s, unsigned j, FILE *out)
{
    static const char *const names[] = {"waiting", "running", "done", "dead", "cancelled"};
    const struct job *job = &s->redis.jobs[j];

    fprintf(out, " job %u", j);
    for (unsigned i = 0; i < 5; i++) {
        if (job->sets & BIT(i))
            fprintf(out, " %s", names[i]);
    }
    if (job->sets & RUNNING)
        fprintf(out, " epoch %u", job->owner);
    fprintf(out, " %u/%u/%u%s", job->starts, job->attempts, job->crashes,
            job->cancel ? " to be cancelled" : "");
    for (unsigned g = 0; g < GATES; g++) {
        if (s->redis.holders[g] & BIT(j))
            fprintf(out, " %s", g == LOCK ? "lock" : "sem");
    }
    fprintf(out, ";");
}

static void print_worker(const struct conf *c, const struct worker *w, unsigned i, FILE *out)
{
    static const char *const processes[] = {"", " frozen", " down"};
    static const char *const states[] = {"offline",     "registering", "beating",
                                         "reconciling", "ready",       "leaving"};
    static const char *const slots[] = {"", "runs", "has ended", "told the end of"};

    fprintf(out, " w%u%s %s", i, processes[w->process], states[w->state]);
    if (w->epoch != 0)
        fprintf(out, " epoch %u", w->epoch);
    for (unsigned j = 0; j < c->jobs; j++) {
        if (w->slots[j].state != NONE)
            fprintf(out, " %s job %u start %u", slots[w->slots[j].state], j, w->slots[j].start);
    }
    fprintf(out, ";");
}

void state_print(const struct conf *c, const struct state *s, FILE *out)
{
    static const char *const standings[] = {"", "", " dead", " ?"};

    fprintf(out, "       redis:");
    for (unsigned j = 0; j < c->jobs; j++)
        print_job(s, j, out);
    fprintf(out, " workers");
    for (unsigned i = 0; i < s->redis.nentries; i++)
        fprintf(out, " %u%s", s->redis.entries[i].epoch, standings[s->redis.entries[i].standing]);
    fprintf(out, "\n       ");
    for (unsigned i = 0; i < c->workers; i++)
        print_worker(c, &s->workers[i], i, out);
    fprintf(out, "\n");
}
