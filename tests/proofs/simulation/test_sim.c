/*
 * Tests of tests/sim itself: it finds nothing in some seeds of the product; it finds a check that
 * was taken out; and its log follows from the seed alone.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../support/env.h"
#include "../../support/laterd.h"
#include "base/cleanup.h"
#include "base/mem.h"

#define DEADLINE_MS 300000

/* The first two tests make all the product's calls. The others show that the checks find something,
 * which is the same in every build: not with a sanitizer. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define FINDS false
#else
#define FINDS true
#endif

static char dir[64];

static int setup(void **state)
{
    (void)state;
    test_folder_make(dir);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    test_folder_remove(dir);
    return 0;
}

/* Run it; log and without may be NULL. Returns its exit status. Its output is shown and put in
 * *said. */
static int sim(const char *seeds, const char *log, const char *without, struct buf *said)
{
    CLEANUP_FREE char *program = mem_printf("%s/tests/sim", test_build_dir());
    CLEANUP_FREE char *out = mem_printf("%s/out-%s", dir, seeds);
    char *argv[8] = {program, (char *)(uintptr_t) "--seeds", (char *)(uintptr_t)seeds};
    struct proc p;
    size_t n = 3;
    int status;

    if (log != NULL) {
        argv[n++] = (char *)(uintptr_t) "--log";
        argv[n++] = (char *)(uintptr_t)log;
    }
    if (without != NULL) {
        argv[n++] = (char *)(uintptr_t) "--without";
        argv[n++] = (char *)(uintptr_t)without;
    }
    (void)remove(out);
    proc_start(&p, argv, NULL, out);
    status = proc_wait(&p, DEADLINE_MS);
    proc_done(&p);
    buf_clear(said);
    test_read(out, said);
    (void)printf("%s", buf_str(said));
    return status;
}

/* Two processes, each with its own server: their logs are equal, byte by byte. */
static void test_sim_same_seeds_same_log(void **state)
{
    CLEANUP_BUF struct buf said = BUF_INIT, one = BUF_INIT, two = BUF_INIT;
    CLEANUP_FREE char *log = mem_printf("%s/log", dir);

    (void)state;
    assert_int_equal(sim("1..40", log, NULL, &said), 0);
    assert_non_null(strstr(said.data, "sim: 40 seeds, 0 broken"));
    test_read(log, &one);
    assert_int_equal(sim("1..40", log, NULL, &said), 0);
    test_read(log, &two);
    assert_true(one.len > 100000);
    assert_int_equal(one.len, two.len);
    assert_memory_equal(one.data, two.data, one.len);
}

/* A seed's run does not depend on the runs before it: alone it gives the same log. */
static void test_sim_replays_one_seed(void **state)
{
    CLEANUP_BUF struct buf said = BUF_INIT, all = BUF_INIT, one = BUF_INIT;
    CLEANUP_FREE char *log = mem_printf("%s/log", dir);

    (void)state;
    assert_int_equal(sim("41..55", log, NULL, &said), 0);
    test_read(log, &all);
    assert_int_equal(sim("50..50", log, NULL, &said), 0);
    test_read(log, &one);
    assert_true(one.len > 1000);
    assert_non_null(strstr(all.data, one.data));
}

static void finds(const char *without, const char *property, const char *among)
{
    CLEANUP_BUF struct buf said = BUF_INIT;
    CLEANUP_FREE char *broken = mem_printf("BROKEN %s", property);
    CLEANUP_FREE char *seeds = NULL;
    uint64_t seed = 0;

    assert_int_equal(sim(among, NULL, without, &said), 1);
    assert_non_null(strstr(said.data, broken));
    assert_non_null(strstr(said.data, "replay: tests/sim --seeds "));
    assert_int_equal(sscanf(said.data, "seed %lu", &seed), 1);
    seeds = mem_printf("%lu..%lu", seed, seed);
    assert_int_equal(sim(seeds, NULL, without, &said), 1);
    assert_non_null(strstr(said.data, broken));
}

static void test_sim_finds_a_missing_fence(void **state)
{
    (void)state;
    /* A result of an earlier start, by the worker that runs the job again: it comes once in some
     * thousand seeds, so begin with seeds that have it. */
    finds("fence", "I3-fence", "5900..9000");
}

static void test_sim_finds_a_missing_link_check(void **state)
{
    (void)state;
    finds("link", "I3-old-link", "1..2000");
}

static void test_sim_finds_a_gate_that_lets_all_in(void **state)
{
    (void)state;
    finds("gate", "I7-lock", "1..2000");
}

static void test_sim_finds_starts_that_are_not_counted(void **state)
{
    (void)state;
    finds("rate", "GcraWindow", "160..2000"); /* once in some hundred seeds */
}

static void test_sim_finds_occurrences_that_are_added_twice(void **state)
{
    (void)state;
    finds("cursor", "schedule-once", "1..2000");
}

static void test_sim_finds_members_that_are_adopted_twice(void **state)
{
    (void)state;
    finds("take", "foreign-once", "1..2000");
}

static void test_sim_finds_a_broadcast_that_anybody_runs(void **state)
{
    (void)state;
    finds("target", "broadcast-target", "1..2000");
}

static void test_sim_finds_a_job_that_its_tenant_does_not_have(void **state)
{
    (void)state;
    finds("turn", "fair-turn", "1..2000");
}

static void test_sim_finds_a_missing_guard(void **state)
{
    (void)state;
    finds("guard", "I7-handlers", "460..2000"); /* once in some hundred seeds */
}

int main(void)
{
    const struct CMUnitTest plain[] = {
        cmocka_unit_test_setup_teardown(test_sim_same_seeds_same_log, setup, teardown),
        cmocka_unit_test_setup_teardown(test_sim_replays_one_seed, setup, teardown),
    };
    const struct CMUnitTest finding[] = {
        cmocka_unit_test_setup_teardown(test_sim_finds_a_missing_fence, setup, teardown),
        cmocka_unit_test_setup_teardown(test_sim_finds_a_missing_link_check, setup, teardown),
        cmocka_unit_test_setup_teardown(test_sim_finds_a_gate_that_lets_all_in, setup, teardown),
        cmocka_unit_test_setup_teardown(test_sim_finds_starts_that_are_not_counted, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_sim_finds_occurrences_that_are_added_twice, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_sim_finds_members_that_are_adopted_twice, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_sim_finds_a_broadcast_that_anybody_runs, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_sim_finds_a_job_that_its_tenant_does_not_have, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_sim_finds_a_missing_guard, setup, teardown),
    };
    int failed = cmocka_run_group_tests(plain, NULL, NULL);

    return failed + (FINDS ? cmocka_run_group_tests(finding, NULL, NULL) : 0);
}
