/* A look at many queues: whatever is there is told, each once, and the end once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "store/store_redis.h"

#define MANY 3000
#define CALLS_MAX 65536
#define PREFIX "later:{t}:due:"

/* Questions under way, answered when the test says so. */
struct call {
    async_reply_f *cb;
    void *arg;
    bool is_exists;
    size_t n; /* names */
    int there;
};

static struct call calls[CALLS_MAX];
static size_t first_call, last_call, longest;
static bool is_there[MANY], is_down;
static bool is_found[MANY];
static size_t found, ends, faults;
static struct store_redis *store;

static int number_of(const char *name)
{
    return atoi(name + 1);
}

/* In the place of src/redis/link.c. */
int link_call(struct link *l, int argc, const char *const *argv, const size_t *lens,
              async_reply_f *cb, void *arg)
{
    struct call *c = &calls[last_call];

    (void)l;
    (void)lens;
    if (is_down)
        return -1;
    assert_true(++last_call < CALLS_MAX);
    *c = (struct call){cb, arg, strcmp(argv[0], "EXISTS") == 0, 0, 0};
    if (!c->is_exists)
        assert_string_equal(argv[1], "later_v1_look");
    for (int i = c->is_exists ? 1 : 4; i < argc; i++) {
        const char *name = argv[i] + (c->is_exists ? strlen(PREFIX) : 0);

        assert_true(!c->is_exists || strncmp(argv[i], PREFIX, strlen(PREFIX)) == 0);
        c->n++;
        c->there += is_there[number_of(name)];
    }
    if (c->n > longest)
        longest = c->n;
    return 0;
}

/* ---- answers */

static void answer_with(redisReply *r)
{
    const struct call *c = &calls[first_call++];

    assert_true(first_call <= last_call);
    c->cb(c->arg, (const struct reply *)(const void *)r);
}

static void answer_int(int n)
{
    redisReply r = {.type = REDIS_REPLY_INTEGER, .integer = n};

    answer_with(&r);
}

/* [too_many] */
static void answer_look(int too_many)
{
    redisReply flag = {.type = REDIS_REPLY_INTEGER, .integer = too_many}, *at[] = {&flag};
    redisReply r = {.type = REDIS_REPLY_ARRAY, .elements = 1, .element = at};

    answer_with(&r);
}

static void answer_error(void)
{
    char text[] = "ERR no";
    redisReply r = {.type = REDIS_REPLY_ERROR, .str = text, .len = strlen(text)};

    answer_with(&r);
}

static void answer(void)
{
    if (calls[first_call].is_exists)
        answer_int(calls[first_call].there);
    else
        answer_look(0);
}

static void answer_all(void)
{
    while (first_call < last_call)
        answer();
}

static void on_looked(void *arg, const char *const *queues, size_t n, bool is_over)
{
    (void)arg;
    assert_int_equal(ends, 0);
    for (size_t i = 0; i < n; i++) {
        int number = number_of(queues[i]);

        assert_false(is_found[number]);
        is_found[number] = true;
        found++;
    }
    ends += is_over;
}

static void on_fault(void *arg, enum fault fault, const char *text)
{
    (void)arg;
    (void)fault;
    (void)text;
    faults++;
}

/* ---- the tests */

static int begin(void **state)
{
    static const struct store_events events = {.looked = on_looked, .fault = on_fault};

    (void)state;
    memset(is_there, 0, sizeof(is_there));
    first_call = last_call = longest = faults = 0;
    is_down = false;
    store = store_redis_new(NULL, "t", &events);
    return 0;
}

static int end(void **state)
{
    (void)state;
    store_redis_free(store);
    return 0;
}

static void look(size_t n)
{
    static char names[MANY][8];
    static const char *at[MANY];

    for (size_t i = 0; i < n; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "q%zu", i);
        at[i] = names[i];
    }
    memset(is_found, 0, sizeof(is_found));
    found = ends = 0;
    assert_int_equal(store_look(store, at, n), is_down ? -1 : 0);
    /* They are copied. */
    memset(names, 'x', sizeof(names));
}

