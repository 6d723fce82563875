/* The slot of a namespace: the values are those of CLUSTER KEYSLOT (Redis 7.0.15). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "redis/slot.h"
#include "redis/url.h"

static void test_slots_are_those_of_redis(void **state)
{
    static const struct {
        const char *text;
        unsigned slot;
    } rows[] = {
        {"123456789", 12739}, {"", 0},      {"a", 15495},     {"foo", 12182},   {"default", 5718},
        {"shop", 3808},       {"n0", 7798}, {"shop.0", 5635}, {"shop.7", 9956},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_int_equal(slot_of(rows[i].text, strlen(rows[i].text)), rows[i].slot);
    /* Bytes are not signed, and a zero is one of them. */
    assert_int_equal(slot_of("\xff\x00\x80", 3), 7915);
}

/* Even of short names, none is out of range, and they are spread. */
static void test_names_are_spread(void **state)
{
    static bool has[SLOTS];
    int used = 0;

    (void)state;
    for (int i = 0; i < SLOTS; i++) {
        char name[16];
        unsigned slot;

        (void)snprintf(name, sizeof(name), "n%d", i);
        slot = slot_of(name, strlen(name));
        assert_in_range(slot, 0, SLOTS - 1);
        used += !has[slot];
        has[slot] = true;
    }
    assert_true(used > SLOTS / 2);
}

static void test_a_url_has_the_slot_of_its_namespace(void **state)
{
    struct err err = ERR_INIT;
    struct url url;

    (void)state;
    assert_int_equal(url_parse("cluster://h", &url, &err), 0);
    url_set_namespace(&url, "shop");
    assert_int_equal(url.slot, 3808);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slots_are_those_of_redis),
        cmocka_unit_test(test_names_are_spread),
        cmocka_unit_test(test_a_url_has_the_slot_of_its_namespace),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
