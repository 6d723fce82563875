/* The request of `later step`: what is one, and what is not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "job/step.h"

#define NAME64 "0123456789012345678901234567890123456789012345678901234567890123"

static void test_requests(void **state)
{
    static const struct {
        const char *line;
        const char *token, *name; /* NULL: it is none */
        int bytes;                /* -1: no output follows */
    } all[] = {
        {"1-ab charge", "1-ab", "charge", -1},
        {"1-ab charge 0", "1-ab", "charge", 0},
        {"1-ab a.b:c_d-e 16384", "1-ab", "a.b:c_d-e", 16384},
        {"t " NAME64, "t", NAME64, -1},
        {"t x" NAME64, NULL, NULL, 0},
        {"", NULL, NULL, 0},
        {"t", NULL, NULL, 0},
        {"t ", NULL, NULL, 0},
        {" t x", NULL, NULL, 0},
        {"t  x", NULL, NULL, 0},
        {"t .x", NULL, NULL, 0},
        {"t x ", NULL, NULL, 0},
        {"t x -1", NULL, NULL, 0},
        {"t x 16385", NULL, NULL, 0},
        {"t x 1 ", NULL, NULL, 0},
        {"t x 1 2", NULL, NULL, 0},
        {"t x/y", NULL, NULL, 0},
        {"x" NAME64 " x", NULL, NULL, 0},
        {"t \xc3\xa9", NULL, NULL, 0},
    };
    struct step_request r;

    (void)state;
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        bool is_one = step_request_parse(all[i].line, strlen(all[i].line), &r);

        if (is_one != (all[i].token != NULL))
            fail_msg("'%s': %d", all[i].line, is_one);
        if (!is_one)
            continue;
        assert_string_equal(r.token, all[i].token);
        assert_string_equal(r.name, all[i].name);
        assert_int_equal(r.has_output, all[i].bytes >= 0);
        assert_int_equal(r.output_len, all[i].bytes >= 0 ? all[i].bytes : 0);
    }
    assert_false(step_request_parse("t x\0y", 5, &r));
    assert_false(step_request_parse(NAME64 NAME64 NAME64, 192, &r));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_requests)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
