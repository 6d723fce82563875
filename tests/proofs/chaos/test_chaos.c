/*
 * Random calls to the library on a real Redis. They are judged by rules that hold for any sequence
 * of calls: no job is lost, no start happens twice, a lock has one holder, and in the end all jobs
 * have ended and nothing is left. Meanwhile foreign keys come and go, limits change, leases end,
 * workers die and the clock jumps. A run that fails is shortened while it still fails, and printed.
 *
 *   tests/proofs/chaos/test_chaos [--seed N] [--seeds N] [--calls N] [--library FILE]
 *       [--but RULES] [--print 1] [--roles 0] [--go-on 1]
 *
 * Replay: the printed seed and calls. LATER_FULL=1: 5,500 calls for each of 100 seeds.
 */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../../support/env.h"
#include "audit.h"
#include "drain.h"
#include "judge.h"
#include "moves.h"
#include "finding.h"

#define CALLS_MAX 100000
#define AUDIT_EVERY 40
#define SHRINK_S 60

static struct options {
    uint64_t seed;
    long seeds;
    int calls;
    const char *library;
    bool is_printed;
    bool goes_on; /* go on with the next seed after a failure; shorten nothing */
} options = {.seed = 1, .seeds = 10, .calls = 1500};

static struct world world;
static bool left_out[CALLS_MAX];

static void audit_all(struct world *w)
{
    for (int s = 0; s < SPACES && !w->is_disturbed; s++)
        audit(w->space[s]);
}

/* Returns the number of the call after which a rule was broken; calls + 1: in the drain; -1:
 * none. */
static int run(uint64_t seed, int calls, bool is_printed)
{
    struct dice numbers = {seed};

    world.is_printed = is_printed;
    world_clear(&world, dice_next(&numbers));
    for (int i = 0; i < calls; i++) {
        uint64_t number = dice_next(&numbers);

        if (left_out[i])
            continue;
        world.dice.state = number;
        if (is_printed)
            (void)printf("%d: ", i);
        move_any(&world);
        if (i % AUDIT_EVERY == 0 || is_printed)
            audit_all(&world);
        if (finding_is_broken())
            return i;
    }
    world.dice.state = dice_next(&numbers);
    if (is_printed)
        (void)printf("the end\n");
    world.is_printed = is_printed && options.is_printed;
    drain(&world);
    return finding_is_broken() ? calls + 1 : -1;
}

/* ---- a failure */

/* Does the run still break the same rule? */
static bool fails(uint64_t seed, int calls, const char *rule)
{
    return run(seed, calls, false) >= 0 && strcmp(finding_rule(), rule) == 0;
}

/* Leave out calls that the failure does not need, in smaller and smaller pieces. */
static void shrink(uint64_t seed, int calls, const char *rule)
{
    time_t until = time(NULL) + SHRINK_S;

    for (int size = calls / 2; size >= 1; size /= 2)
        for (int from = calls - size; from > -size && time(NULL) < until; from -= size) {
            bool was[CALLS_MAX];
            int begin = from < 0 ? 0 : from;
            bool is_less = false;

            memcpy(was, left_out, sizeof(was));
            for (int i = begin; i < from + size; i++) {
                is_less |= !left_out[i];
                left_out[i] = true;
            }
            if (!is_less || !fails(seed, calls, rule))
                memcpy(left_out, was, sizeof(was));
        }
}

/* Print all keys of the namespace. */
static void show_keys(void)
{
    static const char text[] =
        "local out = {}\n"
        "for _, key in ipairs(redis.call('KEYS', ARGV[1])) do\n"
        "  local is, v = redis.call('TYPE', key).ok\n"
        "  if is == 'hash' then v = redis.call('HGETALL', key)\n"
        "  elseif is == 'zset' then v = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES')\n"
        "  elseif is == 'set' then v = redis.call('SMEMBERS', key)\n"
        "  elseif is == 'string' then v = {string.sub(redis.call('GET', key), 1, 60)}\n"
        "  else v = {is} end\n"
        "  out[#out + 1] = key .. ' ' .. string.sub(table.concat(v, ' '), 1, 300)\n"
        "end\n"
        "table.sort(out) return out";
    struct reply *r;

    call_begin(&world.call, "EVAL_RO");
    call_text(&world.call, text);
    call_text(&world.call, "0");
    call_printf(&world.call, "%s:*", world.l->root);
    r = arena_must(&world.call);
    for (size_t i = 0; i < reply_count(r); i++)
        (void)printf("  %s\n", reply_str(reply_at(r, i)));
    reply_free(r);
}

