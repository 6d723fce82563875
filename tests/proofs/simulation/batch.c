#include "batch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "chain.h"
#include "plan.h"
#include "server.h"

#define BATCHES_MAX 8

enum { FINALLY, THEN, ON_DEAD };

const char *const batch_callbacks[BATCH_CALLBACKS] = {"finally", "then", "on_dead"};

struct batch {
    bool is_there, is_sealed, is_cancelled;
    bool has_ended; /* at least once */
    unsigned called[BATCH_CALLBACKS];
};

/* How many members are in each state, and how many there are. */
struct tally {
    unsigned total, live, done, dead, cancelled;
};

static const struct plan *plan;
static struct batch now[BATCHES_MAX], saved[BATCHES_MAX]; /* by number */

void batch_begin(const struct plan *p)
{
    plan = p;
    memset(now, 0, sizeof(now));
    memset(saved, 0, sizeof(saved));
}

void batch_save(void)
{
    memcpy(saved, now, sizeof(saved));
}

void batch_lose(void)
{
    memcpy(now, saved, sizeof(now));
}

int batch_number(const char *name)
{
    return atoi(name + 1);
}

/* ---- what was executed */

void batch_opened(int number)
{
    if (now[number].is_there)
        world_break("I11-batch", "batch %d is opened twice", number);
    now[number] = (struct batch){.is_there = true};
}

void batch_sealed(int number)
{
    if (!now[number].is_there)
        world_break("I11-batch", "batch %d is sealed, and nobody opened it", number);
    now[number].is_sealed = true;
}

void batch_cancelled(int number)
{
    batch_sealed(number);
    now[number].is_cancelled = true;
    for (size_t i = 0; i < ledger_count(); i++)
        if (ledger_at(i)->batch == number)
            ledger_cancel(ledger_at(i));
}

void batch_join(struct entry *e, int number, const struct entry *parent)
{
    const struct batch *b = &now[number];
    bool is_inside = parent != NULL && parent->batch == number;

    e->batch = number;
    if (!b->is_there || b->is_cancelled || (b->is_sealed && !is_inside))
        world_break("I11-batch", "%s joins batch %d, which is %s", e->id, number,
                    !b->is_there      ? "not there"
                    : b->is_cancelled ? "cancelled"
                                      : "sealed");
}

bool batch_is_cancelled(int number)
{
    return now[number].is_cancelled;
}

/* ---- callbacks */

static void check_told(const char *id, unsigned what, const struct tally *n)
{
    unsigned ended = n->done + n->dead + n->cancelled;

    if (what == ON_DEAD ? n->dead == 0 || ended > n->total : ended != n->total)
        world_break("I11-callback", "%s is told %u: %u done, %u dead, %u cancelled", id, n->total,
                    n->done, n->dead, n->cancelled);
    if (what == THEN && n->done != n->total)
        world_break("I11-callback", "%s is told that %u of %u are done", id, n->done, n->total);
}

struct entry *batch_meet(const char *id, const char *record)
{
    char told[64], queue[JOB_QUEUE_MAX + 1];
    struct tally n;
    unsigned what = 0;
    int number;

    if (!chain_field(record, 'B', told, sizeof(told)))
        return NULL;
    (void)snprintf(queue, sizeof(queue), "%.*s", (int)strcspn(record + 1, " \n"), record + 1);
    while (what + 1 < plan->queues && strcmp(plan_queue(what), queue) != 0)
        what++;
    if (sscanf(told, "b%d,%u,%u,%u,%u", &number, &n.total, &n.done, &n.dead, &n.cancelled) != 5 ||
        number < 0 || number >= BATCHES_MAX || !now[number].is_there) {
        world_break("I11-callback", "%s tells of no batch: %s", id, told);
        return NULL;
    }
    world_say("%s is the callback %s of batch %d", id, batch_callbacks[what], number);
    if (now[number].called[what]++ > 0)
        world_break("I11-callback", "%s: %s of batch %d has come before", id, batch_callbacks[what],
                    number);
    check_told(id, what, &n);
    return ledger_add(id, queue);
}

/* ---- audits */

bool batch_is_any_open(void)
{
    for (int i = 0; i < BATCHES_MAX; i++)
        if (now[i].is_there && !now[i].is_sealed)
            return true;
    return false;
}

static const unsigned scores[] = {
    [WAITING] = 0, [RUNNING] = 0, [DONE] = 1, [DEAD] = 2, [CANCELLED] = 3};

/* Redis must have the members that joined, each in its state. */
static void check_members(int number, const struct reply *members)
{
    size_t joined = 0;

    for (size_t i = 0; i < ledger_count(); i++)
        joined += ledger_at(i)->batch == number;
    if (reply_count(members) != joined)
        world_break("I11-batch", "batch %d has %zu members, %zu joined", number,
                    reply_count(members), joined);
    for (size_t i = 0; i < reply_count(members); i++) {
        const struct reply *row = reply_at(members, i);
        const char *id = reply_str(reply_at(row, 0));
        const struct entry *e = ledger_find(id);
        int score = atoi(reply_str(reply_at(row, 1)));

        if (e == NULL || e->batch != number)
            world_break("I11-batch", "%s is a member of batch %d and did not join it", id, number);
        else if (score != (int)scores[e->where])
            world_break("I11-member", "%s is %s and counts as %d in batch %d", id,
                        where_name(e->where), score, number);
    }
}

static struct tally count(int number, bool *has_died)
{
    struct tally n = {0};

    for (size_t i = 0; i < ledger_count(); i++) {
        const struct entry *e = ledger_at(i);

        if (e->batch != number)
            continue;
        n.total++;
        n.live += e->where == WAITING || e->where == RUNNING;
        n.done += e->where == DONE;
        *has_died |= e->has_died;
    }
    return n;
}

static void check_callbacks(int number)
{
    struct batch *b = &now[number];
    bool has_died = false;
    struct tally n = count(number, &has_died);
    bool is_over = b->is_sealed && n.live == 0;
    const bool owed[BATCH_CALLBACKS] = {b->has_ended |= is_over, is_over && n.done == n.total,
                                        has_died};

    for (unsigned i = 0; i < BATCH_CALLBACKS && i < plan->queues; i++)
        if (owed[i] && b->called[i] == 0)
            world_break("I11-callback", "batch %d owes its %s", number, batch_callbacks[i]);
        else if (i != FINALLY && !owed[i] && b->called[i] > 0)
            world_break("I11-callback", "the %s of batch %d has come, and is not due",
                        batch_callbacks[i], number);
}

void batch_check(void)
{
    size_t there = 0;
    struct reply *all;

    server_queue("HLEN " SERVER_ROOT ":batches");
    all = server_answer();
    for (int i = 0; i < BATCHES_MAX; i++)
        there += now[i].is_there;
    if ((size_t)reply_int(all) != there)
        world_break("I11-batch", "there are %zu batches, Redis has %lld", there,
                    (long long)reply_int(all));
    reply_free(all);
    for (int i = 0; i < BATCHES_MAX; i++) {
        char words[96];
        struct reply *members;

        if (!now[i].is_there)
            continue;
        (void)snprintf(words, sizeof(words), "ZRANGE " SERVER_ROOT ":members:b%d 0 -1 WITHSCORES",
                       i);
        server_queue(words);
        members = server_answer();
        check_members(i, members);
        reply_free(members);
        check_callbacks(i);
    }
}
