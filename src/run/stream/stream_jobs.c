#include "run/stream/stream_jobs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"

static struct stream_item *find(const struct stream_proc *p, const char *id)
{
    for (struct stream_item *it = p->first; it != NULL; it = it->next) {
        if (strcmp(it->id, id) == 0)
            return it;
    }
    return NULL;
}

static struct stream_item *find_place(const struct stream_proc *p, unsigned place)
{
    for (struct stream_item *it = p->first; it != NULL; it = it->next) {
        if (it->place == place)
            return it;
    }
    return NULL;
}

static void unlink_item(struct stream_proc *p, struct stream_item *it)
{
    if (p->first == it)
        p->first = it->next;
    else
        it->before->next = it->next;
    if (p->last == it)
        p->last = it->before;
    else
        it->next->before = it->before;
    p->running--;
}

/* ---- children */

static struct children *taking(struct stream_proc *p)
{
    return p->adding != NULL ? &p->adding->children : &p->strays;
}

/* From now on the payload of the last `add` belongs to no job. */
static void stop_adding(struct stream_proc *p, const struct stream_item *it)
{
    if (p->adding != it)
        return;
    p->strays.awaits_lf = it->children.awaits_lf;
    p->adding = NULL;
}

static void on_payload(void *arg, const char *bytes, size_t n)
{
    children_payload(taking(arg), bytes, n);
}

static void take_add(struct stream_proc *p, struct stream_item *it, const struct stream_answer *a,
                     bool cut)
{
    size_t len;

    if (it == NULL)
        stream_log_line(&p->log, LOG_LEVEL_WARN, "add-without-job", a->id, strlen(a->id), cut);
    children_refuse(&p->strays, "they belong to no job");
    p->adding = it;
    if (children_line(taking(p), a->text, a->len, cut, &len) == 0)
        lines_expect(&p->lines, len, on_payload);
    else /* what follows cannot be told from answers */
        stream_core_breach(p, "it wrote an add that is none");
}

/* ---- ends */

/* End the job. Its item and its place are free before `ended` is called. */
static void finish(struct stream_proc *p, struct stream_item *it, struct run_report *ret)
{
    unsigned place = it->place;

    ret->started = it->started;
    ret->duration_us = mono_until_us(it->started, mono_now());
    if (it->guard != NULL)
        guard_clear(it->guard, place);
    unlink_item(p, it);
    stop_adding(p, it);
    children_done(&it->children);
    free(it);
    p->events->ended(p->events->arg, place, ret);
    run_report_done(ret);
}

/* Why we asked the job to end, in words. */
static void describe_cause(const struct stream_proc *p, const struct stream_item *it, char *out,
                           size_t size)
{
    char length[24];

    if (it->cause == RUN_TIMED_OUT && it->lacks_heartbeat)
        (void)snprintf(out, size, "said nothing for %s",
                       text_duration(p->conf->heartbeat_ms, length));
    else
        run_describe_cause(it->cause, it->timeout_ms, out, size);
}

void stream_jobs_status(const struct stream_proc *p, const siginfo_t *st, char out[STREAM_STATUS])
{
    char status[96];

    run_describe_status(st, status, sizeof(status));
    (void)snprintf(out, STREAM_STATUS, "%s%s%s", p->met, p->met[0] != '\0' ? ": " : "", status);
}

/* Set *ret to what the end of the process means for a job without an answer. */
static void judge(const struct stream_proc *p, const struct stream_item *it, const siginfo_t *st,
                  bool by_guard, struct run_report *ret)
{
    char status[STREAM_STATUS];

    stream_jobs_status(p, st, status);
    ret->code = st->si_pid != 0 && st->si_status != 0 ? st->si_status : SIGKILL;
    if (it->cause != RUN_EXITED) {
        char cause[64];

        describe_cause(p, it, cause, sizeof(cause));
        ret->end = it->cause;
        (void)snprintf(ret->text, sizeof(ret->text), "%s: process ended, %.170s", cause, status);
    } else if (by_guard) {
        ret->end = RUN_STOPPED;
        (void)snprintf(ret->text, sizeof(ret->text),
                       "killed by the guard: %s held a lock, and no beat of its worker was "
                       "acknowledged",
                       it->guard != NULL ? "it" : "a job beside it");
    } else if (it->at >= p->taken) {
        ret->end = RUN_STOPPED;
        (void)snprintf(ret->text, sizeof(ret->text), "not started: its process ended, %s", status);
    } else if (p->is_in_breach && p->was_ended) {
        ret->end = RUN_SAID_FAIL;
        ret->code = 1;
        (void)snprintf(ret->text, sizeof(ret->text), "its process failed: %.200s", p->why);
    } else if (p->was_ended) {
        ret->end = RUN_STOPPED;
        (void)snprintf(ret->text, sizeof(ret->text), "its process was ended: %.200s", p->why);
    } else if (st->si_pid != 0 && st->si_code == CLD_EXITED) {
        ret->end = RUN_SAID_FAIL;
        ret->code = 1;
        (void)snprintf(ret->text, sizeof(ret->text), "its process ended without an answer: %s",
                       status);
    } else {
        ret->end = RUN_SIGNALED;
        (void)snprintf(ret->text, sizeof(ret->text), "its process died: %s", status);
    }
}

