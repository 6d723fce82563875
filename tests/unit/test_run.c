/* The pure parts of run/: lines, last bytes, the control descriptor's lines, interpreter lines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "run/exec/control_fd.h"
#include "run/lines.h"
#include "run/handler/program.h"
#include "run/exec/last_bytes.h"

/* ---- lines ---- */

/* Put each line as "<line>", a cut one with a ! at its end. */
static void on_line(void *arg, const char *line, size_t n, bool cut)
{
    struct buf *out = arg;

    buf_puts(out, "<");
    buf_add(out, line, n);
    buf_puts(out, cut ? "!>" : ">");
}

static void expect_lines(const char *bytes, size_t n, size_t max, const char *want)
{
    for (size_t chunk = 1; chunk <= n; chunk++) {
        struct buf got = BUF_INIT;
        struct lines l;

        lines_init(&l, max);
        for (size_t at = 0; at < n; at += chunk)
            lines_feed(&l, bytes + at, n - at < chunk ? n - at : chunk, on_line, &got);
        assert_true(l.part.len <= max);
        lines_end(&l, on_line, &got);
        assert_string_equal(buf_str(&got), want);
        lines_done(&l);
        buf_done(&got);
    }
}

static void test_lines_are_the_same_however_they_come(void **state)
{
    (void)state;
    expect_lines("a\nbc\n\nd", 7, 9, "<a><bc><><d>");
    expect_lines("abc\nabcd\nabcde\nx\n", 17, 4, "<abc><abcd><abcd!><x>");
    expect_lines("abcdefgh", 8, 4, "<abcd!>");
    expect_lines("\n\n", 2, 4, "<><>");
}

/* A line `N` announces N bytes that are no lines. */
static void on_some(void *arg, const char *bytes, size_t n)
{
    buf_add(arg, bytes, n);
}

struct expecting {
    struct buf out; /* first: on_some gets it */
    struct lines lines;
};

static void on_count(void *arg, const char *line, size_t n, bool cut)
{
    struct expecting *e = arg;

    on_line(&e->out, line, n, cut);
    if (n == 1)
        lines_expect(&e->lines, (size_t)(line[0] - '0'), on_some);
}

static void test_bytes_that_are_no_lines(void **state)
{
    static const char bytes[] = "ab\n3\nx\ny\nbc\n0\nde\n5\n\n\n\n";

    (void)state;
    for (size_t chunk = 1; chunk < sizeof(bytes); chunk++) {
        struct expecting e = {.out = BUF_INIT};
        size_t n = sizeof(bytes) - 1;

        lines_init(&e.lines, 9);
        for (size_t at = 0; at < n; at += chunk)
            lines_feed(&e.lines, bytes + at, n - at < chunk ? n - at : chunk, on_count, &e);
        lines_end(&e.lines, on_count, &e);
        assert_string_equal(buf_str(&e.out), "<ab><3>x\ny<><bc><0><de><5>\n\n\n");
        assert_int_equal(e.lines.expected, 2);
        lines_done(&e.lines);
        buf_done(&e.out);
    }
}

/* ---- last bytes ---- */

static void test_the_last_bytes_are_kept(void **state)
{
    static const char text[] = "abcdefghijklmnopqrstuvwxyz";

    (void)state;
    for (size_t chunk = 1; chunk <= 26; chunk++) {
        struct buf got = BUF_INIT;
        struct last_bytes t;

        last_bytes_init(&t, 7);
        for (size_t at = 0; at < 26; at += chunk) {
            size_t upto = at + chunk < 26 ? at + chunk : 26;
            size_t held = upto < 7 ? upto : 7;

            last_bytes_add(&t, text + at, upto - at);
            buf_clear(&got);
            last_bytes_copy(&t, &got);
            assert_int_equal(got.len, held);
            assert_memory_equal(got.data, text + upto - held, held);
        }
        last_bytes_done(&t);
        buf_done(&got);
    }
}

/* ---- control lines ---- */

