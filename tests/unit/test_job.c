/* The codec of the job record, with the bytes that a broken or hostile writer leaves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "job/job.h"

#define LIT(s) s, sizeof(s) - 1

/* Parse a heap copy of exactly n bytes, so that the sanitizer sees every read beyond them. */
static int parse(struct job *job, const char *bytes, size_t n)
{
    struct err err = ERR_INIT;
    char *copy = malloc(n > 0 ? n : 1);
    int rc;

    memset(job, 0, sizeof(*job));
    memcpy(copy, bytes, n);
    rc = job_parse(job, copy, n, &err);
    free(copy);
    if (rc < 0) {
        assert_int_equal(err.code, ERR_DATA);
        assert_null(job->payload);
    }
    return rc;
}

static void test_whole_record(void **state)
{
    struct job job;

    (void)state;
    assert_int_equal(
        parse(&job, LIT("-mail 3 a=7 t=90000 x=5 k=0 K=user:42 T=00-ab-01\n{\"a\":\0\n}")), 0);
    assert_string_equal(job.queue, "mail");
    assert_int_equal(job.priority, 3);
    assert_int_equal(job.attempts_max, 7);
    assert_int_equal(job.timeout_ms, 90000);
    assert_int_equal(job.keep_ms, 0);
    assert_string_equal(job.key, "user:42");
    assert_string_equal(job.trace, "00-ab-01");
    assert_false(job.is_big);
    assert_int_equal(job.payload_len, 8);
    assert_memory_equal(job.payload, "{\"a\":\0\n}", 9);
    job_done(&job);
    assert_null(job.payload);
    assert_int_equal(job.payload_len, 0);
}

/* What `then` and `on_dead` add to the record of the job that they cause. */
static void test_of_a_chain(void **state)
{
    struct job job;

    (void)state;
    assert_int_equal(parse(&job, LIT("-b K=k n=c,d d=x p=j0123456789a m=50%25%20off%C3%A4\nx")), 0);
    assert_true(job.has_next);
    assert_string_equal(job.parent, "j0123456789a");
    assert_string_equal(job.parent_reason, "50% off\xc3\xa4");
    job_done(&job);
    assert_int_equal(parse(&job, LIT("-b d=x\nx")), 0);
    assert_false(job.has_next);
    assert_string_equal(job.parent, "");
    assert_string_equal(job.parent_reason, "");
    job_done(&job);
}

/* Members of batches, and their callbacks. */
static void test_of_a_batch(void **state)
{
    static const char *const bad[] = {"-q B=x,1,2,3\n",
                                      "-q B=x,1,2,3,4,5\n",
                                      "-q B=x,1,,3,4\n",
                                      "-q B=,1,2,3,4\n",
                                      "-q B=x,1,2,3,-4\n",
                                      "-q b=\n",
                                      "-q B=x,99999999999999999999999999,2,3,4\n"};
    struct job job;

    (void)state;
    assert_int_equal(parse(&job, LIT("-q b=x.y:z\n")), 0);
    assert_string_equal(job.batch, "x.y:z");
    assert_false(job.is_callback);
    job_done(&job);
    assert_int_equal(parse(&job, LIT("-q B=x,9,6,2,1\n")), 0);
    assert_string_equal(job.batch, "x");
    assert_true(job.is_callback);
    assert_int_equal(job.counts.total, 9);
    assert_int_equal(job.counts.done, 6);
    assert_int_equal(job.counts.dead, 2);
    assert_int_equal(job.counts.cancelled, 1);
    job_done(&job);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(parse(&job, bad[i], strlen(bad[i])), -1);
}

static void test_what_is_not_said(void **state)
{
    struct job job;

    (void)state;
    assert_int_equal(parse(&job, LIT("-q\n")), 0);
    assert_int_equal(job.priority, 5);
    job_done(&job);
    assert_int_equal(parse(&job, LIT("-q 5\n")), 0);
    assert_int_equal(job.attempts_max, 0);
    assert_int_equal(job.timeout_ms, 0);
    assert_int_equal(job.keep_ms, -1);
    assert_string_equal(job.key, "");
    assert_non_null(job.payload);
    assert_int_equal(job.payload_len, 0);
    job_done(&job);
    assert_int_equal(parse(&job, LIT("+q 5 K=k\n")), 0);
    assert_true(job.is_big);
    assert_null(job.payload);
    /* Fields of a newer writer are ignored. */
    assert_int_equal(parse(&job, LIT("-q 9 z=1 Z=a=b,c q=\nx")), 0);
    assert_int_equal(job.priority, 9);
    job_done(&job);
}

