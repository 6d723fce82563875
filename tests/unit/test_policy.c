/* What each end of an attempt means under each policy. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "serve/policy.h"

#define RAN ((struct mono){1})

static const struct conf_queue conf = {
    .attempts = 3,
    .backoff_first = 1000,
    .backoff_factor = 2000,
    .backoff_max = 60000,
    .crashes = 3,
    .keep = 500,
    .dead_max = 77,
    .exit_retry = {{75, 7}, 2},
    .exit_dead = {{65, 66}, 2},
};

static struct verdict judge(const struct job *job, enum run_end end, int code, int64_t retry_in_ms,
                            struct mono started)
{
    struct run_report run = {.end = end,
                             .code = code,
                             .retry_in_ms = retry_in_ms,
                             .started = started,
                             .text = "so it ended"};
    struct verdict v;

    policy_verdict(job, &conf, &run, 0, &v);
    return v;
}

static struct job job_at(int64_t attempt)
{
    return (struct job){
        .id = "j0123456789a", .queue = "q", .start = 9, .attempt = attempt, .keep_ms = -1};
}

/* Every exit status at attempts 1, 2 and 3 of 3. */
static void test_every_exit_status(void **state)
{
    (void)state;
    for (int code = 0; code < 256; code++) {
        bool retry = code == 75 || code == 7, dead = code == 65 || code == 66;

        for (int64_t attempt = 1; attempt <= 3; attempt++) {
            struct job job = job_at(attempt);
            struct verdict v = judge(&job, RUN_EXITED, code, -1, RAN);

            assert_int_equal(v.code, code);
            assert_false(v.is_host_ill);
            if (code == 0) {
                assert_int_equal(v.verb, STORE_DONE);
                assert_int_equal(v.amount, 500);
                assert_false(v.is_error);
            } else if (dead || attempt == 3) {
                assert_int_equal(v.verb, STORE_BURY);
                assert_int_equal(v.amount, 77);
                assert_true(v.is_error);
            } else {
                assert_int_equal(v.verb, STORE_RETRY);
                assert_int_equal(v.amount, attempt * 1000);
                assert_int_equal(v.is_error, !retry);
            }
            assert_int_equal(strstr(v.reason, "no attempt of 3 left") != NULL,
                             code != 0 && !dead && attempt == 3);
        }
    }
}

static void test_every_end(void **state)
{
    static const struct {
        enum run_end end;
        int code;
        struct mono started;
        int64_t attempt;
        enum store_verb verb;
        int want_code;
        bool is_error, is_host_ill;
    } rows[] = {
        {RUN_SIGNALED, 11, {1}, 1, STORE_RETRY, 139, true, false},
        {RUN_SIGNALED, 9, {1}, 3, STORE_BURY, 137, true, false},
        {RUN_TIMED_OUT, 15, {1}, 1, STORE_RETRY, 124, true, false},
        {RUN_TIMED_OUT, 0, {1}, 1, STORE_RETRY, 124, true, false},
        {RUN_TIMED_OUT, 65, {1}, 1, STORE_RETRY, 124, true, false},
        {RUN_TIMED_OUT, 9, {1}, 3, STORE_BURY, 124, true, false},
        {RUN_NOT_RUN, 2, {0}, 1, STORE_RETRY, 127, true, false},
        {RUN_NOT_RUN, 0, {0}, 1, STORE_RETRY, 127, true, false},
        {RUN_NOT_RUN, 13, {0}, 3, STORE_BURY, 127, true, false},
        /* It finished although it was told to end. */
        {RUN_STOPPED, 0, {1}, 1, STORE_DONE, 0, false, false},
        {RUN_CANCELLED, 0, {1}, 3, STORE_DONE, 0, false, false},
        {RUN_STOPPED, 15, {1}, 1, STORE_RELEASE, 15, false, false},
        {RUN_STOPPED, 1, {1}, 3, STORE_RELEASE, 1, false, false},
        {RUN_CANCELLED, 9, {1}, 1, STORE_RELEASE, 9, false, false},
        /* Told to end before it was started: its status 0 is not an exit status. */
        {RUN_STOPPED, 0, {0}, 1, STORE_RELEASE, 0, false, false},
        {RUN_CANCELLED, 0, {0}, 1, STORE_RELEASE, 0, false, false},
        {RUN_HOST_ILL, 0, {0}, 1, STORE_RELEASE, 0, true, true},
        {RUN_HOST_ILL, 11, {0}, 3, STORE_RELEASE, 11, true, true},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct job job = job_at(rows[i].attempt);
        struct verdict v = judge(&job, rows[i].end, rows[i].code, -1, rows[i].started);

        if (v.verb != rows[i].verb || v.code != rows[i].want_code ||
            v.is_error != rows[i].is_error || v.is_host_ill != rows[i].is_host_ill)
            fail_msg("row %zu: verb %d code %d", i, (int)v.verb, v.code);
        if (v.verb == STORE_RELEASE)
            assert_int_equal(v.amount, 0);
        assert_non_null(strstr(v.reason, "so it ended"));
    }
}

