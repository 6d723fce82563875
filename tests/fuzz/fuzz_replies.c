/*
 * Replies of a Redis server: read by hiredis, decoded by the store and given to a real scheduler.
 *
 * The input is a stream of replies. A lower-case letter between them is an event (no reply begins
 * with one): t 1 s passes, u 0.1 s, w a wake, c a cancel, b a request for a beat, e the oldest job
 * ends, f it fails, r it is released, p it reports progress, d the link breaks and comes up again,
 * q quiet, s stop, n other queues, m many queues.
 */
#include <hiredis/hiredis.h>
#include <string.h>

#include "base/mem.h"
#include "sched/prefetch.h"
#include "sched/sched.h"
#include "fuzz.h"
#include "redis/bound.h"
#include "base/error_class.h"
#include "redis/link.h"
#include "store/store_redis.h"

#define CALLS_MAX 64
#define PLACES 3
#define RUNS_MAX 64
#define MANY 80       /* number of queues */
#define OPS_MAX 20000 /* per input; more means a busy loop */

struct call {
    async_reply_f *cb;
    void *arg;
};

struct run {
    char id[JOB_ID_LEN + 1];
    bool is_killed;
};

/* All data of one input. */
struct world {
    struct sched *sched;
    struct store_redis *store;
    struct call calls[CALLS_MAX]; /* not yet answered, oldest first */
    size_t ncalls;
    struct run runs[RUNS_MAX];
    size_t nruns;
    int64_t victim; /* worker whose orphans are to be ended; 0: none */
    struct mono now, armed;
    unsigned random, ops;
    bool is_up, is_gone, relinked;
};

static struct world w;

/* Replaces the function of src/redis/link.c. */
int link_call(struct link *l, int argc, const char *const *argv, const size_t *lens,
              async_reply_f *cb, void *arg)
{
    (void)l;
    FUZZ_MUST(++w.ops < OPS_MAX);
    for (int i = 0; i < argc; i++)
        FUZZ_MUST(argv[i] != NULL && (lens == NULL || lens[i] < 1U << 20));
    if (!w.is_up || w.ncalls == CALLS_MAX)
        return -1;
    w.calls[w.ncalls++] = (struct call){cb, arg};
    return 0;
}

/* ---- the scheduler's effects */

static int op_reg(void *ctx, const struct store_register *req)
{
    static const struct store_fields none = {NULL, 0};

    (void)ctx;
    return store_register(w.store, req, "me", &none, &none);
}

static int op_beat(void *ctx, int64_t epoch, const char *queues)
{
    (void)ctx;
    return store_beat(w.store, epoch, queues);
}

static int op_reconcile(void *ctx, int64_t epoch, int64_t link, int64_t seen,
                        const struct store_held *held, size_t n)
{
    (void)ctx;
    return store_reconcile(w.store, epoch, link, seen, held, n);
}

static int op_sync(void *ctx, const struct store_sync *sync)
{
    (void)ctx;
    FUZZ_MUST(sync->unended + sync->max <= PLACES + PREFETCH_MAX);
    FUZZ_MUST(sync->max <= SCHED_SYNC_JOBS && sync->nresults <= SCHED_SYNC_JOBS);
    return store_sync(w.store, sync);
}

static int op_look(void *ctx, int64_t soon_ms, const char *const *queues, size_t n)
{
    (void)ctx;
    FUZZ_MUST(soon_ms > 0 && n > 0 && n <= MANY);
    return store_look(w.store, soon_ms, queues, n);
}

static int op_fetch(void *ctx, const char *id)
{
    (void)ctx;
    return store_fetch(w.store, id);
}

static int op_reap(void *ctx, int64_t epoch, int64_t victim, const char *counter)
{
    (void)ctx;
    return store_reap(w.store, epoch, victim, counter, 3, 10000);
}

static int op_tidy(void *ctx, int64_t epoch)
{
    static const struct store_fields none = {NULL, 0};

    (void)ctx;
    return store_tidy(w.store, epoch, &none, &none);
}

static int op_leave(void *ctx, int64_t epoch)
{
    (void)ctx;
    return store_leave(w.store, epoch);
}

static void link_down(void)
{
    w.is_up = false;
    w.ncalls = 0;
    store_redis_reset(w.store);
    sched_link_down(w.sched, w.now);
}

static void op_relink(void *ctx, enum error_class class, const char *text)
{
    (void)ctx;
    (void)class;
    (void)text;
    w.relinked = true;
    link_down();
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
    (void)ctx;
    *refusal = (struct verdict){.verb = STORE_BURY, .reason = "a poison pill"};
    return job->crashes < 3;
}

