/* cli/bulk/line_results: which lines were added, which refused, which are unknown. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "cli/bulk/line_results.h"

static void assert_lines(const struct line_results *t, enum line_result result, const char *text)
{
    CLEANUP_BUF struct buf out = BUF_INIT;

    line_results_put(t, result, &out);
    assert_string_equal(buf_str(&out), text);
}

static void test_one_span(void **state)
{
    struct line_results t = {.n = 0};

    (void)state;
    assert_lines(&t, LINE_ADDED, "");
    line_results_add(&t, LINE_ADDED, 1, 1);
    assert_lines(&t, LINE_ADDED, "line 1");
    for (uint64_t i = 0; i < 1000; i++)
        line_results_add(&t, LINE_ADDED, 2 + i * 256, 256);
    assert_int_equal(t.n, 1);
    assert_int_equal(t.count[LINE_ADDED], 256001);
    assert_lines(&t, LINE_ADDED, "lines 1 to 256001");
    assert_lines(&t, LINE_UNKNOWN, "");
}

/* One call is refused, the next one is not, and then the link breaks. */
static void test_spans(void **state)
{
    struct line_results t = {.n = 0};
    json_t *spans;
    char *text;

    (void)state;
    line_results_add(&t, LINE_ADDED, 1, 100);
    line_results_add(&t, LINE_REFUSED, 101, 100);
    line_results_add(&t, LINE_ADDED, 201, 100);
    line_results_add(&t, LINE_ADDED, 301, 1);
    line_results_add(&t, LINE_UNKNOWN, 302, 1);
    assert_lines(&t, LINE_ADDED, "lines 1 to 100, 201 to 301");
    assert_lines(&t, LINE_REFUSED, "lines 101 to 200");
    assert_lines(&t, LINE_UNKNOWN, "line 302");
    assert_int_equal(t.count[LINE_ADDED], 201);
    spans = line_results_json(&t, LINE_ADDED);
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