static void test_refused(void **state)
{
    static const struct {
        const char *at;
        size_t n;
    } rows[] = {
        {LIT("")},
        {LIT("\n")},
        {LIT("-")},
        {LIT("-q 5")},
        {LIT("q 5\nx")},
        {LIT("*q 5\nx")},
        {LIT("- 5\nx")},
        {LIT("-q \nx")},
        {LIT("-q x\nx")},
        {LIT("-q 10\nx")},
        {LIT("-q -1\nx")},
        {LIT("-q 5a=1\nx")},
        {LIT("-q  5\nx")},
        {LIT("-../etc 5\nx")},
        {LIT("-_q 5\nx")},
        {LIT("-q\0r 5\nx")},
        {LIT("-q 5 a=1\0\nx")},
        {LIT("-q 5 a\nx")},
        {LIT("-q 5 ab=1\nx")},
        {LIT("-q 5 a=\nx")},
        {LIT("-q 5 a=0\nx")},
        {LIT("-q 5 a=1000001\nx")},
        {LIT("-q 5 a=1x\nx")},
        {LIT("-q 5 a=99999999999999999999\nx")},
        {LIT("-q 5 t=0\nx")},
        {LIT("-q 5 t=-1\nx")},
        {LIT("-q 5 k=-1\nx")},
        {LIT("-q 5 k=1e3\nx")},
        {LIT("-q 5 K=\nx")},
        {LIT("-q 5 T=\nx")},
        {LIT("-q 5 p=j0123456789\nx")},
        {LIT("-q 5 p=j0123456789ab\nx")},
        {LIT("-q 5 m=%\nx")},
        {LIT("-q 5 m=%2\nx")},
        {LIT("-q 5 m=%2g\nx")},
        {LIT("-q 5 m=%2c\nx")},
        {LIT("-12345678901234567890123456789012345678901234567890123456789012345 5\nx")},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct job job;

        if (parse(&job, rows[i].at, rows[i].n) == 0)
            fail_msg("row %zu was taken", i);
    }
}

static void expect_word(size_t len, int want)
{
    struct buf b = BUF_INIT;
    struct job job;

    buf_puts(&b, "-q 5 K=");
    for (size_t i = 0; i < len; i++)
        buf_puts(&b, "k");
    buf_puts(&b, "\n");
    assert_int_equal(parse(&job, b.data, b.len), want);
    if (want == 0)
        assert_int_equal(strlen(job.key), len);
    job_done(&job);
    buf_done(&b);
}

static void test_bounds(void **state)
{
    struct buf b = BUF_INIT;
    struct job job;

    (void)state;
    expect_word(JOB_WORD_MAX, 0);
    expect_word(JOB_WORD_MAX + 1, -1);
    expect_word(2030, -1);
    /* The longest header that the library writes, and one byte more. */
    for (int extra = 0; extra < 2; extra++) {
        buf_clear(&b);
        buf_puts(&b, "-q 5 y=");
        while (b.len < (size_t)(2047 + extra))
            buf_puts(&b, "1");
        buf_puts(&b, "\npayload");
        assert_int_equal(parse(&job, b.data, b.len), extra == 0 ? 0 : -1);
        job_done(&job);
    }
    buf_done(&b);
}

/* Every prefix and every change of one byte: no crash, and what is accepted is valid. */
static void test_mutations(void **state)
{
    static const char good[] = "-mail 3 a=7 t=90000 K=user:42\n{}";
    char bytes[sizeof(good)];
    struct job job;

    (void)state;
    for (size_t n = 0; n < sizeof(good) - 1; n++) {
        (void)parse(&job, good, n);
        job_done(&job);
    }
    for (size_t i = 0; i < sizeof(good) - 1; i++) {
        for (int c = 0; c < 256; c++) {
            memcpy(bytes, good, sizeof(good));
            bytes[i] = (char)c;
            if (parse(&job, bytes, sizeof(good) - 1) == 0) {
                assert_in_range(job.priority, 0, 9);
                assert_in_range(strlen(job.queue), 1, JOB_QUEUE_MAX);
                assert_null(strpbrk(job.queue, " /.\n"));
            }
            job_done(&job);
        }
    }
}

static void test_ids(void **state)
{
    (void)state;
    assert_true(job_is_id(LIT("j0123456789a")));
    assert_true(job_is_id(LIT("jzzzzzzzzzzz")));
    assert_false(job_is_id(LIT("j0123456789")));
    assert_false(job_is_id(LIT("j0123456789ab")));
    assert_false(job_is_id(LIT("k0123456789a")));
    assert_false(job_is_id(LIT("j0123456789A")));
    assert_false(job_is_id(LIT("j012345678\0a")));
    assert_false(job_is_id(LIT("j01234/6789a")));
    assert_false(job_is_id(LIT("")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole_record), cmocka_unit_test(test_of_a_chain),
        cmocka_unit_test(test_of_a_batch),   cmocka_unit_test(test_what_is_not_said),
        cmocka_unit_test(test_refused),      cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_mutations),    cmocka_unit_test(test_ids),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
