#include "serve/runner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "job/traceparent.h"
#include "run/pool/pool.h"
#include "serve/backends.h"
#include "serve/invocation.h"
#include "serve/policy.h"

#define STEP_SOCKET_MAX 108
#define SECRET_LEN 22               /* letters of six random bits */
#define TOKEN_MAX (SECRET_LEN + 16) /* the number of the place, '-', the secret */
#define RANDOM_BYTES 512
#define UNSERVED_DELAY_MS 5000 /* a job of a queue that went away is released for this long */

struct place {
    struct job job; /* has the payload only if a plug-in reads it here */
    uint64_t serial;
    struct backend *backend; /* NULL: a process of its own */
    struct plugin_order plugin;
    int64_t late_us; /* of its start */
    bool is_busy;
    char step[STEP_SOCKET_MAX +
              TOKEN_MAX]; /* LATER_STEP of the job, SOCKET:PLACE-SECRET; "": none */
    unsigned secret_at;   /* in step; 0: nothing is before it yet */
};

struct known_queue {
    char name[JOB_QUEUE_MAX + 1];
    const struct served_queue *served; /* NULL: not served any more */
    const struct conf_queue *conf;
    struct queue_count *count;
};

struct runner {
    struct pool *pool;
    struct backends *backends;
    struct place *places;
    unsigned nplaces;
    unsigned *free; /* stack of free places; the one freed last is most likely in the caches */
    unsigned nfree;
    char ns[80];
    struct state_folder *state;
    struct guard *guard;
    const struct conf *conf;
    const struct served_queues *served;
    struct runner_events events;
    struct known_queue queue; /* that was found last */
    struct queue_counts counts;
    struct key_counts *keys;
    uint64_t retried;
    struct buf header; /* of the job that is given to a stream just now */
    uint64_t random;
    char step_socket[STEP_SOCKET_MAX];
    unsigned char secret[RANDOM_BYTES]; /* random bytes for tokens, of which so many are left: */
    size_t nsecret;
    bool is_ending, are_backends_gone;
};

/* The queue that was found last is kept: jobs of one queue often come together, and a search among
 * thousands of queues is a fifth of what a plug-in's job costs here. Valid until the next call. */
static const struct known_queue *queue_of(struct runner *r, const char *queue)
{
    if (strcmp(r->queue.name, queue) != 0) {
        text_copy(r->queue.name, sizeof(r->queue.name), queue);
        r->queue.served = served_queues_find(r->served, queue);
        r->queue.conf = conf_queue(r->conf, queue);
        r->queue.count = queue_counts_of(&r->counts, queue);
    }
    return &r->queue;
}

static void count_end(struct runner *r, const struct place *p, const struct known_queue *q,
                      const struct run_report *run, const struct verdict *v)
{
    r->retried += v->verb == STORE_RETRY;
    queue_count_run(q->count, run->duration_us);
    if (p->job.key[0] == '\0')
        return;
    key_counts_add(r->keys, p->job.key, v->verb == STORE_RETRY || v->verb == STORE_BURY,
                   run->duration_us, p->late_us, mono_now());
}

#define END "event=end job=%s queue=%s start=%lld attempt=%lld outcome=%s run_ms=%lld trace_id=%s "

/* For the log: the trace id of the job, in id; "" if it has none. */
static const char *trace_id(const struct job *job, char id[TRACE_ID_LEN + 1])
{
    id[0] = '\0';
    if (job->trace[0] != '\0')
        (void)traceparent_trace_id(job->trace, id);
    return id;
}

/* A job that went well is logged at INFO if it had a process of its own, which costs far more than
 * the line. Otherwise it is logged at DEBUG. */
static void log_end(const struct job *job, const struct verdict *v, const struct run_report *run,
                    bool is_process)
{
    static const char *const outcome[] = {"done", "retry", "dead", "released"};
    enum log_level level = v->verb == STORE_BURY                 ? LOG_LEVEL_ERR
                           : v->is_error                         ? LOG_LEVEL_WARN
                           : is_process || v->verb != STORE_DONE ? LOG_LEVEL_INFO
                                                                 : LOG_LEVEL_DEBUG;
    char id[TRACE_ID_LEN + 1];

    log_line(level,
             v->verb == STORE_RETRY ? END "again_in_ms=%lld reason=\"%s\""
                                    : END "code=%lld reason=\"%s\"",
             job->id, job->queue, (long long)job->start, (long long)job->attempt, outcome[v->verb],
             (long long)(run->duration_us / 1000), trace_id(job, id),
             v->verb == STORE_RETRY ? (long long)v->amount : (long long)v->code, v->reason);
}

