/* base/text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static void test_escape(void **state)
{
    static const struct {
        const char *in;
        const char *out;
    } cases[] = {
        {"plain text, \\ and \"", "plain text, \\ and \""},
        {"gr\xc3\xb6\xc3\x9f"
         "e \xe2\x82\xac \xf0\x9f\x98\x80",
         "gr\xc3\xb6\xc3\x9f"
         "e \xe2\x82\xac \xf0\x9f\x98\x80"},
        {"a\nb\tc\rd", "a\\x0ab\\x09c\\x0dd"},
        {"\x1b[2J", "\\x1b[2J"},
        {"\x7f", "\\x7f"},
        {"\xc2\x9b"
         "31m",
         "\\xc2\\x9b31m"},
        {"\xc2\xa0", "\xc2\xa0"},
        {"\xe2\x80\xae"
         "evil",
         "\\xe2\\x80\\xaeevil"},
        {"\xe2\x81\xa6", "\\xe2\\x81\\xa6"},
        {"\xe2\x80\x8f\xd8\x9c", "\\xe2\\x80\\x8f\\xd8\\x9c"},
        {"\xe2\x80\xa8", "\\xe2\\x80\\xa8"},
        {"\xff\xfe", "\\xff\\xfe"},
        {"ab\xc3", "ab\\xc3"},
        {"\xc0\xaf", "\\xc0\\xaf"},
        {"\xed\xa0\x80", "\\xed\\xa0\\x80"},
        {"\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"},
        {"", ""},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        CLEANUP_BUF struct buf b = BUF_INIT;

        text_escape(&b, cases[i].in, strlen(cases[i].in));
        assert_string_equal(buf_str(&b), cases[i].out);
    }
}

static void test_escape_nul(void **state)
{
    CLEANUP_BUF struct buf b = BUF_INIT;

    (void)state;
    text_escape(&b, "a\0b", 3);
    assert_string_equal(buf_str(&b), "a\\x00b");
}

static void test_utf8_len(void **state)
{
    (void)state;
    assert_int_equal(text_utf8_len((const unsigned char *)"", 0), 0);
    assert_int_equal(text_utf8_len((const unsigned char *)"\0", 1), 1);
    assert_int_equal(text_utf8_len((const unsigned char *)"\x7f", 1), 1);
    assert_int_equal(text_utf8_len((const unsigned char *)"\x80", 1), 0);
    assert_int_equal(text_utf8_len((const unsigned char *)"\xdf\xbf", 2), 2);
    assert_int_equal(text_utf8_len((const unsigned char *)"\xdf\xbf", 1), 0);
    assert_int_equal(text_utf8_len((const unsigned char *)"\xe0\xa0\x80", 3), 3);
    assert_int_equal(text_utf8_len((const unsigned char *)"\xe0\x9f\x80", 3), 0);
    assert_int_equal(text_utf8_len((const unsigned char *)"\xef\xbf\xbf", 3), 3);
    assert_int_equal(text_utf8_len((const unsigned char *)"\xf0\x8f\x80\x80", 4), 0);
    assert_int_equal(text_utf8_len((const unsigned char *)"\xf4\x8f\xbf\xbf", 4), 4);
    assert_int_equal(text_utf8_len((const unsigned char *)"\xf5\x80\x80\x80", 4), 0);
}

static void test_cut(void **state)
{
    CLEANUP_BUF struct buf b = BUF_INIT;

    (void)state;
    buf_puts(&b, "0123456789");
    text_cut(&b, 10);
    assert_string_equal(buf_str(&b), "0123456789");
    text_cut(&b, 8);
    assert_string_equal(buf_str(&b), "01234...");
    buf_clear(&b);
    buf_puts(&b, "a\xe2\x82\xac\xe2\x82\xac");
    text_cut(&b, 6);
    assert_string_equal(buf_str(&b), "a...");
    text_cut(&b, 2);
    assert_string_equal(buf_str(&b), "..");
}

/* A text that fits, just fits, or is cut. Nothing is written beyond the buffer. */
static void test_copy(void **state)
{
    char out[6] = "-----";

    (void)state;
    text_copy(out, 4, "ab");
    assert_memory_equal(out, "ab\0--", 6);
    text_copy(out, 4, "abc");
    assert_memory_equal(out, "abc\0-", 6);
    text_copy(out, 4, "abcdef");
    assert_memory_equal(out, "abc\0-", 6);
    text_copy(out, 1, "x");
    assert_memory_equal(out, "\0bc\0-", 6);
}

static void test_parse_int(void **state)
{
    static const char *const bad[] = {"",    "-",   "+1",  " 1",  "1 ",
                                      "0x1", "1e3", "1.0", "one", "9223372036854775808"};
    int64_t v = 7;

    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++)
        assert_int_equal(text_parse_int(bad[i], INT64_MIN, INT64_MAX, &v), -1);
    assert_int_equal(text_parse_int("-1", 0, 10, &v), -1);
    assert_int_equal(text_parse_int("11", 0, 10, &v), -1);
    assert_int_equal(v, 7);
    assert_int_equal(text_parse_int("10", 0, 10, &v), 0);
    assert_int_equal(v, 10);
    assert_int_equal(text_parse_int("9223372036854775807", 0, INT64_MAX, &v), 0);
    assert_true(v == INT64_MAX);
    assert_int_equal(text_parse_int("-9223372036854775808", INT64_MIN, INT64_MAX, &v), 0);
    assert_true(v == INT64_MIN);
}

