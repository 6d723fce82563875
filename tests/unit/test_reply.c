/*
 * Numbers of a server that means harm, or whose keys somebody damaged: what is counted, compared
 * and shown of them stays a number (a build with UBSan looks at each sum).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <hiredis/hiredis.h>

#include "json/batch.h"
#include "redis/reply.h"

/* The reply that these bytes are; the caller frees it. */
static struct reply *read_reply(const char *bytes)
{
    redisReader *reader = redisReaderCreate();
    void *reply = NULL;

    assert_int_equal(redisReaderFeed(reader, bytes, strlen(bytes)), REDIS_OK);
    assert_int_equal(redisReaderGetReply(reader, &reply), REDIS_OK);
    assert_non_null(reply);
    redisReaderFree(reader);
    return reply;
}

static int64_t number(const char *bytes)
{
    struct reply *r = read_reply(bytes);
    int64_t n = reply_int(r);

    reply_free(r);
    return n;
}

static void test_no_number_is_larger_than_the_library_can_mean(void **state)
{
    (void)state;
    assert_int_equal(number(":9223372036854775807\r\n"), REPLY_INT_MAX);
    assert_int_equal(number(":-9223372036854775807\r\n"), -REPLY_INT_MAX);
    assert_int_equal(number("$19\r\n9223372036854775807\r\n"), REPLY_INT_MAX);
    assert_int_equal(number("$20\r\n-9223372036854775808\r\n"), -REPLY_INT_MAX);
    assert_int_equal(number(":9007199254740992\r\n"), INT64_C(9007199254740992));
    assert_int_equal(number("$20\r\n99999999999999999999\r\n"), 0);
    assert_int_equal(number("$3\r\n-12\r\n"), -12);
    assert_int_equal(number("$1\r\nx\r\n"), 0);
}

static void test_a_sum_stops_at_its_end(void **state)
{
    int64_t sum = 0;

    (void)state;
    for (int i = 0; i < 5000; i++)
        sum = reply_sum(sum, REPLY_INT_MAX);
    assert_int_equal(sum, REPLY_INT_MAX);
    for (int i = 0; i < 5000; i++)
        sum = reply_sum(sum, -REPLY_INT_MAX);
    assert_int_equal(sum, -REPLY_INT_MAX);
    assert_int_equal(reply_sum(2, 3), 5);
}

/* Two of 2^53 members have ended, in 2^54 ms: the time left is no int64_t. */
static void test_the_pace_of_a_batch_is_bounded(void **state)
{
    struct reply *r = read_reply("*6\r\n$4\r\nlive\r\n:9007199254740990\r\n"
                                 "$5\r\ntotal\r\n:9223372036854775807\r\n"
                                 "$10\r\ncreated_ms\r\n:-9223372036854775807\r\n");
    struct pace pace = batch_pace(r, REPLY_INT_MAX);

    (void)state;
    assert_true(pace.per_s >= 0);
    assert_int_equal(pace.left_ms, REPLY_INT_MAX);
    reply_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_number_is_larger_than_the_library_can_mean),
        cmocka_unit_test(test_a_sum_stops_at_its_end),
        cmocka_unit_test(test_the_pace_of_a_batch_is_bounded),
    };

    return cmocka_run_group_tests_name("reply", tests, NULL, NULL);
}
