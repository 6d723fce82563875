/* The model of the protocol: the shipped protocol holds in every state, and each rule is needed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "configs.h"
#include "explore.h"
#include "properties.h"

/* A sanitizer checks the code of the model, not the protocol, so the first states of each
 * configuration are enough. 0: explore all states. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define FEW 4000
#else
#define FEW 0
#endif

/* The states of all quick configurations are at least so many. Fewer mean that moves are
 * missing. */
#define STATES_LEAST (FEW != 0 ? 20000 : 300000)

static void test_what_is_shipped_holds(void **state)
{
    struct limits limits = {.states = FEW};
    size_t states = 0;

    (void)state;
    for (unsigned i = 0; i < nconfigs_quick; i++) {
        struct result r;

        explore(&configs_quick[i], &limits, stdout, &r);
        printf("%s: %zu states, %zu transitions, %.1f s\n", configs_quick[i].name, r.states,
               r.transitions, r.seconds);
        assert_null(r.broken);
        assert_true(r.is_whole || FEW != 0);
        states += r.states;
    }
    assert_in_range(states, STATES_LEAST, 10 * STATES_LEAST);
    if (FEW == 0)
        printf("figure model: %zu states, every property holds in each\n", states);
}

/* With two jobs, the sync that tells a retry need not claim the same job at once. This
 * configuration found a retry that was applied twice. */
static void test_link_of_two_jobs(void **state)
{
    struct limits limits = {.states = FEW};
    struct result r;

    (void)state;
    assert_string_equal(configs_full[0].name, "link, two jobs");
    explore(&configs_full[0], &limits, stdout, &r);
    printf("%s: %zu states, %u moves, %.1f s\n", configs_full[0].name, r.states, r.depth,
           r.seconds);
    assert_null(r.broken);
    assert_int_equal(r.is_whole, FEW == 0);
}

/* The trace of a variant that must fail, as text; the caller frees it. */
static char *trace_of(const struct variant_of *v, struct result *r)
{
    struct limits limits = {.states = 4 * FEW};
    char *text = NULL;
    size_t n;
    FILE *out = open_memstream(&text, &n);

    assert_non_null(out);
    explore(&v->conf, &limits, out, r);
    assert_int_equal(fclose(out), 0);
    return text;
}

/* Explore the same configuration with the rule, as deep as the variant needed to break: nothing may
 * break. A clock that is behind is not a rule, so it stays; a variant that has nothing else shows a
 * limit, and is explored without it. */
static void holds_with_the_rule(const struct variant_of *v, unsigned depth)
{
    const unsigned backs = CLOCK_BACK | BACK_ONLY;
    struct limits limits = {.depth = depth + 1};
    struct conf c = v->conf;
    struct result r;

    c.variant = (c.variant & ~backs) != 0 ? c.variant & backs : 0;
    explore(&c, &limits, stdout, &r);
    assert_null(r.broken);
    assert_true(r.is_whole || r.depth > depth);
}

static void test_each_rule_is_needed(void **state)
{
    (void)state;
    for (unsigned i = 0; i < nvariants; i++) {
        struct result r;
        char *trace = trace_of(&variants[i], &r);

        printf("%s: %zu states, %u moves, %.1f s\n", variants[i].name, r.states, r.depth,
               r.seconds);
        if (FEW != 0 && r.broken == NULL) { /* too deep for a sanitizer */
            assert_false(r.is_whole);
            free(trace);
            continue;
        }
        assert_non_null(r.broken);
        assert_string_equal(r.broken->name, variants[i].breaks);
        /* The trace is printed, to its last move. */
        assert_ptr_equal(strstr(trace, r.broken->name), trace);
        assert_null(strstr(trace, "the trace is lost"));
        free(trace);
        holds_with_the_rule(&variants[i], r.depth);
    }
}

