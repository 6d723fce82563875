#include "properties.h"

#include "store.h"

static bool is_one_bit(uint8_t bits)
{
    return bits != 0 && (bits & (bits - 1)) == 0;
}

static bool I1(const struct conf *c, const struct state *s)
{
    for (unsigned j = 0; j < c->jobs; j++) {
        if ((s->history.added & BIT(j)) && !is_one_bit(s->redis.jobs[j].sets))
            return false;
    }
    return true;
}

static bool I2(const struct conf *c, const struct state *s)
{
    (void)c;
    return !(s->history.wrong & STARTED_TWICE);
}

static bool I3(const struct conf *c, const struct state *s)
{
    (void)c;
    return !(s->history.wrong & TAKEN_LATE);
}

static bool I4(const struct conf *c, const struct state *s)
{
    for (unsigned j = 0; j < c->jobs; j++) {
        const struct job *job = &s->redis.jobs[j];

        /* The attempt above the limit is refused before it starts. */
        if (s->history.started[j] >> (job->starts + 1) != 0 || job->attempts > c->attempts + 1 ||
            job->crashes > c->crashes)
            return false;
        for (unsigned w = 0; w < c->workers; w++) {
            if (s->workers[w].slots[j].state == RUNS &&
                s->workers[w].slots[j].attempt > c->attempts)
                return false;
        }
    }
    return true;
}

static bool I5(const struct conf *c, const struct state *s)
{
    for (unsigned j = 0; j < c->jobs; j++) {
        if (s->history.ended[j] != 0 && s->redis.jobs[j].sets != s->history.ended[j])
            return false;
    }
    return true;
}

static unsigned count(uint8_t bits)
{
    return (unsigned)__builtin_popcount(bits);
}

static bool I7(const struct conf *c, const struct state *s)
{
    (void)c;
    return count(s->redis.holders[LOCK]) <= 1 && count(s->redis.holders[SEM]) <= 2;
}

static bool holds_its_gates(const struct conf *c, const struct state *s, unsigned j)
{
    return (s->redis.holders[LOCK] & BIT(j)) == (c->lock & BIT(j)) &&
           (s->redis.holders[SEM] & BIT(j)) == (c->sem & BIT(j));
}

static bool I8(const struct conf *c, const struct state *s)
{
    for (unsigned j = 0; j < c->jobs; j++) {
        const struct job *job = &s->redis.jobs[j];
        bool runs = (job->sets & RUNNING) != 0;

        if (runs != (job->owner != 0) || (runs && !holds_its_gates(c, s, j)) ||
            (job->cancel && !runs))
            return false;
        /* An epoch that holds a job is listed: a worker, or a stranger that will be reaped. */
        if (runs && store_entry(&s->redis, job->owner) == NULL)
            return false;
    }
    return true;
}

static bool OneLivePerId(const struct conf *c, const struct state *s)
{
    for (unsigned j = 0; j < c->jobs; j++) {
        const struct job *job = &s->redis.jobs[j];
        unsigned n = 0;

        for (unsigned w = 0; w < c->workers; w++) {
            const struct worker *worker = &s->workers[w];

            n += worker->slots[j].state == RUNS && (job->sets & RUNNING) &&
                 worker->epoch == job->owner && worker->slots[j].start == job->starts;
        }
        if (n > 1)
            return false;
    }
    return true;
}

static bool TokenUnique(const struct conf *c, const struct state *s)
{
    (void)c;
    return !(s->history.wrong & TICKED_TWICE);
}

/* A worker that is ready and waits for no answer knows every job that it holds. */
static bool ClaimedHasStart(const struct conf *c, const struct state *s)
{
    for (unsigned j = 0; j < c->jobs; j++) {
        const struct job *job = &s->redis.jobs[j];

        for (unsigned w = 0; (job->sets & RUNNING) && w < c->workers; w++) {
            const struct worker *worker = &s->workers[w];

            if (worker->process == UP && worker->state == READY && worker->call.kind == NO_CALL &&
                worker->epoch == job->owner && worker->slots[j].start != job->starts)
                return false;
        }
    }
    return true;
}

static bool EffectCause(const struct conf *c, const struct state *s)
{
    (void)c;
    return !(s->history.wrong & (UNCAUSED | NOT_DEAD));
}

static bool NoHolderForTerminal(const struct conf *c, const struct state *s)
{
    for (unsigned j = 0; j < c->jobs; j++) {
        if ((s->redis.jobs[j].sets & TERMINAL) &&
            ((s->redis.holders[LOCK] | s->redis.holders[SEM]) & BIT(j)))
            return false;
    }
    return true;
}

static bool HolderHasLease(const struct conf *c, const struct state *s)
{
    for (unsigned j = 0; j < c->jobs; j++) {
        if (!(s->redis.jobs[j].sets & RUNNING) &&
            ((s->redis.holders[LOCK] | s->redis.holders[SEM]) & BIT(j)))
            return false;
    }
    return true;
}

static bool AckIdempotent(const struct conf *c, const struct state *s)
{
    (void)c;
    return !(s->history.wrong & SETTLED_TWICE);
}

static bool LockToken(const struct conf *c, const struct state *s)
{
    (void)c;
    return !(s->history.wrong & TOKEN_FELL);
}

static bool InBounds(const struct conf *c, const struct state *s)
{
    (void)c;
    return !(s->history.wrong & OVERFLOW) && s->history.issued < 200;
}

const struct property properties[] = {
    {"I1", "every job that was added is in exactly one state", I1},
    {"I2", "one start of a process per start number", I2},
    {"I3", "only the epoch and start that hold a job end it", I3},
    {"I4", "starts only rise, attempts keep to the budget", I4},
    {"I5", "an end is final, but for an operator's retry", I5},
    {"NoHolderForTerminal", "a job that has ended holds no gate", NoHolderForTerminal},
    {"HolderHasLease", "who holds a gate is a running job", HolderHasLease},
    {"I7", "no more holders than a gate has permits for", I7},
    {"I8", "the indexes agree", I8},
    {"OneLivePerId", "one run of a job counts at most", OneLivePerId},
    {"TokenUnique", "no number of the hybrid clock is given out twice", TokenUnique},
    {"LockToken", "each grant of a gate has a higher fence", LockToken},
    {"ClaimedHasStart", "nothing is held by a worker that does not know of it", ClaimedHasStart},
    {"EffectCause", "a further start has a known cause, and a true one", EffectCause},
    {"AckIdempotent", "the same result twice counts once", AckIdempotent},
    {"InBounds", "the model's own tables are large enough", InBounds},
};
const unsigned nproperties = sizeof(properties) / sizeof(properties[0]);

const struct property eventually_terminal = {
    "EventuallyTerminal", "without further trouble every job comes to an end", NULL};
const struct property reaper_progress = {
    "ReaperProgress", "without further trouble nothing stays with a worker that is gone", NULL};

const struct property *properties_check(const struct conf *c, const struct state *s)
{
    for (unsigned i = 0; i < nproperties; i++) {
        if (!properties[i].holds(c, s))
            return &properties[i];
    }
    return NULL;
}
