/* The record of a job: if it is accepted, its values are in bounds and survive writing it again. */
#include <string.h>

#include "base/buf.h"
#include "base/text.h"
#include "fuzz.h"
#include "job/job.h"

/* Write a record like jobs.header in src/lua/core/jobs.lua. */
static void encode(struct buf *out, const struct job *job)
{
    buf_printf(out, "%c%s %d", job->is_big ? '+' : '-', job->queue, job->priority);
    if (job->attempts_max > 0)
        buf_printf(out, " a=%lld", (long long)job->attempts_max);
    if (job->timeout_ms > 0)
        buf_printf(out, " t=%lld", (long long)job->timeout_ms);
    if (job->keep_ms >= 0)
        buf_printf(out, " k=%lld", (long long)job->keep_ms);
    if (job->key[0] != '\0')
        buf_printf(out, " K=%s", job->key);
    if (job->trace[0] != '\0')
        buf_printf(out, " T=%s", job->trace);
    buf_puts(out, "\n");
    buf_add(out, job->payload, job->payload_len);
}

static void check(const struct job *job, size_t n)
{
    FUZZ_MUST(text_is_queue_name(job->queue, strlen(job->queue)));
    FUZZ_MUST(job->priority >= 0 && job->priority <= 9);
    FUZZ_MUST(job->attempts_max >= 0 && job->timeout_ms >= 0 && job->keep_ms >= -1);
    FUZZ_MUST(strlen(job->key) <= JOB_WORD_MAX && strlen(job->trace) <= JOB_WORD_MAX);
    FUZZ_MUST(job->is_big ? job->payload == NULL && job->payload_len == 0 : job->payload_len < n);
}

int fuzz_job(const uint8_t *data, size_t n)
{
    CLEANUP_BUF struct buf again = BUF_INIT;
    struct job job = {.start = 1}, twin = {.start = 1};

    (void)job_is_id((const char *)data, n);
    if (job_parse(&job, (const char *)data, n, NULL) < 0) {
        FUZZ_MUST(job.payload == NULL);
        return 0;
    }
    check(&job, n);
    encode(&again, &job);
    /* Numbers written out may exceed the maximum length of a header; then do not compare. */
    if (job_parse(&twin, again.data, again.len, NULL) == 0) {
        FUZZ_MUST(strcmp(job.queue, twin.queue) == 0 && strcmp(job.key, twin.key) == 0);
        FUZZ_MUST(strcmp(job.trace, twin.trace) == 0 && job.priority == twin.priority);
        FUZZ_MUST(job.attempts_max == twin.attempts_max && job.timeout_ms == twin.timeout_ms);
        FUZZ_MUST(job.keep_ms == twin.keep_ms && job.is_big == twin.is_big);
        FUZZ_MUST(job.payload_len == twin.payload_len);
        FUZZ_MUST(job.is_big || memcmp(job.payload, twin.payload, job.payload_len) == 0);
    } else {
        FUZZ_MUST(again.len > n);
    }
    job_done(&job);
    job_done(&twin);
    return 0;
}