static void op_start(void *ctx, struct held_job *h)
{
    (void)ctx;
    FUZZ_MUST(w.nruns < PLACES);
    FUZZ_MUST(!h->job.is_big || h->job.payload != NULL);
    for (size_t i = 0; i < w.nruns; i++)
        FUZZ_MUST(strcmp(w.runs[i].id, h->job.id) != 0);
    memcpy(w.runs[w.nruns].id, h->job.id, sizeof(h->job.id));
    w.runs[w.nruns++].is_killed = false;
}

static void op_kill(void *ctx, const struct held_job *h, bool at_once)
{
    bool is_there = false;

    (void)ctx;
    (void)at_once;
    for (size_t i = 0; i < w.nruns; i++) {
        if (strcmp(w.runs[i].id, h->job.id) == 0)
            is_there = w.runs[i].is_killed = true;
    }
    FUZZ_MUST(is_there);
}

static bool op_is_gone(void *ctx, const struct store_peer *peer)
{
    (void)ctx;
    return strlen(peer->host) + strlen(peer->boot) + strlen(peer->pidns) + strlen(peer->pid) +
               strlen(peer->pstart) ==
           5;
}

static int op_clear(void *ctx, int64_t victim)
{
    (void)ctx;
    if (w.victim != 0)
        return -1;
    w.victim = victim;
    return 0;
}

static void op_arm(void *ctx, struct mono at)
{
    (void)ctx;
    w.armed = at;
}

static void op_registered(void *ctx, int64_t epoch)
{
    (void)ctx;
    (void)epoch;
}

static void op_gone(void *ctx)
{
    (void)ctx;
    w.is_gone = true;
}

static uint32_t op_random(void *ctx)
{
    (void)ctx;
    return w.random++;
}

static bool op_has_guard(void *ctx)
{
    (void)ctx;
    return w.random % 4 > 0;
}

static bool op_is_fresh(void *ctx)
{
    (void)ctx;
    return w.random++ % 2 > 0;
}

static void op_emptying(void *ctx, bool is_begun)
{
    (void)ctx;
    (void)is_begun;
}

static const struct sched_ops ops = {op_reg,       op_beat,     op_reconcile,  op_sync,  op_look,
                                     op_fetch,     op_clear,    op_reap,       op_tidy,  op_leave,
                                     op_relink,    op_admit,    op_refuse,     op_start, op_kill,
                                     op_is_gone,   op_arm,      op_registered, op_gone,  op_random,
                                     op_has_guard, op_is_fresh, op_emptying};

/* ---- the store's events */

static void on_registered(void *arg, const struct store_register_reply *r)
{
    (void)arg;
    sched_on_registered(w.sched, w.now, r);
}

static void on_beat(void *arg, const struct store_beat_reply *r)
{
    (void)arg;
    sched_on_beat(w.sched, w.now, r);
}

static void on_reconciled(void *arg, const struct store_reconcile_reply *r)
{
    (void)arg;
    sched_on_reconciled(w.sched, w.now, r);
}

static void on_sync(void *arg, const struct store_sync_reply *r)
{
    (void)arg;
    sched_on_sync(w.sched, w.now, r);
}

static void on_looked(void *arg, const struct store_look_reply *r)
{
    (void)arg;
    for (size_t i = 0; i < r->n; i++)
        FUZZ_MUST(r->queues[i] != NULL);
    sched_on_looked(w.sched, w.now, r);
}

static void on_fetched(void *arg, const char *id, const char *payload, size_t n)
{
    (void)arg;
    sched_on_fetched(w.sched, w.now, id, payload, n);
}

static void on_reaped(void *arg, enum store_reap status, int64_t moved)
{
    (void)arg;
    sched_on_reaped(w.sched, w.now, status, moved);
}

static void on_tidied(void *arg, const char *const *unserved, size_t n, int64_t bulks)
{
    (void)arg;
    (void)bulks;
    for (size_t i = 0; i < n; i++)
        FUZZ_MUST(unserved[i] != NULL);
    sched_on_tidied(w.sched, w.now);
}

static void on_left(void *arg, bool is_clean)
{
    (void)arg;
    (void)is_clean;
    sched_on_left(w.sched, w.now);
}

/* This worker declares no gates. */
static void on_declared(void *arg, const struct store_declare_reply *r)
{
    (void)arg;
    (void)r;
}

static void on_error(void *arg, enum error_class class, const char *text)
{
    (void)arg;
    sched_on_error(w.sched, w.now, class, text);
}

/* ---- the input */

static void end_oldest(const struct verdict *v)
{
    struct run run;

    if (w.nruns == 0)
        return;
    run = w.runs[0];
    memmove(&w.runs[0], &w.runs[1], --w.nruns * sizeof(w.runs[0]));
    sched_job_ended(w.sched, w.now, run.id, v, &(struct verdict_data){"some output", 11, NULL});
    sched_jobs_ended(w.sched, w.now);
}

static void clear(void)
{
    int64_t victim = w.victim;

    w.victim = 0;
    if (victim != 0)
        sched_on_orphans_ended(w.sched, w.now, victim, w.random++ % 2 > 0);
}

