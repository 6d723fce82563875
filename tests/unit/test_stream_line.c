/* Lines of a stream process: greetings, answers, and lines that are neither. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "run/stream/stream_line.h"

#define ID "j1k0v1hrcr96"

static void test_greetings(void **state)
{
    static const struct {
        const char *line;
        bool is_one;
        int version;
        unsigned inflight;
        bool can_cancel;
    } rows[] = {
        {"later-stream 1", true, 1, 1, false},
        {"later-stream 1 inflight=8", true, 1, 8, false},
        {"later-stream 1 cancel inflight=1024 new=thing", true, 1, 1024, true},
        {"later-stream 1\r", true, 1, 1, false},
        {"later-stream 1 cancel\r", true, 1, 1, true},
        {"later-stream 2", true, 2, 1, false},
        {"later-stream 1 inflight=0", false, 0, 0, false},
        {"later-stream 1 inflight=1025", false, 0, 0, false},
        {"later-stream 1 inflight=99999999999999999999", false, 0, 0, false},
        {"later-stream 1 inflight=", false, 0, 0, false},
        {"later-stream", false, 0, 0, false},
        {"later-stream 1\r\r", false, 0, 0, false},
        {"later-stream ", false, 0, 0, false},
        {"later-stream one", false, 0, 0, false},
        {"later-stream 1.5", false, 0, 0, false},
        {"hello", false, 0, 0, false},
        {"", false, 0, 0, false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct stream_greeting g;

        if (stream_greeting_parse(rows[i].line, strlen(rows[i].line), &g) != rows[i].is_one)
            fail_msg("\"%s\"", rows[i].line);
        if (rows[i].is_one && (g.version != rows[i].version || g.inflight != rows[i].inflight ||
                               g.can_cancel != rows[i].can_cancel))
            fail_msg("\"%s\": version %d, inflight %u", rows[i].line, (int)g.version, g.inflight);
    }
}

static void test_answers(void **state)
{
    static const struct {
        const char *line;
        enum stream_word word;
        const char *id, *text;
        int64_t retry_in_ms;
    } rows[] = {
        {"ok " ID, STREAM_OK, ID, "", -1},
        {"ok " ID " 42 rows", STREAM_OK, ID, "42 rows", -1},
        {"retry " ID, STREAM_RETRY, ID, "", -1},
        {"retry " ID " 5m", STREAM_RETRY, ID, "", 300000},
        {"retry " ID " 5m the door is shut", STREAM_RETRY, ID, "the door is shut", 300000},
        {"retry " ID " the door is shut", STREAM_RETRY, ID, "the door is shut", -1},
        {"retry " ID " 99999999d later", STREAM_RETRY, ID, "99999999d later", -1},
        {"fail " ID " no such file", STREAM_FAIL, ID, "no such file", -1},
        {"dead " ID " never", STREAM_DEAD, ID, "never", -1},
        {"progress " ID " 40 resizing", STREAM_PROGRESS, ID, "40 resizing", -1},
        {"ok " ID "\r", STREAM_OK, ID, "", -1},
        {"ok " ID " 42 rows\r", STREAM_OK, ID, "42 rows", -1},
        {"retry " ID " 5m\r", STREAM_RETRY, ID, "", 300000},
        {"alive\r", STREAM_ALIVE, "", "", -1},
        {"ok " ID "\r\r", STREAM_OTHER, "", "ok " ID "\r\r", -1},
        {"\r", STREAM_OTHER, "", "\r", -1},
        {"alive", STREAM_ALIVE, "", "", -1},
        {"alive " ID, STREAM_ALIVE, ID, "", -1},
        {"ok", STREAM_OTHER, "", "ok", -1},
        {"ok j1", STREAM_OTHER, "", "ok j1", -1},
        {"OK " ID, STREAM_OTHER, "", "OK " ID, -1},
        {"ok  " ID, STREAM_OTHER, "", "ok  " ID, -1},
        {"okay " ID, STREAM_OTHER, "", "okay " ID, -1},
        {" ok " ID, STREAM_OTHER, "", " ok " ID, -1},
        {"alive j1", STREAM_OTHER, "", "alive j1", -1},
        {"Starting up…", STREAM_OTHER, "", "Starting up…", -1},
        {"", STREAM_OTHER, "", "", -1},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct stream_answer a;

        stream_answer_parse(rows[i].line, strlen(rows[i].line), &a);
        if (a.word != rows[i].word ||
            strcmp(a.id, rows[i].word == STREAM_OTHER ? a.id : rows[i].id) != 0 ||
            a.len != strlen(rows[i].text) || memcmp(a.text, rows[i].text, a.len) != 0 ||
            a.retry_in_ms != rows[i].retry_in_ms)
            fail_msg("\"%s\": word %d, id \"%s\", text \"%.*s\", %lld ms", rows[i].line,
                     (int)a.word, a.id, (int)a.len, a.text, (long long)a.retry_in_ms);
    }
}

/* Bytes that no text contains. */
static void test_bytes(void **state)
{
    static const char nul[] = "ok j1k0\0v1hrcr96";
    struct stream_answer a;

    (void)state;
    stream_answer_parse(nul, sizeof(nul) - 1, &a);
    assert_int_equal(a.word, STREAM_OTHER);
    stream_answer_parse("ok " ID " \xff\0x", 19, &a);
    assert_int_equal(a.word, STREAM_OK);
    assert_int_equal(a.len, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_greetings),
        cmocka_unit_test(test_answers),
        cmocka_unit_test(test_bytes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
