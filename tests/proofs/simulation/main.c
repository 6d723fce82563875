/*
 * tests/sim --seeds FROM..TO [--seconds S] [--log FILE|-] [--workers N] [--verbose]
 *           [--without fence|link|gate|rate|cursor|take|guard|target|turn]
 *
 * Deterministic simulation of the shipped scheduler on a real redis-server. README.md in this
 * folder says what is real and what is not. Exit status: 0 if no property broke, else 1.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "audit.h"
#include "batch.h"
#include "broadcast.h"
#include "chain.h"
#include "fair.h"
#include "foreign.h"
#include "ledger.h"
#include "net.h"
#include "plan.h"
#include "producer.h"
#include "schedule.h"
#include "server.h"
#include "trouble.h"
#include "virtual_guard.h"
#include "virtual_pool.h"
#include "worker.h"
#include "world.h"

#define FAILURES_MAX 10       /* then it gives up */
#define AUDIT_US (2 * SECOND) /* between two audits during the trouble */
#define AUDIT_DRAIN_US (30 * SECOND)
#define SETTLE_US (6 * SECOND)
#define IDLE_CALLS_MAX 3        /* of each worker, per second */
#define PEOPLE_CALLS 10         /* of people, in SETTLE_US */
#define DRAIN_US (400 * SECOND) /* the longest time for all jobs to end after the trouble */
#define STOP_US (60 * SECOND)   /* the longest time for all workers to stop after that */
#define REAL_SECONDS_MAX 1000000.0

struct options {
    uint64_t from, to;
    double seconds;
    FILE *log;
    const char *without;
    unsigned workers; /* 0: as the plan says */
    bool is_verbose;
};

struct totals {
    uint64_t seeds, calls, jobs, failures;
    int64_t longest_drain_us;
};

/* ---- one run */

static bool all_ready(void)
{
    struct sched_status status;

    for (size_t i = 0; i < workers_count(); i++) {
        const struct worker *w = worker_at(i);

        if (w->owner.is_dead)
            continue;
        sched_status(w->d.sched, &status);
        if (!status.is_ready || w->owner.frozen_until > world.now_us)
            return false;
    }
    return net_hangs_until() <= world.now_us;
}

static bool is_drained(void *arg)
{
    size_t nraws;

    (void)arg;
    if (!all_ready())
        return false;
    (void)ledger_raws(&nraws);
    if (producer_waits() > 0 || nraws > 0 || virtual_pool_live() > 0 || ledger_dead_workers() > 0)
        return false;
    for (size_t i = 0; i < ledger_count(); i++) {
        if (ledger_at(i)->where == WAITING || ledger_at(i)->where == RUNNING ||
            chain_owes(ledger_at(i)))
            return false;
    }
    return !batch_is_any_open() && !foreign_is_left();
}

static bool all_left(void *arg)
{
    (void)arg;
    for (size_t i = 0; i < workers_count(); i++) {
        if (!worker_at(i)->owner.is_dead)
            return false;
    }
    return true;
}

static void say_what_is_left(void)
{
    size_t nraws, waiting = 0, running = 0;

    (void)ledger_raws(&nraws);
    for (size_t i = 0; i < ledger_count(); i++) {
        waiting += ledger_at(i)->where == WAITING;
        running += ledger_at(i)->where == RUNNING;
    }
    world_break("I9-drain",
                "all is well for %lld s, and still: %u adds, %zu raw, %zu waiting, %zu running, "
                "%zu handlers, %zu dead workers",
                (long long)(DRAIN_US / SECOND), producer_waits(), nraws, waiting, running,
                virtual_pool_live(), ledger_dead_workers());
}

/* Run with an audit every audit_us. True: stop said so. */
static bool run_for(int64_t us, int64_t audit_us, bool (*stop)(void *arg))
{
    int64_t until = world.now_us + us;

    while (world.broken[0] == '\0' && world.now_us < until) {
        int64_t next = world.now_us + audit_us;

        if (world_run(next < until ? next : until, stop, NULL))
            return true;
        audit();
    }
    return false;
}

static size_t count_living(void)
{
    size_t living = 0;

    for (size_t i = 0; i < workers_count(); i++)
        living += !worker_at(i)->owner.is_dead;
    return living;
}

/* A worker without work makes one look a second, and sometimes another call. living: when the count
 * began, since one that leaves meanwhile called, too. */
static void check_idle(unsigned calls, size_t living)
{
    if (calls > living * IDLE_CALLS_MAX * (unsigned)(SETTLE_US / SECOND) + PEOPLE_CALLS)
        world_break("busy-idle", "%zu workers without work made %u calls in %lld s", living, calls,
                    (long long)(SETTLE_US / SECOND));
}

static void live(const struct plan *plan, struct totals *t)
{
    size_t living;
    int64_t begin;
    unsigned calls;

    (void)run_for(plan->chaos_us, AUDIT_US, NULL);
    if (world.broken[0] != '\0')
        return;
    trouble_end();
    schedule_end();
    producer_calm();
    begin = world.now_us;
    /* All jobs must have ended, and still have ended SETTLE_US later, when a broken link would have
     * been noticed. */
    do {
        if (!run_for(begin + DRAIN_US - world.now_us, AUDIT_DRAIN_US, is_drained)) {
            say_what_is_left();
            return;
        }
        calls = net_calls();
        living = count_living();
        (void)run_for(SETTLE_US, SETTLE_US, NULL);
    } while (!is_drained(NULL) && world.broken[0] == '\0');
    check_idle(net_calls() - calls, living);
    if (world.now_us - begin > t->longest_drain_us)
        t->longest_drain_us = world.now_us - begin;
    for (size_t i = 0; i < workers_count(); i++) {
        if (!worker_at(i)->owner.is_dead)
            worker_stop(worker_at(i));
    }
    if (!run_for(STOP_US, STOP_US, all_left))
        world_break("I9-stop", "not all workers have left");
    audit_end();
}

