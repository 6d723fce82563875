/*
 * handlers/examples/dispatch, under two daemons: no courier has two orders at once, each order goes
 * to the nearest courier that was free, all are delivered, and a crash frees the courier.
 *
 * The judge reads a ledger, a list in Redis that a `later` of our own writes around the real one,
 * and the program that delivers. The places in that list are the order of what happened, by Redis:
 *
 *     look … looked    between them the handler has seen which couriers are free
 *     try              then it asks for the lock of one; after: that has ended. So whoever holds
 *                      the lock does so within these two
 *     in … out         the delivery: within these two the lock is held for sure
 *
 * A handler sees all locks at one instant, and the judge does not know which one between look and
 * looked. So an order is right if each courier that is nearer may have been held between them, by
 * try … after of another order. The figure says of how many that is sure, by in … out.
 *
 * A larger run: LATER_TEST_COURIERS, LATER_TEST_ORDERS, LATER_TEST_PLACES (of each daemon),
 * LATER_TEST_NAP (tenths of a second that a delivery takes at least), LATER_TEST_KILLS (of daemon
 * a).
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "../support/env.h"
#include "fixture.h"

#define LONG_MS 60000
#define COURIERS_MAX 64
#define ORDERS_MAX 1024
#define FIRST_KM 4
#define LAST_KM 64
#define LOOKED_AT 40    /* MOST of dispatch.py */
#define MARGIN_KM 0.005 /* Redis keeps places to less than a metre */

struct place {
    double lon, lat;
};

static struct place couriers[COURIERS_MAX], orders[ORDERS_MAX];
static int ncouriers, norders;
static unsigned seed;

static int setting(const char *name, int without, int most)
{
    const char *n = getenv(name);
    int value = n != NULL ? atoi(n) : without;

    return value < most ? value : most;
}

static double any(double from, double to)
{
    seed = seed * 1664525U + 1013904223U;
    return from + (to - from) * (double)(seed >> 8) / (double)(1U << 24);
}

/* In a square of 20 km. */
static struct place any_place(void)
{
    double lon = any(13.25, 13.55);

    return (struct place){lon, any(52.4, 52.58)};
}

/* On the sphere of Redis (haversine). */
static double km_between(struct place from, struct place to)
{
    double rad = acos(-1) / 180, u = sin((to.lat - from.lat) * rad / 2),
           v = sin((to.lon - from.lon) * rad / 2);

    return 2 * 6372.797560856 * asin(sqrt(u * u + cos(from.lat * rad) * cos(to.lat * rad) * v * v));
}

/* ---- the stage */

static void make_handlers(void)
{
    CLEANUP_FREE char *install =
        mem_printf("install -m 755 '%s/handlers/examples/dispatch/dispatch.py' %s/handlers/",
                   test_source_dir(), dir);

    assert_int_equal(system(install), 0);
    test_handler(dir, "note",
                 "exec redis-cli -s %s -e EVAL \"local t = redis.call('TIME'); "
                 "redis.call('RPUSH', KEYS[1], t[1] .. string.format('%%06d', t[2]) .. ' ' .. "
                 "ARGV[1])\" 1 ledger \"$*\" >/dev/null\n",
                 redis.sock);
    test_handler(dir, "later",
                 "o=${LATER_KEY#o}\n"
                 "later() { '%s/later' --redis %s \"$@\"; }\n"
                 "case $1 in\n"
                 "--json) note look $o -1 $LATER_ATTEMPT; later \"$@\" || exit\n"
                 "    note looked $o -1 0 ;;\n"
                 "lock) c=${5#courier:c}; note try $o $c 0; s=0; later \"$@\" || s=$?\n"
                 "    note after $o $c $s; exit $s ;;\n"
                 "esac\n",
                 test_build_dir(), redis.url);
    /* The file lock is a second referee: the kernel frees it when the process has ended. */
    test_handler(dir, "deliver",
                 "c=${1#c} o=${2#o}\n"
                 "exec 9>>%s.$c; flock -n 9 || note overlap $o $c 0\n"
                 "n=$((%d + o %% 5)) nap=$((n / 10)).$((n %% 10)); [ ! -e %s.hold ] || nap=1000\n"
                 "note in $o $c $LATER_ATTEMPT 9>&-\n"
                 "sleep $nap 9>&-\n"
                 "note out $o $c 0 9>&-\n",
                 out, setting("LATER_TEST_NAP", 3, 600), out);
}

