/* The lines of a crontab. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/mem.h"
#include "cli/bulk/crontab.h"

static void test_lines(void **state)
{
    static const struct {
        const char *text;
        bool is_system;
        enum crontab_kind kind;
        const char *first, *user, *second; /* name or expression; value or command */
    } rows[] = {
        {"", false, CRONTAB_NOTHING, "", "", ""},
        {"   # 1 2 3 4 5 x", false, CRONTAB_NOTHING, "", "", ""},
        {"MAILTO=root", false, CRONTAB_VARIABLE, "MAILTO", "", "root"},
        {" CRON_TZ = \"Europe/Berlin\" ", false, CRONTAB_VARIABLE, "CRON_TZ", "", "Europe/Berlin"},
        {"A=", false, CRONTAB_VARIABLE, "A", "", ""},
        {"5 4 * * 1-5\t/usr/bin/backup --all", false, CRONTAB_ENTRY, "5 4 * * 1-5", "",
         "/usr/bin/backup --all"},
        {"17 *\t* * *  root  cd / && run", true, CRONTAB_ENTRY, "17 * * * *", "root",
         "cd / && run"},
        {"@daily x=1 y", false, CRONTAB_ENTRY, "@daily", "", "x=1 y"},
        {"@hourly root run", true, CRONTAB_ENTRY, "@hourly", "root", "run"},
        {"* * * * * date +\\%F", false, CRONTAB_ENTRY, "* * * * *", "", "date +%F"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct crontab_line l;
        bool is_variable = rows[i].kind == CRONTAB_VARIABLE;

        assert_int_equal(crontab_parse(rows[i].text, rows[i].is_system, &l, NULL), 0);
        assert_int_equal(l.kind, rows[i].kind);
        assert_string_equal(is_variable ? l.name : l.expression, rows[i].first);
        assert_string_equal(l.user, rows[i].user);
        assert_string_equal(is_variable ? l.value : l.command, rows[i].second);
        assert_false(l.has_input);
    }
}

static void test_others(void **state)
{
    char *large = mem_new(3000);
    struct crontab_line l;
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(crontab_parse("0 0 * * * cat%a%b", false, &l, &err), 0);
    assert_true(l.has_input);
    assert_string_equal(l.command, "cat");
    assert_int_equal(crontab_parse("0 0 * *", false, &l, &err), -1);
    assert_non_null(strstr(err.text, "minute hour day month weekday COMMAND"));
    assert_int_equal(crontab_parse("0 0 * * * x", true, &l, &err), -1);
    assert_non_null(strstr(err.text, "weekday USER COMMAND"));
    assert_int_equal(crontab_parse("0 0 * * *", false, &l, &err), -1);
    assert_int_equal(crontab_parse("@daily", false, &l, &err), -1);
    memset(large, '*', 2999);
    assert_int_equal(crontab_parse(large, false, &l, &err), -1);
    assert_non_null(strstr(err.text, "at most 1023 bytes"));
    free(large);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_lines), cmocka_unit_test(test_others)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
