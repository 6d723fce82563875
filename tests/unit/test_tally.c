/* cli/tally: what became of which lines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "cli/tally.h"

static void assert_lines(const struct tally *t, enum tally_fate fate, const char *text)
{
    CLEANUP_BUF struct buf out = BUF_INIT;

    tally_put(t, fate, &out);
    assert_string_equal(buf_str(&out), text);
}

static void test_one_span(void **state)
{
    struct tally t = {.n = 0};

    (void)state;
    assert_lines(&t, TALLY_ADDED, "");
    tally_note(&t, TALLY_ADDED, 1, 1);
    assert_lines(&t, TALLY_ADDED, "line 1");
    for (uint64_t i = 0; i < 1000; i++)
        tally_note(&t, TALLY_ADDED, 2 + i * 256, 256);
    assert_int_equal(t.n, 1);
    assert_int_equal(t.count[TALLY_ADDED], 256001);
    assert_lines(&t, TALLY_ADDED, "lines 1 to 256001");
    assert_lines(&t, TALLY_UNKNOWN, "");
}

/* One call is refused, the one behind it is not, and then the link breaks. */
static void test_spans(void **state)
{
    struct tally t = {.n = 0};
    json_t *spans;
    char *text;

    (void)state;
    tally_note(&t, TALLY_ADDED, 1, 100);
    tally_note(&t, TALLY_REFUSED, 101, 100);
    tally_note(&t, TALLY_ADDED, 201, 100);
    tally_note(&t, TALLY_ADDED, 301, 1);
    tally_note(&t, TALLY_UNKNOWN, 302, 1);
    assert_lines(&t, TALLY_ADDED, "lines 1 to 100, 201 to 301");
    assert_lines(&t, TALLY_REFUSED, "lines 101 to 200");
    assert_lines(&t, TALLY_UNKNOWN, "line 302");
    assert_int_equal(t.count[TALLY_ADDED], 201);
    spans = tally_json(&t, TALLY_ADDED);
    text = json_dumps(spans, JSON_COMPACT);
    assert_string_equal(text, "[[1,100],[201,301]]");
    free(text);
    json_decref(spans);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_span),
        cmocka_unit_test(test_spans),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
