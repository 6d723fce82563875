#include "serve/policy.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "job/backoff.h"

/* Exit statuses as timeout(1) and shells use them. */
#define CODE_TIMED_OUT 124
#define CODE_NOT_RUN 127
#define CODE_REFUSED 65 /* EX_DATAERR: the jobs that it adds */

int64_t policy_attempts_max(const struct job *job, const struct conf_queue *conf)
{
    return job->attempts_max > 0 ? job->attempts_max : conf->attempts;
}

static bool is_in(const struct conf_ints *list, int code)
{
    for (size_t i = 0; i < list->n; i++) {
        if (list->at[i] == code)
            return true;
    }
    return false;
}

static void bury(const struct conf_queue *conf, struct verdict *ret)
{
    ret->verb = STORE_BURY;
    ret->amount = conf->dead_max;
    ret->is_error = true;
}

/* Retry if an attempt is left, otherwise bury. asked: the handler asked for the retry, so it is no
 * error. */
static void again(const struct job *job, const struct conf_queue *conf,
                  const struct run_report *run, uint32_t random, bool asked, struct verdict *ret)
{
    struct backoff backoff = {conf->backoff_first, conf->backoff_factor, conf->backoff_max,
                              conf->backoff_jitter};
    int64_t max = policy_attempts_max(job, conf);

    if (job->attempt >= max) {
        size_t n = strlen(ret->reason);

        bury(conf, ret);
        (void)snprintf(ret->reason + n, sizeof(ret->reason) - n, "; no attempt of %lld left",
                       (long long)max);
        return;
    }
    ret->verb = STORE_RETRY;
    ret->is_error = !asked;
    ret->amount =
        run->retry_in_ms >= 0 ? run->retry_in_ms : backoff_ms(&backoff, job->attempt, random);
}

void policy_refused(const struct job *job, const struct conf_queue *conf, const char *why,
                    uint32_t random, struct verdict *ret)
{
    static const struct run_report none = {.retry_in_ms = -1};

    memset(ret, 0, sizeof(*ret));
    ret->code = CODE_REFUSED;
    text_copy(ret->reason, sizeof(ret->reason), why);
    again(job, conf, &none, random, false, ret);
}

static void done(const struct job *job, const struct conf_queue *conf, const struct run_report *run,
                 uint32_t random, struct verdict *ret)
{
    if (run->children.refusal != NULL) {
        policy_refused(job, conf, run->children.refusal, random, ret);
        return;
    }
    ret->verb = STORE_DONE;
    ret->has_result = job->has_next && run->result.len > 0;
    ret->amount = job->keep_ms >= 0 ? job->keep_ms : conf->keep;
}

static void release(struct verdict *ret)
{
    ret->verb = STORE_RELEASE;
    ret->amount = 0;
}

void policy_verdict(const struct job *job, const struct conf_queue *conf,
                    const struct run_report *run, uint32_t random, struct verdict *ret)
{
    /* A job that was stopped before it started has no exit status: its code 0 says nothing. */
    bool clean = run->started.us != 0 && run->code == 0;

    memset(ret, 0, sizeof(*ret));
    ret->code = run->code;
    text_copy(ret->reason, sizeof(ret->reason), run->text);
    switch (run->end) {
    case RUN_EXITED:
        if (run->code == 0)
            done(job, conf, run, random, ret);
        else if (is_in(&conf->exit_dead, run->code))
            bury(conf, ret);
        else
            again(job, conf, run, random, is_in(&conf->exit_retry, run->code), ret);
        break;
    case RUN_SIGNALED:
        ret->code = 128 + run->code;
        again(job, conf, run, random, false, ret);
        break;
    case RUN_TIMED_OUT:
        ret->code = CODE_TIMED_OUT;
        again(job, conf, run, random, false, ret);
        break;
    case RUN_NOT_RUN:
        ret->code = CODE_NOT_RUN;
        again(job, conf, run, random, false, ret);
        break;
    case RUN_STOPPED:
    case RUN_CANCELLED:
        /* A handler that was told to end, and still exits with 0, has finished its work. */
        if (clean)
            done(job, conf, run, random, ret);
        else
            release(ret);
        break;
    case RUN_SAID_OK:
        done(job, conf, run, random, ret);
        break;
    case RUN_SAID_RETRY:
    case RUN_SAID_FAIL:
        again(job, conf, run, random, run->end == RUN_SAID_RETRY, ret);
        break;
    case RUN_SAID_DEAD:
        bury(conf, ret);
        break;
    case RUN_HOST_ILL:
        release(ret);
        ret->is_error = true;
        ret->is_host_ill = true;
        break;
    }
}

bool policy_admit(const struct job *job, const struct conf_queue *conf, struct verdict *ret)
{
    memset(ret, 0, sizeof(*ret));
    if (job->crashes >= conf->crashes)
        (void)snprintf(ret->reason, sizeof(ret->reason),
                       "poison pill: its worker died %lld times while it ran",
                       (long long)job->crashes);
    else if (job->attempt > policy_attempts_max(job, conf))
        (void)snprintf(ret->reason, sizeof(ret->reason), "all %lld attempts are used up",
                       (long long)policy_attempts_max(job, conf));
    else
        return true;
    bury(conf, ret);
    return false;
}
