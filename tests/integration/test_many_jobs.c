/*
 * A queue of 20,000 jobs, or with LATER_FULL of a million. ls and stats answer at once, and need no
 * more memory than for a few jobs; Redis is not held up; and an export that is imported gives the
 * same jobs. The figures are printed.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../support/env.h"
#include "../support/proc.h"
#include "../support/redis.h"
#include "base/buf.h"
#include "base/mem.h"

#define FEW 2000
#define FIRST_TIMES 4 /* the first output may take so many times what it takes of few jobs */
#define CALL_TIMES 4  /* and a call so many times what one of the first import takes */
#define TRIES 10
#define DEADLINE_MS 1200000

static struct test_redis redis;
static char later[4096], lines[128], few_lines[128], exported[128], said[128];
static int many;

static int64_t redis_int(const char *a, const char *b)
{
    struct reply *r = test_redis_call(&redis, a, b, NULL);
    int64_t n = reply_int(r);

    reply_free(r);
    return n;
}

static int64_t peak_kib(pid_t pid)
{
    char path[64], line[256];
    long long kib = 0;
    FILE *f;

    (void)snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    f = fopen(path, "re");
    while (f != NULL && fgets(line, sizeof(line), f) != NULL)
        (void)sscanf(line, "VmHWM: %lld", &kib);
    if (f != NULL)
        (void)fclose(f);
    return kib;
}

struct figures {
    int64_t ms, kib; /* kib: the most memory that was seen */
};

/* Run the command with its output in a file. */
static struct figures run_to(const char *file, const char *verb, const char *queue,
                             const char *option, const char *value)
{
    char *const argv[] = {later, (char *)verb, (char *)queue, (char *)option, (char *)value, NULL};
    struct mono begin = mono_now();
    struct figures got = {0, 0};
    struct proc p;
    int status;

    (void)unlink(file);
    proc_start(&p, argv, NULL, file);
    do {
        int64_t kib = peak_kib(p.pid);

        got.kib = kib > got.kib ? kib : got.kib;
        status = proc_wait(&p, 1);
    } while (status < 0 && test_ms_since(begin) < DEADLINE_MS);
    got.ms = test_ms_since(begin);
    assert_int_equal(status, 0);
    proc_done(&p);
    return got;
}

/* The time in us from the start of the command to its first byte. */
static int64_t first_output_us(const char *verb, const char *queue)
{
    char *const argv[] = {later, (char *)verb, (char *)queue, NULL};
    struct mono begin = mono_now();
    struct proc p;
    int in, out;
    char byte;
    int64_t us;

    proc_start_piped(&p, argv, &in, &out);
    while (read(out, &byte, 1) != 1 && test_ms_since(begin) < DEADLINE_MS)
        (void)usleep(200);
    us = mono_until_us(begin, mono_now());
    proc_done(&p);
    (void)close(in);
    (void)close(out);
    return us;
}

/* The command answers of all jobs about as fast as `ls` of a few: the best of some tries each, in
 * turn, since others use the machine. */
static void judge_first_output(const char *verb, const char *queue)
{
    int64_t best = INT64_MAX, best_few = INT64_MAX;

    for (int i = 0; i < TRIES; i++) {
        int64_t us = first_output_us(verb, queue), few_us = first_output_us("ls", "few");

        best = us < best ? us : best;
        best_few = few_us < best_few ? few_us : best_few;
    }
    print_message("%s of %d: first output after %.1f ms (ls of %d: %.1f)\n", verb, many,
                  (double)best / 1000, FEW, (double)best_few / 1000);
    assert_true(best <= FIRST_TIMES * best_few);
}

/* The processor time of Redis so far. */
static double cpu_ms(void)
{
    struct reply *r = test_redis_call(&redis, "INFO", "cpu", NULL);
    const char *user = strstr(reply_str(r), "used_cpu_user:");
    const char *sys = strstr(reply_str(r), "used_cpu_sys:");
    double ms = 0;

    assert_true(user != NULL && sys != NULL);
    ms = 1000 * (strtod(user + 14, NULL) + strtod(sys + 13, NULL));
    reply_free(r);
    return ms;
}