static char *settings(int places)
{
    return mem_printf("concurrency: %d\n"
                      "queues:\n"
                      "  dispatch:\n"
                      "    handler: [%s/handlers/dispatch.py, %s/handlers/deliver]\n"
                      "    attempts: 1000\n"
                      "    env: { PATH: '%s/handlers:%s', REDIS_CLI: redis-cli -s %s, "
                      "RETRY_IN: 300ms, FIRST_KM: '%d', LAST_KM: '%d' }\n",
                      places, dir, dir, dir, getenv("PATH"), redis.sock, FIRST_KM, LAST_KM);
}

static void put_courier(int i, struct place at)
{
    CLEANUP_FREE char *name = mem_printf("c%d", i), *lon = mem_printf("%.9f", at.lon),
                      *lat = mem_printf("%.9f", at.lat);

    couriers[i] = at;
    reply_free(test_redis_call(&redis, "GEOADD", "couriers", lon, lat, name, NULL));
}

static void add_order(int i, struct place at)
{
    CLEANUP_FREE char *name = mem_printf("o%d", i);
    CLEANUP_FREE char *payload =
        mem_printf("{\"order\":\"%s\",\"longitude\":%.9f,\"latitude\":%.9f}", name, at.lon, at.lat);

    orders[i] = at;
    free(test_add(&redis, "dispatch", "key", name, payload));
}

static void make_town(int n_couriers, int n_orders)
{
    seed = 7;
    ncouriers = n_couriers;
    norders = n_orders;
    for (int i = 0; i < n_couriers; i++)
        put_courier(i, any_place());
    for (int i = 0; i < n_orders; i++)
        add_order(i, any_place());
}

/* ---- the ledger */

enum kind { LOOK, LOOKED, TRY, AFTER, IN, OUT, OVERLAP, KILL, KINDS };
static const char *const kind_names[KINDS] = {"look", "looked", "try",     "after",
                                              "in",   "out",    "overlap", "kill"};

struct event {
    enum kind kind;
    int order, courier, number; /* of an attempt, or a status */
    long long us;
};

static struct event *events;
static int nevents;

static void read_ledger(void)
{
    struct reply *r = test_redis_call(&redis, "LRANGE", "ledger", "0", "-1", NULL);

    free(events);
    nevents = (int)reply_count(r);
    events = mem_new((size_t)(nevents + 1) * sizeof(*events));
    for (int i = 0; i < nevents; i++) {
        const char *line = reply_str(reply_at(r, (size_t)i));
        struct event *e = &events[i];
        char kind[16];

        if (sscanf(line, "%lld %15s %d %d %d", &e->us, kind, &e->order, &e->courier, &e->number) !=
            5)
            fail_msg("no line of the ledger: %s", line);
        while (e->kind < KINDS && strcmp(kind_names[e->kind], kind) != 0)
            e->kind++;
        assert_in_range(e->kind, 0, KINDS - 1);
    }
    reply_free(r);
}

/* The next event of this kind and order behind `from`; nevents: there is none. */
static int next(enum kind kind, int order, int from)
{
    for (int i = from + 1; i < nevents; i++)
        if (events[i].kind == kind && events[i].order == order)
            return i;
    return nevents;
}

static int count_of(enum kind kind)
{
    int n = 0;

    for (int i = 0; i < nevents; i++)
        n += events[i].kind == kind;
    return n;
}

/* Who held a courier: places in the ledger. A holder that was killed has no out and no after. It
 * may have held it until the courier is given to the next one, and surely did only at first. (The
 * kernel's lock tells if two of them overlap.) */
struct hold {
    int courier, order;
    int try, in, out, after;
};

static struct hold *holds;
static int nholds;

static int next_in(int courier, int from)
{
    int i = from + 1;

    while (i < nevents && !(events[i].kind == IN && events[i].courier == courier))
        i++;
    return i;
}

static void find_holds(void)
{
    free(holds);
    holds = mem_new((size_t)(nevents + 1) * sizeof(*holds));
    nholds = 0;
    for (int i = 0; i < nevents; i++) {
        const struct event *e = &events[i];
        int in = next(IN, e->order, i), end = next(OUT, e->order, i);
        int after = next(AFTER, e->order, i), again = next(TRY, e->order, i);
        int given = next_in(e->courier, in);

        if (e->kind == TRY && in < after && in < again)
            holds[nholds++] = (struct hold){
                e->courier, e->order, i, in, end < again ? end : in, after < again ? after : given};
    }
}

/* ---- the judge */

struct verdict {
    int twice;        /* a courier with two orders at once */
    int wrong;        /* a nearer courier was free */
    int sure, maybe;  /* nearer couriers that were held: surely, or perhaps */
    int chosen, none; /* looks that found somebody, or nobody */
    int rivals;       /* locks that others got first */
};

