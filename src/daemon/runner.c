#include "daemon/runner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/log.h"
#include "base/mem.h"
#include "daemon/order.h"
#include "run/pool.h"

#define UNSERVED_DELAY_MS 5000 /* a job whose handler went away goes back for so long */

struct place {
    struct job job; /* without its payload */
    uint64_t serial;
    bool is_busy;
};

struct runner {
    struct pool *pool;
    struct place *places;
    unsigned nplaces;
    unsigned *free; /* stack of places; the one freed last is the warmest */
    unsigned nfree;
    char ns[80];
    struct state *state;
    struct guard *guard;
    const struct conf *conf;
    const struct served *served;
    struct runner_events events;
    bool is_ending;
};

static void log_end(const struct job *job, const struct verdict *v, const struct exec_result *run)
{
    static const char *const outcome[] = {"done", "retry", "dead", "released", "progress"};
    enum log_level level = v->verb == STORE_BURY ? LOG_LEVEL_ERR
                           : v->is_error         ? LOG_LEVEL_WARN
                                                 : LOG_LEVEL_INFO;

    log_line(level,
             "event=end job=%s queue=%s start=%lld attempt=%lld outcome=%s run_ms=%lld%s%lld "
             "reason=\"%s\"",
             job->id, job->queue, (long long)job->start, (long long)job->attempt, outcome[v->verb],
             (long long)(run->duration_us / 1000),
             v->verb == STORE_RETRY ? " again_in_ms=" : " code=",
             v->verb == STORE_RETRY ? (long long)v->amount : (long long)v->code, v->text);
}

static void on_done(void *arg, unsigned slot, const struct exec_result *run)
{
    struct runner *r = arg;
    struct place *p = &r->places[slot];
    const struct buf *tail = run->result.len > 0 ? &run->result : &run->tail;
    struct job job = p->job;
    struct verdict v;
    uint32_t random = 0;

    (void)getrandom(&random, sizeof(random), GRND_NONBLOCK);
    verdict_of(&job, conf_queue(r->conf, job.queue), run, random, &v);
    log_end(&job, &v, run);
    p->is_busy = false;
    if (r->state != NULL)
        state_set_fence(r->state, slot, 0);
    r->free[r->nfree++] = slot;
    if (r->is_ending) {
        if (r->nfree == r->nplaces)
            r->events.idle(r->events.arg);
        return;
    }
    r->events.ended(r->events.arg, job.id, &v, tail->data != NULL ? tail->data : "", tail->len);
}

static void on_progress(void *arg, unsigned slot, uint64_t serial, const char *text)
{
    struct runner *r = arg;
    const struct place *p = &r->places[slot];

    if (p->is_busy && p->serial == serial && !r->is_ending)
        r->events.progress(r->events.arg, p->job.id, text);
}

static void on_rest(void *arg)
{
    const struct runner *r = arg;

    if (!r->is_ending)
        r->events.rest(r->events.arg);
}

struct runner *runner_new(struct loop *loop, unsigned places, const char *ns, struct state *state,
                          const struct runner_events *events, struct err *err)
{
    struct runner *r = mem_new(sizeof(*r));
    struct pool_events pool_events = {on_done, on_progress, on_rest, r};

    r->nplaces = places;
    r->places = mem_new(places * sizeof(*r->places));
    r->free = mem_new(places * sizeof(*r->free));
    for (unsigned i = 0; i < places; i++)
        r->free[r->nfree++] = places - 1 - i;
    (void)snprintf(r->ns, sizeof(r->ns), "%s", ns);
    r->state = state;
    r->events = *events;
    r->pool = pool_new(loop, places, &pool_events, err);
    if (r->pool == NULL) {
        runner_free(r);
        return NULL;
    }
    return r;
}

void runner_free(struct runner *r)
{
    if (r == NULL)
        return;
    if (r->pool != NULL)
        pool_free(r->pool);
    free(r->places);
    free(r->free);
    free(r);
}

void runner_set(struct runner *r, const struct conf *conf, const struct served *served)
{
    r->conf = conf;
    r->served = served;
}

void runner_set_guard(struct runner *r, struct guard *guard)
{
    r->guard = guard;
}

bool runner_admit(struct runner *r, const struct job *job, struct verdict *refusal)
{
    if (served_find(r->served, job->queue) == NULL) {
        memset(refusal, 0, sizeof(*refusal));
        refusal->verb = STORE_RELEASE;
        refusal->amount = UNSERVED_DELAY_MS;
        (void)snprintf(refusal->text, sizeof(refusal->text),
                       "its queue is not served here any more");
        return false;
    }
    if (verdict_admit(job, conf_queue(r->conf, job->queue), refusal))
        return true;
    log_err("event=end job=%s queue=%s start=%lld outcome=dead reason=\"%s\"", job->id, job->queue,
            (long long)job->start, refusal->text);
    return false;
}

void runner_start(struct runner *r, struct held *h)
{
    unsigned slot = r->free[--r->nfree];
    struct place *p = &r->places[slot];
    int64_t late_us = h->late_us + mono_until_us(h->claimed_at, mono_now());
    struct order *order;

    p->is_busy = true;
    if (r->state != NULL)
        state_set_fence(r->state, slot, h->job.fence);
    order = order_new(&h->job, served_find(r->served, h->job.queue), r->ns, late_us);
    if (h->job.has_lock)
        order_guard(order, r->guard, slot, h->job.fence);
    p->job = h->job;
    p->serial = pool_start(r->pool, slot, order_exec(order), order_free, order);
    /* A second start has a cause, and whoever looks for it finds it here: a crash, a failure, a
     * stop. */
    log_line(h->job.start > 1 ? LOG_LEVEL_INFO : LOG_LEVEL_DEBUG,
             "event=start job=%s queue=%s start=%lld attempt=%lld crashes=%lld late_us=%lld",
             h->job.id, h->job.queue, (long long)h->job.start, (long long)h->job.attempt,
             (long long)h->job.crashes, (long long)late_us);
}

void runner_kill(struct runner *r, const char *id, bool at_once)
{
    for (unsigned i = 0; i < r->nplaces; i++) {
        struct place *p = &r->places[i];

        if (p->is_busy && strcmp(p->job.id, id) == 0)
            pool_control(r->pool, i, p->serial, at_once ? EXEC_CONTROL_KILL : EXEC_CONTROL_STOP);
    }
}

void runner_kill_all(struct runner *r)
{
    r->is_ending = true;
    for (unsigned i = 0; i < r->nplaces; i++) {
        if (r->places[i].is_busy)
            pool_control(r->pool, i, r->places[i].serial, EXEC_CONTROL_KILL);
    }
    if (r->nfree == r->nplaces)
        r->events.idle(r->events.arg);
}