bool stream_jobs_by_guard(const struct stream_proc *p)
{
    for (const struct stream_item *it = p->first; it != NULL; it = it->next) {
        if (it->guard != NULL && guard_has_killed(it->guard, it->place))
            return !p->was_ended;
    }
    return false;
}

void stream_jobs_end(struct stream_proc *p, const siginfo_t *st)
{
    bool by_guard = stream_jobs_by_guard(p);

    while (p->first != NULL) {
        struct run_report ret;

        run_report_init(&ret);
        judge(p, p->first, st, by_guard, &ret);
        finish(p, p->first, &ret);
    }
}

/* What is cut off may be missed by the next job of a chain. */
static void take_result(const struct stream_proc *p, const struct stream_item *it,
                        const struct stream_answer *a, bool cut, struct buf *ret)
{
    buf_add(ret, a->text, a->len < RUN_RESULT_BYTES ? a->len : RUN_RESULT_BYTES);
    if (cut || a->len > RUN_RESULT_BYTES)
        log_warn("event=result-cut job=%s queue=%s kept=%d", it->id, p->log.queue,
                 RUN_RESULT_BYTES);
}

static void take_end(struct stream_proc *p, struct stream_item *it, const struct stream_answer *a,
                     bool cut)
{
    static const enum run_end ends[] = {[STREAM_OK] = RUN_SAID_OK,
                                        [STREAM_RETRY] = RUN_SAID_RETRY,
                                        [STREAM_FAIL] = RUN_SAID_FAIL,
                                        [STREAM_DEAD] = RUN_SAID_DEAD};
    struct run_report ret;
    char cause[64] = "";

    run_report_init(&ret);
    ret.retry_in_ms = a->retry_in_ms;
    if (a->word == STREAM_OK) {
        take_result(p, it, a, cut, &ret.result);
        ret.children = it->children;
        memset(&it->children, 0, sizeof(it->children));
    }
    if (it->cause != RUN_EXITED)
        describe_cause(p, it, cause, sizeof(cause));
    run_report_say(&ret, ends[a->word], a->text, a->len, it->cause, cause);
    p->served++;
    finish(p, it, &ret);
}

static void tell_word(struct stream_proc *p, const struct stream_item *it,
                      const struct stream_answer *a, bool cut)
{
    CLEANUP_FREE char *text = NULL;
    bool is_checkpoint = a->word == STREAM_CHECKPOINT;

    if (is_checkpoint && !run_checkpoint_fits(it->id, p->log.queue, a->text, a->len, cut))
        return;
    text = mem_dup(a->text, a->len);
    p->events->told(p->events->arg, it->place, is_checkpoint ? RUN_CHECKPOINT : RUN_PROGRESS, text);
}

/* An answer or an `add`, in this line; it: its job, NULL: none of this process. */
static void take(struct stream_proc *p, struct stream_item *it, const struct stream_answer *a,
                 const char *line, size_t n, bool cut)
{
    if (it != NULL)
        it->received = mono_now();
    if (a->word == STREAM_ADD)
        take_add(p, it, a, cut);
    else if (it == NULL)
        stream_log_line(&p->log, LOG_LEVEL_WARN, "answer-without-job", line, n, cut);
    else if (a->word == STREAM_PROGRESS || a->word == STREAM_CHECKPOINT)
        tell_word(p, it, a, cut);
    else if (a->word != STREAM_ALIVE)
        take_end(p, it, a, cut);
}

