#include "run/stream/stream.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "run/stream/stream_proc.h"

/* A job that no process could take; stream_flush calls `ended` for it. */
struct orphan {
    struct orphan *next;
    unsigned place;
    const char *why;
};

struct stream {
    struct loop *loop;
    struct pool *pool;
    struct stream_conf conf; /* we own its texts */
    struct stream_events events;
    struct stream_proc_events proc_events;
    struct stream_proc **at; /* all living processes, retired ones included */
    size_t n;
    struct stream_proc *worn; /* will be retired when its successor is ready; NULL: none */
    struct loop_timer *retry;
    int64_t retry_ms;
    unsigned capacity; /* as the caller knows it; UINT_MAX: not yet told */
    struct orphan *orphans;
    char why[256]; /* what the last process ended of that failed; empty: one has greeted since */
    bool is_closing, is_final; /* final: start no more processes */
};

/* ---- how many there are */

static unsigned count_kept(const struct stream *s)
{
    unsigned n = 0;

    for (size_t i = 0; i < s->n; i++)
        n += stream_proc_is_kept(s->at[i]);
    return n;
}

unsigned stream_capacity(const struct stream *s)
{
    unsigned n = 0;

    for (size_t i = 0; i < s->n; i++) {
        if (stream_proc_is_ready(s->at[i]))
            n += stream_proc_inflight(s->at[i]);
    }
    return n;
}

const char *stream_defect(const struct stream *s)
{
    if (stream_capacity(s) > 0)
        return NULL;
    return s->why[0] != '\0' ? s->why : "its stream process has not greeted yet";
}

/* Start missing processes: one more than configured while a worn one waits for its successor. */
static void make_up(struct stream *s)
{
    unsigned wanted = s->conf.processes + (s->worn != NULL);

    if (s->is_closing || s->is_final || loop_timer_is_set(s->retry))
        return;
    while (count_kept(s) < wanted) {
        s->at = mem_grow(s->at, s->n + 1, sizeof(struct stream_proc *));
        s->at[s->n++] = stream_proc_new(s->loop, s->pool, &s->conf, &s->proc_events);
    }
}

static void on_retry(void *arg)
{
    make_up(arg);
}

static void free_stream(struct stream *s)
{
    mem_free_list((char **)s->conf.argv);
    mem_free_list((char **)s->conf.envp);
    free((char *)s->conf.queue);
    loop_timer_free(s->retry);
    free(s->at);
    free(s);
}

/* True: the stream has been freed. */
static bool end_if_empty(struct stream *s)
{
    if (!s->is_closing || s->n > 0 || s->orphans != NULL)
        return false;
    s->events.closed(s->events.arg);
    free_stream(s);
    return true;
}

/* ---- events of processes */

static void on_ready(void *arg, struct stream_proc *p)
{
    struct stream *s = arg;

    s->why[0] = '\0';
    if (s->worn != NULL && s->worn != p) {
        log_info("event=stream-recycle queue=%s served=%lld", s->conf.queue,
                 (long long)stream_proc_served(s->worn));
        stream_proc_retire(s->worn);
        s->worn = NULL;
    }
}

static void on_ended(void *arg, unsigned place, const struct run_report *report)
{
    struct stream *s = arg;

    s->events.ended(s->events.arg, place, report);
}

static void on_told(void *arg, unsigned place, enum run_word word, const char *text)
{
    struct stream *s = arg;

    s->events.told(s->events.arg, place, word, text);
}

static void on_rest(void *arg, struct stream_proc *p)
{
    struct stream *s = arg;

    if (s->worn == NULL && !s->is_closing && stream_proc_is_worn(p)) {
        s->worn = p;
        make_up(s);
    }
    s->events.rest(s->events.arg);
}

/* Replace a process that ended although it was not retired. One that has answered is replaced at
 * once: a job ended it, and that job's attempt is spent. */
static void replace(struct stream *s, const struct stream_proc *lost)
{
    if (!stream_proc_has_failed(lost)) {
        s->retry_ms = 0;
    } else if (!s->is_closing && !loop_timer_is_set(s->retry)) {
        s->retry_ms = wait_next_ms(s->retry_ms, STREAM_RETRY_MS, STREAM_RETRY_MAX_MS);
        loop_timer_set(s->retry, s->retry_ms);
    }
    make_up(s);
}

static void on_ending(void *arg, struct stream_proc *p)
{
    struct stream *s = arg;

    if (s->worn == p)
        s->worn = NULL;
    replace(s, p);
}