static void pass(int64_t ms)
{
    struct mono end = mono_add_ms(w.now, ms);

    clear();

    /* At most two timer calls per millisecond. */
    for (int i = 0; i < 2000 && !w.is_gone && !mono_before(end, w.armed); i++) {
        if (mono_before(w.now, w.armed))
            w.now = w.armed;
        FUZZ_MUST(++w.ops < OPS_MAX);
        sched_on_timer(w.sched, w.now);
    }
    w.now = end;
}

/* One or two queues by turns, so that mail goes and comes back. */
static void other_queues(void)
{
    static const struct queue_spec specs[] = {{"big", 1, 5, 1 << 20, false},
                                              {"mail", 2, 1, 1 << 20, false}};

    sched_set_queues(w.sched, w.now, specs, 1 + w.random++ % 2);
}

static void many_queues(void)
{
    static char names[MANY][8];
    static struct queue_spec specs[MANY];

    for (int i = 0; i < MANY; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "m%03d", i);
        specs[i] = (struct queue_spec){names[i], PLACES, 1, 1 << 20, i % 2 == 0};
    }
    sched_set_queues(w.sched, w.now, specs, MANY);
}

static void event(char c)
{
    static const struct verdict done = {.verb = STORE_DONE},
                                fails = {.verb = STORE_RETRY, .amount = 1000, .is_error = true},
                                back = {.verb = STORE_RELEASE, .is_host_ill = true};

    switch (c) {
    case 't':
        pass(1000);
        break;
    case 'u':
        pass(100);
        break;
    case 'w':
        sched_on_wake(w.sched, w.now, "mail");
        break;
    case 'c':
        sched_on_wake(w.sched, w.now, "!cancel");
        break;
    case 'b':
        sched_on_wake(w.sched, w.now, "!beat");
        break;
    case 'e':
        end_oldest(&done);
        break;
    case 'f':
        end_oldest(&fails);
        break;
    case 'r':
        end_oldest(&back);
        break;
    case 'p':
        if (w.nruns > 0)
            sched_job_progress(w.sched, w.runs[0].id, "half way");
        break;
    case 'd':
        if (w.is_up)
            link_down();
        w.is_up = true;
        sched_link_up(w.sched, w.now);
        break;
    case 'q':
        sched_quiet(w.sched, w.now);
        break;
    case 's':
        sched_stop(w.sched, w.now);
        break;
    case 'n':
        other_queues();
        break;
    case 'm':
        many_queues();
        break;
    default:
        break;
    }
}

static void answer(void *reply)
{
    struct call call = w.calls[0];

    if (w.ncalls > 0) {
        memmove(&w.calls[0], &w.calls[1], --w.ncalls * sizeof(w.calls[0]));
        call.cb(call.arg, reply);
    }
    freeReplyObject(reply);
}

/* Handle one reply. Returns its length in bytes; n if there is no complete reply. */
static size_t read_reply(const char *data, size_t n)
{
    redisReader *reader = redisReaderCreate();
    void *reply = NULL;
    size_t used = 0;

    bound_reader(reader);
    while (reply == NULL && used < n && redisReaderFeed(reader, data + used, 1) == REDIS_OK) {
        used++;
        if (redisReaderGetReply(reader, &reply) != REDIS_OK)
            break;
    }
    redisReaderFree(reader);
    if (reply != NULL)
        answer(reply);
    else if (used < n)
        event('d'); /* a protocol error breaks the link */
    return used;
}

static void begin(void)
{
    static const struct sched_conf conf = {PLACES, SCHED_AHEAD_US, 5000, true};
    static const struct queue_spec specs[] = {{"big", 3, 2, 1 << 20, false},
                                              {"mail", 3, 1, 1 << 20, false}};
    static const struct store_events events = {on_registered, on_beat,     on_reconciled, on_sync,
                                               on_looked,     on_fetched,  on_reaped,     on_tidied,
                                               on_left,       on_declared, on_error,      NULL};

    w = (struct world){.now = {1000000}, .armed = MONO_NEVER, .is_up = true};
    w.sched = sched_new(&conf, &ops, NULL);
    w.store = store_redis_new(NULL, "default", &events);
    sched_set_queues(w.sched, w.now, specs, 2);
    sched_link_up(w.sched, w.now);
}

int fuzz_replies(const uint8_t *data, size_t n)
{
    const char *p = (const char *)data;

    begin();
    for (size_t at = 0; at < n && !w.is_gone;) {
        if (p[at] >= 'a' && p[at] <= 'z')
            event(p[at++]);
        else
            at += read_reply(p + at, n - at);
        if (w.relinked) {
            w.relinked = false;
            event('d');
        }
    }
    sched_free(w.sched);
    store_redis_free(w.store);
    return 0;
}
