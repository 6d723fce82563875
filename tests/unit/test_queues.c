/* The queues of a worker: turns, room, and what is known of each queue's first job. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "sched/queues.h"

#define MAX 512 /* queues in a plan */
#define NOW ((struct mono){INT64_C(3600000000)})
#define NOW_US INT64_C(1767225600000000) /* Redis' clock */
#define NOW_MS (NOW_US / 1000)

static struct store_room rooms[MAX];

/* A look has found something in each queue. */
static struct queues *make(const struct queue_spec *specs, size_t n)
{
    struct queues *qs = queues_new();

    queues_set(qs, specs, n);
    for (size_t i = 0; i < n; i++)
        queues_found(qs, specs[i].name);
    return qs;
}

/* Plan a sync that is answered at once. */
static size_t plan_with(struct queues *qs, unsigned free, bool suspected)
{
    size_t n = queues_plan(qs, NOW, free, suspected, rooms, MAX);

    queues_answered(qs, rooms, n);
    return n;
}

static size_t plan(struct queues *qs, unsigned free)
{
    return plan_with(qs, free, false);
}

static void tell(struct queues *qs, const char *name, int64_t head)
{
    struct store_room room = {name, 1, 0};

    queues_heads(qs, &room, &head, 1, NOW_US, NOW);
}

/* A sync that named only this queue told whether a suspect is due. */
static void suspect(struct queues *qs, const char *name, bool is_due)
{
    struct store_room room = {name, 1, 0};

    queues_suspect(qs, &room, 1, is_due);
}

static int64_t next_in_us(const struct queues *qs)
{
    struct mono next = queues_next(qs);

    return next.us == INT64_MAX ? INT64_MAX : mono_until_us(NOW, next);
}

/* All queues are always due. After 200,000 claims each has its share, within 1 % of all. */
static void expect_shares(const unsigned *weights, size_t n, unsigned free)
{
    static const char *const names[] = {"a", "b", "c", "d", "e"};
    struct queue_spec specs[5];
    uint64_t got[5] = {0}, claims = 0, sum = 0;
    struct queues *qs;

    for (size_t i = 0; i < n; i++) {
        specs[i] = (struct queue_spec){names[i], 1000, weights[i], 1, false};
        sum += weights[i];
    }
    qs = make(specs, n);
    while (claims < 200000) {
        size_t named = plan(qs, free);
        unsigned total = 0;

        for (size_t i = 0; i < named; i++) {
            assert_true(rooms[i].room > 0);
            total += rooms[i].room;
            for (unsigned k = 0; k < rooms[i].room; k++) {
                queues_claimed(qs, rooms[i].queue);
                queues_ended(qs, rooms[i].queue);
            }
            got[rooms[i].queue[0] - 'a'] += rooms[i].room;
        }
        assert_int_equal(total, free);
        claims += free;
    }
    for (size_t i = 0; i < n; i++) {
        double off = (double)got[i] / (double)claims - (double)weights[i] / (double)sum;

        if (off > 0.01 || off < -0.01)
            fail_msg("free %u: queue %zu has %.4f too much", free, i, off);
    }
    queues_free(qs);
}

static void test_shares(void **state)
{
    static const unsigned weights[][5] = {{1, 1, 1, 1, 1},
                                          {10, 1, 1, 1, 1},
                                          {100, 1, 1, 1, 1},
                                          {1, 2, 3, 4, 5},
                                          {1000, 1, 500, 3, 7}};
    static const unsigned frees[] = {1, 2, 3, 4, 16, 100};

    (void)state;
    for (size_t w = 0; w < 5; w++) {
        for (size_t f = 0; f < 6; f++) {
            expect_shares(weights[w], 5, frees[f]);
            expect_shares(weights[w], 2, frees[f]);
        }
    }
}

/* A queue that was idle for long gets its share from now on, not what it missed. */
static void test_no_turns_saved_up(void **state)
{
    static const struct queue_spec specs[] = {{"a", 100, 1, 1, false}, {"b", 100, 1, 1, false}};
    struct queues *qs = make(specs, 2);
    unsigned b = 0;

    (void)state;
    tell(qs, "b", STORE_HEAD_NONE);
    for (int i = 0; i < 10000; i++) {
        assert_int_equal(plan(qs, 1), 1);
        assert_string_equal(rooms[0].queue, "a");
        queues_claimed(qs, "a");
        queues_ended(qs, "a");
    }
    queues_wake(qs, "b");
    for (int i = 0; i < 100; i++) {
        assert_int_equal(plan(qs, 1), 1);
        b += rooms[0].queue[0] == 'b';
        queues_claimed(qs, rooms[0].queue);
        queues_ended(qs, rooms[0].queue);
    }
    assert_in_range(b, 49, 51);
    queues_free(qs);
}

