/* base/text and base/log. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
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

/* It fits, it just fits, it does not; what lies behind stays. */
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

/* stderr as the write end of a pipe while a log test runs. */
struct capture {
    int saved;
    int reader;
};

static int capture_start(void **state)
{
    struct capture *c = calloc(1, sizeof(*c));
    int fds[2];

    if (c == NULL || pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0)
        return -1;
    c->saved = dup(STDERR_FILENO);
    c->reader = fds[0];
    (void)dup2(fds[1], STDERR_FILENO);
    (void)close(fds[1]);
    (void)unsetenv("JOURNAL_STREAM");
    log_init(LOG_LEVEL_INFO);
    *state = c;
    return 0;
}

static int capture_stop(void **state)
{
    struct capture *c = *state;

    (void)dup2(c->saved, STDERR_FILENO);
    (void)close(c->saved);
    if (c->reader >= 0)
        (void)close(c->reader);
    free(c);
    return 0;
}

static const char *captured(const struct capture *c, char out[8192])
{
    ssize_t n = read(c->reader, out, 8191);

    out[n > 0 ? n : 0] = '\0';
    return out;
}

static void test_log_plain(void **state)
{
    char out[8192];
    int year, month, day, hour, minute, second, ms, end = 0;

    log_warn("event=%s", "x\nforged");
    captured(*state, out);
    assert_int_equal(sscanf(out, "%4d-%2d-%2dT%2d:%2d:%2d.%3dZ warn %n", &year, &month, &day, &hour,
                            &minute, &second, &ms, &end),
                     7);
    assert_int_equal(end, 30);
    assert_string_equal(out + end, "event=x\\x0aforged\n");
}

static void test_log_level(void **state)
{
    char out[8192];

    log_debug("event=quiet");
    assert_string_equal(captured(*state, out), "");
    log_set_level(LOG_LEVEL_DEBUG);
    errno = EXDEV;
    log_debug("event=loud");
    assert_int_equal(errno, EXDEV);
    assert_non_null(strstr(captured(*state, out), " debug event=loud\n"));
    assert_int_equal(log_level_parse("error"), LOG_LEVEL_ERR);
    assert_int_equal(log_level_parse("debug"), LOG_LEVEL_DEBUG);
    assert_int_equal(log_level_parse("Debug"), -1);
}

static void test_log_journal(void **state)
{
    char out[8192], stream[64];
    struct stat st;

    assert_int_equal(fstat(STDERR_FILENO, &st), 0);
    (void)snprintf(stream, sizeof(stream), "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
    (void)setenv("JOURNAL_STREAM", stream, 1);
    log_init(LOG_LEVEL_INFO);
    log_err("event=x");
    assert_string_equal(captured(*state, out), "<3>event=x\n");
    (void)setenv("JOURNAL_STREAM", "1:1", 1);
    log_init(LOG_LEVEL_INFO);
    log_err("event=x");
    assert_non_null(strstr(captured(*state, out), "Z error event=x\n"));
    (void)unsetenv("JOURNAL_STREAM");
}

static void test_log_truncates(void **state)
{
    char out[8192], big[4096];

    memset(big, '\x01', sizeof(big) - 1);
    big[sizeof(big) - 1] = '\0';
    log_info("event=x value=%s", big);
    captured(*state, out);
    assert_true(strlen(out) <= 2048);
    assert_string_equal(out + strlen(out) - 4, "...\n");
    assert_ptr_equal(strchr(out, '\n'), out + strlen(out) - 1);
}

static void test_log_full_pipe(void **state)
{
    char out[8192];
    size_t written = 0;

    while (write(STDERR_FILENO, "0123456789abcde\n", 16) == 16)
        written += 16;
    log_info("event=lost n=1");
    log_info("event=lost n=2");
    for (size_t n = 0; n < written; n += strlen(out))
        captured(*state, out);
    log_info("event=seen");
    captured(*state, out);
    assert_non_null(strstr(out, " info dropped_lines=2 event=seen\n"));
    log_info("event=next");
    captured(*state, out);
    assert_null(strstr(out, "dropped_lines"));
}

static void test_log_reader_gone(void **state)
{
    struct capture *c = *state;
    char out[8192];
    int fds[2];

    (void)close(c->reader);
    log_info("event=lost");
    assert_int_equal(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
    (void)dup2(fds[1], STDERR_FILENO);
    (void)close(fds[1]);
    c->reader = fds[0];
    log_info("event=seen");
    assert_non_null(strstr(captured(c, out), " dropped_lines=1 event=seen\n"));
}

static void *log_some(void *arg)
{
    for (int i = 0; i < 10; i++)
        log_info("thread=%s n=%d end", (const char *)arg, i);
    return NULL;
}

static void test_log_threads(void **state)
{
    pthread_t a, b;
    char out[8192], *rest = out, *line;
    int lines = 0;

    assert_int_equal(pthread_create(&a, NULL, log_some, (void *)(uintptr_t) "aaaaaaaaaa"), 0);
    assert_int_equal(pthread_create(&b, NULL, log_some, (void *)(uintptr_t) "bbbbbbbbbb"), 0);
    (void)pthread_join(a, NULL);
    (void)pthread_join(b, NULL);
    captured(*state, out);
    while ((line = strsep(&rest, "\n")) != NULL && *line != '\0') {
        assert_string_equal(line + strlen(line) - 4, " end");
        assert_ptr_equal(strstr(line, "thread="), line + 30);
        lines++;
    }
    assert_int_equal(lines, 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_escape),
        cmocka_unit_test(test_escape_nul),
        cmocka_unit_test(test_utf8_len),
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_copy),
        cmocka_unit_test(test_parse_int),
        cmocka_unit_test(test_duration),
        cmocka_unit_test(test_size),
        cmocka_unit_test(test_queue_name),
        cmocka_unit_test(test_nearest),
        cmocka_unit_test_setup_teardown(test_log_plain, capture_start, capture_stop),
        cmocka_unit_test_setup_teardown(test_log_level, capture_start, capture_stop),
        cmocka_unit_test_setup_teardown(test_log_journal, capture_start, capture_stop),
        cmocka_unit_test_setup_teardown(test_log_truncates, capture_start, capture_stop),
        cmocka_unit_test_setup_teardown(test_log_full_pipe, capture_start, capture_stop),
        cmocka_unit_test_setup_teardown(test_log_reader_gone, capture_start, capture_stop),
        cmocka_unit_test_setup_teardown(test_log_threads, capture_start, capture_stop),
    };

    (void)signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
