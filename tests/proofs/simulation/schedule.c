#include "schedule.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "audit.h"
#include "chain.h"
#include "server.h"

/* One for each way in which an occurrence meets the job before it. */
enum overlap { ALLOW, SKIP, REPLACE, QUEUE };

static const struct kind {
    const char *overlap, *catch_up;
    int64_t every_s;
} kinds[PLAN_SCHEDULES] = {
    [ALLOW] = {"allow", "all", 1},
    [SKIP] = {"skip", "last", 2},
    [REPLACE] = {"replace", "last", 3},
    [QUEUE] = {"queue", "none", 2},
};

#define PLAN_MET 32 /* a cursor remembers fewer */

static const struct plan *plan;
/* The first occurrence that counts, in ms: a schedule is planned from when a worker first saw it.
 * 0: nobody has. */
static int64_t first_ms[PLAN_SCHEDULES], saved_first_ms[PLAN_SCHEDULES];

void schedule_begin(const struct plan *p)
{
    plan = p;
    memset(first_ms, 0, sizeof(first_ms));
    memset(saved_first_ms, 0, sizeof(saved_first_ms));
    for (unsigned i = 0; i < p->schedules; i++) {
        char words[256];

        /* An hour that the clock is stepped has more occurrences than one run should have. */
        (void)snprintf(words, sizeof(words),
                       "FCALL later_schedule_set 1 " SERVER_ROOT
                       " s%u every %llds overlap %s catch_up %s queue %s x",
                       i, (long long)kinds[i].every_s, kinds[i].overlap,
                       p->clock_steps > 0 ? "last" : kinds[i].catch_up, plan_queue(i % p->queues));
        server_define(words);
    }
}

void schedule_end(void)
{
    for (unsigned i = 0; i < plan->schedules; i++) {
        char words[96];

        (void)snprintf(words, sizeof(words), "FCALL later_schedule_del 1 " SERVER_ROOT " s%u", i);
        server_define(words);
    }
}

void schedule_save(void)
{
    memcpy(saved_first_ms, first_ms, sizeof(first_ms));
}

void schedule_lose(void)
{
    memcpy(first_ms, saved_first_ms, sizeof(first_ms));
}

/* ---- its jobs */

/* The number of the schedule that this names. */
static unsigned number_of(const char *name)
{
    unsigned n = (unsigned)atoi(name + 1);

    return n < PLAN_SCHEDULES ? n : 0;
}

struct entry *schedule_meet(const char *id, const char *record)
{
    char name[16], at[24], queue[JOB_QUEUE_MAX + 1];
    struct entry *e;
    unsigned n;

    if (!chain_field(record, 'S', name, sizeof(name)) || !chain_field(record, 'O', at, sizeof(at)))
        return NULL;
    n = number_of(name);
    (void)snprintf(queue, sizeof(queue), "%.*s", (int)strcspn(record + 1, " \n"), record + 1);
    world_say("%s is of the schedule %s, for %s", id, name, at);
    e = ledger_add(id, queue);
    e->schedule = (int)n + 1;
    e->occurrence_ms = e->not_before_ms = atoll(at);
    if (n == REPLACE || n == QUEUE)
        e->lock = PLAN_LOCKS + 1 + (int)n;
    return e;
}

static struct entry *last_job(unsigned n)
{
    struct entry *last = NULL;

    for (size_t i = 0; i < ledger_count(); i++) {
        struct entry *e = ledger_at(i);

        if (e->schedule == (int)n + 1 && (last == NULL || e->occurrence_ms > last->occurrence_ms))
            last = e;
    }
    return last;
}

static unsigned count_jobs(unsigned n, int64_t at_ms)
{
    unsigned jobs = 0;

    for (size_t i = 0; i < ledger_count(); i++)
        jobs += ledger_at(i)->schedule == (int)n + 1 && ledger_at(i)->occurrence_ms == at_ms;
    return jobs;
}

/* ---- a call */

struct item {
    unsigned number;
    int64_t times, missed;
    const char *const *at; /* each with its day */
    bool may_skip, must_skip;
};

/* Returns what follows. */
static const char *const *read_item(const char *const *a, struct item *ret)
{
    ret->number = number_of(a[0]);
    ret->missed = atoll(a[5]);
    a += 7 + atoll(a[6]);
    ret->may_skip = ret->must_skip = false;
    ret->times = atoll(a[0]);
    ret->at = a + 1;
    return ret->at + 2 * ret->times;
}