static void test_room(void **state)
{
    static const struct queue_spec specs[] = {{"a", 2, 1, 11, false}, {"b", 5, 1, 22, false}};
    struct queues *qs = make(specs, 2);

    (void)state;
    assert_int_equal(plan(qs, 0), 0);
    assert_int_equal(plan(qs, 100), 2);
    assert_string_equal(rooms[0].queue, "a");
    assert_int_equal(rooms[0].room, 2);
    assert_int_equal(rooms[0].max_payload, 11);
    assert_int_equal(rooms[1].room, 5);
    queues_claimed(qs, "a");
    queues_claimed(qs, "a");
    assert_int_equal(plan(qs, 100), 1);
    assert_string_equal(rooms[0].queue, "b");
    tell(qs, "b", STORE_HEAD_NONE);
    assert_int_equal(plan(qs, 100), 0);
    /* A full queue is no reason to wake up. */
    assert_int_equal(next_in_us(qs), INT64_MAX);
    queues_ended(qs, "a");
    assert_true(next_in_us(qs) <= 0);
    assert_int_equal(plan(qs, 100), 1);
    assert_int_equal(rooms[0].room, 1);
    /* More ends than claims, and unknown names, do no harm. */
    for (int i = 0; i < 5; i++)
        queues_ended(qs, "a");
    assert_int_equal(plan(qs, 100), 1);
    assert_int_equal(rooms[0].room, 2);
    queues_claimed(qs, "x");
    queues_ended(qs, "x");
    queues_took(qs, "x");
    queues_wake(qs, "x");
    queues_failed(qs, "x", NOW);
    tell(qs, "x", 0);
    queues_free(qs);
    queues_free(NULL);
}

static void test_heads(void **state)
{
    static const struct queue_spec specs[] = {{"a", 1, 1, 1, false}};
    static const struct {
        int64_t head, want_us;
    } rows[] = {
        {STORE_HEAD_NONE, INT64_MAX},
        {NOW_MS, 0},
        {NOW_MS + 1, 1000},
        {NOW_MS + 86400000, INT64_C(86400000000)},
        {NOW_MS - 5, -5000},
        {0, -NOW_US},
        /* Heads that the library never tells do not count as due. */
        {INT64_MIN, INT64_MAX},
        {-2, INT64_MAX},
        {INT64_MAX, INT64_MAX},
        {INT64_MAX / 1000, INT64_MAX},
        {INT64_C(100000000000001), INT64_MAX},
    };
    struct queues *qs = make(specs, 1);

    (void)state;
    assert_true(next_in_us(qs) <= 0);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        (void)plan(qs, 1);
        tell(qs, "a", rows[i].head);
        if (next_in_us(qs) != rows[i].want_us)
            fail_msg("row %zu: %lld", i, (long long)next_in_us(qs));
        assert_int_equal(plan(qs, 1), rows[i].want_us <= 0);
    }
    queues_failed(qs, "a", NOW);
    assert_int_equal(next_in_us(qs), QUEUES_ERROR_MS * 1000);
    queues_free(qs);
}

/* Places that a sync without an answer may use are not given to another sync. */
static void test_room_is_promised_once(void **state)
{
    static const struct queue_spec specs[] = {{"a", 5, 1, 1, false}, {"b", 100, 1, 1, false}};
    struct queues *qs = make(specs, 2);
    struct store_room first[MAX];
    size_t n;

    (void)state;
    n = queues_plan(qs, NOW, 8, false, first, MAX);
    assert_int_equal(n, 2);
    assert_int_equal(first[0].room + first[1].room, 8);
    assert_int_equal(first[0].room, 4);
    /* One more of a may run at once, however many are free. */
    assert_int_equal(queues_plan(qs, NOW, 20, false, rooms, MAX), 2);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(rooms[i].room, strcmp(rooms[i].queue, "a") == 0 ? 1 : 19);
    queues_answered(qs, rooms, 2);
    queues_answered(qs, first, 2);
    assert_int_equal(plan(qs, 100), 2);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(rooms[i].room, strcmp(rooms[i].queue, "a") == 0 ? 5 : 95);
    /* After a lost link no sync will be answered. */
    (void)queues_plan(qs, NOW, 100, false, rooms, MAX);
    queues_unanswered(qs);
    assert_int_equal(plan(qs, 100), 2);
    queues_free(qs);
}