/* For the jitter of retries: xorshift64 (Marsaglia, 2003), seeded with one word from the kernel. */
static uint32_t next_random(struct runner *r)
{
    r->random ^= r->random << 13;
    r->random ^= r->random >> 7;
    r->random ^= r->random << 17;
    return (uint32_t)(r->random >> 32);
}

static void tell_idle(const struct runner *r)
{
    if (r->is_ending && r->are_backends_gone && r->nfree == r->nplaces)
        r->events.idle(r->events.arg);
}

/* Call it before the event is sent: its receiver may want the place. */
static void free_place(struct runner *r, unsigned place)
{
    struct place *p = &r->places[place];

    p->is_busy = false;
    if (r->state != NULL)
        state_folder_set_fence(r->state, place, 0);
    if (p->backend != NULL)
        backends_put(r->backends, p->backend);
    job_done(&p->job);
    r->free[r->nfree++] = place;
}

static void on_ended(void *arg, unsigned place, const struct run_report *run)
{
    struct runner *r = arg;
    const struct place *p = &r->places[place];
    const struct known_queue *q = queue_of(r, p->job.queue);
    const struct buf *output = run->result.len > 0 ? &run->result : &run->output;
    struct verdict_data data = {output->data != NULL ? output->data : "", output->len,
                                &run->children};
    struct verdict v;
    char id[JOB_ID_LEN + 1];

    memcpy(id, p->job.id, sizeof(id));
    policy_verdict(&p->job, q->conf, run, next_random(r), &v);
    log_end(&p->job, &v, run, p->backend == NULL);
    count_end(r, p, q, run, &v);
    free_place(r, place);
    if (r->is_ending)
        tell_idle(r);
    else
        r->events.ended(r->events.arg, id, &v, &data);
}

static void tell(struct runner *r, unsigned place, enum run_word word, const char *text)
{
    if (!r->is_ending)
        r->events.told(r->events.arg, r->places[place].job.id, word, text);
}

static void on_told(void *arg, unsigned place, uint64_t serial, enum run_word word,
                    const char *text)
{
    struct runner *r = arg;
    const struct place *p = &r->places[place];

    if (p->is_busy && p->serial == serial)
        tell(r, place, word, text);
}

static void on_stream_told(void *arg, unsigned place, enum run_word word, const char *text)
{
    tell(arg, place, word, text);
}

static void on_max_at_once(void *arg, const char *queue, unsigned n)
{
    const struct runner *r = arg;

    if (!r->is_ending)
        r->events.max_at_once(r->events.arg, queue, n);
}

static void on_backends_gone(void *arg)
{
    struct runner *r = arg;

    r->are_backends_gone = true;
    tell_idle(r);
}

static void on_rest(void *arg)
{
    const struct runner *r = arg;

    if (!r->is_ending)
        r->events.rest(r->events.arg);
}

struct runner *runner_new(struct loop *loop, unsigned places, const char *ns,
                          struct state_folder *state, const struct runner_events *events,
                          struct err *err)
{
    struct runner *r = mem_new(sizeof(*r));
    struct pool_events pool_events = {on_ended, on_told, on_rest, r};
    struct backends_events backends_events = {on_ended,       on_stream_told,   on_rest,
                                              on_max_at_once, on_backends_gone, r};

    r->nplaces = places;
    r->places = mem_new(places * sizeof(*r->places));
    r->free = mem_new(places * sizeof(*r->free));
    for (unsigned i = 0; i < places; i++)
        r->free[r->nfree++] = places - 1 - i;
    text_copy(r->ns, sizeof(r->ns), ns);
    r->keys = key_counts_new();
    r->state = state;
    r->events = *events;
    r->pool = pool_new(loop, places, &pool_events, err);
    if (r->pool == NULL) {
        runner_free(r);
        return NULL;
    }
    /* If the kernel has no random number yet, take the moment of our start. */
    if (getrandom(&r->random, sizeof(r->random), GRND_NONBLOCK) < 0 || r->random == 0)
        r->random = (uint64_t)mono_now().us | 1;
    r->backends = backends_new(loop, r->pool, ns, &backends_events);
    return r;
}

void runner_free(struct runner *r)
{
    if (r == NULL)
        return;
    if (r->pool != NULL)
        pool_free(r->pool);
    backends_free(r->backends);
    buf_done(&r->header);
    queue_counts_done(&r->counts);
    key_counts_free(r->keys);
    for (unsigned i = 0; i < r->nplaces; i++)
        job_done(&r->places[i].job); /* of those that still ran */
    free(r->places);
    free(r->free);
    free(r);
}

