#include "ledger.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "finding.h"

#define COUNT_OF_SLOTS (sizeof(((struct ledger *)0)->slot) / sizeof(int))

void ledger_clear(struct ledger *l, int space)
{
    memset(l, 0, sizeof(*l));
    l->space = space;
    l->root = names_space[space];
    for (int q = 0; q < QUEUES; q++)
        l->queue_lock[q] = l->queue_sem[q] = l->queue_rate[q] = LEDGER_NONE;
}

/* ---- jobs */

/* The slot of this id: the one that has it, or the free one where it belongs. */
static int *slot_of(struct ledger *l, const char *id)
{
    uint32_t hash = 2166136261U;
    size_t at;

    for (const char *c = id; *c != '\0'; c++)
        hash = (hash ^ (unsigned char)*c) * 16777619U;
    at = hash % COUNT_OF_SLOTS;
    while (l->slot[at] != 0 && strcmp(l->job[l->slot[at] - 1].id, id) != 0)
        at = (at + 1) % COUNT_OF_SLOTS;
    return &l->slot[at];
}

struct job *ledger_find(struct ledger *l, const char *id)
{
    int slot = *slot_of(l, id);

    return slot > 0 ? &l->job[slot - 1] : NULL;
}

struct job *ledger_add(struct ledger *l, const char *id, int queue)
{
    int *slot = slot_of(l, id);
    struct job *j = &l->job[l->jobs];

    if (*slot != 0 || strlen(id) != 12) {
        finding_break("id", "%s %s is given out for a new job", l->root, id);
        return NULL;
    }
    if (l->jobs == LEDGER_JOBS)
        abort();
    l->jobs++;
    *slot = l->jobs;
    *j = LEDGER_PLAIN;
    j->queue = queue;
    (void)snprintf(j->id, sizeof(j->id), "%s", id);
    return j;
}

void ledger_start(struct ledger *l, struct job *j, int64_t epoch, int64_t start, int64_t fence)
{
    if ((j->may & WAITS) == 0)
        finding_break("start",
                      "%s %s is handed out to %lld with start %lld, and it is %s (start %lld)",
                      l->root, j->id, (long long)epoch, (long long)start, ledger_states(j->may),
                      (long long)j->start);
    else if (start != j->start + 1)
        finding_break("start", "%s %s is handed out to %lld with start %lld after start %lld",
                      l->root, j->id, (long long)epoch, (long long)start, (long long)j->start);
    else if (fence <= j->fence)
        finding_break("fence", "%s %s has the fence %lld after %lld", l->root, j->id,
                      (long long)fence, (long long)j->fence);
    j->may = RUNS;
    j->start = start;
    j->epoch = epoch;
    j->fence = fence;
    j->is_unheard = j->cancelling = false;
}

void ledger_anew(struct job *j)
{
    j->checkpoint = LEDGER_NONE;
    for (int i = 0; i < STEPS; i++)
        j->step[i] = LEDGER_NONE;
}

bool ledger_knows_kept(const struct job *j)
{
    return j->unique < 0;
}

const char *ledger_states(int may)
{
    static const char *const names[] = {"waiting", "running", "dead", "done", "gone"};
    static char texts[2][64];
    static int at;
    char *text = texts[at ^= 1];
    size_t n = 0;

    text[0] = '\0';
    for (size_t i = 0; i < 5; i++)
        if ((may & (1 << i)) != 0)
            n += (size_t)snprintf(text + n, sizeof(texts[0]) - n, "%s%s", n > 0 ? " or " : "",
                                  names[i]);
    return n > 0 ? text : "nowhere";
}

bool ledger_is_live(const struct job *j)
{
    return (j->may & (WAITS | RUNS)) != 0;
}

static bool has_successor(const struct ledger *l, const struct job *j)
{
    for (int i = l->jobs - 1; j->unique >= 0 && &l->job[i] > j; i--)
        if (l->job[i].queue == j->queue && l->job[i].unique == j->unique &&
            ledger_is_live(&l->job[i]))
            return true;
    return false;
}

int ledger_back(const struct ledger *l, const struct job *j)
{
    if (j->cancelling)
        return DONE | GONE;
    return has_successor(l, j) ? WAITS | DONE | GONE : WAITS;
}

bool ledger_needs_lock(const struct ledger *l, const struct job *j, int lock)
{
    return j->lock == lock || l->queue_lock[j->queue] == lock;
}

bool ledger_needs_sem(const struct ledger *l, const struct job *j, int limited)
{
    return j->limit_sem == limited || l->queue_sem[j->queue] == limited;
}

bool ledger_needs_rate(const struct ledger *l, const struct job *j, int limited)
{
    return j->limit_rate == limited || l->queue_rate[j->queue] == limited;
}

/* ---- limits */

const struct limit *ledger_limit(const struct ledger *l, int limited)
{
    int at = names_find(names_defined, DEFINED, names_limited[limited]);

    return &l->limit[at >= 0 ? at : DEFINED - 1];
}

void ledger_permit(struct ledger *l)
{
    for (int i = 0; i < LIMITED; i++) {
        const struct limit *limit = ledger_limit(l, i);

        if (limit->kind == LIMIT_SEM && limit->n > l->permits[i])
            l->permits[i] = limit->n;
    }
}

/* ---- callers */

static void end_lease(struct lease *lease, int64_t now_ms)
{
    if (lease->until_ms <= now_ms)
        lease->is_held = false;
}

void ledger_end_leases(struct ledger *l, int64_t now_ms)
{
    for (int o = 0; o < OWNERS; o++) {
        for (int i = 0; i < LOCKS; i++)
            end_lease(&l->lock[i][o], now_ms);
        for (int i = 0; i < LIMITED; i++)
            end_lease(&l->sem[i][o], now_ms);
    }
}

/* ---- workers */

struct worker *ledger_worker(struct ledger *l, int64_t epoch)
{
    for (int i = l->workers - 1; i >= 0; i--)
        if (l->worker[i].epoch == epoch)
            return &l->worker[i];
    return NULL;
}

void ledger_fence(struct ledger *l, int64_t fence, const char *what)
{
    if (fence <= l->fence)
        finding_break("fence", "%s %s has the fence %lld, there was %lld before", l->root, what,
                      (long long)fence, (long long)l->fence);
    l->fence = fence;
}
