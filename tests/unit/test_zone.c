/*
 * Zone files that are cut or damaged: they are refused or read, and never more than that. The
 * sound ones are proven in tests/proofs/schedule/test_zones.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "schedule/tzif.h"
#include "schedule/zone.h"

#define DATABASE "/usr/share/zoneinfo/"
#define GUARD_BYTES 1048576
#define MUTATIONS 250 /* of each of 40 zones */

static const char *const names[] = {
    "Africa/Cairo",        "Africa/Casablanca", "Africa/Johannesburg", "Africa/Lagos",
    "America/Bogota",      "America/Caracas",   "America/Chicago",     "America/Havana",
    "America/Los_Angeles", "America/New_York",  "America/Nuuk",        "America/Santiago",
    "America/Sao_Paulo",   "America/St_Johns",  "Antarctica/Troll",    "Asia/Beirut",
    "Asia/Gaza",           "Asia/Jerusalem",    "Asia/Kathmandu",      "Asia/Kolkata",
    "Asia/Shanghai",       "Asia/Tehran",       "Asia/Tokyo",          "Atlantic/Azores",
    "Australia/Lord_Howe", "Australia/Sydney",  "Etc/GMT+5",           "Etc/UTC",
    "Europe/Berlin",       "Europe/Chisinau",   "Europe/Dublin",       "Europe/Istanbul",
    "Europe/London",       "Europe/Moscow",     "Pacific/Apia",        "Pacific/Auckland",
    "Pacific/Chatham",     "Pacific/Easter",    "Pacific/Honolulu",    "Pacific/Kiritimati"};

static uint64_t state_of_random = 41;

static uint32_t below(size_t n)
{
    state_of_random =
        state_of_random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)((state_of_random >> 33) % n);
}

static size_t load(const char *name, uint8_t buf[TZIF_MAX_BYTES])
{
    CLEANUP_FREE char *path = mem_printf(DATABASE "%s", name);
    FILE *f = fopen(path, "re");
    size_t n;

    assert_non_null(f);
    n = fread(buf, 1, TZIF_MAX_BYTES, f);
    assert_int_equal(fclose(f), 0);
    return n;
}

/* The n bytes where nobody may read behind them. */
static const uint8_t *at_the_end(const uint8_t *p, size_t n)
{
    static uint8_t *end;

    if (end == NULL) {
        end =
            mmap(NULL, TZIF_MAX_BYTES + GUARD_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        assert_true(end != MAP_FAILED);
        assert_int_equal(mprotect(end, TZIF_MAX_BYTES, PROT_READ | PROT_WRITE), 0);
        end += TZIF_MAX_BYTES;
    }
    memcpy(end - n, p, n);
    return end - n;
}

static int reads(const uint8_t *p, size_t n)
{
    struct tzif t;

    if (tzif_read(at_the_end(p, n), n, ZONE_FIRST_S, ZONE_LAST_S, &t) < 0) {
        assert_null(t.of);
        return -1;
    }
    assert_true(t.n > 0);
    assert_true(t.of[0].from_s == ZONE_FIRST_S);
    for (size_t i = 1; i < t.n; i++)
        assert_true(t.of[i].from_s > t.of[i - 1].from_s && t.of[i].from_s < ZONE_LAST_S);
    tzif_done(&t);
    return 0;
}

static size_t mutate(uint8_t *p, size_t n)
{
    size_t at = below(n), count = 1 + below(8);

    switch (below(5)) {
    case 0:
        return at;
    case 1: /* zeros to the end */
        memset(p + at, 0, n - at);
        return n;
    case 2: /* counts of a header */
        p[20 + below(24)] = (uint8_t)below(256);
        return n;
    case 3: /* the footer */
        p[n - 1 - below(n < 40 ? n : 40)] = (uint8_t)below(256);
        return n;
    default:
        for (size_t i = 0; i < count; i++)
            p[below(n)] ^= (uint8_t)(1 + below(255));
        return n;
    }
}

static void test_mutated(void **state)
{
    static uint8_t whole[TZIF_MAX_BYTES], bad[TZIF_MAX_BYTES];
    size_t refused = 0, all = 0;

    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        size_t n = load(names[i], whole);

        assert_int_equal(reads(whole, n), 0);
        for (int j = 0; j < MUTATIONS; j++, all++) {
            memcpy(bad, whole, n);
            refused += reads(bad, mutate(bad, n)) < 0;
        }
    }
    assert_int_equal(all, 10000);
    print_message("%zu of %zu refused\n", refused, all);
    assert_true(refused > all / 2);
}

/* A file cut anywhere is no file: its rule is at its end. */
static void test_cut(void **state)
{
    static uint8_t whole[TZIF_MAX_BYTES];
    size_t n = load("Europe/Berlin", whole);

    (void)state;
    for (size_t i = 0; i < n; i++) {
        if (reads(whole, i) == 0)
            fail_msg("cut to %zu bytes, it is taken", i);
    }
}

static uint32_t u32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* The header of the second block. */
static uint8_t *second(uint8_t *p)
{
    return p + 44 + u32(p + 20) + u32(p + 24) + 8 * u32(p + 28) + 5 * u32(p + 32) +
           6 * u32(p + 36) + u32(p + 40);
}