static void test_late_result(void **state)
{
    struct result r;
    char *trace = trace_of(&variants[0], &r);

    (void)state;
    assert_string_equal(variants[0].name, "no-fence");
    assert_true(r.seconds < 60);
    /* A worker that was reaped reports the end of its run, after another has claimed the job. */
    assert_non_null(strstr(trace, "is frozen"));
    assert_non_null(strstr(trace, "start 1: done is executed"));
    assert_non_null(strstr(trace, "running epoch 2 2/"));
    free(trace);
}

/* A representative must have the same successors as the state that it stands for. */
static void test_representatives(void **state)
{
    struct limits limits = {.states = FEW != 0 ? 500 : 3000, .is_double = true};

    (void)state;
    for (unsigned i = 0; i < nconfigs_quick; i++) {
        struct result r;

        explore(&configs_quick[i], &limits, stdout, &r);
        assert_null(r.broken);
        assert_false(r.is_unlike);
    }
}

static void test_limits(void **state)
{
    struct limits states = {.states = 100}, depth = {.depth = 5};
    struct result r;

    (void)state;
    explore(&configs_quick[0], &states, stdout, &r);
    assert_false(r.is_whole);
    assert_in_range(r.states, 100, 200);
    explore(&configs_quick[0], &depth, stdout, &r);
    assert_false(r.is_whole);
    assert_in_range(r.depth, 5, 6);
}

/* Each property can be broken: check it with a state made by hand. */
static void breaks(const char *name, const struct conf *c, const struct state *s)
{
    for (unsigned i = 0; i < nproperties; i++) {
        if (strcmp(properties[i].name, name) == 0) {
            assert_false(properties[i].holds(c, s));
            return;
        }
    }
    fail_msg("there is no property %s", name);
}

static void test_each_property_can_break(void **state)
{
    static const struct {
        const char *name;
        uint8_t wrong;
    } flags[] = {{"I2", STARTED_TWICE},
                 {"I3", TAKEN_LATE},
                 {"TokenUnique", TICKED_TWICE},
                 {"LockToken", TOKEN_FELL},
                 {"EffectCause", UNCAUSED},
                 {"EffectCause", NOT_DEAD},
                 {"AckIdempotent", SETTLED_TWICE},
                 {"InBounds", OVERFLOW}};
    const struct conf *c = &configs_quick[1];
    struct state sound, s;

    (void)state;
    state_init(c, &sound);
    assert_null(properties_check(c, &sound));
    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
        s = sound;
        s.history.wrong = flags[i].wrong;
        breaks(flags[i].name, c, &s);
    }
    s = sound;
    s.redis.jobs[0].sets = 0;
    breaks("I1", c, &s);
    s.redis.jobs[0].sets = WAITING | DEAD;
    breaks("I1", c, &s);
    s = sound;
    s.redis.jobs[0].attempts = (uint8_t)(c->attempts + 2);
    breaks("I4", c, &s);
    s = sound;
    s.history.started[1] = 1U << 3;
    breaks("I4", c, &s);
    s = sound;
    s.history.ended[0] = DONE;
    breaks("I5", c, &s);
    s = sound;
    s.redis.holders[LOCK] = 3;
    breaks("I7", c, &s);
    breaks("HolderHasLease", c, &s);
    s.redis.jobs[0].sets = DONE;
    breaks("NoHolderForTerminal", c, &s);
    s = sound;
    s.redis.jobs[0].owner = 7;
    breaks("I8", c, &s);
    s = sound;
    s.redis.jobs[0] = (struct job){.sets = RUNNING, .owner = 7, .starts = 1, .attempts = 1};
    for (unsigned w = 0; w < 2; w++) {
        s.workers[w].epoch = 7;
        s.workers[w].state = READY;
    }
    breaks("ClaimedHasStart", c, &s);
    s.workers[0].slots[0] = s.workers[1].slots[0] = (struct slot){.state = RUNS, .start = 1};
    breaks("OneLivePerId", c, &s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_shipped_holds),   cmocka_unit_test(test_link_of_two_jobs),
        cmocka_unit_test(test_each_rule_is_needed),     cmocka_unit_test(test_late_result),
        cmocka_unit_test(test_representatives),         cmocka_unit_test(test_limits),
        cmocka_unit_test(test_each_property_can_break),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
