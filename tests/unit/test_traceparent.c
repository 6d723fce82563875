/* Which texts are a traceparent, and its trace id. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "job/traceparent.h"

#define ID "4bf92f3577b34da6a3ce929d0e0e4736"
#define ZEROS "00000000000000000000000000000000"
#define PARENT "00f067aa0ba902b7"

/* A heap copy, so that the sanitizer sees every read beyond it. */
static bool parse(const char *text, char ret[TRACE_ID_LEN + 1])
{
    char *copy = strdup(text);
    bool is = traceparent_trace_id(copy, ret);

    free(copy);
    return is;
}

static void test_valid(void **state)
{
    static const char *const rows[] = {
        "00-" ID "-" PARENT "-01",     "00-" ID "-" PARENT "-00",
        "00-" ID "-" PARENT "-ff",     "01-" ID "-" PARENT "-01",
        "fe-" ID "-" PARENT "-01-",    "cc-" ID "-" PARENT "-01-A b",
        "0f-" ID "-" PARENT "-01-x-y", "00-" ID "-0000000000000001-01",
    };
    char id[TRACE_ID_LEN + 1];

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (!parse(rows[i], id))
            fail_msg("refused: %s", rows[i]);
        assert_string_equal(id, ID);
    }
}

static void test_invalid(void **state)
{
    static const char *const rows[] = {
        "",
        "0",
        "00",
        "00-",
        "00-4bf9-01",
        "t",
        /* short and long fields */
        "0-" ID "-" PARENT "-01",
        "000-" ID "-" PARENT "-01",
        "00-" ID "0-" PARENT "-01",
        "00-" ID "-" PARENT "0-01",
        "00-" ID "-" PARENT "-1",
        "00-" ID "-" PARENT "-011",
        "00-" ID "-" PARENT,
        "00-" ID "-" PARENT "-",
        "01-" ID "-" PARENT "-011",
        "01-" ID "-" PARENT "-01x",
        "01-" ID "-" PARENT "-01 x",
        /* what version 00 does not have */
        "00-" ID "-" PARENT "-01-",
        "00-" ID "-" PARENT "-01-x",
        /* upper case */
        "00-4BF92F3577B34DA6A3CE929D0E0E4736-" PARENT "-01",
        "00-" ID "-00F067AA0BA902B7-01",
        "00-" ID "-" PARENT "-0A",
        "0A-" ID "-" PARENT "-01",
        /* no digits */
        "00-" ID "-" PARENT "-0g",
        "00 " ID "-" PARENT "-01",
        "00-" ID "_" PARENT "-01",
        "00-" ID "-" PARENT "_01",
        "0\xff-" ID "-" PARENT "-01",
        /* none at all */
        "ff-" ID "-" PARENT "-01",
        "00-" ZEROS "-" PARENT "-01",
        "00-" ID "-0000000000000000-01",
    };
    char id[TRACE_ID_LEN + 1];

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (parse(rows[i], id))
            fail_msg("taken: %s", rows[i]);
        assert_string_equal(id, "");
    }
}

/* Each beginning of one is none. */
static void test_cut_anywhere(void **state)
{
    char text[] = "00-" ID "-" PARENT "-01", id[TRACE_ID_LEN + 1];

    (void)state;
    for (size_t n = sizeof(text) - 1; n-- > 0;) {
        text[n] = '\0';
        assert_false(parse(text, id));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_valid),
        cmocka_unit_test(test_invalid),
        cmocka_unit_test(test_cut_anywhere),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
