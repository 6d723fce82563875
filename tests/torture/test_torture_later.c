/*
 * The command `later` under torture: the Nth call of one kind of function fails, for N = 1, 2, …
 * until a run meets no failure. The exit status must be one of `later help`; there must be no
 * signal and no hang. Status 0 only if the whole answer was printed and the job exists. A failed
 * add has added at most one job.
 *
 * LATER_FULL=1 tries every N. Without it, every N up to 50, then in steps of a twelfth.
 */
#include <stddef.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/mem.h"

#include "../support/env.h"
#include "../support/laterd.h"
#include "../support/torture.h"

#define ROOT "later:{default}"
#define ALL_N 50
#define ARGS_MAX 16

static struct test_redis redis;
static struct test_torture *torture;
static char dir[64], order[96], id[16];
static struct buf out, err;

struct line_results {
    int64_t runs, in_library;
};

static struct line_results all; /* sums over all loops that passed */

/* Run later --redis URL ARGS…; under torture if the environment says so. */
static int run(const char *const *args)
{
    CLEANUP_FREE char *later = mem_printf("%s/later", test_build_dir());
    const char *argv[ARGS_MAX + 4] = {later, "--redis", redis.url};

    for (int i = 0; args[i] != NULL; i++)
        argv[3 + i] = args[i];
    buf_clear(&out);
    buf_clear(&err);
    return proc_run((char *const *)(uintptr_t)argv, NULL, 0, &out, &err);
}

static int run_tortured(const char *const *args)
{
    CLEANUP_FREE char *preload = test_torture_preload();
    int status;

    (void)setenv("LD_PRELOAD", strchr(preload, '=') + 1, 1);
    (void)setenv("LATER_TORTURE", order, 1);
    status = run(args);
    (void)unsetenv("LD_PRELOAD");
    (void)unsetenv("LATER_TORTURE");
    return status;
}

static int set_up(void **state)
{
    static const char *const add[] = {"add", "mail",  "hello",  "--in",
                                      "3h",  "--key", "user:1", NULL};

    (void)state;
    test_redis_start(&redis, NULL);
    test_redis_load(&redis);
    test_folder_make(dir);
    (void)snprintf(order, sizeof(order), "%s/torture", dir);
    torture = test_torture_make(order);
    if (run(add) != 0)
        return -1;
    (void)snprintf(id, sizeof(id), "%.12s", buf_str(&out));
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    printf("figure L11: later: %lld runs, all but %lld (an abort of hiredis) with a status of its "
           "manual\n",
           (long long)all.runs, (long long)all.in_library);
    test_torture_free(torture);
    test_redis_stop(&redis);
    test_folder_remove(dir);
    buf_done(&out);
    buf_done(&err);
    return 0;
}

static void say(const char *what, int status)
{
    print_error("%s: exit status %d; %s call %lld%s of %lld, first failed at %s+0x%llx; it said:\n"
                "%s%s\n",
                what, status, test_torture_name((enum test_torture_kind)torture->kind),
                (long long)torture->nth, torture->for_ever ? " for ever" : "",
                (long long)torture->calls, torture->module, (unsigned long long)torture->offset,
                buf_str(&out), buf_str(&err));
}

#define must(cond)                                                                                 \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            say(#cond, status);                                                                    \
            assert_true(cond);                                                                     \
        }                                                                                          \
    } while (0)

static bool is_documented(int status)
{
    static const int known[] = {0, 1, 64, 65, 66, 69, 71, 74, 75, 77, 78};

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (known[i] == status)
            return true;
    return false;
}

static int count_lines(const struct buf *b)
{
    int n = 0;

    for (size_t i = 0; i < b->len; i++)
        n += b->data[i] == '\n';
    return n;
}

/* If the status is 0, the job exists. */
static void check_added(int status)
{
    struct reply *r;

    if (status != 0)
        return;
    must(out.len == 13);
    out.data[12] = '\0';
    r = test_redis_call(&redis, "HEXISTS", ROOT ":jobs", out.data, NULL);
    must(reply_int(r) == 1);
    reply_free(r);
}

static int64_t next(int64_t nth)
{
    return nth < ALL_N || test_is_long() ? nth + 1 : nth + nth / 12;
}

/* Returns the first N beyond the last call. */
static int64_t loop(enum test_torture_kind kind, bool for_ever, const char *const *args,
                    struct line_results *t)
{
    bool adds = strcmp(args[0], "add") == 0;
    int64_t nth = 1;
    int lines;

    assert_int_equal(run(args), 0);
    lines = count_lines(&out);
    for (;; nth = next(nth)) {
        int64_t jobs = test_int(&redis, "HLEN", ROOT ":jobs"), more;
        int status;

        test_torture_set(torture, kind, nth, for_ever);
        status = run_tortured(args);
        t->runs++;
        t->in_library += test_torture_in_hiredis(torture, status);
        must(is_documented(status) || test_torture_in_hiredis(torture, status));
        must(status != 0 || count_lines(&out) == lines);
        must(status == 0 || status > 128 || err.len > 0);
        more = test_int(&redis, "HLEN", ROOT ":jobs") - jobs;
        must(adds ? more == 1 || (more == 0 && status != 0) : more == 0);
        if (adds)
            check_added(status);
        if (torture->failed == 0) {
            must(status == 0);
            return nth;
        }
    }
}

static void torture_all(enum test_torture_kind kind)
{
    const char *const verbs[][8] = {
        {"add", "mail", "hello", "--in", "3h", "--key", "user:1", NULL},
        {"show", id, NULL},
        {"show", id, "--json", NULL},
        {"explain", id, NULL},
        {"explain", id, "--json", NULL},
        {"ls", "mail", NULL},
        {"ls", "mail", "--json", NULL},
        {"stats", NULL},
        {"stats", "--json", NULL},
    };
    struct line_results t = {0, 0};
    int64_t most = 0;

    for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
        /* Start with few jobs: long listings are not tested here. */
        reply_free(test_redis_call(&redis, "FLUSHALL", NULL));
        assert_int_equal(run(verbs[0]), 0);
        (void)snprintf(id, sizeof(id), "%.12s", buf_str(&out));
        for (int for_ever = 0; for_ever < 2; for_ever++) {
            int64_t n = loop(kind, for_ever, verbs[i], &t);

            most = n > most ? n : most;
        }
    }
    printf(
        "torture later %s: %lld runs, up to call %lld, ended by an abort inside hiredis in %lld\n",
        test_torture_name(kind), (long long)t.runs, (long long)most, (long long)t.in_library);
    (void)fflush(stdout);
    all.runs += t.runs;
    all.in_library += t.in_library;
}

static void L11_later(void **state)
{
    static const enum test_torture_kind kinds[] = {TORTURE_WRITE,  TORTURE_READ,    TORTURE_OPEN,
                                                   TORTURE_SOCKET, TORTURE_CONNECT, TORTURE_MALLOC};

    (void)state;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        torture_all(kinds[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(L11_later),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
