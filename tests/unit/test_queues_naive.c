/* Random events and plans, compared with a naive table that checks all its queues each time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sched/queues.h"

#define NOW ((struct mono){INT64_C(3600000000)})
#define NOW_US INT64_C(1767225600000000) /* Redis' clock */
#define NOW_MS (NOW_US / 1000)
#define NAIVES 24
#define STRIDE_ONE (UINT64_C(1) << 20)

struct naive {
    char name[8];
    unsigned max_at_once, weight, running, asked, gated;
    int64_t head_us;
    uint64_t pass;
    bool was_due, woken, suspected;
};

static struct naive naive[NAIVES];
static uint64_t naive_pass;

static unsigned naive_room(const struct naive *q)
{
    return q->max_at_once > q->running + q->asked ? q->max_at_once - q->running - q->asked : 0;
}

/* The due queue with the lowest pass that is not in out yet; NULL: none. */
static struct naive *naive_first(struct naive *const *out, size_t n)
{
    struct naive *best = NULL;

    for (size_t i = 0; i < NAIVES; i++) {
        bool is_out = !naive[i].was_due;

        for (size_t k = 0; k < n; k++)
            is_out = is_out || out[k] == &naive[i];
        if (!is_out && (best == NULL || naive[i].pass < best->pass))
            best = &naive[i];
    }
    return best;
}

static size_t naive_due(int64_t now_us, struct naive **out)
{
    size_t n = 0;

    for (size_t i = 0; i < NAIVES; i++) {
        struct naive *q = &naive[i];
        bool is_due = q->head_us <= now_us && naive_room(q) > 0;

        if (is_due && !q->was_due && q->pass < naive_pass)
            q->pass = naive_pass;
        q->was_due = is_due;
    }
    while ((out[n] = naive_first(out, n)) != NULL)
        n++;
    return n;
}

static size_t naive_share(int64_t now_us, unsigned free, struct store_room *out, size_t max)
{
    struct naive *due[NAIVES + 1];
    unsigned room[NAIVES] = {0};
    size_t n = naive_due(now_us, due), kept = 0;

    n = n < max ? n : max;
    n = n < free ? n : free;
    for (; free > 0; free--) {
        size_t best = n;
        uint64_t best_pass = UINT64_MAX;

        for (size_t i = 0; i < n; i++) {
            uint64_t pass = due[i]->pass + room[i] * (STRIDE_ONE / due[i]->weight);

            if (room[i] < naive_room(due[i]) && pass < best_pass) {
                best = i;
                best_pass = pass;
            }
        }
        if (best == n)
            break;
        room[best]++;
    }
    for (size_t i = 0; i < n; i++) {
        if (room[i] == 0)
            continue;
        due[i]->woken = false;
        out[kept++] = (struct store_room){due[i]->name, room[i], 7};
    }
    return kept;
}

static size_t naive_plan(int64_t now_us, unsigned free, bool suspected, struct store_room *out,
                         size_t max)
{
    bool is_any = false;
    size_t due, n;

    for (size_t i = 0; i < NAIVES; i++)
        is_any = is_any || naive[i].suspected;
    suspected = suspected && is_any;
    due = free > 0 ? naive_share(now_us, free, out, suspected ? max / 2 : max) : 0;
    n = due;
    for (size_t i = 0; suspected && i < NAIVES && n < max; i++) {
        struct naive *q = &naive[i];
        unsigned room = free > 0 && naive_room(q) > 0;
        bool is_named = !q->suspected;

        for (size_t k = 0; k < due; k++)
            is_named = is_named || out[k].queue == q->name;
        if (is_named)
            continue;
        q->woken = q->woken && room == 0;
        out[n++] = (struct store_room){q->name, room, 7};
    }
    for (size_t i = 0; i < n; i++)
        naive[atoi(out[i].queue + 1)].asked += out[i].room;
    return n;
}

static void naive_wake(struct naive *q)
{
    q->head_us = 0;
    q->woken = true;
}

/* Answer a sync that named these queues: the heads it told and the jobs it brought. */
static void answer_both(struct queues *qs, const struct store_room *sync, size_t n, int64_t now_us)
{
    int64_t heads[NAIVES];
    bool is_suspect_due = rand() % 8 == 0;

    queues_answered(qs, sync, n);
    for (size_t i = 0; i < n; i++) {
        struct naive *q = &naive[atoi(sync[i].queue + 1)];
        unsigned brought = sync[i].room > 0 ? (unsigned)rand() % (sync[i].room + 1) : 0;

        q->asked = q->asked > sync[i].room ? q->asked - sync[i].room : 0;
        heads[i] = rand() % 3 == 0 ? STORE_HEAD_NONE : NOW_MS + rand() % 40 - 20;
        q->suspected = is_suspect_due;
        if (!q->woken)
            q->head_us = heads[i] < 0 ? INT64_MAX : now_us + heads[i] * 1000 - NOW_US;
        for (; brought > 0; brought--) {
            q->running++;
            queues_claimed(qs, q->name);
            naive_pass = q->pass > naive_pass ? q->pass : naive_pass;
            q->pass += STRIDE_ONE / q->weight;
        }
    }
    queues_heads(qs, sync, heads, n, NOW_US, (struct mono){now_us});
    queues_suspect(qs, sync, n, is_suspect_due);
}