/* A wake that comes after the queue was named in a sync outlives the head that sync tells. */
static void test_wake_during_a_sync(void **state)
{
    static const struct queue_spec specs[] = {{"a", 9, 1, 1, false}, {"b", 9, 1, 1, false}};
    struct queues *qs = make(specs, 2);

    (void)state;
    tell(qs, "b", STORE_HEAD_NONE);
    assert_int_equal(plan(qs, 1), 1);
    queues_wake(qs, "a");
    tell(qs, "a", STORE_HEAD_NONE);
    assert_true(next_in_us(qs) <= 0);
    assert_int_equal(plan(qs, 1), 1);
    tell(qs, "a", STORE_HEAD_NONE);
    assert_int_equal(next_in_us(qs), INT64_MAX);
    /* A head replaces what a look found, unlike a wake. */
    queues_found(qs, "a");
    queues_found(qs, "another");
    assert_int_equal(plan(qs, 9), 1);
    assert_int_equal(rooms[0].room, 9);
    queues_found(qs, "a");
    tell(qs, "a", NOW_MS + 60000);
    assert_int_equal(next_in_us(qs), 60000000);
    queues_free(qs);
}

#define MANY 2000

static struct queues *make_many(char (*names)[16])
{
    struct queue_spec *specs = mem_new(MANY * sizeof(*specs));
    struct queues *qs;

    for (size_t i = 0; i < MANY; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "q%05zu", i);
        specs[i] = (struct queue_spec){names[i], 4, 1, 1, false};
    }
    qs = make(specs, MANY);
    free(specs);
    return qs;
}

/* Queues that may have a suspect are named beside the due ones with one place each, or with none
 * when none is free, until a sync that named them tells that no suspect is due. */
static void test_suspected(void **state)
{
    static const struct queue_spec specs[] = {
        {"a", 4, 1, 1, false}, {"b", 4, 1, 2, false}, {"c", 4, 1, 3, false}};
    struct queues *qs = make(specs, 3);
    const struct store_room ab[] = {{"a", 1, 0}, {"b", 1, 0}};

    (void)state;
    tell(qs, "b", STORE_HEAD_NONE);
    tell(qs, "c", NOW_MS + 60000);
    suspect(qs, "another", true);
    assert_int_equal(queues_suspected(qs), 0);
    queues_suspect(qs, ab, 2, true);
    queues_suspect(qs, ab, 2, true);
    assert_int_equal(queues_suspected(qs), 2);
    assert_int_equal(plan(qs, 8), 1);
    assert_int_equal(plan_with(qs, 8, true), 2);
    assert_string_equal(rooms[0].queue, "a");
    assert_int_equal(rooms[0].room, 4);
    assert_string_equal(rooms[1].queue, "b");
    assert_int_equal(rooms[1].room, 1);
    assert_int_equal(rooms[1].max_payload, 2);
    suspect(qs, "a", false);
    assert_int_equal(plan_with(qs, 8, true), 2);
    assert_int_equal(plan_with(qs, 0, true), 1);
    assert_string_equal(rooms[0].queue, "b");
    assert_int_equal(rooms[0].room, 0);
    for (int i = 0; i < 4; i++)
        queues_claimed(qs, "b");
    assert_int_equal(plan_with(qs, 8, true), 2);
    assert_int_equal(rooms[1].room, 0);
    /* A queue that is removed is not suspected when it comes back. */
    queues_set(qs, specs, 1);
    assert_int_equal(queues_suspected(qs), 0);
    queues_set(qs, specs, 3);
    assert_int_equal(queues_suspected(qs), 0);
    queues_free(qs);
}

/* A queue that was woken is asked again after a sync named it without a place. */
static void test_woken_when_full(void **state)
{
    struct queue_spec spec = {"a", 4, 1, 1, false};
    struct queues *qs = make(&spec, 1);

    (void)state;
    tell(qs, "a", -1);
    suspect(qs, "a", true);
    queues_wake(qs, "a");
    assert_int_equal(plan_with(qs, 0, true), 1);
    tell(qs, "a", -1);
    assert_true(next_in_us(qs) <= 0);
    assert_int_equal(plan(qs, 1), 1);
    tell(qs, "a", -1);
    assert_true(next_in_us(qs) == INT64_MAX);
    queues_free(qs);
}

