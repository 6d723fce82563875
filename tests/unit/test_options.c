/* laterd's command line: what it accepts, and its message for everything else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <getopt.h>

#include "daemon/options.h"

static struct options opt;
static struct err err;

/* Parse `laterd FIRST SECOND`; NULL ends the arguments. */
static int parse(const char *first, const char *second)
{
    char *argv[] = {(char *)"laterd", (char *)first, (char *)second, NULL};
    int argc = first == NULL ? 1 : second == NULL ? 2 : 3;

    optind = 0; /* glibc: start anew */
    return options_parse(&opt, argc, argv, &err);
}

static void test_takes(void **state)
{
    (void)state;
    assert_int_equal(parse(NULL, NULL), 0);
    assert_int_equal(opt.mode, DAEMON_RUN);
    assert_null(opt.config);
    assert_int_equal(parse("--config", "/a"), 0);
    assert_string_equal(opt.config, "/a");
    assert_int_equal(parse("-c/b", "--check-config"), 0);
    assert_string_equal(opt.config, "/b");
    assert_int_equal(opt.mode, DAEMON_CHECK);
    assert_int_equal(parse("--config=/c", "--print-config"), 0);
    assert_string_equal(opt.config, "/c");
    assert_int_equal(opt.mode, DAEMON_PRINT);
    assert_int_equal(parse("-V", "--nonsense"), 0);
    assert_int_equal(opt.mode, DAEMON_VERSION);
    assert_int_equal(parse("-h", NULL), 0);
    assert_int_equal(opt.mode, DAEMON_HELP);
}

static void test_refuses(void **state)
{
    static const struct {
        const char *first, *second, *says;
    } cases[] = {
        {"--chekc-config", NULL, "unknown option --chekc-config: did you mean --check-config?"},
        {"--confg=/etc/x", NULL, "unknown option --confg: did you mean --config?"},
        {"--nonsense", NULL, "unknown option --nonsense (try: laterd --help)"},
        {"-x", NULL, "unknown option -x (try: laterd --help)"},
        {"--\033[2J", NULL, "unknown option --\\x1b[2J (try: laterd --help)"},
        {"--config", NULL, "option --config needs a value"},
        {"-c", NULL, "option --config needs a value"},
        {"--version=3", NULL, "option --version takes no value"},
        {"--check-config=3", NULL, "option --check-config takes no value"},
        {"start", NULL, "unexpected argument 'start' (try: laterd --help)"},
        {"--check-config", "\033[2J", "unexpected argument '\\x1b[2J' (try: laterd --help)"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(parse(cases[i].first, cases[i].second), -1);
        assert_int_equal(err.code, ERR_USAGE);
        assert_string_equal(err.text, cases[i].says);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_takes),
        cmocka_unit_test(test_refuses),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