static bool is_held(int courier, int order, int from, int to, bool for_sure)
{
    for (int i = 0; i < nholds; i++) {
        const struct hold *h = &holds[i];

        if (h->courier == courier && h->order != order &&
            (for_sure ? h->in < from && h->out > to : h->try < to && h->after > from))
            return true;
    }
    return false;
}

/* How many couriers are nearer to the order than km? */
static int nearer_than(int order, double km)
{
    int n = 0;

    for (int c = 0; c < ncouriers; c++)
        n += km_between(orders[order], couriers[c]) < km;
    return n;
}

/* Between look and looked an order found nobody nearer than km. */
static void judge_look(struct verdict *v, int look, int looked, double km)
{
    int order = events[look].order;

    for (int c = 0; c < ncouriers; c++) {
        double at = km_between(orders[order], couriers[c]);

        if (at > km - MARGIN_KM || nearer_than(order, at) >= LOOKED_AT)
            continue;
        if (is_held(c, order, look, looked, true)) {
            v->sure++;
        } else if (is_held(c, order, look, looked, false)) {
            v->maybe++;
        } else {
            printf("o%d at ledger %d: c%d was free, %.3f km away, nearer than %.3f\n", order, look,
                   c, at, km);
            v->wrong++;
        }
    }
}

static double circle(int attempt)
{
    double km = FIRST_KM;

    for (int i = 1; i < attempt && km < LAST_KM; i++)
        km *= 2;
    return km < LAST_KM ? km : LAST_KM;
}

static void judge_looks(struct verdict *v)
{
    for (int i = 0; i < nevents; i++) {
        int order = events[i].order, looked = next(LOOKED, order, i);
        int try = next(TRY, order, i), again = next(LOOK, order, i);

        if (events[i].kind != LOOK)
            continue;
        if (try < again) {
            int c = events[try].courier;

            judge_look(v, i, looked, km_between(orders[order], couriers[c]));
            v->chosen++;
            v->rivals += next(AFTER, order, try) < next(IN, order, try);
            v->wrong += is_held(c, order, i, looked, true);
        } else if (next(KILL, -1, i) > again) { /* else the handler may have died */
            judge_look(v, i, looked, circle(events[i].number));
            v->none++;
        }
    }
}

static struct verdict judge(void)
{
    struct verdict v = {.twice = 0};

    read_ledger();
    find_holds();
    v.twice = count_of(OVERLAP);
    for (int i = 0; i < nholds; i++)
        for (int k = 0; k < i; k++)
            v.twice += holds[i].courier == holds[k].courier && holds[i].in < holds[k].out &&
                       holds[k].in < holds[i].out;
    judge_looks(&v);
    return v;
}

/* ---- tests */

static void note_kill(void)
{
    reply_free(test_redis_call(&redis, "RPUSH", "ledger", "0 kill -1 -1 0", NULL));
}

static void run_town(int n_couriers, int n_orders, int places)
{
    CLEANUP_FREE char *yaml = settings(places);

    make_town(n_couriers, n_orders);
    start(&a, "a", yaml);
    start(&b, "b", yaml);
    for (int i = setting("LATER_TEST_KILLS", 0, 100); i > 0; i--) {
        test_pause(8000);
        note_kill();
        test_laterd_kill(&a, SIGKILL);
        (void)test_laterd_wait(&a, LONG_MS);
        test_laterd_start(&a);
        note_kill(); /* its handlers have ended by now */
    }
    if (!test_until(no_job_is_left, NULL, LONG_MS + 100 * n_orders))
        fail_msg("%lld orders are left", (long long)test_int(&redis, "HLEN", ROOT ":jobs"));
}

static void test_each_to_the_nearest_free(void **state)
{
    int n = setting("LATER_TEST_ORDERS", 30, ORDERS_MAX);
    int kills = setting("LATER_TEST_KILLS", 0, 100);
    struct verdict v;

    (void)state;
    make_handlers();
    run_town(setting("LATER_TEST_COURIERS", 10, COURIERS_MAX), n,
             setting("LATER_TEST_PLACES", 8, 100));
    v = judge();
    printf("figure: %d orders, %d couriers: %d looks found somebody (%d times another was "
           "quicker), %d nobody; of %d nearer couriers %d were surely held; %d deliveries\n",
           norders, ncouriers, v.chosen, v.rivals, v.none, v.sure + v.maybe, v.sure, count_of(IN));
    assert_int_equal(v.twice, 0);
    assert_int_equal(v.wrong, 0);
    assert_true(count_of(IN) >= n && (kills > 0 || count_of(IN) == n));
    for (int i = 0; i < n; i++)
        assert_in_range(next(OUT, i, -1), 0, nevents - 1);
    assert_true(test_lines(a.log, "outcome=done") > 0 && test_lines(b.log, "outcome=done") > 0);
    assert_int_equal(test_lines(a.log, "outcome=dead") + test_lines(b.log, "outcome=dead"), 0);
}