void runner_set(struct runner *r, const struct conf *conf, const struct served_queues *served)
{
    r->conf = conf;
    r->served = served;
    r->queue.name[0] = '\0';
    backends_set(r->backends, served, r->nplaces);
}

unsigned runner_max_at_once(const struct runner *r, const struct served_queue *q)
{
    return backends_max_at_once(r->backends, q, r->nplaces);
}

const char *runner_defect(struct runner *r, const struct served_queue *q)
{
    return backends_defect(r->backends, q);
}

void runner_set_guard(struct runner *r, struct guard *guard)
{
    r->guard = guard;
}

struct queue_counts *runner_counts(struct runner *r)
{
    return &r->counts;
}

struct key_counts *runner_keys(struct runner *r)
{
    return r->keys;
}

uint64_t runner_take_retried(struct runner *r)
{
    uint64_t n = r->retried;

    r->retried = 0;
    return n;
}

bool runner_admit(struct runner *r, const struct job *job, struct verdict *refusal)
{
    const struct known_queue *q = queue_of(r, job->queue);
    char id[TRACE_ID_LEN + 1];

    if (q->served == NULL || !backends_can_run(r->backends, q->served)) {
        memset(refusal, 0, sizeof(*refusal));
        refusal->verb = STORE_RELEASE;
        refusal->amount = UNSERVED_DELAY_MS;
        (void)snprintf(refusal->reason, sizeof(refusal->reason),
                       "its queue is not served here any more");
        return false;
    }
    if (policy_admit(job, q->conf, refusal))
        return true;
    log_err("event=end job=%s queue=%s start=%lld outcome=dead trace_id=%s reason=\"%s\"", job->id,
            job->queue, (long long)job->start, trace_id(job, id), refusal->reason);
    return false;
}

void runner_refuse(struct runner *r, const struct job *job, const char *why,
                   struct verdict *verdict)
{
    policy_refused(job, queue_of(r, job->queue)->conf, why, next_random(r), verdict);
    r->retried += verdict->verb == STORE_RETRY;
}

/* ---- tokens: by its own each job may keep steps */

/* -> SECRET_LEN random bytes that nobody else gets; NULL: the kernel has none yet */
static const unsigned char *take_secret(struct runner *r)
{
    if (r->nsecret < SECRET_LEN) {
        if (getrandom(r->secret, sizeof(r->secret), GRND_NONBLOCK) != sizeof(r->secret))
            return NULL;
        r->nsecret = sizeof(r->secret);
    }
    r->nsecret -= SECRET_LEN;
    return r->secret + r->nsecret;
}

static void give_token(struct runner *r, unsigned place)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    struct place *p = &r->places[place];
    const unsigned char *secret;
    char *at;

    if (r->step_socket[0] == '\0')
        return;
    secret = take_secret(r);
    if (secret == NULL) {
        p->step[0] = '\0';
        p->secret_at = 0;
        return;
    }
    /* What is before the secret is the same for all jobs of a place. */
    if (p->secret_at == 0)
        p->secret_at =
            (unsigned)snprintf(p->step, sizeof(p->step), "%s:%u-", r->step_socket, place);
    at = p->step + p->secret_at;
    for (size_t i = 0; i < SECRET_LEN; i++)
        at[i] = letters[secret[i] % 64];
    at[SECRET_LEN] = '\0';
}

void runner_set_step_socket(struct runner *r, const char *name)
{
    text_copy(r->step_socket, sizeof(r->step_socket), name);
}

/* Tells by its time nothing of where the two differ. */
static bool is_same(const char *a, const char *b, size_t n)
{
    unsigned char differ = 0;

    for (size_t i = 0; i < n; i++)
        differ |= (unsigned char)(a[i] ^ b[i]);
    return differ == 0;
}

const struct job *runner_job_of(const struct runner *r, const char *token)
{
    size_t n = strlen(token), before = strlen(r->step_socket) + 1;
    char *end;
    unsigned long place = strtoul(token, &end, 10);
    const struct place *p;

    if (*end != '-' || place >= r->nplaces)
        return NULL;
    p = &r->places[place];
    if (!p->is_busy || strlen(p->step) != before + n || !is_same(p->step + before, token, n))
        return NULL;
    return &p->job;
}

/* ---- starts */