/* A sync names a bounded number of queues, however many are due or suspected, since a call of Redis
 * must be short. Half of the names are for suspected queues. */
static void test_a_sync_names_so_many(void **state)
{
    enum { SYNC = 32 };
    static char names[MANY][16];
    struct queues *qs = make_many(names);

    (void)state;
    assert_int_equal(queues_plan(qs, NOW, MANY, true, rooms, SYNC), SYNC);
    queues_answered(qs, rooms, SYNC);
    for (size_t i = MANY / 2; i < MANY; i++)
        suspect(qs, names[i], true);
    assert_int_equal(queues_plan(qs, NOW, MANY, true, rooms, SYNC), SYNC);
    assert_true(strcmp(rooms[SYNC / 2 - 1].queue, names[MANY / 2]) < 0);
    for (size_t i = SYNC / 2; i < SYNC; i++)
        assert_string_equal(rooms[i].queue, names[MANY / 2 + i - SYNC / 2]);
    queues_free(qs);
}

/* The queue that was found last is cached. The cache does not outlive a change of the table. */
static void test_found_after_a_change(void **state)
{
    const struct queue_spec before[] = {
        {"a", 1, 1, 0, false}, {"b", 2, 1, 0, false}, {"c", 3, 1, 0, false}};
    const struct queue_spec after[] = {{"b", 2, 1, 0, false}, {"d", 4, 1, 0, false}};
    struct queues *qs = make(before, 3);

    (void)state;
    queues_claimed(qs, "c");
    assert_true(queues_has(qs, "c"));
    queues_set(qs, after, 2);
    assert_false(queues_has(qs, "c"));
    assert_true(queues_has(qs, "b"));
    queues_set(qs, after, 1);
    assert_false(queues_has(qs, "d"));
    tell(qs, "b", NOW_MS);
    assert_int_equal(plan(qs, 8), 1);
    assert_int_equal(rooms[0].room, 2);
    queues_free(qs);
}

/* A queue that stays keeps its head and its count of running jobs. Its settings are the new
 * ones. */
static void test_set_keeps_what_is_known(void **state)
{
    static const struct queue_spec before[] = {{"a", 2, 1, 1, false}, {"b", 2, 1, 1, false}};
    static const struct queue_spec after[] = {{"a", 3, 5, 9, false}, {"c", 2, 1, 1, false}};
    struct queues *qs = make(before, 2);

    (void)state;
    (void)plan(qs, 9);
    tell(qs, "a", NOW_MS + 50);
    tell(qs, "b", STORE_HEAD_NONE);
    queues_claimed(qs, "a");
    queues_set(qs, after, 2);
    assert_int_equal(plan(qs, 9), 0);
    assert_int_equal(next_in_us(qs), 50000);
    queues_wake(qs, "a");
    assert_int_equal(plan(qs, 9), 1);
    assert_int_equal(rooms[0].room, 2); /* three at once, one runs */
    assert_int_equal(rooms[0].max_payload, 9);
    queues_free(qs);
}

static void test_set_changes_the_names(void **state)
{
    static const struct queue_spec before[] = {{"a", 2, 1, 1, false}, {"b", 2, 1, 1, false}};
    static const struct queue_spec after[] = {{"a", 2, 1, 1, false}, {"c", 2, 1, 1, false}};
    struct queues *qs = make(before, 2);
    struct buf names = BUF_INIT;

    (void)state;
    queues_set(qs, after, 2);
    assert_int_equal(queues_count(qs), 2);
    assert_true(queues_has(qs, "a"));
    assert_false(queues_has(qs, "b"));
    assert_string_equal(queues_name(qs, 0), "a");
    assert_string_equal(queues_name(qs, 1), "c");
    queues_names(qs, &names);
    assert_string_equal(buf_str(&names), "a,c");
    buf_done(&names);
    queues_free(qs);
}

