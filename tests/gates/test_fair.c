/*
 * A fair queue with the built daemon and real handlers: whose turn it is, what explain says of it,
 * and that the queue becomes fair, and is so no more, while jobs wait.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "gate_stage.h"

#define PLACES 4
#define MANY 400

static void start(const char *more)
{
    CLEANUP_BUF struct buf yaml = BUF_INIT;

    buf_puts(&yaml, "queues:\n");
    gates_yaml(&gates, &yaml, "work", 5, 15, more);
    gates_start(&gates, &gates.s.a, "a", PLACES, buf_str(&yaml));
}

static void add_of(const char *tenant, int n)
{
    for (int i = 0; i < n; i++)
        gates_add(&gates, NULL, "work", "key", tenant, NULL);
}

/* How many jobs of this key started from then until then. */
static int starts_between(const struct gate_judge *b, const char *key, int64_t from_us,
                          int64_t to_us)
{
    int n = 0;

    for (size_t i = 0; i < b->n; i++)
        n += b->lines[i].is_start && strcmp(b->lines[i].key, key) == 0 &&
             b->lines[i].us > from_us && b->lines[i].us < to_us;
    return n;
}

static const char *explained(const char *id)
{
    static char text[512];
    struct reply *r = gates_fcall(&gates, "later_explain", id, NULL);

    text[0] = '\0';
    for (size_t i = 0; i + 1 < reply_count(r); i++)
        if (reply_kind(reply_at(r, i)) == REPLY_STR && reply_is(reply_at(r, i), "text"))
            (void)snprintf(text, sizeof(text), "%s", reply_str(reply_at(r, i + 1)));
    reply_free(r);
    return text;
}

/* A tenant with many jobs that are due delays the first job of another by no more than what runs,
 * is on its way to a place, and one round. */
static void test_a_new_tenant_waits_for_one_round(void **state)
{
    char quiet[16], last[16];
    int64_t added_us, started_us;
    struct gate_judge b;

    (void)state;
    start(", fair: true");
    gates_until_declared(&gates, "work");
    gates_do(&gates, "later_pause", "work", NULL); /* a slow machine adds as slowly as it runs */
    add_of("big", MANY);
    gates_add(&gates, quiet, "work", "key", "quiet", NULL);
    gates_add(&gates, last, "work", "key", "big", NULL);
    added_us = gates_now_us();
    gates_do(&gates, "later_resume", "work", NULL);
    assert_non_null(strstr(explained(last), "its tenant big has had "));
    assert_non_null(strstr(explained(last), " due jobs of its tenant "));
    started_us = gates_started_us(&gates, quiet, GATE_WAIT_MS);
    assert_true(gates_until_jobs(&gates, 0, GATE_WAIT_MS));
    gate_judge_read(&b, gates.path, NULL);
    assert_int_equal(gate_judge_starts(&b), MANY + 2);
    assert_in_range(starts_between(&b, "big", added_us, started_us), 0, 4 * PLACES);
    assert_true(starts_between(&b, "big", started_us, INT64_MAX) > MANY / 2);
    gate_judge_done(&b);
}

/* The jobs that wait when the queue becomes fair get their turns, and those that wait when it is so
 * no more run, too. */
static void test_it_becomes_fair_and_unfair_while_jobs_wait(void **state)
{
    char quiet[16];
    int64_t added_us, started_us;
    struct gate_judge b;

    (void)state;
    add_of("big", MANY);
    gates_add(&gates, quiet, "work", "key", "quiet", NULL);
    added_us = gates_now_us();
    start(", fair: true");
    started_us = gates_started_us(&gates, quiet, GATE_WAIT_MS);
    gates_do(&gates, "later_pause", "work", NULL);
    test_laterd_stop(&gates.s.a);
    start("");
    gates_do(&gates, "later_resume", "work", NULL);
    assert_true(gates_until_jobs(&gates, 0, GATE_WAIT_MS));
    gate_judge_read(&b, gates.path, NULL);
    assert_in_range(starts_between(&b, "big", added_us, started_us), 0, 4 * PLACES);
    gate_judge_done(&b);
    assert_int_equal(gates_int(&gates, "HEXISTS", STAGE_ROOT ":fair", "work", NULL), 0);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, gates_setup, gates_teardown)
    const struct CMUnitTest tests[] = {
        T(test_a_new_tenant_waits_for_one_round),
        T(test_it_becomes_fair_and_unfair_while_jobs_wait),
    };

    cmocka_set_test_filter(getenv("LATER_ONLY")); /* a name, with * and ? */
    (void)stage_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