static void start_process(struct runner *r, unsigned place, struct job *job, int64_t late_us)
{
    struct place *p = &r->places[place];
    struct invocation *order =
        invocation_new(job, queue_of(r, job->queue)->served, r->ns, r->places[place].step, late_us);

    if (job->is_guarded)
        invocation_guard(order, r->guard, place);
    if (r->state != NULL)
        state_folder_set_fence(r->state, place, job->fence);
    p->serial =
        pool_start(r->pool, place,
                   &(struct pool_order){
                       .exec = invocation_exec(order), .free = invocation_free, .arg = order});
}

static void start_plugin(struct runner *r, unsigned place, int64_t late_us)
{
    struct place *p = &r->places[place];
    const struct conf_queue *conf = queue_of(r, p->job.queue)->conf;

    p->plugin =
        (struct plugin_order){.plugin = backend_plugin(p->backend),
                              .job = invocation_plugin(&p->job, conf, r->ns, p->step, late_us),
                              .timeout_ms = invocation_timeout_ms(&p->job, conf),
                              .guard = p->job.is_guarded ? r->guard : NULL,
                              .guard_place = place};
    p->serial = pool_start(r->pool, place, &(struct pool_order){.plugin = &p->plugin});
}

static void start_stream(struct runner *r, unsigned place, int64_t late_us)
{
    struct place *p = &r->places[place];
    const struct conf_queue *conf = queue_of(r, p->job.queue)->conf;
    struct stream_job job = {.id = p->job.id,
                             .place = place,
                             .payload = p->job.payload,
                             .payload_len = p->job.payload_len,
                             .timeout_ms = invocation_timeout_ms(&p->job, conf),
                             .guard = p->job.is_guarded ? r->guard : NULL};
    int64_t number;

    buf_clear(&r->header);
    invocation_header(&p->job, conf, p->step, late_us, &r->header);
    job.header = r->header.data;
    job.header_len = r->header.len;
    number = stream_start(backend_stream(p->backend), &job);
    /* It stands for a fence in the origin of the process, for all its jobs: a successor finds the
     * process by it. */
    if (r->state != NULL)
        state_folder_set_fence(r->state, place, number);
    job_done(&p->job);
}

void runner_start(struct runner *r, struct held_job *h)
{
    unsigned place = r->free[--r->nfree];
    struct place *p = &r->places[place];
    int64_t late_us = h->late_us + mono_until_us(h->claimed_at, mono_now());
    char id[TRACE_ID_LEN + 1];

    queue_count_start(queue_of(r, h->job.queue)->count, late_us);
    p->late_us = late_us;
    p->is_busy = true;
    p->job = h->job;
    job_own_names(&p->job);
    give_token(r, place);
    p->backend = backends_take(r->backends, h->job.queue);
    if (p->backend == NULL) {
        p->job.payload = NULL; /* the order takes it */
        start_process(r, place, &h->job, late_us);
    } else {
        h->job.payload = NULL;
        if (backend_plugin(p->backend) != NULL)
            start_plugin(r, place, late_us);
        else
            start_stream(r, place, late_us);
    }
    /* A second start has a cause: a crash, a failure or a stop. The line is at INFO then, to help
     * find it. */
    log_line(h->job.start > 1 ? LOG_LEVEL_INFO : LOG_LEVEL_DEBUG,
             "event=start job=%s queue=%s start=%lld attempt=%lld crashes=%lld late_us=%lld "
             "trace_id=%s",
             h->job.id, h->job.queue, (long long)h->job.start, (long long)h->job.attempt,
             (long long)h->job.crashes, (long long)late_us, trace_id(&h->job, id));
}

static void control(struct runner *r, unsigned place, enum exec_control what)
{
    const struct place *p = &r->places[place];

    if (p->backend != NULL && backend_stream(p->backend) != NULL)
        stream_control(backend_stream(p->backend), place, what);
    else
        pool_control(r->pool, place, p->serial, what);
}

bool runner_is_well(struct runner *r, struct mono now, char *why, size_t size)
{
    return pool_is_well(r->pool, now, why, size);
}

void runner_kill(struct runner *r, const char *id, bool at_once)
{
    for (unsigned i = 0; i < r->nplaces; i++) {
        if (r->places[i].is_busy && strcmp(r->places[i].job.id, id) == 0)
            control(r, i, at_once ? EXEC_CONTROL_KILL : EXEC_CONTROL_STOP);
    }
}

void runner_start_no_more(struct runner *r)
{
    backends_start_no_more(r->backends);
}

void runner_end(struct runner *r)
{
    bool is_idle = r->nfree == r->nplaces;

    r->is_ending = true;
    for (unsigned i = 0; i < r->nplaces; i++) {
        if (r->places[i].is_busy)
            control(r, i, EXEC_CONTROL_KILL);
    }
    backends_end(r->backends, !is_idle);
}