/*
 * Judge what the calls since the last time cost Redis, by processor time, against those of the
 * first time, the import of a few jobs. How long one call held Redis up is only printed: where
 * others use the machine, it says more about them.
 */
static void judge_calls(const char *what)
{
    static double before, unit_ms;
    struct reply *r = test_redis_call(&redis, "INFO", "commandstats", NULL);
    const char *fcall = strstr(reply_str(r), "cmdstat_fcall:calls=");
    long long calls = 0, us = 0;
    double ms = cpu_ms() - before;

    assert_non_null(fcall);
    assert_int_equal(sscanf(fcall, "cmdstat_fcall:calls=%lld,usec=%lld", &calls, &us), 2);
    assert_true(calls > 0);
    print_message("%s: %lld calls, each %.0f us of processor, %lld us; %lld took over 5 ms\n", what,
                  calls, 1000 * ms / (double)calls, us / calls,
                  (long long)redis_int("SLOWLOG", "LEN"));
    /* With few calls the time says more about what Redis does besides. */
    assert_true(calls < 100 || ms / (double)calls < CALL_TIMES * unit_ms);
    if (unit_ms <= 0)
        unit_ms = ms / (double)calls;
    reply_free(r);
    reply_free(test_redis_call(&redis, "SLOWLOG", "RESET", NULL));
    reply_free(test_redis_call(&redis, "CONFIG", "RESETSTAT", NULL));
    before = cpu_ms();
}

/* Lines with due times all over a year, many of them the same; some bytes are no text. */
static void write_lines(const char *path, int n)
{
    FILE *f = fopen(path, "we");
    uint64_t x = 42;

    assert_non_null(f);
    for (int i = 0; i < n; i++) {
        x = x * UINT64_C(6364136223846793005) + 1442695040888963407;
        (void)fprintf(f, "{\"due_ms\":%llu,\"priority\":%d,",
                      1900000000000ULL + (i % 3 == 0 ? 0 : (unsigned long long)(x >> 30)),
                      i % 10 < 8 ? 5 : i % 10);
        if (i % 4 == 0)
            (void)fprintf(f, "\"key\":\"user:%d\",\"attempts_max\":3,", i % 1000);
        if (i % 10 == 0)
            (void)fprintf(f, "\"payload_base64\":\"%04d//8=\"}\n", i / 10 % 10000);
        else
            (void)fprintf(f, "\"payload\":\"{\\\"to\\\":\\\"user%d@example.com\\\"}\\n\"}\n", i);
    }
    assert_int_equal(fclose(f), 0);
}

static void test_ls_and_stats(void **state)
{
    struct figures few, all;

    (void)state;
    few = run_to(said, "ls", "few", NULL, NULL);
    (void)run_to(said, "stats", NULL, NULL, NULL);
    judge_calls("ls of few");
    judge_first_output("ls", "many");
    judge_first_output("stats", NULL);
    all = run_to(said, "ls", "many", NULL, NULL);
    print_message("ls of %d: %lld ms, %lld KiB at most (of %d: %lld)\n", many, (long long)all.ms,
                  (long long)all.kib, FEW, (long long)few.kib);
    /* All jobs in memory would be megabytes more; how much is read at once depends on the load. */
    assert_true(all.kib <= few.kib + 1024);
    judge_calls("ls of many");
}

/* Compare the two queues job by job, in the order of their sets: due times, options, payloads. */
static void assert_same(const char *set)
{
    static const char script[] =
        "local function rows(q) return redis.call('ZRANGE', 'later:{default}:q:' .. q .. ':' .. "
        "ARGV[1], ARGV[2], ARGV[2] + 999, 'WITHSCORES') end "
        "local function record(id) return redis.call('HGET', 'later:{default}:jobs', id) end "
        "local a, b = rows('many'), rows('again') "
        "if #a ~= #b then return -1 end "
        "for i = 1, #a, 2 do "
        "  if a[i + 1] ~= b[i + 1] or string.gsub(record(a[i]), '^.many', '-again') ~= "
        "record(b[i]) then return -2 end "
        "end "
        "return #a / 2";
    int64_t n = 1;

    for (int from = 0; n > 0; from += 1000) {
        char digits[16];
        struct reply *r;

        (void)snprintf(digits, sizeof(digits), "%d", from);
        r = test_redis_call(&redis, "EVAL", script, "0", set, digits, NULL);
        assert_non_null(r);
        n = reply_int(r);
        reply_free(r);
        if (n < 0)
            fail_msg("set %s differs at %d (%lld)", set, from, (long long)n);
    }
}