static void expect_said(const char *line, enum control_kind kind, const char *text)
{
    struct control_line said;

    control_line_parse(line, strlen(line), &said);
    assert_int_equal(said.kind, kind);
    if (kind != CONTROL_OTHER) {
        assert_int_equal(said.len, strlen(text));
        assert_memory_equal(said.text, text, said.len);
    }
}

static void test_control_lines(void **state)
{
    struct control_line said;

    (void)state;
    expect_said("progress 40 resizing", CONTROL_PROGRESS, "40 resizing");
    expect_said("progress", CONTROL_PROGRESS, "");
    expect_said("result ", CONTROL_RESULT, "");
    expect_said("result  two spaces", CONTROL_RESULT, " two spaces");
    expect_said("log x", CONTROL_LOG, "x");
    expect_said("", CONTROL_OTHER, "");
    expect_said("results x", CONTROL_OTHER, "");
    expect_said(" result x", CONTROL_OTHER, "");
    expect_said("Result x", CONTROL_OTHER, "");
    expect_said("retry-in", CONTROL_OTHER, "");
    expect_said("retry-in 5", CONTROL_OTHER, "");
    expect_said("retry-in -5s", CONTROL_OTHER, "");
    expect_said("retry-in 99999999999999999999999999999999999999d", CONTROL_OTHER, "");
    control_line_parse("retry-in 5m", 11, &said);
    assert_int_equal(said.kind, CONTROL_RETRY_IN);
    assert_int_equal(said.ms, 300000);
    control_line_parse("retry-in 5m\0s", 13, &said);
    assert_int_equal(said.kind, CONTROL_OTHER);
}

/* ---- interpreter lines ---- */

static void expect_first(const char *first, size_t n, enum program_kind kind, const char *want)
{
    char interpreter[PROGRAM_FIRST_BYTES];

    assert_int_equal(program_first(first, n, interpreter), kind);
    assert_string_equal(interpreter, want);
}

#define HEAD(text, kind, want) expect_first(text, sizeof(text) - 1, kind, want)

static void test_interpreter_lines(void **state)
{
    char filled[PROGRAM_FIRST_BYTES];

    (void)state;
    HEAD("#!/bin/sh\nx", PROGRAM_SCRIPT, "/bin/sh");
    HEAD("#! \t/bin/sh -e -u\n", PROGRAM_SCRIPT, "/bin/sh");
    HEAD("#!/bin/sh", PROGRAM_SCRIPT, "/bin/sh");
    HEAD("#!/bin/sh\t \n", PROGRAM_SCRIPT, "/bin/sh");
    HEAD("#!/bin/sh\0junk\n", PROGRAM_SCRIPT, "/bin/sh");
    HEAD("#!/bin/sh\r\n", PROGRAM_CRLF, "");
    HEAD("#!/usr/bin/env python3\r\n", PROGRAM_CRLF, "");
    HEAD("#!\n", PROGRAM_NAMELESS, "");
    HEAD("#!  \n/bin/sh", PROGRAM_NAMELESS, "");
    HEAD("#!", PROGRAM_NAMELESS, "");
    HEAD("\xef\xbb\xbf#!/bin/sh\n", PROGRAM_BOM, "");
    HEAD("echo hello\n", PROGRAM_TEXT, "");
    HEAD("#", PROGRAM_TEXT, "");
    HEAD("", PROGRAM_EMPTY, "");
    HEAD("\177ELF\2\1\1\0", PROGRAM_OTHER, "");
    HEAD("PK\3\4", PROGRAM_OTHER, "");
    memset(filled, 'x', sizeof(filled));
    memcpy(filled, "#!/", 3);
    expect_first(filled, sizeof(filled), PROGRAM_LONG, "");
    filled[200] = ' '; /* the name is whole, only its argument is cut off */
    filled[201] = 'y';
    filled[3] = '\0';
    expect_first(filled, sizeof(filled), PROGRAM_SCRIPT, "/");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines_are_the_same_however_they_come),
        cmocka_unit_test(test_bytes_that_are_no_lines),
        cmocka_unit_test(test_the_last_bytes_are_kept),
        cmocka_unit_test(test_control_lines),
        cmocka_unit_test(test_interpreter_lines),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