/* One event, for a queue or for all of them. */
static void disturb_both(struct queues *qs, int64_t now_us)
{
    struct naive *q = &naive[rand() % NAIVES];

    switch (rand() % 13) {
    case 0:
        naive_wake(q);
        queues_wake(qs, q->name);
        break;
    case 1:
        q->max_at_once = (unsigned)rand() % 6;
        queues_set_max_at_once(qs, q->name, q->max_at_once);
        break;
    case 2:
        q->gated = 16;
        queues_gated(qs, q->name);
        break;
    case 3:
        for (size_t i = 0; i < NAIVES; i++) {
            if (naive[i].gated > 0) {
                naive[i].gated--;
                naive_wake(&naive[i]);
            }
        }
        queues_wake_gated(qs);
        break;
    case 4:
        q->head_us = now_us + QUEUES_ERROR_MS * 1000;
        queues_failed(qs, q->name, (struct mono){now_us});
        break;
    case 5:
        if (!q->woken && q->head_us <= now_us)
            q->head_us = now_us + 10000;
        queues_defer(qs, q->name, (struct mono){now_us}, 10);
        break;
    case 6:
        q->head_us = 0;
        queues_found(qs, q->name);
        break;
    case 7:
        q->running++;
        queues_took(qs, q->name);
        break;
    default:
        q->running -= q->running > 0;
        queues_ended(qs, q->name);
        break;
    }
}

/* Now and then everything is counted again, as after a lost link or a new configuration. */
static void shake_both(struct queues *qs, const struct queue_spec *specs)
{
    queues_unanswered(qs);
    queues_clear(qs);
    queues_set(qs, specs, NAIVES);
    for (size_t i = 0; i < NAIVES; i++) {
        naive[i].asked = naive[i].running = 0;
        naive[i].max_at_once = specs[i].max_at_once;
    }
}

static void expect_same_next(const struct queues *qs)
{
    int64_t next_us = INT64_MAX;

    for (size_t i = 0; i < NAIVES; i++) {
        if (naive_room(&naive[i]) > 0 && naive[i].head_us < next_us)
            next_us = naive[i].head_us;
    }
    assert_true(queues_next(qs).us == next_us);
}

static size_t plan_both(struct queues *qs, int64_t now_us, struct store_room *out)
{
    struct store_room want[NAIVES];
    unsigned free = (unsigned)rand() % 20;
    bool suspected = rand() % 4 == 0;
    size_t max = 1 + (size_t)rand() % NAIVES;
    size_t n = queues_plan(qs, (struct mono){now_us}, free, suspected, out, max);

    assert_int_equal(n, naive_plan(now_us, free, suspected, want, max));
    for (size_t i = 0; i < n; i++) {
        assert_string_equal(out[i].queue, want[i].queue);
        assert_int_equal(out[i].room, want[i].room);
        out[i].queue = want[i].queue; /* the names of qs end with the next queues_set */
    }
    return n;
}

static void test_as_the_naive_one(void **state)
{
    static struct queue_spec specs[NAIVES];
    static struct store_room syncs[2][NAIVES];
    size_t sizes[2] = {0}, named = 0;
    struct queues *qs;

    (void)state;
    srand(5);
    for (size_t i = 0; i < NAIVES; i++) {
        naive[i] = (struct naive){
            .weight = 1 + (unsigned)rand() % 9, .max_at_once = 4, .head_us = INT64_MAX};
        (void)snprintf(naive[i].name, sizeof(naive[i].name), "q%02zu", i);
        specs[i] = (struct queue_spec){naive[i].name, 4, naive[i].weight, 7, false};
    }
    qs = queues_new();
    queues_set(qs, specs, NAIVES);
    for (int64_t round = 0; round < 100000; round++) {
        int64_t now_us = NOW.us + round * 500;

        answer_both(qs, syncs[round % 2], sizes[round % 2], now_us);
        expect_same_next(qs);
        for (int i = rand() % 6; i > 0; i--)
            disturb_both(qs, now_us);
        expect_same_next(qs);
        sizes[round % 2] = plan_both(qs, now_us, syncs[round % 2]);
        named += sizes[round % 2];
        if (rand() % 500 == 0) {
            shake_both(qs, specs);
            sizes[0] = sizes[1] = 0;
        }
    }
    assert_true(named > 100000);
    queues_free(qs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_as_the_naive_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
