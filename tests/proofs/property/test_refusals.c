/*
 * What the library refuses, and that a refusal changes nothing: hostile arguments, a server that is
 * full, lacks its replicas or is a replica.
 *
 * LATER_ONLY=PATTERN runs the tests of that name; LATER_FULL=1 runs more of the long ones.
 */
#include "../../support/env.h"
#include "everything.h"

/* ---- hostile arguments */

static uint64_t rnd = 1;

static uint64_t rnd_next(void)
{
    uint64_t z = rnd += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static struct word hostile(void)
{
#define W(s)                                                                                       \
    {                                                                                              \
        s, sizeof(s) - 1                                                                           \
    }
    static const struct word words[] = {W(""),
                                        W("nan"),
                                        W("-nan"),
                                        W("inf"),
                                        W("-inf"),
                                        W("0x10"),
                                        W("1e3"),
                                        W("1e300"),
                                        W("1.5"),
                                        W(" 1"),
                                        W("1 "),
                                        W("-1"),
                                        W("-0"),
                                        W("0"),
                                        W("1"),
                                        W("+1"),
                                        W("007"),
                                        W("9007199254740991"),
                                        W("9007199254740992"),
                                        W("9007199254740993"),
                                        W("99999999999999999999999999"),
                                        W("1\0"),
                                        W("\0"),
                                        W("\0\0\0\0"),
                                        W("1\n"),
                                        W("\n"),
                                        W("?"),
                                        W("*"),
                                        W("--"),
                                        W("{}"),
                                        W("{t}"),
                                        W("../x"),
                                        W("%s%n%d"),
                                        W("later:{t}:jobs"),
                                        W("j00000000000"),
                                        W("mail@x"),
                                        W("\xff\xfe"),
                                        W("\xd9\xa1"),
                                        W("nil"),
                                        W("true"),
                                        W("token"),
                                        W("in"),
                                        W("at"),
                                        W("unique"),
                                        W("5m"),
                                        W("1000000000d"),
                                        W("1767225600"),
                                        W("2030-01-31"),
                                        W("2030-13-99T99:99:99Z"),
                                        W("@1e9"),
                                        W("dead"),
                                        W("done"),
                                        W("a b"),
                                        W("99:99999999999999999999"),
                                        W("1:99999999999999999999")};
#undef W
    static char large[1048576];

    if (large[0] == '\0')
        memset(large, '7', sizeof(large));
    if (rnd_next() % 100 < 3)
        return (struct word){large, rnd_next() % 2 == 0 ? sizeof(large) : 400};
    return words[rnd_next() % COUNT(words)];
}

/* One to three changes: an argument removed, replaced or added, or two swapped. */
static void spoil(struct call_args *w)
{
    int changes = 1 + (int)(rnd_next() % 3);

    while (changes-- > 0) {
        int i = w->n > 1 ? 1 + (int)(rnd_next() % (uint64_t)(w->n - 1)) : 1;

        switch (rnd_next() % (w->n > 1 ? 6 : 1)) {
        case 0:
            if (w->n < WORDS_MAX) {
                memmove(&w->word[i + 1], &w->word[i], (size_t)(w->n - i) * sizeof(w->word[0]));
                w->word[i] = hostile();
                w->n++;
            }
            break;
        case 1:
            w->n--;
            memmove(&w->word[i], &w->word[i + 1], (size_t)(w->n - i) * sizeof(w->word[0]));
            break;
        case 2:
            w->n = i;
            break;
        case 3: {
            struct word first = w->word[1];

            w->word[1] = w->word[i];
            w->word[i] = first;
            break;
        }
        default:
            w->word[i] = hostile();
            break;
        }
    }
}

static void test_hostile_arguments(void **state)
{
    int rounds = test_is_long() ? 3000 : 12, refused = 0, called = 0;

    (void)state;
    for (int round = 0; round < rounds; round++)
        for (size_t i = 0; i < COUNT(CALLS); i++) {
            struct call_args w;

            if (called++ % 40 == 0)
                make_world();
            split(CALLS[i], &w);
            spoil(&w);
            if (call_and_judge(&w, NULL, "hostile"))
                refused++;
            else
                assert_one_set(show_words(&w));
        }
    assert_true(refused > called / 4);
    printf("%d hostile calls, %d refused, nothing changed by those\n", called, refused);
}

/* Arguments that random words seldom hit. */
static void test_odd_arguments(void **state)
{
    char *large = mem_new(1100001);

    (void)state;
    make_world();
    assert_refused("ELATER_ARGS", "later_v1_list mail due 1:99999999999999999999 5");
    assert_refused("ELATER_ARGS", "later_v1_queues .0:99999999999999999999 5");
    assert_refused("ELATER_ARGS", "later_v1_reasons mail '' 5 0 99999999999999999999");
    assert_refused("ELATER_ARGS", "later_v1_ahead mail 99999999999999999999 1000 5");
    assert_refused("ELATER_ARGS", "later_v1_ahead mail 0 9007199254740991 60");
    assert_refused("ELATER_ARGS", "later_v1_gate_names 5:99999999999999999999 5");
    assert_refused("ELATER_ARGS", "later_v1_list mail due 99999999999999999999:1 5");
    assert_refused("ELATER_ARGS", "later_v1_list mail dead 1:9007199254740993 5");
    /* As a number this is a worker that lives, as a name it is none. */
    assert_refused("ELATER_ARGS", "later_v1_reap %s 0%s ? 5 100", meant("$W2"), meant("$W1"));
    memset(large, 'x', 1100000);
    (void)redis("HSET R:config max_payload nan");
    assert_starts(fcall_bytes("later_add mail", large, 1100000), "!ELATER_SIZE ");
    (void)redis("HSET R:config max_payload 2000 max_payload:mail inf");
    assert_starts(fcall_bytes("later_add mail", large, 1100000), "!ELATER_SIZE ");
    free(large);
}

/* The root: one key, in braces, of bounded length. */
static void test_roots(void **state)
{
    static const char *const roots[] = {
        "",           "later",      "later:t",        "later:{}",   "later:{t}x",  "later:{t",
        "Later:{t}",  "xlater:{t}", "later:{t}:jobs", "later:{.t}", "later:{a b}", "later:{a*}",
        "later:{{t}}"};
    char longest[80] = "later:{", longer[80];

    (void)state;
    (void)memset(longest + 7, 'a', 64);
    (void)strcpy(longest + 71, "}");
    (void)memset(longer, 0, sizeof(longer));
    (void)strcpy(longer, "later:{");
    (void)memset(longer + 7, 'a', 65);
    (void)strcpy(longer + 72, "}");
    for (size_t i = 0; i < COUNT(roots); i++) {
        const char *argv[] = {"FCALL", "later_add", "1", roots[i], "mail", "x"};

        assert_starts(send_args(6, argv, NULL), "!ELATER_ROOT ");
    }
    assert_starts(redis("FCALL later_add 1 %s mail x", longest), "[j");
    (void)redis("FLUSHALL");
    assert_starts(redis("FCALL later_add 1 %s mail x", longer), "!ELATER_ROOT ");
    assert_starts(redis("FCALL later_add 0 mail x"), "!ELATER_ROOT ");
    assert_starts(redis("FCALL later_add 2 %s %s mail x", ROOT, ROOT), "!ELATER_ROOT ");
    assert_string_equal(redis("DBSIZE"), "0");
}

/* Lists of any length from a hostile caller: all of it is done, or nothing. */
static void test_long_lists(void **state)
{
    static const char *const forms[] = {"0 long 1 0 N", "0 long 1 0 0 N", "0 long 1 0 0 0 N"};
    enum { PAIRS = 4500 };
    const char **argv = mem_new((2 * PAIRS + 16) * sizeof(*argv));

    (void)state;
    for (size_t i = 0; i < COUNT(forms); i++) {
        char *rest, *word;
        const char *before;
        int argc = 4;

        make_world();
        argv[0] = "FCALL";
        argv[1] = "later_v1_register";
        argv[2] = "1";
        argv[3] = ROOT;
        rest = mem_strdup(forms[i]);
        (void)keep(rest);
        while ((word = strsep(&rest, " ")) != NULL)
            argv[argc++] = strcmp(word, "N") == 0 ? text("%d", PAIRS) : word;
        for (int k = 0; k < PAIRS; k++) {
            argv[argc++] = text("max_payload:%d", k);
            argv[argc++] = "1";
        }
        for (size_t k = i; k < 2; k++)
            argv[argc++] = "0";
        before = fingerprint();
        if (starts(send_args(argc, argv, NULL), "!"))
            assert_string_equal(before, fingerprint());
        else
            assert_int_equal(strlen(redis("HGET R:worker:%s inst", at(1, -1))), 4);
        assert_one_set(forms[i]);
    }
    free(argv);
}

/* ---- a server that refuses */

/* Calls that take memory without being needed to end a job. */
static bool is_add(const char *call)
{
    static const char *const takers[] = {"later_add",         "later_batch ",    "later_lock ",
                                         "later_sem_acquire", "later_throttle",  "later_limit_set",
                                         "later_v1_enter",    "later_v1_import", "later_seen "};

    for (size_t i = 0; i < COUNT(takers); i++)
        if (starts(call, takers[i]))
            return true;
    return false;
}

static bool only_reads(const char *call)
{
    static const char *const readers[] = {
        "later_show",        "later_explain",       "later_v1_gates",    "later_result",
        "later_stats",       "later_version",       "later_v1_list",     "later_v1_workers",
        "later_v1_suspects", "later_limits",        "later_fence_check", "later_v1_health",
        "later_v1_rights",   "later_v1_audit",      "later_v2_look",     "later_v1_known",
        "later_batch_show",  "later_batch_jobs",    "later_v1_batches",  "later_seen_list",
        "later_v1_queues",   "later_v1_running",    "later_v1_summary",  "later_v1_reasons",
        "later_v1_ahead",    "later_v1_gate_names", "later_bulk_show",   "later_v1_tenants"};

    for (size_t i = 0; i < COUNT(readers); i++)
        if (starts(call, readers[i]))
            return true;
    return false;
}

/* A full server: adds are refused, everything else works as usual. */
static void test_full_server(void **state)
{
    (void)state;
    make_world();
    (void)redis("CONFIG SET maxmemory 1");
    for (size_t i = 0; i < COUNT(CALLS); i++) {
        struct call_args w;
        bool refused;

        split(CALLS[i], &w);
        refused = call_and_judge(&w, is_add(CALLS[i]) ? "OOM" : NULL, "full");
        if (is_add(CALLS[i]))
            assert_true(refused);
    }
    assert_one_set("a full server");
    (void)fx_calm(NULL);
    make_world();
    (void)redis("CONFIG SET maxmemory 1");
    assert_string_equal(fcall("later_cancel %s", meant("$A")), "cancelled");
    assert_string_equal(settle(meant("$W2"), meant("$R3"), 1, "done", 0), "ok");
    assert_starts(fcall("later_v1_reap %s 77 ? 5 100", meant("$W1")), "[clear 1]");
    assert_starts(fcall("later_v1_tidy %s 1 mail 0", meant("$W1")), "[[");
    assert_string_equal(redis("EXISTS R:dead:mail"), "0");
    assert_int_equal(strlen(claim(meant("$W1"), "sms", 5)), 12);
    (void)redis("CONFIG SET maxmemory 0");
    assert_one_set("a full server");
}

/* Without its replicas, and as a replica: writing calls are refused as a whole, reading calls
 * work. */
static void refuse_writers(const char *code)
{
    for (size_t i = 0; i < COUNT(CALLS); i++) {
        struct call_args w;

        split(CALLS[i], &w);
        if (only_reads(CALLS[i])) {
            assert_false(call_and_judge(&w, NULL, code));
        } else {
            assert_true(call_and_judge(&w, code, code));
        }
    }
}

static void test_no_replicas(void **state)
{
    (void)state;
    make_world();
    (void)redis("CONFIG SET min-replicas-to-write 1");
    refuse_writers("NOREPLICAS");
    (void)redis("CONFIG SET min-replicas-to-write 0");
}

static void test_read_only_replica(void **state)
{
    (void)state;
    make_world();
    (void)redis("REPLICAOF 127.0.0.1 1");
    refuse_writers("READONLY");
    (void)redis("REPLICAOF NO ONE");
    assert_one_set("a replica");
}

int main(void)
{
    const struct CMUnitTest tests[] = {CALM_TEST(test_hostile_arguments),
                                       CALM_TEST(test_odd_arguments),
                                       CALM_TEST(test_roots),
                                       CALM_TEST(test_long_lists),
                                       CALM_TEST(test_full_server),
                                       CALM_TEST(test_no_replicas),
                                       CALM_TEST(test_read_only_replica)};

    cmocka_set_test_filter(getenv("LATER_ONLY"));
    return cmocka_run_group_tests(tests, fx_open, fx_close);
}