/* Print which commands a role was refused lately. */
static void show_denied(void)
{
    struct reply *r;

    call_begin(&world.call, "ACL");
    call_text(&world.call, "LOG");
    call_text(&world.call, "3");
    r = arena_must(&world.call);
    for (size_t i = 0; i < reply_count(r); i++)
        (void)printf("  %s may not: %s\n", reply_str(reply_named(reply_at(r, i), "username")),
                     reply_str(reply_named(reply_at(r, i), "object")));
    reply_free(r);
}

static void tell(uint64_t seed, int calls, int at)
{
    char rule[32];
    int n = at < calls ? at + 1 : calls;

    (void)snprintf(rule, sizeof(rule), "%s", finding_rule());
    (void)printf("FAILED: --seed %llu --seeds 1 --calls %d, after call %d: %s: %s\n",
                 (unsigned long long)seed, calls, at, rule, finding_text());
    (void)fflush(stdout);
    if (options.goes_on)
        return;
    shrink(seed, n, rule);
    (void)printf("the shortest that fails:\n");
    (void)run(seed, n, true);
    (void)printf("BROKEN %s: %s\n", finding_rule(), finding_text());
    show_keys();
    show_denied();
}

/* ---- the program */

static void read_arguments(int argc, char **argv)
{
    if (test_is_long()) {
        options.seeds = 100;
        options.calls = 5500;
    }
    for (int i = 1; i + 1 < argc; i += 2) {
        long long n = strtoll(argv[i + 1], NULL, 10);

        if (strcmp(argv[i], "--seed") == 0)
            options.seed = (uint64_t)n;
        else if (strcmp(argv[i], "--seeds") == 0)
            options.seeds = (long)n;
        else if (strcmp(argv[i], "--calls") == 0 && n > 0 && n <= CALLS_MAX)
            options.calls = (int)n;
        else if (strcmp(argv[i], "--library") == 0)
            options.library = argv[i + 1];
        else if (strcmp(argv[i], "--go-on") == 0)
            options.goes_on = n != 0;
        else if (strcmp(argv[i], "--roles") == 0)
            world.has_no_roles = n == 0;
        else if (strcmp(argv[i], "--but") == 0)
            finding_forgive(argv[i + 1]);
        else if (strcmp(argv[i], "--print") == 0)
            options.is_printed = n != 0;
        else
            exit(2);
    }
}

/* Bind this process, and the server that it starts, to one processor: they take turns, and then no
 * interrupt is needed to wake the other. */
static void stay_here(void)
{
    cpu_set_t one;
    int cpu = sched_getcpu();

    CPU_ZERO(&one);
    if (cpu >= 0 && cpu < CPU_SETSIZE)
        CPU_SET((size_t)cpu, &one);
    if (sched_setaffinity(0, sizeof(one), &one) != 0)
        (void)printf("not bound to a processor: slower\n");
}

static int run_all(void)
{
    int failed = 0;

    for (long i = 0; i < options.seeds; i++) {
        uint64_t seed = options.seed + (uint64_t)i;
        int at = run(seed, options.calls, options.is_printed);

        if (at < 0)
            continue;
        failed++;
        tell(seed, options.calls, at);
        if (!options.goes_on)
            break;
    }
    return failed;
}

int main(int argc, char **argv)
{
    int failed;

    world_init(&world);
    read_arguments(argc, argv);
    stay_here();
    arena_start(options.library);
    failed = run_all();
    (void)printf("%ld runs from seed %llu, %llu calls, %d broken\n", options.seeds,
                 (unsigned long long)options.seed, (unsigned long long)world.calls, failed);
    arena_stop();
    return failed == 0 ? 0 : 1;
}