/* A byte of each kind. */
static void test_one_byte(void **state)
{
    static uint8_t whole[TZIF_MAX_BYTES];
    size_t n = load("Europe/Berlin", whole);
    uint8_t *header = second(whole), *times = header + 44;
    uint8_t *types_of = times + 8 * u32(header + 32), *types = types_of + u32(header + 32);
    const struct {
        const char *what;
        uint8_t *at, value;
    } bad[] = {{"magic", header, 'x'},
               {"leap seconds", header + 31, 1},
               {"fewer marks than types", header + 27, 1},
               {"a time before the last one", types_of - 8, 0x80},
               {"a type that is not there", types - 1, 200},
               {"an offset of years", types, 0x7f},
               {"summer is 2", types + 4, 2},
               {"a name that is not there", types + 5, 250}};

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        uint8_t was = *bad[i].at;

        *bad[i].at = bad[i].value;
        if (reads(whole, n) == 0)
            fail_msg("taken: %s", bad[i].what);
        *bad[i].at = was;
    }
    assert_int_equal(reads(whole, n), 0);
}

/* The file of Berlin with another rule. */
static int reads_footer(const char *rule)
{
    static uint8_t whole[TZIF_MAX_BYTES];
    size_t n = load("Europe/Berlin", whole) - 1;

    while (whole[n - 1] != '\n')
        n--;
    return reads(whole, n + (size_t)sprintf((char *)whole + n, "%s\n", rule));
}

static void test_footers(void **state)
{
    static const char *const good[] = {"",
                                       "CET-1",
                                       "<+0330>-3:30",
                                       "IST-1GMT0,M10.5.0,M3.5.0/1",
                                       "AAA3BBB,J60/0,J300",
                                       "AAA-3BBB,0/-167:59:59,365/167"};
    static const char *const bad[] = {"CE-1",
                                      "CET",
                                      "<CET-1",
                                      "CET-25",
                                      "CET-1:60",
                                      "CET-1 ",
                                      "CET-1CEST",
                                      "CET-1CEST,M3.5.0",
                                      "CET-1CEST,M13.5.0,M10.5.0/3",
                                      "CET-1CEST,M3.6.0,M10.5.0/3",
                                      "CET-1CEST,M3.5.7,M10.5.0/3",
                                      "CET-1CEST,M3.5.0,M10.5.0/168",
                                      "CET-1CEST,M3.5.0,M10.5.0/3,",
                                      "CET-1CEST,J0,J300",
                                      "CET-1CEST,0,366",
                                      "CET-1\nCET-1"};

    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        if (reads_footer(good[i]) < 0)
            fail_msg("refused: '%s'", good[i]);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        if (reads_footer(bad[i]) == 0)
            fail_msg("taken: '%s'", bad[i]);
}

static void test_words(void **state)
{
    static uint8_t whole[TZIF_MAX_BYTES];
    static const size_t cuts[] = {0, 44, 60, 200, 500};
    size_t n = load("Europe/Berlin", whole);
    char dir[] = "/tmp/test_zone.XXXXXX";
    CLEANUP_FREE char *path = NULL;

    (void)state;
    assert_non_null(mkdtemp(dir));
    path = mem_printf("%s/Cut", dir);
    assert_int_equal(setenv("TZDIR", dir, 1), 0);
    for (size_t i = 0; i < sizeof(cuts) / sizeof(cuts[0]); i++) {
        struct err err = ERR_INIT;
        FILE *f = fopen(path, "we");

        assert_non_null(f);
        assert_true(cuts[i] < n && fwrite(whole, 1, cuts[i], f) == cuts[i]);
        assert_int_equal(fclose(f), 0);
        assert_null(zone_new("Cut", &err));
        assert_int_equal(err.code, ERR_FORMAT);
        if (strstr(err.text, "Cut is damaged") == NULL)
            fail_msg("cut to %zu bytes: %s", cuts[i], err.text);
    }
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(dir), 0);
    assert_int_equal(unsetenv("TZDIR"), 0);
}

static void assert_offset(const char *zone_of, int64_t utc_s, int64_t offset_s)
{
    struct zone *zone = zone_new(zone_of, NULL);

    assert_non_null(zone);
    assert_int_equal(zone_stretch(zone, utc_s).offset_s, offset_s);
    zone_free(zone);
}

/* By the rule of the footer: Dublin's winter is its "summer time", an hour less. */
static void test_footer(void **state)
{
    (void)state;
    assert_offset("Europe/Dublin", INT64_C(2210457600), 0);    /* January 2040 */
    assert_offset("Europe/Dublin", INT64_C(2226182400), 3600); /* July 2040 */
    assert_offset("Australia/Sydney", INT64_C(2210457600), 39600);
    assert_offset("Australia/Sydney", INT64_C(2226182400), 36000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mutated),  cmocka_unit_test(test_cut),
        cmocka_unit_test(test_one_byte), cmocka_unit_test(test_footers),
        cmocka_unit_test(test_words),    cmocka_unit_test(test_footer)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
