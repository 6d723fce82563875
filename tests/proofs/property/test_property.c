/*
 * Random sequences of calls to the library on a real Redis, compared with the model. After every
 * call the reply and every key of the namespace must be as the model says; at the end, also
 * everything that was published. A sequence that fails is shortened while it still fails, and
 * printed.
 *
 *   tests/proofs/property/test_property [--seed N] [--sequences N] [--length N]
 *
 * Replay: the printed seed with --sequences 1. LATER_FULL=1: 100,000 sequences.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <locale.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../support/env.h"
#include "calls.h"
#include "maker.h"
#include "model.h"
#include "model_fair.h"
#include "server.h"
#include "short.h"

#define LENGTH_MAX 50
#define FIRST_SEED 882001 /* 200 sequences from it do all that assert_counts asks for */
#define LONGER 3 /* crowded, chained, batched and scheduled sequences are so many times longer */
#define START_US INT64_C(1767225600000000)

static struct {
    uint64_t seed;
    long sequences;
    int length;
    struct server server;
    struct model *model;
    struct args args;
    uint64_t calls;
} fx = {.seed = FIRST_SEED, .length = LENGTH_MAX};

struct sequence {
    uint64_t seed;
    int n;
    bool left_out[LENGTH_MAX * LONGER];
};

/* What was wrong. Only the last, shortest run prints it. */
struct finding {
    int call; /* -1: nothing; n: what was published */
    const char *what;
    struct buf want, got;
};

static void finding_done(struct finding *v)
{
    buf_done(&v->want);
    buf_done(&v->got);
}

static bool is_same(const struct buf *a, const struct buf *b)
{
    return a->len == b->len && (a->len == 0 || memcmp(a->data, b->data, a->len) == 0);
}

/* ---- one sequence */

static bool compare(struct finding *v, int call, const char *what)
{
    if (is_same(&v->want, &v->got)) {
        buf_clear(&v->want);
        buf_clear(&v->got);
        return true;
    }
    v->call = call;
    v->what = what;
    return false;
}

static void print_call(int i, struct args *args)
{
    struct buf line = BUF_INIT;

    args_show(args, &line);
    (void)printf("  %2d  %lld us  %s\n", i, (long long)fx.model->now_us, buf_str(&line));
    buf_done(&line);
}

static bool run_call(uint64_t seed, int i, bool print, struct finding *v)
{
    const char *broken;

    args_clear(&fx.args);
    model_begin(fx.model);
    calls_make(fx.model, seed, &fx.args, &v->want);
    server_set_time(&fx.server, fx.model->now_us);
    server_expire(&fx.server);
    if (print)
        print_call(i, &fx.args);
    fx.calls++;
    server_call(&fx.server, &fx.args, &v->got);
    if (!compare(v, i, "the reply"))
        return false;
    model_render(fx.model, &v->want);
    server_read(&fx.server, &v->got);
    if (!compare(v, i, "the keys"))
        return false;
    broken = model_broken(fx.model);
    if (broken != NULL)
        buf_puts(&v->got, broken);
    return compare(v, i, "a promise");
}

static bool is_crowded(uint64_t seed)
{
    return seed % 8 == 0;
}

static bool is_chained(uint64_t seed)
{
    return seed % 8 == 5;
}

static bool is_batched(uint64_t seed)
{
    return seed % 16 == 1 || seed % 16 == 7;
}

static bool is_scheduled(uint64_t seed)
{
    return seed % 16 == 9 || seed % 16 == 2;
}

static void start(const struct sequence *s)
{
    uint64_t rnd = s->seed;
    int64_t us = START_US + (int64_t)(rnd_next(&rnd) % 1000000000);

    server_clear(&fx.server);
    server_set_time(&fx.server, us);
    model_reset(fx.model, us);
    fx.model->is_gated = s->seed % 2 == 0;
    fx.model->is_crowded = is_crowded(s->seed);
    fx.model->is_batched = is_batched(s->seed);
    fx.model->is_scheduled = is_scheduled(s->seed);
    fx.model->is_plain = s->seed % 4 == 3 && !fx.model->is_batched;
    fx.model->is_chained = is_chained(s->seed);
    fx.model->is_fair = s->seed % 3 == 0;
}

/* v->call is -1 if all was right. */
static void run(const struct sequence *s, bool print, struct finding *v)
{
    uint64_t rnd = s->seed;

    *v = (struct finding){-1, "", BUF_INIT, BUF_INIT};
    start(s);
    for (int i = 0; i < s->n; i++) {
        uint64_t call = rnd_next(&rnd);

        if (!s->left_out[i] && !run_call(call, i, print, v))
            return;
    }
    if (fx.model->heard.len > 0)
        buf_add(&v->want, fx.model->heard.data, fx.model->heard.len);
    server_heard(&fx.server, &v->got);
    (void)compare(v, s->n, "what was published");
}