static void on_gone(void *arg, struct stream_proc *p, const char *why)
{
    struct stream *s = arg;
    size_t i = 0;

    while (s->at[i] != p)
        i++;
    s->at[i] = s->at[--s->n];
    if (s->worn == p)
        s->worn = NULL;
    if (!stream_proc_is_retired(p))
        (void)snprintf(s->why, sizeof(s->why), "its stream process ended: %s", why);
    log_line(stream_proc_is_retired(p) ? LOG_LEVEL_INFO : LOG_LEVEL_WARN,
             "event=stream-end queue=%s pid=%d served=%lld reason=\"%s\"", s->conf.queue,
             (int)stream_proc_pid(p), (long long)stream_proc_served(p), why);
    (void)end_if_empty(s);
}

/* ---- jobs */

static struct stream_proc *idlest(const struct stream *s)
{
    struct stream_proc *best = NULL;

    for (size_t i = 0; i < s->n; i++) {
        if (stream_proc_free_places(s->at[i]) > 0 &&
            (best == NULL || stream_proc_running(s->at[i]) < stream_proc_running(best)))
            best = s->at[i];
    }
    return best;
}

static int64_t orphan(struct stream *s, unsigned place, const char *why)
{
    struct orphan *o = mem_new(sizeof(*o));

    *o = (struct orphan){s->orphans, place, why};
    s->orphans = o;
    return 0;
}

int64_t stream_start(struct stream *s, const struct stream_job *job)
{
    struct stream_proc *p = idlest(s);

    if (p == NULL)
        return orphan(s, job->place, "not started: no process can take it");
    /* The number must be in the guard's table before the check: see run/guard/guard.h. */
    if (job->guard != NULL) {
        guard_set(job->guard, job->place, stream_proc_number(p));
        if (!guard_admits(job->guard)) {
            guard_clear(job->guard, job->place);
            return orphan(s, job->place,
                          "not started: it holds a lock, and no beat was acknowledged lately");
        }
    }
    stream_proc_start(p, job);
    return stream_proc_number(p);
}

static void tell_orphans(struct stream *s)
{
    while (s->orphans != NULL) {
        struct orphan *o = s->orphans;
        struct run_report ret;

        s->orphans = o->next;
        run_report_init(&ret);
        ret.end = RUN_STOPPED;
        text_copy(ret.text, sizeof(ret.text), o->why);
        s->events.ended(s->events.arg, o->place, &ret);
        free(o);
    }
    s->events.rest(s->events.arg);
}

static void tell_capacity(struct stream *s)
{
    unsigned now = stream_capacity(s);

    if (now == s->capacity || s->is_closing)
        return;
    s->capacity = now;
    s->events.capacity(s->events.arg);
}

void stream_flush(struct stream *s)
{
    for (size_t i = 0; i < s->n; i++)
        stream_proc_flush(s->at[i]);
    if (s->orphans != NULL) {
        tell_orphans(s);
        if (end_if_empty(s))
            return;
    }
    tell_capacity(s);
}

void stream_control(struct stream *s, unsigned place, enum exec_control what)
{
    for (size_t i = 0; i < s->n; i++) {
        if (stream_proc_control(s->at[i], place, what))
            break;
    }
}

/* ---- create and free */

struct stream *stream_new(struct loop *loop, struct pool *pool, const struct stream_conf *conf,
                          const struct stream_events *events)
{
    struct stream *s = mem_new(sizeof(*s));

    s->loop = loop;
    s->pool = pool;
    s->conf = *conf;
    s->conf.queue = mem_strdup(conf->queue);
    s->conf.argv = mem_dup_list(conf->argv, 0, NULL);
    s->conf.envp = mem_dup_list(conf->envp, 0, NULL);
    s->events = *events;
    s->capacity = UINT_MAX;
    s->proc_events =
        (struct stream_proc_events){on_ready, on_ended, on_told, on_rest, on_ending, on_gone, s};
    s->retry = loop_timer_new(loop, on_retry, s);
    make_up(s);
    return s;
}

void stream_close(struct stream *s)
{
    s->is_closing = true;
    loop_timer_stop(s->retry);
    for (size_t i = 0; i < s->n; i++)
        stream_proc_retire(s->at[i]);
    (void)end_if_empty(s);
}

void stream_start_no_more(struct stream *s)
{
    s->is_final = true;
}

void stream_kill(struct stream *s)
{
    for (size_t i = 0; i < s->n; i++)
        stream_proc_kill(s->at[i]);
}

bool stream_equal(const struct stream *s, const struct stream_conf *conf)
{
    const struct stream_conf *c = &s->conf;

    return mem_is_same_list(c->argv, conf->argv) && mem_is_same_list(c->envp, conf->envp) &&
           c->processes == conf->processes && c->places == conf->places &&
           c->kill_grace_ms == conf->kill_grace_ms &&
           c->start_timeout_ms == conf->start_timeout_ms && c->heartbeat_ms == conf->heartbeat_ms &&
           c->recycle_jobs == conf->recycle_jobs && c->recycle_memory == conf->recycle_memory &&
           c->recycle_age_ms == conf->recycle_age_ms;
}