static void test_duration(void **state)
{
    static const struct {
        const char *text;
        int64_t ms;
        const char *shown;
    } cases[] = {
        {"250ms", 250, "250ms"},   {"10s", 10000, "10s"},  {"5m", 300000, "5m"},
        {"300s", 300000, "5m"},    {"2h", 7200000, "2h"},  {"7d", 604800000, "7d"},
        {"36h", 129600000, "36h"}, {"90s", 90000, "90s"},  {"0s", 0, "0s"},
        {"0d", 0, "0s"},           {"1000ms", 1000, "1s"},
    };
    static const char *const bad[] = {"",
                                      "5",
                                      "s",
                                      "5 s",
                                      "-5s",
                                      "1h30m",
                                      "1.5h",
                                      "5sec",
                                      "5S",
                                      "5w",
                                      " 5s",
                                      "99999999999999999d",
                                      "99999999999999999999s"};
    char out[24];
    int64_t ms = 7;

    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++)
        assert_int_equal(text_parse_duration(bad[i], &ms), -1);
    assert_int_equal(ms, 7);
    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_int_equal(text_parse_duration(cases[i].text, &ms), 0);
        assert_true(ms == cases[i].ms);
        assert_string_equal(text_duration(ms, out), cases[i].shown);
    }
    assert_string_equal(text_duration(INT64_MAX, out), "9223372036854775807ms");
    assert_string_equal(text_duration(INT64_MIN, out), "-9223372036854775808ms");
}

static void test_size(void **state)
{
    static const struct {
        const char *text;
        int64_t bytes;
        const char *shown;
    } cases[] = {
        {"512", 512, "512"},          {"64KiB", 65536, "64KiB"},  {"1MiB", 1048576, "1MiB"},
        {"1024KiB", 1048576, "1MiB"}, {"2G", 2147483648, "2GiB"}, {"3M", 3145728, "3MiB"},
        {"1K", 1024, "1KiB"},         {"1025", 1025, "1025"},     {"0", 0, "0"},
    };
    static const char *const bad[] = {"", "KiB", "1kb", "1 MiB", "-1", "1.5MiB", "9999999999999G"};
    char out[24];
    int64_t bytes;

    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++)
        assert_int_equal(text_parse_size(bad[i], &bytes), -1);
    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_int_equal(text_parse_size(cases[i].text, &bytes), 0);
        assert_true(bytes == cases[i].bytes);
        assert_string_equal(text_size(bytes, out), cases[i].shown);
    }
}

static void test_queue_name(void **state)
{
    static const char *const good[] = {"mail", "a", "9", "A-b_c", "x--"};
    static const char *const bad[] = {"",    "-a",  "_a",  "a b", "a:b",       "{a}",
                                      "a.b", "a/b", "a\n", "*",   "gr\xc3\xb6"};
    char longest[66];

    (void)state;
    for (size_t i = 0; i < COUNT(good); i++)
        assert_true(text_is_queue_name(good[i], strlen(good[i])));
    for (size_t i = 0; i < COUNT(bad); i++)
        assert_false(text_is_queue_name(bad[i], strlen(bad[i])));
    assert_false(text_is_queue_name("a\0b", 3));
    memset(longest, 'q', sizeof(longest));
    assert_true(text_is_queue_name(longest, 64));
    assert_false(text_is_queue_name(longest, 65));
}

static void test_nearest(void **state)
{
    static const char *const names[] = {"timeout", "concurrency", "keep", "dead_max", "mode", NULL};
    char huge[200];

    (void)state;
    assert_string_equal(text_nearest("timeot", names), "timeout");
    assert_string_equal(text_nearest("tiemout", names), "timeout");
    assert_string_equal(text_nearest("TIMEOUT", names), "timeout");
    assert_string_equal(text_nearest("dead-max", names), "dead_max");
    assert_string_equal(text_nearest("concurency", names), "concurrency");
    assert_string_equal(text_nearest("kep", names), "keep");
    assert_null(text_nearest("handlers", names));
    assert_null(text_nearest("x", names));
    assert_null(text_nearest("", names));
    memset(huge, 'x', sizeof(huge) - 1);
    huge[sizeof(huge) - 1] = '\0';
    assert_null(text_nearest(huge, names));
}

static void test_digits(void **state)
{
    static const uint64_t numbers[] = {0, 1, 9, 10, 11, 99, 100, 101, 999, 1000, 65536, UINT64_MAX};
    char text[TEXT_DIGITS_MAX + 1], expected[TEXT_DIGITS_MAX + 1];

    (void)state;
    text[TEXT_DIGITS_MAX] = '\0';
    for (size_t i = 0; i < COUNT(numbers); i++) {
        (void)snprintf(expected, sizeof(expected), "%llu", (unsigned long long)numbers[i]);
        assert_string_equal(text_digits(text + TEXT_DIGITS_MAX, numbers[i]), expected);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_escape),     cmocka_unit_test(test_escape_nul),
        cmocka_unit_test(test_utf8_len),   cmocka_unit_test(test_cut),
        cmocka_unit_test(test_copy),       cmocka_unit_test(test_parse_int),
        cmocka_unit_test(test_duration),   cmocka_unit_test(test_size),
        cmocka_unit_test(test_queue_name), cmocka_unit_test(test_nearest),
        cmocka_unit_test(test_digits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