static void expect(size_t n)
{
    size_t expected = 0;

    assert_int_equal(ends, 1);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(is_found[i], is_there[i]);
        expected += is_there[i];
    }
    assert_int_equal(found, expected);
}

static void test_what_is_there(void **state)
{
    static const unsigned every[] = {0, 1, 2, 3, 7, 100, 1023, 1024, 2999};
    static const size_t sizes[] = {1, 2, 1023, 1024, 1025, MANY};

    (void)state;
    for (size_t e = 0; e < sizeof(every) / sizeof(every[0]); e++) {
        for (size_t i = 0; i < MANY; i++)
            is_there[i] = every[e] > 0 && i % every[e] == every[e] - 1;
        for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
            first_call = last_call = longest = 0;
            look(sizes[k]);
            answer_all();
            expect(sizes[k]);
            assert_in_range(longest, 1, 1024);
            /* None or all: no question behind the first ones. */
            if (every[e] < 2)
                assert_int_equal(last_call, 1 + (sizes[k] + 1023) / 1024);
            if (every[e] == 2999 && sizes[k] == MANY)
                assert_in_range(last_call, 4 + 2, 4 + 2 * 10);
        }
    }
}

/* One takes the place of another that is under way, or the link is lost: what comes of the old one
 * counts for nothing. */
static void test_a_look_that_was_given_up(void **state)
{
    (void)state;
    for (size_t answered = 0; answered < 12; answered++) {
        size_t n = answered % 2 == 0 ? MANY : 5;

        for (size_t i = 0; i < MANY; i++)
            is_there[i] = i % 5 == 3;
        look(MANY);
        for (size_t i = 0; i < answered; i++)
            answer();
        look(n);
        answer_all();
        expect(n);
        look(MANY);
        for (size_t i = 0; i < answered; i++)
            answer();
        store_redis_reset(store);
        first_call = last_call = 0;
        look(n);
        answer_all();
        expect(n);
        first_call = last_call = 0;
    }
    assert_int_equal(faults, 0);
}

/* One fault is told of it, no end, and then nothing. */
static void test_a_look_that_fails(void **state)
{
    (void)state;
    for (int i = 0; i < MANY; i += 7)
        is_there[i] = true;
    for (int how = 0; how < 6; how++) {
        faults = 0;
        look(MANY);
        answer_look(0);
        if (how > 3)
            answer();
        if (how == 0 || how == 4)
            answer_error();
        else if (how == 1)
            answer_look(0);
        else
            answer_int(how == 2 ? -1 : 1025);
        answer_error();
        answer_all();
        assert_int_equal(faults, 1);
        assert_int_equal(ends, 0);
    }
    faults = 0;
    look(MANY);
    answer_error();
    answer_all();
    look(MANY);
    answer_int(0);
    answer_all();
    assert_int_equal(faults, 2);
    is_down = true;
    look(MANY);
    is_down = false;
    look(MANY);
    answer_all();
    expect(MANY);
}

/* Then the library is asked by names. */
static void test_too_many(void **state)
{
    (void)state;
    is_there[2500] = true;
    look(MANY);
    answer_look(1);
    assert_int_equal(last_call, 7);
    for (int i = 4; i < 7; i++)
        assert_false(calls[i].is_exists);
    assert_int_equal(calls[4].n, 1024);
    assert_int_equal(calls[5].n, 1024);
    assert_int_equal(calls[6].n, MANY - 2048);
    answer_all();
    expect(MANY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_what_is_there, begin, end),
        cmocka_unit_test_setup_teardown(test_a_look_that_was_given_up, begin, end),
        cmocka_unit_test_setup_teardown(test_a_look_that_fails, begin, end),
        cmocka_unit_test_setup_teardown(test_too_many, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