/* The judge finds a handler that takes the farthest of the free ones. */
static void test_the_judge_sees_a_wrong_choice(void **state)
{
    CLEANUP_FREE char *edit =
        mem_printf("sed -i 's/in couriers if/in couriers[::-1] if/' %s/handlers/dispatch.py", dir);

    (void)state;
    make_handlers();
    assert_int_equal(system(edit), 0);
    run_town(6, 12, 2);
    assert_true(judge().wrong > 0);
}

/* Nobody is near: the circle grows from attempt to attempt, 4, 8 and 16 km. */
static void test_the_circle_grows(void **state)
{
    CLEANUP_FREE char *yaml = settings(2);

    (void)state;
    make_handlers();
    ncouriers = norders = 1;
    put_courier(0, (struct place){13.4, 52.5});
    add_order(0, (struct place){13.4, 52.6});
    start_a(yaml);
    assert_true(test_laterd_says(&a, "reason=\"nobody is free within 4 km\"", LONG_MS));
    assert_true(test_laterd_says(&a, "reason=\"nobody is free within 8 km\"", LONG_MS));
    assert_true(test_until(no_job_is_left, NULL, LONG_MS));
    read_ledger();
    assert_int_equal(events[next(IN, 0, -1)].number, 3);
}

static bool has_begun(void *arg)
{
    (void)arg;
    read_ledger();
    return count_of(IN) > 0;
}

/* The daemon of an order is killed while it is delivered: the courier is free again, and has it. */
static void test_a_crash_frees_the_courier(void **state)
{
    CLEANUP_FREE char *yaml = settings(2), *hold = mem_printf("%s.hold", out);
    CLEANUP_FREE char *touch = mem_printf("touch %s", hold), *rm = mem_printf("rm %s", hold);

    (void)state;
    make_handlers();
    assert_int_equal(system(touch), 0);
    ncouriers = norders = 1;
    put_courier(0, (struct place){13.4, 52.5});
    add_order(0, (struct place){13.4, 52.5});
    start_a(yaml);
    assert_true(test_until(has_begun, NULL, LONG_MS));
    test_laterd_kill(&a, SIGKILL);
    (void)test_laterd_wait(&a, LONG_MS);
    assert_int_equal(system(rm), 0);
    test_laterd_start(&a);
    assert_true(test_until(no_job_is_left, NULL, LONG_MS));
    read_ledger();
    assert_int_equal(count_of(IN), 2);
    assert_int_equal(count_of(OUT), 1);
    assert_int_equal(count_of(OVERLAP), 0);
}

#define ZEROS "0000000000000000000000000000000000000000000000000000000000000000"

static void test_what_is_no_order(void **state)
{
    static const char *const payloads[] = {
        "",
        "o1",
        "[]",
        "{\"order\":\"o1\"}",
        "{\"order\":\"-x\",\"longitude\":1,\"latitude\":1}",
        "{\"order\":\"o1\",\"longitude\":1,\"latitude\":91}",
        "{\"order\":\"o1\",\"longitude\":\"NaN\",\"latitude\":1}",
        "{\"order\":\"o1\",\"longitude\":1" ZEROS ZEROS ZEROS ZEROS ZEROS ",\"latitude\":1}",
        "{\"order\":\"a b\\n\",\"longitude\":1,\"latitude\":1}"};
    enum { N = sizeof(payloads) / sizeof(payloads[0]) };
    CLEANUP_FREE char *yaml = settings(2);

    (void)state;
    make_handlers();
    for (size_t i = 0; i < N; i++)
        free(test_add(&redis, "dispatch", NULL, NULL, payloads[i]));
    start_a(yaml);
    assert_true(test_until_lines(a.log, "outcome=dead", N, LONG_MS));
    assert_int_equal(test_lines(a.log, "reason=\"no order: "), N);
    assert_int_equal(test_int(&redis, "EXISTS", "ledger"), 0);
}

static int close_all(void **state)
{
    free(events);
    free(holds);
    events = NULL;
    holds = NULL;
    return fx_close(state);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, fx_open, close_all)
    const struct CMUnitTest tests[] = {
        T(test_each_to_the_nearest_free), T(test_the_judge_sees_a_wrong_choice),
        T(test_the_circle_grows),         T(test_a_crash_frees_the_courier),
        T(test_what_is_no_order),
    };

    if (system("command -v python3 >/dev/null") != 0) {
        print_message("skipped: python3 is not installed, and the example is written in it\n");
        return 77;
    }
    cmocka_set_test_filter(getenv("LATER_ONLY")); /* a name, with * and ? */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