/* ---- a failure */

static bool fails(const struct sequence *s)
{
    struct finding v;
    bool failed;

    run(s, false, &v);
    failed = v.call >= 0;
    finding_done(&v);
    return failed;
}

/* Leave out calls that the failure does not need, in smaller and smaller pieces. */
static void shrink(struct sequence *s)
{
    for (int size = s->n / 2; size >= 1; size /= 2)
        for (int from = s->n - size; from >= 0; from -= size) {
            struct sequence less = *s;

            for (int i = from; i < from + size; i++)
                less.left_out[i] = true;
            if (memcmp(&less, s, sizeof(less)) != 0 && fails(&less))
                *s = less;
        }
}

static void print_text(const char *name, const struct buf *b, size_t from)
{
    (void)printf("%s:\n  ", name);
    for (size_t i = from; i < b->len && i < from + 1200 * (getenv("LATER_LONG") != NULL ? 100 : 1);
         i++) {
        unsigned char c = (unsigned char)b->data[i];

        if (c == '\n')
            (void)printf("\n  ");
        else if (c < 32 || c > 126)
            (void)printf("\\x%02x", c);
        else
            (void)putchar(c);
    }
    (void)printf("\n");
}

static void explain(const struct finding *v)
{
    size_t same = 0, first;

    while (same < v->want.len && same < v->got.len && v->want.data[same] == v->got.data[same])
        same++;
    first = same;
    same = same > 200 ? same - 200 : 0;
    (void)printf("call %d: %s is not as it should be (shown from byte %zu, the same up to %zu)\n",
                 v->call, v->what, same, first);
    print_text("want", &v->want, same);
    print_text("got", &v->got, same);
}

/* The whole sequence first: a shorter one may pass, if the failure needs some time, say. */
static void tell(struct sequence *s, const struct finding *first)
{
    struct finding v;

    (void)printf("seed %llu, as it failed: ", (unsigned long long)s->seed);
    explain(first);
    if (first->call < s->n)
        s->n = first->call + 1;
    shrink(s);
    (void)printf("FAILED: --seed %llu --sequences 1; the shortest that fails:\n",
                 (unsigned long long)s->seed);
    run(s, true, &v);
    explain(&v);
    finding_done(&v);
}

/* ---- tests */

