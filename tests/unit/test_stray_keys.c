/* Which keys are ours: a producer's typing mistake must not look like one of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "store/keys.h"

struct row {
    const char *key;
    bool is_ours;
};

static bool is_ours(const char *ns, const char *key)
{
    size_t n = strlen(key);
    char *copy = malloc(n + 1);
    bool is;

    memcpy(copy, key, n + 1);
    is = keys_is_ours(ns, copy, n);
    free(copy);
    return is;
}

static void expect(const char *ns, const struct row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (is_ours(ns, rows[i].key) != rows[i].is_ours)
            fail_msg("%s", rows[i].key);
    }
}

static void test_keys(void **state)
{
    static const struct row rows[] = {
        {"later:{default}:due:mail", true},
        {"later:{default}:due:Mail_2-x", true},
        {"later:{default}:q:mail:5", true},
        {"later:{default}:solo:mail", true},
        {"later:{default}:jobs", true},
        {"later:{default}:running", true},
        {"later:{default}:clock", true},
        {"later:{default}:worker:1767225600000000", true},
        {"later:{default}:big:j0123456789a", true},
        {"later:{default}:token:x", true},
        /* the mistakes */
        {"later:library", false},
        {"later:default:due:mail", false},
        {"later:due:mail", false},
        {"later:{default}due:mail", false},
        {"later:{default}", false},
        {"later:{default}:", false},
        {"later:{default}:due", false},
        {"later:{default}:due:", false},
        {"later:{default}:due:a b", false},
        {"later:{default}:due:mail:5", false},
        {"later:{default}:due:../x", false},
        {"later:{default}:dew:mail", false},
        {"later:{default}:mail", false},
        {"later:{default}:jobs2", false},
        {"later:{default}:job", false},
        {"later:{default}:worker:", false},
        {"later:{default:due:mail", false},
        {"later:{default}}:due:mail", false},
        {"later:(default):due:mail", false},
        {"later:", false},
        {"later:{}", false},
        /* keys of other namespaces are not judged */
        {"later:{other}:due:mail", true},
        {"later:{other}:nonsense", true},
        {"later:{defaultx}:due:mail", true},
    };

    (void)state;
    expect("default", rows, sizeof(rows) / sizeof(rows[0]));
}

static void test_namespaces_that_begin_alike(void **state)
{
    static const struct row rows[] = {
        {"later:{a}:due:mail", true}, {"later:{ab}:due:mail", true},
        {"later:{ab}:x", true},       {"later:{a}:nonsense", false},
        {"later:a:due:mail", false},  {"later:{a}b:due:mail", false},
    };

    (void)state;
    expect("a", rows, sizeof(rows) / sizeof(rows[0]));
}

static void test_bytes(void **state)
{
    char key[300];

    (void)state;
    assert_false(keys_is_ours("default", "later:{default}:due:a\0b", 23));
    assert_false(keys_is_ours("default", "later:{default}:jobs\0x", 22));
    assert_false(keys_is_ours("default", "", 0));
    memset(key, 'k', sizeof(key));
    memcpy(key, "later:{default}:due:", 20);
    key[20 + 64] = '\0';
    assert_true(keys_is_ours("default", key, 20 + 64));
    key[20 + 64] = 'k';
    key[20 + 65] = '\0';
    assert_false(keys_is_ours("default", key, 20 + 65));
}

static void test_types(void **state)
{
    (void)state;
    assert_string_equal(keys_type("jobs", 4), "hash");
    assert_string_equal(keys_type("q:mail:5", 8), "zset");
    assert_string_equal(keys_type("token:x", 7), "string");
    assert_string_equal(keys_type("lock:x", 6), "hash");
    assert_string_equal(keys_type("sem:x:{key}", 11), "zset");
    assert_string_equal(keys_type("rate:gcra:x", 11), "string");
    assert_string_equal(keys_type("rate:granted:x", 14), "set");
    assert_string_equal(keys_type("aside:mail", 10), "set");
    assert_string_equal(keys_type("wake", 4), "");
    assert_null(keys_type("rate:x", 6));
    assert_null(keys_type("lock:", 5));
    assert_null(keys_type("jobs2", 5));
    assert_null(keys_type("job", 3));
    assert_null(keys_type("q:", 2));
}

static void test_queues_of_sets(void **state)
{
    static const struct {
        const char *rest, *queue;
    } rows[] = {
        {"q:mail:5", "mail"},    {"q:a:0", "a"},
        {"solo:mail", "mail"},   {"dead:x-y_z", "x-y_z"},
        {"done:mail", "mail"},   {"parked:mail", "mail"},
        {"q:mail", NULL},        {"q:mail:55", NULL},
        {"q:mail:x", NULL},      {"q::5", NULL},
        {"q:a b:5", NULL},       {"solo:", NULL},
        {"dead:../x", NULL},     {"due:mail", NULL},
        {"big:jaaaaaaaa", NULL}, {"", NULL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        size_t len = 0;
        const char *queue = keys_queue_of_set(rows[i].rest, strlen(rows[i].rest), &len);

        if (rows[i].queue == NULL && queue != NULL)
            fail_msg("%s", rows[i].rest);
        if (rows[i].queue != NULL)
            assert_true(queue != NULL && len == strlen(rows[i].queue) &&
                        memcmp(queue, rows[i].queue, len) == 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keys),           cmocka_unit_test(test_namespaces_that_begin_alike),
        cmocka_unit_test(test_bytes),          cmocka_unit_test(test_types),
        cmocka_unit_test(test_queues_of_sets),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