static void test_export_and_import(void **state)
{
    static const char *const sets[] = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};
    struct figures got, few;

    (void)state;
    (void)run_to(exported, "export", "many", NULL, NULL); /* the first export after the import */
    judge_calls("before");
    few = run_to(said, "export", "few", NULL, NULL);
    got = run_to(exported, "export", "many", NULL, NULL);
    print_message("export of %d: %lld ms, %lld a second, %lld KiB at most\n", many,
                  (long long)got.ms, (long long)many * 1000 / (long long)(got.ms + 1),
                  (long long)got.kib);
    assert_true(got.kib <= few.kib + 1024);
    judge_calls("export");
    got = run_to(said, "import", "again", exported, NULL);
    print_message("import of %d: %lld ms, %lld a second, %lld KiB at most\n", many,
                  (long long)got.ms, (long long)many * 1000 / (long long)(got.ms + 1),
                  (long long)got.kib);
    assert_true(got.kib <= few.kib + 2048);
    judge_calls("import");
    for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++)
        assert_same(sets[i]);
    assert_int_equal(redis_int("HLEN", "later:{default}:jobs"), 2 * many + FEW);
}

static void test_purge(void **state)
{
    char *const argv[] = {
        later, (char *)"purge", (char *)"again", (char *)"--state", (char *)"due", (char *)"--yes",
        NULL};
    struct mono begin = mono_now();
    struct proc p;

    (void)state;
    reply_free(test_redis_call(&redis, "SLOWLOG", "RESET", NULL)); /* of the comparison */
    proc_start(&p, argv, NULL, said);
    assert_int_equal(proc_wait(&p, DEADLINE_MS), 0);
    print_message("purge of %d: %lld ms\n", many, (long long)test_ms_since(begin));
    proc_done(&p);
    judge_calls("purge");
    assert_int_equal(redis_int("HLEN", "later:{default}:jobs"), many + FEW);
}

static int start_all(void **state)
{
    (void)state;
    many = test_is_long() ? 1000000 : 20000;
    (void)snprintf(later, sizeof(later), "%s/later", test_build_dir());
    test_redis_start(&redis, NULL);
    test_redis_load(&redis);
    (void)snprintf(lines, sizeof(lines), "%s/lines", redis.dir);
    (void)snprintf(few_lines, sizeof(few_lines), "%s/few", redis.dir);
    (void)snprintf(exported, sizeof(exported), "%s/exported", redis.dir);
    (void)snprintf(said, sizeof(said), "%s/said", redis.dir);
    (void)setenv("LATER_REDIS_URL", redis.url, 1);
    (void)setenv("HOME", redis.dir, 1);
    (void)unsetenv("LATER_NAMESPACE");
    (void)unsetenv("LATERD_CONFIG");
    reply_free(test_redis_call(&redis, "CONFIG", "SET", "slowlog-log-slower-than", "5000",
                               "slowlog-max-len", "100000", NULL));
    write_lines(lines, many);
    write_lines(few_lines, FEW);
    (void)run_to(said, "import", "few", few_lines, NULL);
    judge_calls("import of a few lines");
    (void)run_to(said, "import", "many", lines, NULL);
    judge_calls("import of hand-written lines");
    return 0;
}

static int stop_all(void **state)
{
    (void)state;
    test_redis_stop(&redis);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ls_and_stats),
        cmocka_unit_test(test_export_and_import),
        cmocka_unit_test(test_purge),
    };

    return cmocka_run_group_tests(tests, start_all, stop_all);
}