/* What the sequences have met. */
static void print_counts(void)
{
    const struct chain_counts *c = chain_counts();
    const struct batch_counts *b = batch_counts();
    const struct schedule_counts *s = schedule_counts();

    (void)printf("chains: %llu jobs followed, %llu deaths told (%llu at once), %llu payloads\n",
                 (unsigned long long)c->followed, (unsigned long long)c->told,
                 (unsigned long long)c->at_once, (unsigned long long)c->large);
    (void)printf(
        "children: %llu (%llu dropped, %llu in the place of others, %llu large), %llu ends "
        "refused\n",
        (unsigned long long)c->children, (unsigned long long)c->dropped,
        (unsigned long long)c->rewrote, (unsigned long long)c->large_children,
        (unsigned long long)c->refused);
    (void)printf("batches: %llu, %llu jobs joined (%llu a sealed one), %llu ended (%llu then, %llu "
                 "finally), %llu on_dead, %llu tried again, %llu cancelled, %llu corrupt, %llu "
                 "forgotten, %llu jobs of forgotten ones went on\n",
                 (unsigned long long)b->opened, (unsigned long long)b->joined,
                 (unsigned long long)b->inside, (unsigned long long)b->ended,
                 (unsigned long long)b->callbacks[CALLBACK_THEN],
                 (unsigned long long)b->callbacks[CALLBACK_FINALLY],
                 (unsigned long long)b->callbacks[CALLBACK_ON_DEAD], (unsigned long long)b->revived,
                 (unsigned long long)b->cancelled, (unsigned long long)b->corrupt,
                 (unsigned long long)b->forgotten, (unsigned long long)b->passed);
    (void)printf(
        "schedules: %llu jobs added, %llu ahead, %llu occurrences skipped, %llu jobs superseded, "
        "%llu "
        "calls refused, %llu missed, %llu moved, %llu jobs ended, %llu cursors forgotten\n",
        (unsigned long long)s->added, (unsigned long long)s->ahead, (unsigned long long)s->skipped,
        (unsigned long long)s->superseded, (unsigned long long)s->failed,
        (unsigned long long)s->missed, (unsigned long long)s->moved, (unsigned long long)s->ended,
        (unsigned long long)s->forgotten);
    (void)printf("topics: %llu copies, %llu buried, %llu repeated\n",
                 (unsigned long long)topic_counts()->copies,
                 (unsigned long long)topic_counts()->buried,
                 (unsigned long long)topic_counts()->repeated);
    (void)printf(
        "foreign queues: %llu members became jobs, %llu were buried, %llu waited, %llu stayed\n",
        (unsigned long long)foreign_counts()->added, (unsigned long long)foreign_counts()->buried,
        (unsigned long long)foreign_counts()->waited, (unsigned long long)foreign_counts()->stayed);
    (void)printf("broadcasts: %llu jobs, %llu claimed, %llu whose worker was gone, %llu expired\n",
                 (unsigned long long)broadcast_counts()->added,
                 (unsigned long long)broadcast_counts()->claimed,
                 (unsigned long long)broadcast_counts()->gone,
                 (unsigned long long)broadcast_counts()->expired);
    (void)printf(
        "fair queues: %llu jobs had their turn, %llu behind one of another tenant, %llu "
        "debts, %llu resets, %llu jobs got their tenants later, %llu queues became plain, %llu "
        "times tenants shared, %llu jobs ended that started before\n",
        (unsigned long long)fair_counts()->claims, (unsigned long long)fair_counts()->changes,
        (unsigned long long)fair_counts()->debts, (unsigned long long)fair_counts()->resets,
        (unsigned long long)fair_counts()->indexed, (unsigned long long)fair_counts()->dropped,
        (unsigned long long)fair_counts()->shares, (unsigned long long)fair_counts()->early);
    (void)printf(
        "kept: %llu checkpoints, %llu steps (%llu known again), %llu next attempts had some, %llu "
        "times dropped\n",
        (unsigned long long)resume_counts()->checkpoints, (unsigned long long)resume_counts()->kept,
        (unsigned long long)resume_counts()->known, (unsigned long long)resume_counts()->resumed,
        (unsigned long long)resume_counts()->dropped);
    (void)printf("short: %llu claims, %llu ends, %llu of them refused\n",
                 (unsigned long long)short_counts()->claims,
                 (unsigned long long)short_counts()->ends,
                 (unsigned long long)short_counts()->refused);
}

/* If there was none of something, the run has shown nothing about it. */
static void assert_counts(void)
{
    const struct chain_counts *c = chain_counts();
    const struct batch_counts *b = batch_counts();
    const struct schedule_counts *s = schedule_counts();

    assert_true(short_counts()->claims > 0 && short_counts()->ends > short_counts()->refused);
    assert_true(c->followed > 0 && c->large > 0 && c->told > 0);
    assert_true(c->children > c->refused && c->refused > 0 && c->rewrote > 0);
    assert_true(b->inside > 0 && b->revived > 0 && b->cancelled > 0 && b->forgotten > 0);
    assert_true(s->added > 0 && s->ahead > 0 && s->skipped > 0 && s->superseded > 0 &&
                s->failed > 0);
    assert_true(s->missed > 0 && s->moved > 0 && s->ended > 0 && s->forgotten > 0);
    assert_true(topic_counts()->copies > 0 && topic_counts()->buried > 0 &&
                topic_counts()->repeated > 0);
    assert_true(foreign_counts()->added > 0 && foreign_counts()->buried > 0 &&
                foreign_counts()->waited > 0 && foreign_counts()->stayed > 0);
    assert_true(broadcast_counts()->claimed > 0 && broadcast_counts()->gone > 0 &&
                broadcast_counts()->expired > 0);
    assert_true(fair_counts()->changes > 0 && fair_counts()->debts > 0 &&
                fair_counts()->resets > 0 && fair_counts()->indexed > 0 &&
                fair_counts()->dropped > 0 && fair_counts()->shares > 0 &&
                fair_counts()->early > 0);
    assert_true(resume_counts()->checkpoints > 0 && resume_counts()->kept > 0 &&
                resume_counts()->known > 0 && resume_counts()->resumed > 0 &&
                resume_counts()->dropped > 0);
    for (int i = 0; i < MODEL_CALLBACKS; i++)
        assert_true(b->callbacks[i] > 0);
}