static bool is_live(const struct entry *e)
{
    return e->where == WAITING || e->where == RUNNING;
}

static bool is_retry(const struct entry *e)
{
    return e->where == WAITING && e->attempts > 0;
}

/* Is it the last job, or one that was to come and that the cursor remembers, and has it come? One
 * that somebody moved to later overlaps with nothing until then. */
static bool has_come(struct entry *e, const struct entry *last)
{
    if (e->schedule != last->schedule || (e != last && !e->is_ahead))
        return false;
    e->is_ahead =
        e->where == WAITING && e->attempts == 0 && e->not_before_ms * 1000 > world_wall_us();
    return is_live(e) && !e->is_ahead;
}

/* What this occurrence meets: jobs that have come give way, or keep it out. */
static void meet_last(struct item *item)
{
    struct entry *last = last_job(item->number), *met[PLAN_MET];
    size_t n = 0;

    for (size_t i = 0; last != NULL && i < ledger_count(); i++) {
        if (n < PLAN_MET && has_come(ledger_at(i), last))
            met[n++] = ledger_at(i);
    }
    for (size_t i = 0; i < n; i++) {
        item->must_skip = item->must_skip || (item->number == SKIP && !is_retry(met[i]));
        item->may_skip = item->may_skip || item->must_skip || item->number == QUEUE;
    }
    for (size_t i = 0; i < n; i++) {
        if (item->number == REPLACE ||
            (item->number == SKIP && !item->must_skip && is_retry(met[i])))
            ledger_cancel(met[i]);
    }
}

static void check_jobs(const struct item *item)
{
    const struct kind *kind = &kinds[item->number];

    for (int64_t i = 0; i < item->times; i++) {
        int64_t at_ms = atoll(item->at[2 * i]);
        unsigned jobs = count_jobs(item->number, at_ms);

        if (at_ms % (kind->every_s * 1000) != 0 || at_ms * 1000 > world_wall_us())
            world_break("schedule-time", "s%u has an occurrence at %lld", item->number,
                        (long long)at_ms);
        if (jobs > 1 || (jobs == 1 && item->must_skip) || (jobs == 0 && !item->may_skip))
            world_break("schedule-once", "s%u has %u jobs for %lld", item->number, jobs,
                        (long long)at_ms);
    }
}

void schedule_fired(const char *const *a, const struct reply *r)
{
    struct item items[PLAN_SCHEDULES];
    size_t n = 0;

    a += 1; /* EPOCH */
    for (int64_t i = 0, all = atoll(*a++); i < all; i++) {
        a = read_item(a, &items[n]);
        if (!reply_is(reply_at(reply_at(r, (size_t)i + 1), 0), "fired"))
            continue;
        if (items[n].times > 0)
            meet_last(&items[n]);
        n++;
    }
    audit_meet();
    for (size_t i = 0; i < n; i++)
        check_jobs(&items[i]);
}

/* ---- audits */

/* The number behind this name in a cursor; -1: there is none. */
static int64_t field(const char *cursor, const char *name)
{
    const char *at = strstr(cursor, name);

    return at != NULL ? atoll(at + strlen(name)) : -1;
}

/* Between the first occurrence and the next one, each was added, skipped or missed. */
static void check_cursor(unsigned n, const char *cursor)
{
    int64_t next = field(cursor, "next="), runs = field(cursor, "runs="),
            skipped = field(cursor, "skipped="), missed = field(cursor, "missed=");
    int64_t first = next - (runs + skipped + missed) * kinds[n].every_s * 1000;

    if (next < 0 || runs < 0 || skipped < 0 || missed < 0)
        world_break("schedule-count", "s%u has the cursor '%s'", n, cursor);
    else if (first_ms[n] == 0)
        first_ms[n] = first;
    else if (first_ms[n] != first)
        world_break("schedule-count", "s%u began at %lld, but the cursor '%s' counts from %lld", n,
                    (long long)first_ms[n], cursor, (long long)first);
}

void schedule_check(void)
{
    struct reply *cursors;

    if (plan->schedules == 0)
        return;
    server_queue("HGETALL " SERVER_ROOT ":cursors");
    cursors = server_answer();
    for (size_t i = 0; i + 1 < reply_count(cursors); i += 2)
        check_cursor(number_of(reply_str(reply_at(cursors, i))),
                     reply_str(reply_at(cursors, i + 1)));
    reply_free(cursors);
}
