/* The jobs that a handler adds: lines, payloads in pieces, limits, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job/children.h"

/* All children, as [word|word][...], a NUL as 0. */
static const char *shown(const struct children *c)
{
    static char text[512];
    const char *at = c->bytes.data;
    size_t n = 0, word = 0;

    for (size_t i = 0; i < c->n; i++) {
        n += (size_t)snprintf(text + n, sizeof(text) - n, "[");
        for (size_t k = 0; k < c->counts[i]; k++, word++) {
            if (k > 0)
                text[n++] = '|';
            for (size_t b = 0; b < c->lens[word]; b++, at++)
                text[n++] = *at == '\0' ? '0' : *at;
        }
        n += (size_t)snprintf(text + n, sizeof(text) - n, "]");
    }
    text[n] = '\0';
    return text;
}

static void test_lines(void **state)
{
    static const struct {
        const char *line, *want, *refusal;
    } rows[] = {
        {"q -- ", "[q|]", NULL},
        {"q --", "[q|]", NULL},
        {"q -- a b  c", "[q|a b  c]", NULL},
        {"q -- -- len 3", "[q|-- len 3]", NULL},
        {"q priority 3 key len -- x", "[q|priority|3|key|len|x]", NULL},
        {"q key -- -- x", "[q|key|--|x]", NULL},
        {"", "", "an add has neither `-- PAYLOAD` nor `len N`"},
        {"q", "", "an add has neither `-- PAYLOAD` nor `len N`"},
        {"q key k", "", "an add has neither `-- PAYLOAD` nor `len N`"},
        {"q len", "", "an add has neither `-- PAYLOAD` nor `len N`"},
        {"q len x", "", "len of an add is no number of bytes"},
        {"q len -1", "", "len of an add is no number of bytes"},
        {"q len 1 ", "", "len of an add is no number of bytes"},
        {"q len 1000000000000000", "", "len of an add is no number of bytes"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct children c = {0};
        size_t len;
        int rc = children_line(&c, rows[i].line, strlen(rows[i].line), false, &len);

        assert_int_equal(rc, rows[i].refusal == NULL ? 0 : -1);
        assert_int_equal(len, 0);
        assert_string_equal(shown(&c), rows[i].want);
        if (rows[i].refusal == NULL)
            assert_null(c.refusal);
        else
            assert_string_equal(c.refusal, rows[i].refusal);
        assert_false(children_end_payload(&c, 0));
        children_done(&c);
    }
}

/* A payload with any bytes, however they come. */
static void test_payloads(void **state)
{
    (void)state;
    for (size_t chunk = 1; chunk <= 5; chunk++) {
        struct children c = {0};
        size_t len;

        assert_int_equal(children_line(&c, "q key k len 5", 13, false, &len), 0);
        assert_int_equal(len, 5);
        for (size_t at = 0; at < 5; at += chunk)
            children_payload(&c, "a\0\n-z" + at, 5 - at < chunk ? 5 - at : chunk);
        assert_true(children_end_payload(&c, 0));
        assert_false(children_end_payload(&c, 0));
        assert_int_equal(children_line(&c, "r -- x", 6, false, &len), 0);
        assert_string_equal(shown(&c), "[q|key|k|a0\n-z][r|x]");
        children_end(&c, false);
        assert_null(c.refusal);
        children_done(&c);
    }
}

static void test_an_empty_payload(void **state)
{
    struct children c = {0};
    size_t len;

    (void)state;
    assert_int_equal(children_line(&c, "q len 0", 7, false, &len), 0);
    assert_int_equal(len, 0);
    assert_true(children_end_payload(&c, 0));
    assert_string_equal(shown(&c), "[q|]");
    children_done(&c);
}

static void test_cut_off(void **state)
{
    static const size_t given[] = {0, 4, 5}; /* with all five, the line feed is missing */
    struct children half = {0};

    (void)state;
    for (size_t i = 0; i < sizeof(given) / sizeof(given[0]); i++) {
        struct children c = {0};
        size_t len;

        assert_int_equal(children_line(&c, "q len 5", 7, false, &len), 0);
        children_payload(&c, "abcde", given[i]);
        children_end(&c, false);
        assert_string_equal(c.refusal, "an add was cut off by the end of its handler");
        children_done(&c);
    }
    children_end(&half, true);
    assert_string_equal(half.refusal, "an add was cut off by the end of its handler");
}

static void test_longer_than_its_len(void **state)
{
    struct children c = {0};
    size_t len;

    (void)state;
    assert_int_equal(children_line(&c, "q len 1", 7, false, &len), 0);
    children_payload(&c, "a", 1);
    assert_false(children_end_payload(&c, 3));
    assert_string_equal(c.refusal, "the payload of an add is longer than its len says");
    /* The first reason stays. */
    children_refuse(&c, "another");
    assert_string_equal(c.refusal, "the payload of an add is longer than its len says");
    children_done(&c);
}

static void test_limits(void **state)
{
    struct children c = {0}, many = {0}, large = {0};
    char line[2200];
    size_t len;

    (void)state;
    for (int i = 0; i < CHILDREN_MAX; i++)
        assert_int_equal(children_line(&many, "q -- x", 6, false, &len), 0);
    assert_null(many.refusal);
    assert_int_equal(children_line(&many, "q -- x", 6, false, &len), 0);
    assert_string_equal(many.refusal, "it adds more than 1,000 jobs");
    assert_int_equal(many.n, CHILDREN_MAX);
    children_done(&many);

    assert_int_equal(children_line(&large, "q len 1048576", 13, false, &len), 0);
    assert_null(large.refusal);
    assert_true(children_end_payload(&large, 0));
    assert_int_equal(children_line(&large, "q -- x", 6, false, &len), 0);
    assert_string_equal(large.refusal,
                        "the payloads of the jobs that it adds have more than 1 MiB");
    children_done(&large);

    /* What is too large is skipped, not kept. */
    assert_int_equal(children_line(&c, "q len 1048577", 13, false, &len), 0);
    assert_int_equal(len, 1048577);
    children_payload(&c, "abc", 3);
    assert_int_equal(c.bytes.len, 0);
    children_done(&c);

    (void)snprintf(line, sizeof(line), "q key %02050d len 1", 7);
    assert_int_equal(children_line(&c, line, strlen(line), false, &len), 0);
    assert_int_equal(len, 1);
    assert_string_equal(c.refusal, "a line of an add has more than 2,048 bytes");
    children_done(&c);
    assert_int_equal(children_line(&c, "q -- x", 6, true, &len), -1);
    assert_string_equal(c.refusal, "a line of an add is too long: give the payload with len N");
    children_done(&c);
}

static void test_too_many_words(void **state)
{
    struct children c = {0};
    char line[1024] = "q";
    size_t len;

    (void)state;
    for (int i = 0; i < CHILDREN_WORDS_MAX; i++)
        (void)strcat(line, " w");
    (void)strcat(line, " -- x");
    assert_int_equal(children_line(&c, line, strlen(line), false, &len), -1);
    assert_string_equal(c.refusal, "an add has too many words");
    children_done(&c);
}

static void test_words(void **state)
{
    static const char *const words[] = {"q", "key", "k", "p\0q"};
    static const size_t lens[] = {1, 3, 1, 3};
    struct children c = {0}, *copy;

    (void)state;
    assert_null(children_copy(&c));
    children_add(&c, words, lens, 4);
    children_add(&c, words, lens, 2);
    copy = children_copy(&c);
    children_done(&c);
    assert_string_equal(shown(copy), "[q|key|k|p0q][q|key]");
    assert_int_equal(copy->payloads, 6);
    children_free(copy);
    children_add(&c, words, lens, 1);
    assert_int_equal(c.n, 0);
    assert_non_null(c.refusal);
    children_done(&c);
    children_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_lines),
                                       cmocka_unit_test(test_payloads),
                                       cmocka_unit_test(test_an_empty_payload),
                                       cmocka_unit_test(test_cut_off),
                                       cmocka_unit_test(test_longer_than_its_len),
                                       cmocka_unit_test(test_limits),
                                       cmocka_unit_test(test_too_many_words),
                                       cmocka_unit_test(test_words)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
