/* The example workers follow the protocol of doc/stream.md; each is tested without a daemon. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/mem.h"

#include "drive.h"
#include "examples.h"

#define END_DEADLINE_MS 60000
#define MIB_BYTES ((size_t)1024 * 1024)

static struct stream_worker worker;

/* Start a new worker; skip the test if its language is not installed. */
static const struct stream_example *start(void **state)
{
    const struct stream_example *e = *state;
    char *path;

    if (!stream_example_can_run(e)) {
        print_message("%s: %s is not installed\n", e->name, e->interpreter);
        skip();
    }
    path = stream_example_path(e);
    stream_start(&worker, path);
    free(path);
    return e;
}

static int teardown(void **state)
{
    (void)state;
    stream_done(&worker);
    worker = (struct stream_worker){0};
    return 0;
}

static void end(void)
{
    assert_int_equal(stream_end(&worker, END_DEADLINE_MS), 0);
}

static struct stream_job job_of(const char *text)
{
    return (struct stream_job){.payload = text, .len = strlen(text)};
}

static void check(const struct stream_job *job, const char *name, const char *answer)
{
    if (job->answer == NULL || strcmp(job->answer, answer) != 0)
        fail_msg("%s, %zu bytes: \"%s\", not \"%s\"", name, job->len, job->answer, answer);
}

static void test_greets_and_ends(void **state)
{
    const struct stream_example *e = start(state);

    assert_int_equal(worker.inflight, e->inflight);
    assert_int_equal(worker.knows_cancel, e->knows_cancel);
    end();
}

/* All cases in one run, at_once jobs in flight. */
static void run_cases(unsigned at_once)
{
    size_t n;
    struct stream_case *cases = stream_cases_new(&n);
    struct stream_job *jobs = mem_new(n * sizeof(*jobs));

    for (size_t i = 0; i < n; i++)
        jobs[i] = (struct stream_job){.payload = cases[i].payload, .len = cases[i].len};
    worker.inflight = at_once;
    stream_run(&worker, jobs, n, false);
    for (size_t i = 0; i < n; i++)
        check(&jobs[i], cases[i].name, cases[i].answer);
    stream_jobs_done(jobs, n);
    free(jobs);
    stream_cases_free(cases, n);
}

static void test_every_payload(void **state)
{
    const struct stream_example *e = start(state);

    run_cases(1);
    run_cases(e->inflight);
    end();
}

/* Input may arrive in pieces of any size. */
static void test_byte_by_byte(void **state)
{
    static const char text[] = "one\n\0two \nthree\n";
    struct stream_job jobs[] = {
        {.payload = text, .len = sizeof(text) - 1}, job_of(""), job_of("x")};

    (void)start(state);
    worker.is_drip = true;
    stream_run(&worker, jobs, 3, false);
    check(&jobs[0], "dripped", "ok 3 words in 16 bytes");
    check(&jobs[1], "dripped", "ok 0 words in 0 bytes");
    check(&jobs[2], "dripped", "ok 1 words in 1 bytes");
    stream_jobs_done(jobs, 3);
    end();
}

static void run_words(unsigned n, size_t len)
{
    struct stream_job *jobs = mem_new(n * sizeof(*jobs));
    char **words = mem_new(n * sizeof(*words));

    for (unsigned i = 0; i < n; i++) {
        words[i] = stream_words(len + i % 7, i);
        jobs[i] = (struct stream_job){.payload = words[i], .len = len + i % 7};
    }
    stream_run(&worker, jobs, n, false);
    for (unsigned i = 0; i < n; i++) {
        CLEANUP_FREE char *answer = stream_answer(words[i], jobs[i].len);

        check(&jobs[i], "of many", answer);
        free(words[i]);
    }
    stream_jobs_done(jobs, n);
    free(jobs);
    free(words);
}

static void test_many(void **state)
{
    const struct stream_example *e = start(state);

    run_words(e->many, 100);
    end();
}

/* Both pipes fill up now and then; neither side may wait for the other for ever. */
static void test_many_large(void **state)
{
    (void)start(state);
    run_words(20, MIB_BYTES);
    end();
}

static void test_out_of_order(void **state)
{
    struct stream_job jobs[] = {job_of("sleep 1"), job_of("quick")};

    (void)start(state);
    stream_run(&worker, jobs, 2, false);
    assert_int_equal(jobs[1].rank, 1);
    assert_int_equal(jobs[0].rank, 2);
    stream_jobs_done(jobs, 2);
    end();
}

/* A worker with all the jobs it takes must still read cancels. */
static void test_cancel(void **state)
{
    const struct stream_example *e = start(state);
    struct stream_job *jobs = mem_new(e->inflight * sizeof(*jobs));

    for (unsigned i = 0; i < e->inflight; i++) {
        jobs[i] = job_of("sleep 1000");
        jobs[i].has_cancel = true;
    }
    stream_run(&worker, jobs, e->inflight, false);
    for (unsigned i = 0; i < e->inflight; i++)
        check(&jobs[i], "cancelled", "fail cancelled");
    stream_jobs_done(jobs, e->inflight);
    free(jobs);
    run_words(10, 100);
    end();
}

/* At the end of its input a worker still sends `alive`, answers its jobs, and ends. */
static void test_end_with_jobs_in_flight(void **state)
{
    struct stream_job jobs[] = {job_of("sleep 1\n"), job_of("one two"), job_of("fail")};

    (void)start(state);
    worker.inflight = 3; /* more than some take: the others wait in the pipe */
    stream_run(&worker, jobs, 3, true);
    check(&jobs[0], "at the end", "ok 2 words in 8 bytes");
    assert_int_equal(jobs[0].signs, 1);
    check(&jobs[1], "at the end", "ok 2 words in 7 bytes");
    check(&jobs[2], "at the end", "fail asked to");
    stream_jobs_done(jobs, 3);
    end();
}

static bool any(const struct stream_example *e)
{
    return e != NULL;
}

static bool is_parallel(const struct stream_example *e)
{
    return e->is_parallel;
}

static bool knows_cancel(const struct stream_example *e)
{
    return e->knows_cancel;
}

static const struct {
    const char *name;
    CMUnitTestFunction run;
    bool (*is_for)(const struct stream_example *e);
} kinds[] = {
    {"greets and ends", test_greets_and_ends, any},
    {"every payload", test_every_payload, any},
    {"byte by byte", test_byte_by_byte, any},
    {"many", test_many, any},
    {"many large", test_many_large, any},
    {"out of order", test_out_of_order, is_parallel},
    {"cancel", test_cancel, knows_cancel},
    {"the end with jobs in flight", test_end_with_jobs_in_flight, any},
};

#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

int main(void)
{
    static char names[STREAM_EXAMPLES * KINDS][64];
    struct CMUnitTest tests[STREAM_EXAMPLES * KINDS];
    size_t n = 0;

    for (size_t i = 0; i < STREAM_EXAMPLES * KINDS; i++) {
        const struct stream_example *e = &stream_examples[i / KINDS];

        if (!kinds[i % KINDS].is_for(e))
            continue;
        (void)snprintf(names[n], sizeof(names[n]), "%s: %s", e->name, kinds[i % KINDS].name);
        tests[n] = (struct CMUnitTest){names[n], kinds[i % KINDS].run, NULL, teardown,
                                       (void *)(uintptr_t)e};
        n++;
    }
    cmocka_set_test_filter(getenv("LATER_ONLY")); /* a name, with * and ? */
    return _cmocka_run_group_tests("stream", tests, n, NULL, NULL);
}
