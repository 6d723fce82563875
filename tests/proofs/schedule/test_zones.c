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

/* The files of a database, and what was found in it. */
struct database {
    char dir[64];
    size_t zones, changes;
};

static struct database fat = {.dir = DATABASE}, slim;

/* What zdump says: at this second and behind it, the offset. */
struct told {
    int64_t s, offset_s;
};

/* "Europe/Berlin  Sun Mar 29 01:00:00 2026 UT = Sun Mar 29 03:00:00 2026 CEST isdst=1 gmtoff=7200"
 */
static bool read_line(const char *line, struct told *ret)
{
    const char *ut = strstr(line, "  "), *offset = strstr(line, "gmtoff=");
    struct tm tm = {0};

    if (ut == NULL || offset == NULL || strptime(ut, " %a %b %d %H:%M:%S %Y UT", &tm) == NULL)
        return false;
    *ret = (struct told){timegm(&tm), strtoll(offset + 7, NULL, 10)};
    return ret->s >= FIRST_S && ret->s < LAST_S;
}

static size_t ask_zdump(const char *name, struct told *told)
{
    CLEANUP_FREE char *command = mem_printf("TZDIR=" DATABASE " zdump -v -c 1969,2060 %s", name);
    FILE *f = popen(command, "re");
    char line[256];
    size_t n = 0;

    assert_non_null(f);
    while (fgets(line, sizeof(line), f) != NULL) {
        assert_true(n < TOLD_MAX);
        n += read_line(line, &told[n]);
    }
    assert_int_equal(pclose(f), 0);
    return n;
}

static bool has(const struct told *told, size_t n, int64_t s)
{
    for (size_t i = 0; i < n; i++)
        if (told[i].s == s)
            return true;
    return false;
}

static void check_zone(struct database *db, const char *name, const struct told *told, size_t n)
{
    struct err err = ERR_INIT;
    struct zone *zone;
    struct stretch at;
    int64_t before_s;

    assert_int_equal(setenv("TZDIR", db->dir, 1), 0);
    zone = zone_new(name, &err);
    if (zone == NULL)
        fail_msg("%s in %s: %s", name, db->dir, err.text);
    for (size_t i = 0; i < n; i++) {
        at = zone_stretch(zone, told[i].s);
        if (at.offset_s != told[i].offset_s)
            fail_msg("%s in %s at %lld: %lld s, zdump says %lld", name, db->dir,
                     (long long)told[i].s, (long long)at.offset_s, (long long)told[i].offset_s);
    }
    /* And no change of the offset that zdump has not. */
    at = zone_stretch(zone, FIRST_S);
    while (at.until_s < LAST_S) {
        before_s = at.offset_s;
        at = zone_stretch(zone, at.until_s);
        if (at.offset_s != before_s && !has(told, n, at.from_s))
            fail_msg("%s in %s: a change at %lld that zdump has not", name, db->dir,
                     (long long)at.from_s);
        db->changes += at.offset_s != before_s;
    }
    zone_free(zone);
    db->zones++;
}

static bool is_in(const struct database *db, const char *name)
{
    CLEANUP_FREE char *path = mem_printf("%s/%s", db->dir, name);

    return db->dir[0] != '\0' && access(path, R_OK) == 0;
}

static bool is_zone(const char *name)
{
    return strncmp(name, "posix/", 6) != 0 && strncmp(name, "right/", 6) != 0 &&
           strchr(name, '.') == NULL && strcmp(name, "leapseconds") != 0 &&
           strcmp(name, "posixrules") != 0 && strcmp(name, "localtime") != 0 &&
           is_in(&fat, name); /* no link to nowhere */
}

static int on_file(const char *path, const struct stat *st, int kind, struct FTW *unused)
{
    static struct told told[TOLD_MAX];
    const char *name = path + strlen(DATABASE) + 1;
    size_t n;

    (void)st;
    (void)unused;
    if ((kind != FTW_F && kind != FTW_SL) || !is_zone(name))
        return 0;
    n = ask_zdump(name, told);
    check_zone(&fat, name, told, n);
    if (is_in(&slim, name))
        check_zone(&slim, name, told, n);
    return 0;
}

/* As other distributions have them: what a rule says is in no table. They are held against the fat
 * ones that are installed: zdump reads the slim America/Ojinaga of October 2022 by its rule, a week
 * too early. */
static int make_slim(void **state)
{
    char dir[] = "/tmp/test_zones.XXXXXX";
    CLEANUP_FREE char *make = NULL;

    (void)state;
    if (access(SOURCE, R_OK) < 0 || system("PATH=$PATH:/usr/sbin command -v zic >/dev/null") != 0)
        return 0;
    assert_non_null(mkdtemp(dir));
    make = mem_printf("PATH=$PATH:/usr/sbin zic -b slim -d %s " SOURCE, dir);
    assert_int_equal(system(make), 0);
    (void)snprintf(slim.dir, sizeof(slim.dir), "%s", dir);
    return 0;
}

static int remove_slim(void **state)
{
    CLEANUP_FREE char *clean = mem_printf("rm -rf %s", slim.dir);

    (void)state;
    return slim.dir[0] != '\0' ? system(clean) : 0;
}

static void need_all(const struct database *db)
{
    print_message("%s: %zu zones, %zu changes\n", db->dir, db->zones, db->changes);
    /* Debian 13 has the old names in tzdata-legacy. */
    assert_true(db->zones > (access(DATABASE "/US/Eastern", R_OK) == 0 ? 500 : 300));
}

/* Of both databases, since zdump takes most of the time. */
static void test_every_zone(void **state)
{
    (void)state;
    assert_int_equal(nftw(DATABASE, on_file, 16, FTW_PHYS), 0);
    need_all(&fat);
}

static void test_slim(void **state)
{
    (void)state;
    if (slim.dir[0] == '\0')
        skip();
    need_all(&slim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_zone),
                                       cmocka_unit_test(test_slim)};

    return cmocka_run_group_tests(tests, make_slim, remove_slim);
}
