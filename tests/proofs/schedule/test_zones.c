/*
 * Every zone of the database, as zone.c has it, against `zdump -v`: each change of the offset from
 * 1970 to 2059, in both directions. Behind 2037, where the tables of fat files end, it is the rule
 * that counts; in slim files (`zic -b slim`), from the last change of the rules on.
 */
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "schedule/zone.h"

#define DATABASE "/usr/share/zoneinfo"
#define SOURCE DATABASE "/tzdata.zi"
#define FIRST_S INT64_C(0)
#define LAST_S INT64_C(2840140800) /* 2060 */

#define TOLD_MAX 1000 /* lines of zdump */

static size_t zones, changes;
static const char *database;

/* "Europe/Berlin  Sun Mar 29 01:00:00 2026 UT = Sun Mar 29 03:00:00 2026 CEST isdst=1 gmtoff=7200"
 */
static bool read_line(const char *line, int64_t *ret_s, int64_t *ret_offset_s)
{
    const char *ut = strstr(line, "  "), *offset = strstr(line, "gmtoff=");
    struct tm tm = {0};

    if (ut == NULL || offset == NULL || strptime(ut, " %a %b %d %H:%M:%S %Y UT", &tm) == NULL)
        return false;
    *ret_s = timegm(&tm);
    *ret_offset_s = strtoll(offset + 7, NULL, 10);
    return true;
}

static bool has(const int64_t *list, size_t n, int64_t s)
{
    for (size_t i = 0; i < n; i++)
        if (list[i] == s)
            return true;
    return false;
}

static void check_zone(const char *name)
{
    CLEANUP_FREE char *command = mem_printf("TZDIR=" DATABASE " zdump -v -c 1969,2060 %s", name);
    struct err err = ERR_INIT;
    struct zone *zone = zone_new(name, &err);
    struct stretch at;
    FILE *f;
    char line[256];
    int64_t told[TOLD_MAX], before_s;
    size_t lines = 0;

    if (zone == NULL)
        fail_msg("%s: %s", name, err.text);
    at = zone_stretch(zone, FIRST_S);
    f = popen(command, "re");
    assert_non_null(f);
    while (fgets(line, sizeof(line), f) != NULL) {
        int64_t s, offset_s;

        if (!read_line(line, &s, &offset_s) || s < FIRST_S || s >= LAST_S)
            continue;
        at = zone_stretch(zone, s);
        if (at.offset_s != offset_s)
            fail_msg("%s at %lld: %lld s, zdump says %lld", name, (long long)s,
                     (long long)at.offset_s, (long long)offset_s);
        assert_true(lines < TOLD_MAX);
        told[lines++] = s;
    }
    assert_int_equal(pclose(f), 0);
    /* And no change of the offset that zdump has not. */
    at = zone_stretch(zone, FIRST_S);
    while (at.until_s < LAST_S) {
        before_s = at.offset_s;
        at = zone_stretch(zone, at.until_s);
        if (at.offset_s != before_s && !has(told, lines, at.from_s))
            fail_msg("%s: a change at %lld that zdump has not", name, (long long)at.from_s);
        changes += at.offset_s != before_s;
    }
    zone_free(zone);
    zones++;
}

static int on_file(const char *path, const struct stat *st, int kind, struct FTW *unused)
{
    const char *name = path + strlen(database) + 1;
    CLEANUP_FREE char *fat = mem_printf("%s/%s", DATABASE, name);

    (void)st;
    (void)unused;
    if ((kind == FTW_F || kind == FTW_SL) && strncmp(name, "posix/", 6) != 0 &&
        strncmp(name, "right/", 6) != 0 && strchr(name, '.') == NULL &&
        strcmp(name, "leapseconds") != 0 && strcmp(name, "posixrules") != 0 &&
        strcmp(name, "localtime") != 0 && access(fat, R_OK) == 0)
        check_zone(name);
    return 0;
}

static void check_all(const char *dir)
{
    database = dir;
    zones = changes = 0;
    assert_int_equal(setenv("TZDIR", dir, 1), 0);
    assert_int_equal(nftw(dir, on_file, 16, FTW_PHYS), 0);
    print_message("%zu zones, %zu changes\n", zones, changes);
    /* Debian 13 has the old names in tzdata-legacy. */
    assert_true(zones > (access(DATABASE "/US/Eastern", R_OK) == 0 ? 500 : 300));
}

static void test_every_zone(void **state)
{
    (void)state;
    check_all(DATABASE);
}

/* As other distributions have them: what a rule says is in no table. They are held against the fat
 * ones that are installed: zdump reads the slim America/Ojinaga of October 2022 by its rule, a week
 * too early. */
static void test_slim(void **state)
{
    char dir[] = "/tmp/test_zones.XXXXXX";
    CLEANUP_FREE char *make = NULL, *clean = NULL;

    (void)state;
    if (access(SOURCE, R_OK) < 0 || system("PATH=$PATH:/usr/sbin command -v zic >/dev/null") != 0)
        skip();
    assert_non_null(mkdtemp(dir));
    make = mem_printf("PATH=$PATH:/usr/sbin zic -b slim -d %s " SOURCE, dir);
    clean = mem_printf("rm -rf %s", dir);
    assert_int_equal(system(make), 0);
    check_all(dir);
    assert_int_equal(system(clean), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_zone),
                                       cmocka_unit_test(test_slim)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