static void test_what_runs_is_counted_anew(void **state)
{
    static const struct queue_spec specs[] = {{"a", 3, 1, 1, false}};
    struct queues *qs = make(specs, 1);

    (void)state;
    queues_claimed(qs, "a");
    queues_clear(qs);
    queues_took(qs, "a");
    queues_took(qs, "a");
    assert_int_equal(plan(qs, 9), 1);
    assert_int_equal(rooms[0].room, 1);
    queues_free(qs);
}

static void test_set_to_nothing(void **state)
{
    static const struct queue_spec specs[] = {{"a", 3, 1, 1, false}};
    struct queues *qs = make(specs, 1);

    (void)state;
    queues_wake(qs, "a");
    queues_set(qs, NULL, 0);
    assert_int_equal(plan(qs, 9), 0);
    assert_int_equal(next_in_us(qs), INT64_MAX);
    assert_false(queues_has(qs, "a"));
    queues_free(qs);
}

/* A timer may fire just before a head is due by Redis' clock: the queue is not deferred for
 * that. */
static void test_only_a_due_head_is_deferred(void **state)
{
    static const struct queue_spec specs[] = {{"a", 1, 1, 0, false}};
    struct queues *qs = make(specs, 1);

    (void)state;
    tell(qs, "a", NOW_MS + 1);
    queues_defer(qs, "a", NOW, 10);
    assert_int_equal(next_in_us(qs), 1000);
    tell(qs, "a", NOW_MS);
    queues_defer(qs, "a", NOW, 10);
    assert_int_equal(next_in_us(qs), 10000);
    queues_wake(qs, "a");
    assert_true(next_in_us(qs) <= 0);
    queues_free(qs);
}

/* When a gate opens, the queues of which a job passed a gate lately are named, for a while. */
static void test_wake_of_the_gated(void **state)
{
    static const struct queue_spec specs[] = {{"a", 9, 1, 1, false}, {"b", 9, 1, 1, false}};
    struct queues *qs = make(specs, 2);
    size_t times = 0;

    (void)state;
    tell(qs, "a", STORE_HEAD_NONE);
    tell(qs, "b", STORE_HEAD_NONE);
    queues_wake_gated(qs);
    assert_int_equal(plan(qs, 9), 0);
    queues_gated(qs, "b");
    for (queues_wake_gated(qs); plan(qs, 9) > 0 && times < 100; times++) {
        assert_string_equal(rooms[0].queue, "b");
        tell(qs, "b", STORE_HEAD_NONE);
        queues_wake_gated(qs);
    }
    /* It gave no job, so it is not named any more. */
    assert_in_range(times, 1, 20);
    queues_free(qs);
}

/* A plan checks the due queues and the two below each in the heap, however many there are. */
static void test_cost_by_due_queues(void **state)
{
    static char names[MANY][16];
    struct queues *qs = make_many(names);
    uint64_t before;

    (void)state;
    for (size_t i = 0; i < MANY; i++) {
        (void)plan(qs, 1);
        tell(qs, names[i], i % 3 == 0 ? STORE_HEAD_NONE : NOW_MS + 1 + (int64_t)(i * 7919 % MANY));
    }
    assert_int_equal(plan(qs, 100), 0);
    before = queues_examined(qs);
    assert_int_equal(plan(qs, 100), 0);
    assert_int_equal(queues_examined(qs) - before, 1);
    for (size_t i = 0; i < 10; i++)
        queues_wake(qs, names[i * (MANY / 10)]);
    before = queues_examined(qs);
    assert_int_equal(plan(qs, 100), 10);
    assert_in_range(queues_examined(qs) - before, 10, 21);
    queues_free(qs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shares),
        cmocka_unit_test(test_only_a_due_head_is_deferred),
        cmocka_unit_test(test_no_turns_saved_up),
        cmocka_unit_test(test_room),
        cmocka_unit_test(test_heads),
        cmocka_unit_test(test_room_is_promised_once),
        cmocka_unit_test(test_wake_during_a_sync),
        cmocka_unit_test(test_wake_of_the_gated),
        cmocka_unit_test(test_woken_when_full),
        cmocka_unit_test(test_suspected),
        cmocka_unit_test(test_a_sync_names_so_many),
        cmocka_unit_test(test_found_after_a_change),
        cmocka_unit_test(test_set_keeps_what_is_known),
        cmocka_unit_test(test_set_changes_the_names),
        cmocka_unit_test(test_what_runs_is_counted_anew),
        cmocka_unit_test(test_set_to_nothing),
        cmocka_unit_test(test_cost_by_due_queues),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
