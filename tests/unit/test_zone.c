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
#include <unistd.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "schedule/tzif.h"
#include "schedule/zone.h"

#define DATABASE "/usr/share/zoneinfo/"
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

/* From a block of exactly n bytes: a sanitizer sees what is read behind it. */
static int reads(const uint8_t *p, size_t n)
{
    CLEANUP_FREE uint8_t *exact = malloc(n);
    struct tzif t;

    if (n > 0)
        memcpy(exact, p, n);
    if (tzif_read(exact, n, ZONE_FIRST_S, ZONE_LAST_S, &t) < 0) {
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
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_mutated), cmocka_unit_test(test_cut),
                                       cmocka_unit_test(test_words), cmocka_unit_test(test_footer)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