void stream_jobs_line(struct stream_proc *p, const char *line, size_t n, bool cut)
{
    struct stream_answer a;

    /* A lone CR is the line end of a language that writes CR LF. */
    if (children_end_payload(taking(p), n == 1 && line[0] == '\r' ? 0 : n))
        return;
    stream_answer_parse(line, n, &a);
    if (a.word == STREAM_OTHER) {
        stream_log_line(&p->log, LOG_LEVEL_INFO, "stdout", line, n, cut);
    } else if (a.word == STREAM_ALIVE && a.id[0] == '\0') {
        for (struct stream_item *it = p->first; it != NULL; it = it->next)
            it->received = mono_now();
    } else {
        take(p, find(p, a.id), &a, line, n, cut);
    }
}

/* ---- beginning and ending jobs */

static struct mono deadline_of(const struct stream_proc *p, const struct stream_item *it)
{
    struct mono at = mono_add_ms(it->started, it->timeout_ms);

    if (it->cause != RUN_EXITED)
        return it->kill_at;
    return mono_min(at, mono_add_ms(it->received, p->conf->heartbeat_ms));
}

void stream_jobs_start(struct stream_proc *p, const struct stream_job *job)
{
    struct stream_item *it = mem_new(sizeof(*it));

    *it = (struct stream_item){.before = p->last,
                               .place = job->place,
                               .guard = job->guard,
                               .timeout_ms = job->timeout_ms,
                               .at = p->queued,
                               .started = mono_now(),
                               .cause = RUN_EXITED,
                               .kill_at = MONO_NEVER};
    text_copy(it->id, sizeof(it->id), job->id);
    it->received = it->started;
    *(p->last != NULL ? &p->last->next : &p->first) = it;
    p->last = it;
    p->running++;
    if (it->guard != NULL) {
        guard_set(it->guard, it->place, p->number);
        guard_set_process(it->guard, it->place, p->process.pid);
    }
    stream_core_put(p, job->header, job->header_len);
    stream_core_put(p, "\n", 1);
    stream_core_put(p, job->payload, job->payload_len);
    stream_core_put(p, "\n", 1);
    stream_core_arm(p, deadline_of(p, it));
}

/* End a job: by `cancel ID` if its process understands that, else by ending the process. */
static void end_item(struct stream_proc *p, struct stream_item *it, enum run_end cause)
{
    char why[64], line[32];

    it->cause = cause;
    if (p->greeting.can_cancel && p->state == READY) {
        stream_core_put(p, line, (size_t)snprintf(line, sizeof(line), "cancel %s\n", it->id));
        it->kill_at = mono_add_ms(mono_now(), p->conf->kill_grace_ms);
        stream_core_arm(p, it->kill_at);
        stream_core_flush(p);
        return;
    }
    (void)snprintf(why, sizeof(why), "job %s in it %s", it->id,
                   cause == RUN_TIMED_OUT   ? "timed out"
                   : cause == RUN_CANCELLED ? "was cancelled"
                                            : "was stopped");
    stream_core_end(p, why);
}

bool stream_jobs_control(struct stream_proc *p, unsigned place, enum exec_control what)
{
    struct stream_item *it = find_place(p, place);

    if (it == NULL)
        return false;
    if (what == EXEC_CONTROL_KILL) {
        it->cause = RUN_STOPPED;
        stream_core_end(p, "a job in it was killed");
        stream_core_signal(p, SIGKILL);
    } else if (it->cause == RUN_EXITED) {
        end_item(p, it, what == EXEC_CONTROL_CANCEL ? RUN_CANCELLED : RUN_STOPPED);
    }
    return true;
}

void stream_jobs_check(struct stream_proc *p, struct mono now)
{
    for (struct stream_item *it = p->first, *next; it != NULL; it = next) {
        next = it->next;
        if (mono_before(now, deadline_of(p, it))) {
            stream_core_arm(p, deadline_of(p, it));
        } else if (it->cause == RUN_EXITED) {
            it->lacks_heartbeat = mono_before(now, mono_add_ms(it->started, it->timeout_ms));
            end_item(p, it, RUN_TIMED_OUT);
        } else {
            it->kill_at = MONO_NEVER;
            stream_core_end(p, "it did not answer a cancel");
        }
    }
}