static void test_what_the_job_says_outranks_the_queue(void **state)
{
    struct job job = job_at(3);
    struct verdict v;

    (void)state;
    job.attempts_max = 4;
    assert_int_equal(judge(&job, RUN_EXITED, 1, -1, RAN).verb, STORE_RETRY);
    job.attempts_max = 1;
    job.attempt = 1;
    assert_int_equal(judge(&job, RUN_EXITED, 75, -1, RAN).verb, STORE_BURY);
    job.keep_ms = 0;
    assert_int_equal(judge(&job, RUN_EXITED, 0, -1, RAN).amount, 0);
    job.keep_ms = 9000;
    assert_int_equal(judge(&job, RUN_EXITED, 0, -1, RAN).amount, 9000);
    /* The handler's own delay, 0 included, replaces the backoff. It gives no further attempt. */
    job = job_at(1);
    v = judge(&job, RUN_EXITED, 75, 123456, RAN);
    assert_int_equal(v.verb, STORE_RETRY);
    assert_int_equal(v.amount, 123456);
    assert_int_equal(judge(&job, RUN_EXITED, 1, 0, RAN).amount, 0);
    job.attempt = 3;
    assert_int_equal(judge(&job, RUN_EXITED, 75, 123456, RAN).verb, STORE_BURY);
}

static void test_long_text(void **state)
{
    struct run_report run = {.end = RUN_EXITED, .code = 1, .retry_in_ms = -1, .started = RAN};
    struct job job = job_at(3);
    struct verdict v;

    (void)state;
    memset(run.text, 'x', sizeof(run.text) - 1);
    policy_verdict(&job, &conf, &run, 0, &v);
    assert_int_equal(strlen(v.reason), sizeof(v.reason) - 1);
}

static void test_admission(void **state)
{
    static const struct {
        int64_t attempt, crashes, attempts_max;
        bool want;
    } rows[] = {
        {1, 0, 0, true},   {3, 2, 0, true}, {4, 0, 0, false}, {1, 3, 0, false},
        {1, 99, 0, false}, {4, 0, 4, true}, {2, 0, 1, false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct job job = job_at(rows[i].attempt);
        struct verdict v;

        job.crashes = rows[i].crashes;
        job.attempts_max = rows[i].attempts_max;
        assert_int_equal(policy_admit(&job, &conf, &v), rows[i].want);
        if (rows[i].want)
            continue;
        assert_int_equal(v.verb, STORE_BURY);
        assert_int_equal(v.amount, 77);
        assert_non_null(strstr(v.reason, rows[i].crashes >= 3 ? "poison pill" : "used up"));
    }
}

/* Only a result of a job that is done and has a next one goes with the verdict. */
static void test_result_of_a_chain(void **state)
{
    static const struct {
        enum run_end end;
        int code;
        const char *result;
        bool has_next, want;
    } rows[] = {{RUN_EXITED, 0, "r", true, true},     {RUN_SAID_OK, 0, "r", true, true},
                {RUN_CANCELLED, 0, "r", true, true},  {RUN_EXITED, 0, "", true, false},
                {RUN_EXITED, 0, "r", false, false},   {RUN_EXITED, 1, "r", true, false},
                {RUN_SAID_DEAD, 65, "r", true, false}};

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct run_report run = {
            .end = rows[i].end, .code = rows[i].code, .retry_in_ms = -1, .started = RAN};
        struct job job = job_at(1);
        struct verdict v;

        job.has_next = rows[i].has_next;
        buf_puts(&run.result, rows[i].result);
        policy_verdict(&job, &conf, &run, 0, &v);
        assert_int_equal(v.has_result, rows[i].want);
        buf_done(&run.result);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_exit_status),
                                       cmocka_unit_test(test_every_end),
                                       cmocka_unit_test(test_what_the_job_says_outranks_the_queue),
                                       cmocka_unit_test(test_long_text),
                                       cmocka_unit_test(test_admission),
                                       cmocka_unit_test(test_result_of_a_chain)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