static void test_sequences(void **state)
{
    (void)state;
    for (long i = 0; i < fx.sequences; i++) {
        struct sequence s = {.seed = fx.seed + (uint64_t)i, .n = fx.length};
        struct finding v;

        if (i > 0 && i % 5000 == 0)
            (void)printf("%ld sequences\n", i);
        /* Waiters, chains, batches and schedules need time. */
        s.n *=
            is_crowded(s.seed) || is_chained(s.seed) || is_batched(s.seed) || is_scheduled(s.seed)
                ? LONGER
                : 1;
        run(&s, false, &v);
        if (v.call >= 0) {
            tell(&s, &v);
            fail_msg("seed %llu", (unsigned long long)s.seed);
        }
        finding_done(&v);
    }
    (void)printf("%ld sequences from seed %llu, %llu calls, no difference\n", fx.sequences,
                 (unsigned long long)fx.seed, (unsigned long long)fx.calls);
    print_counts();
    if (fx.sequences >= 100 && fx.length == LENGTH_MAX)
        assert_counts();
}

/* Test the comparison itself: it must see anything that differs from the model. */
static void test_judge(void **state)
{
    static const char *const strange[][4] = {{"ZADD", MODEL_ROOT ":q:mail:5", "1", "jx"},
                                             {"HSET", MODEL_ROOT ":jobs", "j", "x"},
                                             {"SET", MODEL_ROOT ":nonsense", "1"},
                                             {"SET", "later:elsewhere", "1"},
                                             {"DEL", MODEL_ROOT ":names"},
                                             {"EXPIRE", MODEL_ROOT ":names", "1000"}};

    (void)state;
    for (size_t i = 0; i < sizeof(strange) / sizeof(strange[0]); i++) {
        struct finding v = {-1, "", BUF_INIT, BUF_INIT};
        struct sequence s = {.seed = 1};
        struct model_options o;

        start(&s);
        args_clear(&fx.args);
        for (int k = 0; k < 6; k++)
            args_text(&fx.args,
                      ((const char *[]){"FCALL", "later_add", "1", MODEL_ROOT, "mail", "x"})[k]);
        o = no_options(fx.model);
        model_add(fx.model, 0, &o, (struct bytes){"x", 1}, &v.want);
        server_call(&fx.server, &fx.args, &v.got);
        assert_true(compare(&v, 0, "the reply"));
        model_render(fx.model, &v.want);
        server_read(&fx.server, &v.got);
        assert_true(compare(&v, 0, "the keys"));
        args_clear(&fx.args);
        for (int k = 0; k < 4 && strange[i][k] != NULL; k++)
            args_text(&fx.args, strange[i][k]);
        server_call(&fx.server, &fx.args, &v.got);
        buf_clear(&v.got);
        model_render(fx.model, &v.want);
        server_read(&fx.server, &v.got);
        assert_false(compare(&v, 0, "the keys"));
        finding_done(&v);
    }
}

/* Bind this process and the server to one processor. They take turns a thousand times a second; on
 * one processor no interrupt is needed to wake the other, which takes two thirds of the time. */
static void stay_here(void)
{
    cpu_set_t one;
    int cpu = sched_getcpu();

    CPU_ZERO(&one);
    if (cpu >= 0 && cpu < CPU_SETSIZE)
        CPU_SET((size_t)cpu, &one);
    if (sched_setaffinity(0, sizeof(one), &one) != 0)
        print_message("not bound to a processor: slower\n");
}

static int open_all(void **state)
{
    (void)state;
    stay_here();
    fx.model = calloc(1, sizeof(*fx.model));
    server_start(&fx.server);
    return fx.model != NULL ? 0 : -1;
}

static int close_all(void **state)
{
    (void)state;
    args_clear(&fx.args);
    model_reset(fx.model, START_US);
    free(fx.model->gates);
    buf_done(&fx.model->heard);
    free(fx.model);
    server_stop(&fx.server);
    return 0;
}

static void read_arguments(int argc, char **argv)
{
    fx.sequences = test_is_long() ? 100000 : 200;
    for (int i = 1; i + 1 < argc; i += 2) {
        long long n = strtoll(argv[i + 1], NULL, 10);

        if (strcmp(argv[i], "--seed") == 0)
            fx.seed = (uint64_t)n;
        else if (strcmp(argv[i], "--sequences") == 0)
            fx.sequences = (long)n;
        else if (strcmp(argv[i], "--length") == 0 && n > 0 && n <= LENGTH_MAX)
            fx.length = (int)n;
        else
            exit(2);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_judge),
                                       cmocka_unit_test(test_sequences)};

    (void)setlocale(LC_COLLATE, ""); /* Redis sorts by it, too */
    read_arguments(argc, argv);
    return cmocka_run_group_tests(tests, open_all, close_all);
}