static void run_seed(uint64_t seed, const struct options *o, struct totals *t)
{
    struct plan plan;

    world_begin(seed, o->log);
    world_say("seed %" PRIu64, seed);
    plan_make(&plan, seed);
    if (o->workers > 0)
        plan.workers = o->workers;
    plan_say(&plan);
    server_flush();
    ledger_begin();
    batch_begin(&plan);
    schedule_begin(&plan);
    foreign_begin(&plan);
    broadcast_begin(&plan);
    fair_begin(&plan);
    net_begin(&plan);
    virtual_pool_begin(&plan);
    workers_begin(&plan);
    trouble_begin(&plan);
    producer_begin(&plan);
    live(&plan, t);
    world_say("end calls=%u jobs=%zu %s", net_calls(), ledger_count(),
              world.broken[0] != '\0' ? world.broken : "ok");
    t->seeds++;
    t->calls += net_calls();
    t->jobs += ledger_count();
    t->failures += world.broken[0] != '\0';
    if (o->is_verbose)
        (void)printf("seed %" PRIu64 ": calls=%u jobs=%zu virtual_s=%lld\n", seed, net_calls(),
                     ledger_count(), (long long)(world_age_us() / SECOND));
    workers_end();
    virtual_pool_end();
    world_end();
    net_end();
    workers_free();
    ledger_end();
}

/* ---- many runs */

static double real_seconds(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void tell_failure(uint64_t seed, const struct options *o)
{
    (void)printf("seed %" PRIu64 ": BROKEN %s: %s\n", seed, world.broken, world.why);
    (void)printf("  replay: tests/sim --seeds %" PRIu64 "..%" PRIu64 " --log -", seed, seed);
    if (o->without != NULL)
        (void)printf(" --without %s", o->without);
    if (o->workers > 0)
        (void)printf(" --workers %u", o->workers);
    (void)printf("\n");
    (void)fflush(stdout);
}

static int run_all(const struct options *o)
{
    struct totals t = {0};
    double begin = real_seconds(), took;
    uint64_t max = o->without != NULL ? 1 : FAILURES_MAX; /* one failure is proof enough */

    for (uint64_t seed = o->from;
         seed <= o->to && t.failures < max && real_seconds() - begin < o->seconds; seed++) {
        uint64_t before = t.failures;

        run_seed(seed, o, &t);
        if (t.failures > before)
            tell_failure(seed, o);
    }
    took = real_seconds() - begin;
    (void)printf("sim: %" PRIu64 " seeds, %" PRIu64 " broken, %" PRIu64 " calls, %" PRIu64
                 " jobs, longest drain %lld s, %.1f s, %.0f seeds/s\n",
                 t.seeds, t.failures, t.calls, t.jobs, (long long)(t.longest_drain_us / SECOND),
                 took, (double)t.seeds / (took > 0 ? took : 1));
    return t.failures > 0 ? 1 : 0;
}

/* ---- the command line */

static void usage(void)
{
    (void)fprintf(stderr,
                  "usage: tests/sim --seeds FROM..TO [--seconds S] [--log FILE|-] "
                  "[--without fence|link|gate|rate|cursor|take|guard|target|turn] [--workers N] "
                  "[--verbose]\n");
    exit(64);
}

static FILE *open_log(const char *path)
{
    FILE *f = strcmp(path, "-") == 0 ? stdout : fopen(path, "w");

    if (f == NULL) {
        perror(path);
        exit(1);
    }
    return f;
}

static void read_option(struct options *o, const char *name, const char *value)
{
    if (value == NULL)
        usage();
    else if (strcmp(name, "--seeds") == 0 &&
             sscanf(value, "%" SCNu64 "..%" SCNu64, &o->from, &o->to) == 2)
        return;
    else if (strcmp(name, "--seconds") == 0)
        o->seconds = atof(value);
    else if (strcmp(name, "--log") == 0)
        o->log = open_log(value);
    else if (strcmp(name, "--without") == 0 &&
             (strcmp(value, "fence") == 0 || strcmp(value, "link") == 0 ||
              strcmp(value, "gate") == 0 || strcmp(value, "rate") == 0 ||
              strcmp(value, "cursor") == 0 || strcmp(value, "take") == 0 ||
              strcmp(value, "guard") == 0 || strcmp(value, "target") == 0 ||
              strcmp(value, "turn") == 0))
        o->without = value;
    else if (strcmp(name, "--workers") == 0)
        o->workers = (unsigned)atoi(value);
    else
        usage();
}

int main(int argc, char **argv)
{
    struct options o = {.from = 1, .to = UINT64_MAX - 1, .seconds = REAL_SECONDS_MAX};
    int rc;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--verbose") == 0)
            o.is_verbose = true;
        else
            read_option(&o, argv[i], argv[i + 1]), i++;
    }
    virtual_guard_asleep(o.without != NULL && strcmp(o.without, "guard") == 0);
    server_start(o.without);
    rc = run_all(&o);
    server_stop();
    if (o.log != NULL)
        (void)fclose(o.log);
    return rc;
}
